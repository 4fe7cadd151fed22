"""The result of an import."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from denizen.portability.lines import Kind


@dataclass(frozen=True, slots=True)
class Imported:
    """What was imported."""

    kind: Kind
    id: str
    name: str
    handle: str
    """The agent's handle; empty for a space."""
    counts: Mapping[str, int]
    """Lines by kind."""
    secrets: tuple[str, ...] = ()
    """The names of the secrets that an agent uses: they have to be added here as well."""
    dangers: tuple[str, ...] = ()
    """Parts of an agent's definition that start programs or reach private addresses: review them first."""
    unpriced: tuple[str, ...] = ()
    """Models without a known price, of an agent with a budget in dollars: it cannot think until they have one."""
    people: tuple[str, ...] = ()
    """Handles of people and services that were created."""
    absent: tuple[str, ...] = ()
    """Handles of agents that were in a space and are not here: their messages are, under their names."""
