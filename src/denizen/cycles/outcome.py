"""The possible outcomes of a think cycle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Acted:
    """The cycle ended and is part of the agent's history."""

    number: int
    summary: str
    stop_reason: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """The cycle left no trace."""

    reason: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The cycle was undone, or stays open to be resumed; nothing is lost."""

    error: str
    undone: bool


@dataclass(frozen=True, slots=True)
class Paused:
    """The cycle waits for people's answers. Nobody holds its agent meanwhile."""


@dataclass(frozen=True, slots=True)
class Rested:
    """A budget is used up: unread events wait, and the agent is suspended until there is budget again."""

    scope: str


CycleOutcome: TypeAlias = Acted | Skipped | Failed | Paused | Rested
