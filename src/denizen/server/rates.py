"""Rate limits: a token bucket for each caller, which refills with time.

In memory, by each process separately. If there are too many, the least recently used are dropped: they are
full or nearly so.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from denizen.clock import SECOND, Clock, Instant

COUNTED: Final = 20_000
"""How many callers are counted at once."""


@dataclass(slots=True)
class _Bucket:
    left: float
    at: Instant


class Rates:
    """Allows each caller `per_minute` tries a minute, also all at once; 0: unlimited."""

    def __init__(self, per_minute: int, clock: Clock) -> None:
        self._full = float(per_minute)
        self._clock = clock
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, asker: str) -> float:
        """Takes one try and returns 0; otherwise takes none and returns the seconds until the next is available."""
        wait = self.wait(asker)
        if not wait and self._full:
            self._buckets[asker].left -= 1
        return wait

    def wait(self, asker: str) -> float:
        """Returns the seconds until the caller may try; 0 if it may now."""
        if not self._full:
            return 0.0
        now, bucket = self._clock.now(), self._buckets.get(asker)
        if bucket is None:
            bucket = self._buckets[asker] = _Bucket(self._full, now)
            if len(self._buckets) > COUNTED:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(asker)
        gained = max(now - bucket.at, 0) / SECOND * self._full / 60
        bucket.left, bucket.at = min(self._full, bucket.left + gained), now
        return 0.0 if bucket.left >= 1 else (1 - bucket.left) * 60 / self._full
