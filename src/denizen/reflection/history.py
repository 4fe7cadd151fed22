"""How states of mind came to be what they are: what was asked and done, and the signals that were seen."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import bindparam, select

from denizen.clock import Instant
from denizen.ids import AgentId, EntityId, SpaceId
from denizen.reflection.records import Outcome
from denizen.reflection.state import StateOfMind
from denizen.storage.database import Tx, statement
from denizen.storage.schema import reflections, signals

_LAST: Final = 2**62


@dataclass(frozen=True, slots=True)
class PastRun:
    """One line of the history of a state of mind."""

    number: int
    space_id: SpaceId
    cycle: int | None
    metaprompt: str | None
    cause: str
    outcome: Outcome
    reason: str
    state: StateOfMind
    by_id: EntityId | None
    at: Instant


@dataclass(frozen=True, slots=True)
class PastSignal:
    """A signal that there was."""

    number: int
    space_id: SpaceId
    person_id: EntityId | None
    cycle: int
    name: str
    rule: str
    score: float | None
    at: Instant


_history = statement(
    select(
        reflections.c.number,
        reflections.c.space_id,
        reflections.c.cycle,
        reflections.c.metaprompt,
        reflections.c.cause,
        reflections.c.outcome,
        reflections.c.reason,
        reflections.c.state,
        reflections.c.by_id,
        reflections.c.created_at,
    )
    .where(
        reflections.c.agent_id == bindparam("agent_id"),
        reflections.c.space_id == bindparam("space_id"),
        reflections.c.number < bindparam("before"),
    )
    .order_by(reflections.c.number.desc())
    .limit(bindparam("limit"))
)
_signals = statement(
    select(
        signals.c.number,
        signals.c.space_id,
        signals.c.person_id,
        signals.c.cycle,
        signals.c.name,
        signals.c.rule,
        signals.c.score,
        signals.c.created_at,
    )
    .where(
        signals.c.agent_id == bindparam("agent_id"),
        signals.c.space_id == bindparam("space_id"),
        signals.c.number < bindparam("before"),
    )
    .order_by(signals.c.number.desc())
    .limit(bindparam("limit"))
)


def runs_of(
    tx: Tx, agent_id: AgentId, space_id: SpaceId, *, before: int | None = None, limit: int = 100
) -> list[PastRun]:
    """What was asked and done there, the newest first."""
    end = _LAST if before is None else before
    rows = tx.all(_history, agent_id=agent_id, space_id=space_id, before=end, limit=limit)
    return [_past_run(row) for row in rows]


def _past_run(row: tuple[Any, ...]) -> PastRun:
    number, space_id, cycle, metaprompt, cause, outcome, reason, state, by_id, at = row
    mind = StateOfMind(**json.loads(state))
    return PastRun(number, space_id, cycle, metaprompt, cause, outcome, reason, mind, by_id, at)


def signals_of(
    tx: Tx, agent_id: AgentId, space_id: SpaceId, *, before: int | None = None, limit: int = 100
) -> list[PastSignal]:
    """The signals that were seen there, the newest first."""
    end = _LAST if before is None else before
    rows = tx.all(_signals, agent_id=agent_id, space_id=space_id, before=end, limit=limit)
    return [
        PastSignal(number, where, person, cycle, name, rule, None if score is None else score / 1_000, at)
        for number, where, person, cycle, name, rule, score, at in rows
    ]
