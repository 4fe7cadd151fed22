"""Cycles of which nothing is kept but lines in the ledger: those that were skipped, and those that were undone.

The ledger belongs to all agents together and is in the order of time: only so many of its lines are looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from sqlalchemy import bindparam, select

from denizen.clock import SECOND
from denizen.ids import AgentId, CycleId
from denizen.storage.database import Tx, statement
from denizen.storage.schema import cycles, ledger

LOOKED_AT: Final = 5_000
"""Lines of the ledger, of whatever agent."""
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


_lines = (
    select(ledger)
    .where(ledger.c.number <= bindparam("last"))
    .order_by(ledger.c.number.desc())
    .limit(LOOKED_AT)
    .subquery("lines")
)
_of_agent = statement(
    select(
        _lines.c.cycle_id,
        _lines.c.kind,
        _lines.c.detail,
        _lines.c.created_at,
        _lines.c.model,
        _lines.c.input_tokens,
        _lines.c.output_tokens,
        _lines.c.cost_micros,
    )
    .select_from(_lines.outerjoin(cycles, cycles.c.id == _lines.c.cycle_id))
    .where(_lines.c.agent_id == bindparam("agent_id"), cycles.c.id.is_(None))
    .order_by(_lines.c.number.desc())
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
    last = _line_at(tx, until + _UNORDERED)
    rows = tx.all(_of_agent, agent_id=agent_id, last=last)
    oldest = tx.one(_line, last=last - LOOKED_AT)
    seen_all = oldest is None or oldest[1] < since - _UNORDERED
    found = [each for each in _told(rows) if since <= each.at < until]
    return found[:MOST_FOUND], seen_all and len(found) <= MOST_FOUND


def _told(rows: Sequence[tuple[Any, ...]]) -> list[Unkept]:
    """What the lines say, which are in falling order: why each cycle came to nothing, and what it cost in all."""
    why: dict[str, tuple[Any, ...]] = {}
    used: dict[str, tuple[int, int, int]] = {}
    models: dict[str, str] = {}
    for cycle_id, kind, detail, at, model, read, written, cost in rows:
        if kind != "usage":
            why.setdefault(cycle_id, (kind, detail, at))
        if model is not None:
            models.setdefault(cycle_id, model)
        before = used.get(cycle_id, (0, 0, 0))
        used[cycle_id] = (before[0] + read, before[1] + written, before[2] + (cost or 0))
    return [
        Unkept(
            CycleId(cycle_id),
            "skipped" if kind == "skip" else "undone",
            detail or "",
            at,
            models.get(cycle_id),
            *used[cycle_id],
        )
        for cycle_id, (kind, detail, at) in why.items()
    ]


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
