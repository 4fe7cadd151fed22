"""A broken invariant, and where it was found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, bindparam

from denizen.storage.database import Statement, statement


@dataclass(frozen=True, slots=True)
class Violation:
    """A violation of an invariant."""

    invariant: int
    """The number of the invariant: 0 related rows, 1 one history, 2 messages and inboxes, 3 events, 4 nothing twice, 5
    one thinker, 6 skips, 8 the prompt is a log, 10 nothing is forgotten by accident, 11 everyone who waits is answered,
    or told why.
    """
    sentence: str
    ids: tuple[str, ...] = ()
    """The ids of the rows concerned."""


def rows_of(query: Select[*tuple[Any, ...]], column: Any) -> Statement:
    """Selects the rows of what the parameter `id` names."""
    return statement(query.where(column == bindparam("id")))
