"""Denizen: a self-hosted runtime for living agents."""

from __future__ import annotations

from denizen.app import Runtime
from denizen.clock import ManualClock
from denizen.models.scripted import call, forever, reply, say, scripted, skip, think
from denizen.tools.functions import tool

__version__ = "0.1.0"

__all__ = [
    "ManualClock",
    "Runtime",
    "call",
    "forever",
    "reply",
    "say",
    "scripted",
    "skip",
    "think",
    "tool",
]
