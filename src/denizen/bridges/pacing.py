"""Limits how fast a service is asked."""

from __future__ import annotations

from denizen.clock import SECOND, Clock


class Pace:
    """So many seconds between two requests of the same kind, on average; a few at once are allowed."""

    def __init__(self, clock: Clock, seconds: float, burst: int) -> None:
        self._clock, self._each, self._burst = clock, int(seconds * SECOND), burst
        self._next: dict[str, int] = {}

    async def turn(self, key: str) -> None:
        """Wait until it is the turn of a request of this kind."""
        now = self._clock.now()
        at = max(self._next.get(key, 0), now - self._burst * self._each) + self._each
        self._next[key] = at
        await self._clock.sleep((at - now) / SECOND)
