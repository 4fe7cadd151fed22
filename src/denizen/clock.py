"""Time: microseconds since 1970, UTC, from a clock that tests can replace."""

from __future__ import annotations

import asyncio
import heapq
import time
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from itertools import count
from typing import Final, NewType, Protocol
from zoneinfo import ZoneInfo

Instant = NewType("Instant", int)
"""Microseconds since 1970, UTC."""

SECOND = 1_000_000

LATEST: Final = Instant(221_845_392_000 * SECOND)
"""The beginning of the year 9000: times before it can be formatted in any zone."""


class Clock(Protocol):
    """Tells the time, and waits."""

    def now(self) -> Instant: ...

    async def sleep(self, seconds: float) -> None: ...

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        """Waits for the event, at most so long; returns whether it is set."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> Instant:
        return Instant(time.time_ns() // 1_000)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            return event.is_set()
        return True


class ManualClock:
    """A clock for tests: it stands still until it is moved; sleepers wake when it passes their time."""

    def __init__(self, start: datetime = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)) -> None:
        self._now = instant(start)
        self._order = count()
        self._sleepers: list[tuple[int, int, asyncio.Future[None]]] = []
        self._fell_asleep = asyncio.Event()

    def now(self) -> Instant:
        return Instant(self._now)

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            return
        waiting = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + int(seconds * SECOND), next(self._order), waiting))
        self._fell_asleep.set()
        await waiting

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        waiting = {asyncio.ensure_future(event.wait()), asyncio.ensure_future(self.sleep(seconds))}
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waiting:
                each.cancel()
        return event.is_set()

    def advance(self, seconds: float) -> None:
        """Moves on by `seconds` and wakes those who slept until then."""
        self._move_to(self._now + int(seconds * SECOND))

    def skip(self, most: float) -> bool:
        """Moves on to the next sleeper's time, if that is in at most `most` seconds; returns whether it moved.

        While nobody sleeps it stands still, so that no time passes while work is in progress.
        """
        at = self._next()
        if at is None or at - self._now > int(most * SECOND):
            return False
        self._move_to(max(at, self._now))
        return True

    async def sleeper(self, most: float) -> None:
        """Returns when there is a sleeper that will wake in at most `most` seconds."""
        while (at := self._next()) is None or at - self._now > int(most * SECOND):
            self._fell_asleep.clear()
            await self._fell_asleep.wait()

    def _next(self) -> int | None:
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)
        return self._sleepers[0][0] if self._sleepers else None

    def _move_to(self, now: int) -> None:
        self._now = Instant(now)
        while self._sleepers and self._sleepers[0][0] <= self._now:
            waiting = heapq.heappop(self._sleepers)[2]
            if not waiting.done():
                waiting.set_result(None)


def instant(moment: datetime) -> Instant:
    """The instant of an aware `datetime`."""
    return Instant(int(moment.timestamp() * SECOND))


def moment(at: int) -> datetime:
    """The UTC `datetime` of an instant."""
    return datetime.fromtimestamp(at / SECOND, UTC)


@lru_cache(maxsize=512)
def zone_or_utc(name: str) -> tzinfo:
    """Returns the time zone of that name; UTC if this machine does not know it, because another one may have.

    For formatting times. Code that takes a name from outside refuses unknown ones: `plans.schedule.named_zone`.
    """
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return UTC
