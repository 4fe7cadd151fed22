"""The first world: made once, however many come to an empty database at the same moment."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from denizen import Runtime
from denizen.spaces import directory
from denizen.welcome import welcome


async def test_instances_that_are_started_together_make_one_world(ready_url: str) -> None:
    """On PostgreSQL nothing else keeps them apart: each saw an empty database, and each made a house in it."""
    async with AsyncExitStack() as stack:
        runtimes = [await stack.enter_async_context(Runtime(ready_url)) for _ in range(4)]
        worlds = await asyncio.gather(*(welcome(each, "Noor") for each in runtimes))
        assert sorted(world.new for world in worlds) == [False, False, False, True]
        assert len({world.owner.id for world in worlds}) == 1
        assert len(await runtimes[0].db.read(directory.list_organizations)) == 1
