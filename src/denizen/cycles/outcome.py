"""How a think cycle ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Acted:
    """It is part of the agent's life now."""

    number: int
    summary: str
    stop_reason: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """It left no trace."""

    reason: str


@dataclass(frozen=True, slots=True)
class Failed:
    """It was undone, or stays open to be resumed; nothing is lost."""

    error: str
    undone: bool


@dataclass(frozen=True, slots=True)
class Paused:
    """It waits for people's answers. Nobody holds its agent meanwhile."""


@dataclass(frozen=True, slots=True)
class Rested:
    """A budget is used up: what was not thought about waits, and the agent is suspended until it may go on."""

    scope: str


CycleOutcome: TypeAlias = Acted | Skipped | Failed | Paused | Rested
