"""Hints from other instances: who may have something to do. Losing them delays work until the next sweep."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from denizen.agents.residents import Residents
from denizen.bus.port import Bus, Gap
from denizen.bus.streams import WAKE, woken


@asynccontextmanager
async def listening(bus: Bus, residents: Residents, instance: str) -> AsyncGenerator[None]:
    """Inside, what other instances announce wakes the residents of this one."""
    async with bus.subscribe(WAKE, limit=100_000) as hints, asyncio.TaskGroup() as tasks:

        async def listen() -> None:
            async for frame in hints:
                if isinstance(frame, Gap):
                    continue  # the sweep finds what was missed
                if frame.payload.get("by") != instance:
                    for agent_id in woken(frame.payload):
                        residents.hint(agent_id)

        task = tasks.create_task(listen(), name="wake hints")
        yield
        task.cancel()
