"""Decides when a cycle stops. Pure except for the owner's own functions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from denizen.cycles.settings import RESPONDED_TO_ALL, CycleSettings
from denizen.cycles.steps import StepContext, call_function

Stop = Callable[[StepContext], bool | Awaitable[bool]]
"""Whether a cycle should end here. May be asynchronous."""


def responded_to_all(context: StepContext) -> bool:
    """Whether at least one message was sent for every event."""
    return context.sent >= len(context.events) > 0


BUILT_IN: Final[Mapping[str, Stop]] = {RESPONDED_TO_ALL: responded_to_all}


def limit_reached(settings: CycleSettings, context: StepContext) -> str | None:
    """The limit that forbids a further step, or None."""
    if context.step >= settings.max_steps:
        return "max_steps"
    if context.tokens >= context.allowed_tokens:
        return "token_budget"
    if settings.max_dollars is not None and context.cost_micros >= settings.max_dollars * 1_000_000:
        return "max_dollars"
    if settings.max_seconds is not None and context.seconds >= settings.max_seconds:
        return "max_seconds"
    if context.room <= 0:
        return "window_full"
    return None


async def stop_reason(settings: CycleSettings, context: StepContext, stops: Mapping[str, Stop]) -> str | None:
    """Why no further step may be taken, or None."""
    if (limit := limit_reached(settings, context)) is not None:
        return limit
    for condition in settings.stop_when:
        if isinstance(condition, str):
            if await call_function(condition, stops[condition], context):
                return condition
        elif context.succeeded(condition.after) >= condition.times:
            return f"after {condition.after}"
    return None
