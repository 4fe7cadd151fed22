"""The alarm clock of an instance: fires due plans, and wakes for the next known time.

It only says when to look. Every instance has one; the transaction that fires a plan lets only one of them through.
"""

from __future__ import annotations

import asyncio

from denizen.clock import SECOND, Clock, Instant
from denizen.plans.firing import BATCH, fire_due, outlook, reckon_again
from denizen.storage.database import Database


class Alarm:
    """Knows the nearest time at which a plan of any agent is due, as far as this instance was told."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._nearest: Instant | None = None
        self._set = asyncio.Event()

    def expect(self, at: Instant) -> None:
        """A plan will be due then."""
        if self._nearest is None or at < self._nearest:
            self._nearest = at
            self._set.set()

    async def wait(self, seconds: float) -> bool:
        """Wait until something may be due, at most this long. Returns whether something may be due."""
        if self._nearest is not None:
            seconds = min(seconds, max((self._nearest - self._clock.now()) / SECOND, 0))
        self._set.clear()
        await self._clock.wait(self._set, seconds)
        return self._nearest is not None and self._nearest <= self._clock.now()

    async def ring(self) -> None:
        """Put everything that is due into the inboxes. Costs one read if nothing is due."""
        self._nearest = None
        seen = await self._db.read(outlook)
        late = seen.nearest is not None and seen.nearest <= seen.now
        if seen.displaced:
            while await self._db.write(reckon_again) == BATCH:
                pass
        if late or seen.displaced:
            while await self._db.write(fire_due) == BATCH:
                pass
            seen = await self._db.read(outlook)
        if seen.nearest is not None:
            # The database may have a clock of its own, so the remaining time counts, not the time of day.
            self.expect(Instant(self._clock.now() + seen.nearest - seen.now))
