"""Calls a function for everything published on a topic, while a context is entered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Final

from denizen.bus.port import Bus, Frame, Gap
from denizen.errors import SubscriberTooSlow
from denizen.telemetry.logs import get_logger

if TYPE_CHECKING:
    from pydantic import JsonValue

log_line = get_logger(__name__)

MOST_UNHEARD: Final = 100_000
"""How many frames may wait to be processed."""


@asynccontextmanager
async def hearing(
    bus: Bus, topic: str, hear: Callable[[Frame | Gap], None], *, most_unheard: int = MOST_UNHEARD
) -> AsyncGenerator[None]:
    """While entered, passes every frame of the topic to `hear`; if more frames arrive than it can take, a `Gap`."""
    ready = asyncio.Event()
    # Not a task group: errors inside the `with` block are not this task's, and must be raised unwrapped.
    task = asyncio.create_task(_listen(bus, topic, hear, most_unheard, ready), name=f"hearing {topic}")
    try:
        await ready.wait()
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


def hearing_others(
    bus: Bus,
    topic: str,
    instance: str,
    hear: Callable[[Mapping[str, JsonValue]], None],
    *,
    missed: Callable[[], None],
    most_unheard: int = MOST_UNHEARD,
) -> AbstractAsyncContextManager[None]:
    """While entered, passes what other instances publish on the topic to `hear`; if some of it was lost, calls
    `missed`.
    """

    def hear_item(item: Frame | Gap) -> None:
        if isinstance(item, Gap):
            missed()
        elif item.payload.get("by") != instance:
            hear(item.payload)

    return hearing(bus, topic, hear_item, most_unheard=most_unheard)


async def _listen(
    bus: Bus, topic: str, hear: Callable[[Frame | Gap], None], most_unheard: int, ready: asyncio.Event
) -> None:
    missed = False
    try:
        while True:
            async with bus.subscribe(topic, limit=most_unheard) as heard:
                ready.set()
                if missed:
                    hear(Gap())
                try:
                    async for item in heard:
                        hear(item)
                    return
                except SubscriberTooSlow:
                    log_line.warning("hints missed", topic=topic)
                    missed = True
    finally:
        ready.set()
