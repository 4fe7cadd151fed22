"""What an import came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from denizen.portability.lines import Kind


@dataclass(frozen=True, slots=True)
class Imported:
    """What came in."""

    kind: Kind
    id: str
    name: str
    handle: str
    """Of an agent; empty of a space."""
    counts: Mapping[str, int]
    """Lines by their kinds."""
    secrets: tuple[str, ...] = ()
    """The names of secrets that an agent uses: they are to be kept here as well."""
    dangers: tuple[str, ...] = ()
    """Parts of an agent's definition that start programs or reach private addresses: to be looked at first."""
    unpriced: tuple[str, ...] = ()
    """Models of an agent with a budget in dollars whose price is unknown here: it cannot think until it is known."""
    people: tuple[str, ...] = ()
    """Handles of people and services that were not here before."""
    absent: tuple[str, ...] = ()
    """Handles of agents that were in a space and are not here: their words are, under their names."""
