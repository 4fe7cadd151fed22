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


CycleOutcome: TypeAlias = Acted | Skipped | Failed
