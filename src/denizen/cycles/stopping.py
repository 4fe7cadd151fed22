"""When a cycle has gone on long enough. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from denizen.cycles.settings import CycleSettings


@dataclass(frozen=True, slots=True)
class Spent:
    """What a cycle has used and done so far."""

    steps: int
    tokens: int
    """Added by this cycle: written by the model, or new for it to read. Never the past."""
    allowed_tokens: int
    """How many it may add: the setting, or what the window leaves it."""
    cost_micros: int
    room: int
    """Tokens that the window still has for this cycle, if everything older leaves it."""
    seconds: float = 0.0
    events: int = 0
    """How many events it was woken by or told of."""
    sent: int = 0
    """How many messages it has sent."""


Stop = Callable[[Spent], bool]
"""Whether a cycle should end here."""

RESPONDED_TO_ALL: Final = "responded_to_all"


def responded_to_all(spent: Spent) -> bool:
    """Whether there has been a message for every event."""
    return spent.sent >= spent.events > 0


BUILT_IN: Final[Mapping[str, Stop]] = {RESPONDED_TO_ALL: responded_to_all}


def stop_reason(settings: CycleSettings, spent: Spent, stops: Mapping[str, Stop]) -> str | None:
    """Why no further step may be taken, or None if one may."""
    if spent.steps >= settings.max_steps:
        return "max_steps"
    if spent.tokens >= spent.allowed_tokens:
        return "token_budget"
    if settings.max_dollars is not None and spent.cost_micros >= settings.max_dollars * 1_000_000:
        return "max_dollars"
    if settings.max_seconds is not None and spent.seconds >= settings.max_seconds:
        return "max_seconds"
    if spent.room <= 0:
        return "window_full"
    return next((name for name in settings.stop_when if stops[name](spent)), None)
