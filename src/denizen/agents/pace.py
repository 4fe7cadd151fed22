"""How often agents are looked after, and how long they stay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from denizen.consciousness.lease import LEASE_SECONDS

WARM_SECONDS: Final = 60
SWEEP_SECONDS: Final = 2


@dataclass(frozen=True, slots=True)
class Pace:
    """Intervals and durations. Tests and large servers may change them."""

    lease_seconds: float = LEASE_SECONDS
    warm_seconds: float = WARM_SECONDS
    sweep_seconds: float = SWEEP_SECONDS
    grace_seconds: float = 20.0
    """How long a running cycle may take to finish when the process is told to stop."""
