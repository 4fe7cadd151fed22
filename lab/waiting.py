"""Waiting for something, for a time that only goes on while none of the processes waits for a processor.

On a machine with other work to do, everything may stand still for longer than any bound, and nothing is wrong.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

TICK_SECONDS: Final = 1.0
LONGEST: Final = 20
"""However busy the machine is, nothing is waited for longer than so many times what was asked."""


def counted(elapsed: float, before: Mapping[str, int], after: Mapping[str, int]) -> float:
    """The seconds of a tick in which no thread waited for a processor, if they waited one by one.

    They may have waited at the same time, but never for longer than what passed. A thread that has ended does not
    count. If more passed than the tick, we stood still, and whoever stands still cannot tell what others did.
    """
    waited = sum(nanoseconds - before.get(thread, 0) for thread, nanoseconds in after.items())
    return max(min(elapsed, TICK_SECONDS) - waited / 1e9, 0.0)


def queued(pids: Iterable[int]) -> dict[str, int]:
    """How many nanoseconds each thread of these processes has waited for a processor so far."""
    found: dict[str, int] = {}
    for pid in pids:
        for thread in _threads(pid):
            with suppress(OSError):  # it has ended just now
                found[str(thread)] = int((thread / "schedstat").read_text().split()[1])
    return found


def children(pid: int) -> list[int]:
    """The processes that this one has started; none if it has ended."""
    found: list[int] = []
    for each in _threads(pid):
        with suppress(OSError):
            found += map(int, (each / "children").read_text().split())
    return found


def _threads(pid: int) -> list[Path]:
    """The folders of its threads; none if it has ended, which it may at any instant."""
    try:
        return [*Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return []


async def happens(
    what: Awaitable[Any],
    seconds: float,
    pids: Callable[[], Iterable[int]],
    tell_starved: Callable[[float], object] = lambda _: None,
) -> bool:
    """Whether it does within so many seconds in which none of these processes waited for a processor.

    `tell_starved` is told of the seconds that did not count, if one of them was most of a tick.
    """
    left, last, before = seconds, time.monotonic(), queued(pids())
    end = last + LONGEST * seconds
    doing = asyncio.ensure_future(what)
    try:
        while left > 0 and last < end:
            done, _ = await asyncio.wait({doing}, timeout=min(TICK_SECONDS, left))
            if done:
                doing.result()
                return True
            now, after = time.monotonic(), queued(pids())
            counts = counted(now - last, before, after)
            left -= counts
            if (starved := now - last - counts) > TICK_SECONDS / 2:
                tell_starved(round(starved, 2))
            last, before = now, after
        return False
    finally:
        doing.cancel()
        await asyncio.gather(doing, return_exceptions=True)
