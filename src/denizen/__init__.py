"""Denizen: a self-hosted runtime for living agents."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from denizen.app import Runtime
    from denizen.clock import ManualClock
    from denizen.cycles.steps import NextStep, StepContext
    from denizen.models.scripted import call, forever, reply, say, scripted, skip, think
    from denizen.tools.functions import tool

__version__ = "0.1.0"

__all__ = [
    "ManualClock",
    "NextStep",
    "Runtime",
    "StepContext",
    "call",
    "forever",
    "reply",
    "say",
    "scripted",
    "skip",
    "think",
    "tool",
]

_PLACES = {
    "ManualClock": "denizen.clock",
    "NextStep": "denizen.cycles.steps",
    "Runtime": "denizen.app",
    "StepContext": "denizen.cycles.steps",
    "call": "denizen.models.scripted",
    "forever": "denizen.models.scripted",
    "reply": "denizen.models.scripted",
    "say": "denizen.models.scripted",
    "scripted": "denizen.models.scripted",
    "skip": "denizen.models.scripted",
    "think": "denizen.models.scripted",
    "tool": "denizen.tools.functions",
}
"""Where each public name lives. It is loaded when it is first used: `denizen --help` needs no language model."""


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_PLACES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
