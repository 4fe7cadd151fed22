"""The first world: made once, however many come to an empty database at the same moment."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from denizen import Runtime
from denizen.agents import registry
from denizen.agents.chatting import private_space
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


async def test_its_private_rooms_are_those_that_every_way_in_leads_to(ready_sqlite_url: str) -> None:
    """A second room of the same two was made by the first request through HTTP, and `@ada` meant either."""
    async with Runtime(ready_sqlite_url) as runtime:
        owner = (await welcome(runtime, "Noor")).owner
        before = await runtime.db.read(directory.spaces_of, owner.id)
        for agent, _ in await runtime.db.read(registry.living_agents, owner.organization_id):
            await runtime.db.write(private_space, owner, agent)
        assert await runtime.db.read(directory.spaces_of, owner.id) == before
