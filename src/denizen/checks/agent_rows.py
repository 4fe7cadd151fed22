"""The rows of one agent that are checked, read and grouped by cycle."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from denizen.checks.violation import rows_of
from denizen.storage.database import Tx, columns, value
from denizen.storage.schema import agents, cycles, effects, events, leases, ledger, log, messages, minds


@dataclass(frozen=True, slots=True)
class LogRow:
    seq: int
    cycle_id: str
    kind: str
    encoded: str


@dataclass(frozen=True, slots=True)
class EffectRow:
    step: int
    position: int
    tool: str
    state: str
    changes: int
    result: str | None


@dataclass(frozen=True, slots=True)
class EventRow:
    id: str
    state: str
    attempts: int
    cycle_id: str | None
    taken_out: bool
    """Whether its message was deleted or forgotten, so that it no longer waits."""


@dataclass(frozen=True, slots=True)
class CycleRows:
    """A cycle with all its rows."""

    id: str
    number: int | None
    outcome: str
    first_seq: int
    steps: int
    tokens: tuple[int, int]
    """Input and output, as the cycle sums them. Their cost is left to the ledger: prices change."""
    entries: tuple[LogRow, ...]
    effects: tuple[EffectRow, ...]
    messages: tuple[tuple[str, str], ...]
    """Id and author of each message posted in it."""
    usage: tuple[tuple[int, int], ...]
    """The ledger's entries for its model calls."""

    @property
    def open(self) -> bool:
        return self.number is None

    def copied_by(self, agent_id: str) -> bool:
        """Whether another agent ran it, and this one is a fork: its messages and cost belong to the other."""
        return self.id == f"{agent_id}-{self.number}"


@dataclass(frozen=True, slots=True)
class AgentRows:
    """An agent with all its rows."""

    id: str
    status: str
    mind: tuple[int, int] | None
    """The number of its cycles, and where its window begins."""
    lease: tuple[str | None, int, int] | None
    cycles: tuple[CycleRows, ...]
    """By number, the open one last."""
    log: tuple[LogRow, ...]
    events: tuple[EventRow, ...]
    skipped: frozenset[str]
    """The cycles that the ledger records as skipped."""


_agent = rows_of(select(agents.c.status), agents.c.id)
_mind = rows_of(select(minds.c.cycle_count, minds.c.window_from), minds.c.agent_id)
_lease = rows_of(select(leases.c.holder, leases.c.epoch, leases.c.until), leases.c.agent_id)
_cycles = rows_of(
    select(*columns(cycles, "id, number, outcome, first_seq, steps, input_tokens, output_tokens")),
    cycles.c.agent_id,
)
_log = rows_of(select(log.c.seq, log.c.cycle_id, log.c.kind, log.c.message).order_by(log.c.seq), log.c.agent_id)
_events = rows_of(
    select(events.c.id, events.c.state, events.c.attempts, events.c.cycle_id, messages.c.deleted_at.is_not(None))
    .select_from(events.outerjoin(messages, messages.c.id == events.c.message_id))
    .order_by(events.c.number),
    events.c.agent_id,
)
_effects = rows_of(
    select(*columns(effects, "cycle_id, step, position, tool, state, changes, result"))
    .join(cycles, cycles.c.id == effects.c.cycle_id)
    .order_by(effects.c.cycle_id, effects.c.step, effects.c.position),
    cycles.c.agent_id,
)
_said = rows_of(
    select(messages.c.cycle_id, messages.c.id, messages.c.author_id)
    .join(cycles, cycles.c.id == messages.c.cycle_id)
    .order_by(messages.c.cycle_id, messages.c.id),
    cycles.c.agent_id,
)
_ledger = rows_of(
    select(ledger.c.cycle_id, ledger.c.kind, ledger.c.input_tokens, ledger.c.output_tokens).order_by(
        ledger.c.cycle_id, ledger.c.number
    ),
    ledger.c.agent_id,
)


def read_agent(tx: Tx, agent_id: str) -> AgentRows:
    mind, lease = tx.one(_mind, id=agent_id), tx.one(_lease, id=agent_id)
    rows = tuple(LogRow(*row) for row in tx.all(_log, id=agent_id))
    lines = tx.all(_ledger, id=agent_id)
    return AgentRows(
        id=agent_id,
        status=value(tx, _agent, id=agent_id) or "",
        mind=None if mind is None else (mind[0], mind[1]),
        lease=None if lease is None else (lease[0], lease[1], lease[2]),
        cycles=_read_cycles(tx, agent_id, rows, lines),
        log=rows,
        events=tuple(EventRow(*row) for row in tx.all(_events, id=agent_id)),
        skipped=frozenset(cycle_id for cycle_id, kind, *_ in lines if kind == "skip"),
    )


def _read_cycles(
    tx: Tx, agent_id: str, rows: Sequence[LogRow], lines: Sequence[tuple[Any, ...]]
) -> tuple[CycleRows, ...]:
    done = _by_first(tx.all(_effects, id=agent_id))
    said = _by_first(tx.all(_said, id=agent_id))
    used = _by_first([(cycle_id, *tokens) for cycle_id, kind, *tokens in lines if kind == "usage"])
    entries: dict[str, list[LogRow]] = {}
    for row in rows:
        entries.setdefault(row.cycle_id, []).append(row)
    found = [
        CycleRows(
            id,
            *shown,
            tokens=(input_tokens, output_tokens),
            entries=tuple(entries.get(id, ())),
            effects=tuple(EffectRow(*each) for each in done.get(id, ())),
            messages=tuple((message_id, author_id) for message_id, author_id in said.get(id, ())),
            usage=tuple((sent, received) for sent, received in used.get(id, ())),
        )
        for id, *shown, input_tokens, output_tokens in tx.all(_cycles, id=agent_id)
    ]
    return tuple(sorted(found, key=lambda each: (each.open, each.number or 0, each.first_seq)))


def _by_first(rows: Iterable[tuple[Any, ...]]) -> dict[str, list[tuple[Any, ...]]]:
    """Groups the rows by their first column, in order."""
    gathered: dict[str, list[tuple[Any, ...]]] = {}
    for first, *rest in rows:
        gathered.setdefault(first, []).append(tuple(rest))
    return gathered
