"""Hints from other instances: who may have something to do. Losing them delays work until the next sweep."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

import structlog

from denizen.agents.residents import Residents
from denizen.bus.port import Bus, Gap, Subscription
from denizen.bus.streams import WAKE, woken
from denizen.errors import SubscriberTooSlow

log_line = structlog.get_logger(__name__)

MOST_UNHEARD: Final = 100_000
"""Hints that may wait to be heard."""


@asynccontextmanager
async def listening(
    bus: Bus, residents: Residents, instance: str, *, most_unheard: int = MOST_UNHEARD
) -> AsyncGenerator[None]:
    """Inside, what other instances announce wakes the residents of this one."""
    ready = asyncio.Event()
    # No task group: what goes wrong inside is not this task's, and shall be raised as it is.
    task = asyncio.create_task(_listen(bus, residents, instance, most_unheard, ready), name="wake hints")
    try:
        await ready.wait()
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _listen(bus: Bus, residents: Residents, instance: str, most_unheard: int, ready: asyncio.Event) -> None:
    while True:
        async with bus.subscribe(WAKE, limit=most_unheard) as hints:
            ready.set()
            try:
                return await _hear(hints, residents, instance)
            except SubscriberTooSlow:
                log_line.warning("hints missed", hints=most_unheard)  # the sweep finds whom they were about


async def _hear(hints: Subscription, residents: Residents, instance: str) -> None:
    async for frame in hints:
        if isinstance(frame, Gap):
            continue  # the sweep finds what was missed
        if frame.payload.get("by") != instance:
            for agent_id in woken(frame.payload):
                residents.hint(agent_id)
