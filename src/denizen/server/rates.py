"""How often someone may ask: a bucket of tries for each of them, which fills again with time.

In memory, and so for each process by itself. What is forgotten when too many are counted were full buckets, or nearly.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from denizen.clock import SECOND, Clock, Instant

COUNTED: Final = 20_000
"""How many askers are counted at once."""


@dataclass(slots=True)
class _Bucket:
    left: float
    at: Instant


class Rates:
    """Each asker may ask `per_minute` times a minute, all at once if it likes; 0 is without end."""

    def __init__(self, per_minute: int, clock: Clock) -> None:
        self._full = float(per_minute)
        self._clock = clock
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, asker: str) -> float:
        """One try is taken; 0, or the seconds until there is one again, and then none was taken."""
        wait = self.wait(asker)
        if not wait and self._full:
            self._buckets[asker].left -= 1
        return wait

    def wait(self, asker: str) -> float:
        """The seconds until the asker may try; 0 if it may now."""
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
