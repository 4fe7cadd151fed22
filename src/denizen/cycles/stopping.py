"""When a cycle has gone on long enough. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from denizen.cycles.settings import CycleSettings


@dataclass(frozen=True, slots=True)
class Spent:
    """What a cycle has used so far."""

    steps: int
    tokens: int
    """Added by this cycle: written by the model, or new for it to read. Never the past."""
    allowed_tokens: int
    """How many it may add: the setting, or what the window leaves it."""
    cost_micros: int
    room: int
    """Tokens that the window still has for this cycle, if everything older leaves it."""


def stop_reason(settings: CycleSettings, spent: Spent) -> str | None:
    """Why no further step may be taken, or None if one may."""
    if spent.steps >= settings.max_steps:
        return "max_steps"
    if spent.tokens >= spent.allowed_tokens:
        return "token_budget"
    if settings.max_dollars is not None and spent.cost_micros >= settings.max_dollars * 1_000_000:
        return "max_dollars"
    if spent.room <= 0:
        return "window_full"
    return None
