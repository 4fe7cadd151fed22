"""Skipped and undone cycles, of which only lines in the ledger are kept.

Their ends are found by an index. Their usage is not: the lines of all agents are read, from what the agent did before
the first of them up to the last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from sqlalchemy import bindparam, select

from denizen.cycles.ledger import NOTHING, UNORDERED, Charge, line_at, line_before, spent_between
from denizen.ids import AgentId, CycleId
from denizen.storage.database import Tx, statement
from denizen.storage.schema import cycles, ledger

MOST_FOUND: Final = 200


@dataclass(frozen=True, slots=True)
class SkippedCycle:
    """A cycle that is not part of its agent's history."""

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
        ledger.c.kind != "usage",  # must match the condition of the partial index exactly
        ledger.c.number > bindparam("after"),
        ledger.c.number <= bindparam("last"),
        ledger.c.created_at >= bindparam("since"),
        ledger.c.created_at < bindparam("until"),
        cycles.c.id.is_(None),
    )
    .order_by(ledger.c.number.desc())
    .limit(bindparam("limit"))
)


def unkept(tx: Tx, agent_id: AgentId, since: int, until: int) -> tuple[list[SkippedCycle], bool]:
    """The cycles that ended from `since` to before `until`, newest first; and whether these are all of them."""
    between = {"after": line_at(tx, since - UNORDERED), "last": line_at(tx, until + UNORDERED)}
    rows = tx.all(_ends, agent_id=agent_id, **between, since=since, until=until, limit=MOST_FOUND + 1)
    ends = [_End(*row) for row in rows[:MOST_FOUND]]
    if not ends:
        return [], True
    spent = spent_between(tx, agent_id, line_before(tx, agent_id, ends[-1].cycle_id, ends[-1].number), ends[0].number)
    # A cycle that failed more than once counts with its last failure.
    last: dict[CycleId, _End] = {}
    for each in ends:
        last.setdefault(each.cycle_id, each)
    return [_told(each, spent.get(each.cycle_id, NOTHING)) for each in last.values()], len(rows) <= MOST_FOUND


@dataclass(frozen=True, slots=True)
class _End:
    number: int
    cycle_id: CycleId
    kind: str
    why: str | None
    at: int


def _told(end: _End, used: Charge) -> SkippedCycle:
    return SkippedCycle(
        end.cycle_id,
        "skipped" if end.kind == "skip" else "undone",
        end.why or "",
        end.at,
        used.model,
        used.input_tokens,
        used.output_tokens,
        used.cost_micros or 0,
    )
