"""Cycles of which nothing is kept but lines in the ledger: those that were skipped, and those that were undone.

Their ends are found by an index. What they used before that is not: so many lines before each end are looked through.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from sqlalchemy import bindparam, select

from denizen.clock import SECOND
from denizen.cycles.ledger import LOOKED_AT, spent
from denizen.ids import AgentId, CycleId
from denizen.storage.database import Tx, statement
from denizen.storage.schema import cycles, ledger

MOST_FOUND: Final = 200
_UNORDERED: Final = 60 * SECOND
"""By so much the order of the ledger and that of time may differ: lines written at once are numbered as they come."""


@dataclass(frozen=True, slots=True)
class Unkept:
    """A cycle that left no trace in its agent's life."""

    cycle_id: CycleId
    outcome: Literal["skipped", "undone"]
    reason: str
    at: int
    model: str | None
    input_tokens: int
    output_tokens: int
    cost_micros: int


_ends = statement(
    select(ledger.c.number, ledger.c.cycle_id, ledger.c.kind, ledger.c.detail, ledger.c.created_at)
    .select_from(ledger.outerjoin(cycles, cycles.c.id == ledger.c.cycle_id))
    .where(
        ledger.c.agent_id == bindparam("agent_id"),
        ledger.c.kind != "usage",  # word for word the condition of the partial index
        ledger.c.number > bindparam("after"),
        ledger.c.number <= bindparam("last"),
        ledger.c.created_at >= bindparam("since"),
        ledger.c.created_at < bindparam("until"),
        cycles.c.id.is_(None),
    )
    .order_by(ledger.c.number.desc())
    .limit(bindparam("limit"))
)
_line = statement(
    select(ledger.c.number, ledger.c.created_at)
    .where(ledger.c.number <= bindparam("last"))
    .order_by(ledger.c.number.desc())
    .limit(1)
)
_LAST: Final = 2**62


def unkept(tx: Tx, agent_id: AgentId, since: int, until: int) -> tuple[list[Unkept], bool]:
    """Those that ended from `since` up to, not with, `until`, the newest first; and whether these are all of them."""
    between = {"after": _line_at(tx, since - _UNORDERED), "last": _line_at(tx, until + _UNORDERED)}
    rows = tx.all(_ends, agent_id=agent_id, **between, since=since, until=until, limit=MOST_FOUND + 1)
    ends: dict[str, tuple[Any, ...]] = {}
    for row in rows[:MOST_FOUND]:
        ends.setdefault(row[1], row)
    lines = LOOKED_AT // max(len(ends), 1)
    return [_told(tx, row, lines) for row in ends.values()], len(rows) <= MOST_FOUND


def _told(tx: Tx, end: tuple[Any, ...], lines: int) -> Unkept:
    number, cycle_id, kind, detail, at = end
    used = spent(tx, cycle_id, up_to=number, lines=lines)
    return Unkept(
        CycleId(cycle_id),
        "skipped" if kind == "skip" else "undone",
        detail or "",
        at,
        used.model,
        used.input_tokens,
        used.output_tokens,
        used.cost_micros or 0,
    )


def _line_at(tx: Tx, at: int) -> int:
    """The number of the last line that is not newer; found by halving, because lines are indexed by number only."""
    newest = tx.one(_line, last=_LAST)
    if newest is None or newest[1] <= at:
        return _LAST if newest is None else newest[0]
    low, high = 0, newest[0]
    while high - low > 1:
        middle = (low + high) // 2
        line = tx.one(_line, last=middle)
        if line is None or line[1] <= at:
            low = middle
        else:
            high = line[0]
    return low
