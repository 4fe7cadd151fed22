"""Stored states of mind: the present ones, the counters of people, and their history.

There are two stores of the same kind: for agents in their spaces, and for the advisors of panels. A writer locks the
agent's mind, or the panel, first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import Table, bindparam, delete, func, literal, null, select

from denizen.clock import Instant
from denizen.ids import EntityId, SpaceId
from denizen.reflection.signals import Counters, DetectedSignal
from denizen.reflection.state import Adjustment, StateOfMind
from denizen.shapes.vocabulary import ReflectionOutcome as Outcome
from denizen.storage.database import (
    Statement,
    Tx,
    insert_into,
    insert_or_update,
    select_where,
    statement,
    storable,
    value,
)
from denizen.storage.schema import (
    feelings,
    reflections,
    signals,
    stances,
    voice_feelings,
    voice_reflections,
    voice_signals,
    voice_stances,
)

_LAST: Final = 2**62


@dataclass(frozen=True, slots=True)
class Stance:
    """The stance of an agent, or of an advisor, in a conversation: its state of mind and its settings."""

    space_id: SpaceId
    preset: str | None
    """The prompt profile in this conversation."""
    preset_reason: str
    turns: int
    """Turns for which profiles were chosen."""
    state: StateOfMind = field(default_factory=StateOfMind)
    imprints: Mapping[str, str] = field(default_factory=dict[str, str])
    reflected_turns: int = 0
    overrides: Mapping[str, Any] = field(default_factory=dict[str, Any])
    updated_at: int = 0


@dataclass(frozen=True, slots=True)
class Run:
    """A metaprompt that was asked, or a change by hand."""

    metaprompt: str | None
    cause: str
    adjustment: Adjustment | None
    """The change; None if there is none, and the state stays as it was."""
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a run."""

    outcome: Outcome
    reason: str
    state: StateOfMind
    """The state after the run."""
    imprints: Mapping[str, str]


def settle(before: Stance, run: Run) -> RunResult:
    """Applies a run to a stance. Pure."""
    if run.adjustment is None:
        return RunResult("failed", run.why_not, before.state, before.imprints)
    state, imprints = run.adjustment.apply(before.state), run.adjustment.imprint(before.imprints)
    changed = (state, imprints) != (before.state, dict(before.imprints))
    return RunResult("changed" if changed else "unchanged", run.adjustment.why, state, imprints)


@dataclass(frozen=True, slots=True)
class PersonSignal:
    """A signal, and the person it is about."""

    person_id: EntityId | None
    detected: DetectedSignal
    score: float | None = None


@dataclass(frozen=True, slots=True)
class ReflectedTurn:
    """The result of reflecting on one turn of a conversation."""

    space_id: SpaceId
    turn: int
    """The number of the turn, from 1."""
    counters: Mapping[EntityId, Counters]
    seen: Sequence[PersonSignal]
    runs: Sequence[Run]
    last_line: int = 0
    """The value of `StanceStore.last_line` before."""


@dataclass(frozen=True, slots=True)
class PastRun:
    """One entry in the history of a state of mind."""

    number: int
    space_id: SpaceId
    cycle: int | None
    """The number of the cycle (in a panel, of the turn) that it followed; None if it was done by hand."""
    metaprompt: str | None
    cause: str
    outcome: Outcome
    reason: str
    state: StateOfMind
    by_id: EntityId | None
    at: Instant


@dataclass(frozen=True, slots=True)
class PastSignal:
    """A past signal."""

    number: int
    space_id: SpaceId
    person_id: EntityId | None
    cycle: int
    """The number of the cycle (in a panel, of the turn) after which it was detected."""
    name: str
    rule: str
    score: float | None
    at: Instant


_NOT_KEPT: Final[Mapping[str, Any]] = {
    "preset": null(),
    "preset_reason": literal(""),
    "turns": literal(0),
    "overrides": null(),
}
"""Columns that only the agents' store has: what an advisor was told is stored with its replies."""
_STANCE: Final = (
    "space_id",
    "preset",
    "preset_reason",
    "turns",
    "mood",
    "skill",
    "complexity",
    "imprints",
    "reflected_turns",
    "overrides",
    "updated_at",
)


class StanceStore:
    """The tables of one kind, and their statements. `who` is the id of an agent or an advisor."""

    def __init__(
        self, of_stances: Table, of_feelings: Table, of_signals: Table, of_runs: Table, *, who: str, when: str
    ) -> None:
        self._who, self._when = who, when
        rows = (of_stances.c[name] if name in of_stances.c else _NOT_KEPT[name] for name in _STANCE)
        columns = select(*rows)
        self._one = statement(columns.where(*_there(of_stances, who)))
        self._all = statement(
            columns.where(of_stances.c[who] == bindparam("who"))
            .order_by(of_stances.c.updated_at.desc(), of_stances.c.space_id)
            .limit(bindparam("limit"))
        )
        self._put_state = upsert(of_stances, "mood", "skill", "complexity", "mind_line", "imprints")
        self._put_turn = upsert(of_stances, "reflected_turns")
        self._counters = select_where(of_feelings, "counters", "person_id", *_there(of_feelings, who))
        self._feel = upsert(of_feelings, "counters")
        self._drop_feelings = statement(delete(of_feelings).where(*_there(of_feelings, who)))
        self._signal = insert_into(
            of_signals, who, "space_id", "person_id", when, "name", "rule", "score", "created_at"
        )
        self._add_run = insert_into(
            of_runs, who, "space_id", when, "metaprompt", "cause", "outcome", "reason", "state", "by_id", "created_at"
        )
        self._last_line = statement(select(func.max(of_runs.c.number)).where(*_there(of_runs, who)))
        self._by_hand = statement(
            select(of_runs.c.number)
            .where(*_there(of_runs, who), of_runs.c.number > bindparam("after"), of_runs.c[when].is_(None))
            .limit(1)
        )
        past = ("number", "space_id", when, "metaprompt", "cause", "outcome", "reason", "state", "by_id", "created_at")
        self._runs = _page(of_runs, who, past)
        past = ("number", "space_id", "person_id", when, "name", "rule", "score", "created_at")
        self._signals = _page(of_signals, who, past)

    # Reading

    def stance(self, tx: Tx, who: str, space_id: SpaceId) -> Stance:
        """Returns the stance in the space; a neutral one if none is stored."""
        row = tx.one(self._one, who=who, space=space_id)
        return Stance(space_id, None, "", 0) if row is None else _stance(row)

    def stances_of(self, tx: Tx, who: str, *, limit: int = 100) -> list[Stance]:
        """Returns the stances in all conversations, the last changed first."""
        return [_stance(row) for row in tx.all(self._all, who=who, limit=limit)]

    def counters(self, tx: Tx, who: str, space_id: SpaceId, person_id: EntityId) -> Counters:
        """Returns the counters of the person in the conversation."""
        stored = value(tx, self._counters, who=who, space=space_id, person_id=person_id)
        return Counters() if stored is None else Counters.from_json(stored)

    def last_line(self, tx: Tx, who: str, space_id: SpaceId) -> int:
        """Returns the number of the newest entry in the history; 0 if there is none."""
        return value(tx, self._last_line, who=who, space=space_id) or 0

    def runs_of(
        self, tx: Tx, who: str, space_id: SpaceId, *, before: int | None = None, limit: int = 100
    ) -> list[PastRun]:
        """Returns the runs in the conversation, newest first."""
        end = _LAST if before is None else before
        return [_past_run(row) for row in tx.all(self._runs, who=who, space=space_id, before=end, limit=limit)]

    def signals_of(
        self, tx: Tx, who: str, space_id: SpaceId, *, before: int | None = None, limit: int = 100
    ) -> list[PastSignal]:
        """Returns the signals in the conversation, newest first."""
        end = _LAST if before is None else before
        rows = tx.all(self._signals, who=who, space=space_id, before=end, limit=limit)
        return [
            PastSignal(number, where, person, cycle, name, rule, None if score is None else score / 1_000, at)
            for number, where, person, cycle, name, rule, score, at in rows
        ]

    # Writing: each returns whether the visible state of mind has changed

    def enter(
        self, tx: Tx, who: str, space_id: SpaceId, run: Run, *, when: int | None = None, by: EntityId | None = None
    ) -> bool:
        """Adds the run to the history and applies its change."""
        before = self.stance(tx, who, space_id)
        return self._enter(tx, who, before, run, settle(before, run), when, by)

    def reset(self, tx: Tx, who: str, space_id: SpaceId, *, by: EntityId | None = None) -> bool:
        """Clears imprints, counters and the state of mind. The history stays."""
        before = self.stance(tx, who, space_id)
        changed = (before.state, dict(before.imprints)) != (StateOfMind(), {})
        settled = RunResult("changed" if changed else "unchanged", "", StateOfMind(), {})
        tx.run(self._drop_feelings, who=who, space=space_id)
        return self._enter(tx, who, before, Run(None, "reset", None), settled, None, by)

    def keep(self, tx: Tx, who: str, when: int, came: ReflectedTurn) -> bool:
        """Stores the result of reflecting on a turn of the conversation.

        If someone has set or reset the state meanwhile, theirs stays: this result is outdated, and only the turn is
        counted.
        """
        there = {self._who: who, "space_id": came.space_id}
        tx.run(self._put_turn, **there, reflected_turns=came.turn, updated_at=tx.now)
        if tx.one(self._by_hand, who=who, space=came.space_id, after=came.last_line) is not None:
            return False
        for person_id, counted in came.counters.items():
            tx.run(self._feel, **there, person_id=person_id, counters=counted.to_json(), updated_at=tx.now)
        for seen in came.seen:
            tx.run(
                self._signal,
                **there,
                person_id=seen.person_id,
                **{self._when: when},
                name=seen.detected.name,
                rule=seen.detected.rule,
                score=None if seen.score is None else round(seen.score * 1_000),
                created_at=tx.now,
            )
        told_anew = [self.enter(tx, who, came.space_id, run, when=when) for run in came.runs]
        return any(told_anew)

    def _enter(
        self, tx: Tx, who: str, before: Stance, run: Run, after: RunResult, when: int | None, by: EntityId | None
    ) -> bool:
        there = {self._who: who, "space_id": before.space_id}
        if after.outcome == "changed":
            tx.run(
                self._put_state,
                **there,
                mood=after.state.mood,
                skill=after.state.user_skill,
                complexity=after.state.task_complexity,
                mind_line=after.state.line(),
                imprints=storable(json.dumps(dict(after.imprints), ensure_ascii=False)),
                updated_at=tx.now,
            )
        tx.run(
            self._add_run,
            **there,
            **{self._when: when},
            metaprompt=run.metaprompt,
            cause=run.cause,
            outcome=after.outcome,
            reason=storable(after.reason),
            state=json.dumps(after.state.as_dict()),
            by_id=by,
            created_at=tx.now,
        )
        return after.state.line() != before.state.line()


def upsert(table: Table, *columns: str) -> Statement:
    """Builds a statement that inserts the row with these columns, or updates them."""
    keys = [each.name for each in table.primary_key]
    return insert_or_update(table, ", ".join((*keys, *columns, "updated_at")))


def _there(table: Table, who: str) -> tuple[Any, Any]:
    return table.c[who] == bindparam("who"), table.c.space_id == bindparam("space")


def _page(table: Table, who: str, columns: Sequence[str]) -> Statement:
    return statement(
        select(*(table.c[name] for name in columns))
        .where(*_there(table, who), table.c.number < bindparam("before"))
        .order_by(table.c.number.desc())
        .limit(bindparam("limit"))
    )


def _stance(row: tuple[Any, ...]) -> Stance:
    space_id, preset, reason, turns, mood, skill, complexity, imprints, reflected, overrides, at = row
    state = StateOfMind(mood, skill, complexity)
    kept: dict[str, Any] = json.loads(overrides) if overrides else {}
    return Stance(SpaceId(space_id), preset, reason, turns, state, json.loads(imprints), reflected, kept, at)


def _past_run(row: tuple[Any, ...]) -> PastRun:
    number, space_id, when, metaprompt, cause, outcome, reason, state, by_id, at = row
    mind = StateOfMind(**json.loads(state))
    return PastRun(number, space_id, when, metaprompt, cause, outcome, reason, mind, by_id, at)


AGENTS: Final = StanceStore(stances, feelings, signals, reflections, who="agent_id", when="cycle")
VOICES: Final = StanceStore(voice_stances, voice_feelings, voice_signals, voice_reflections, who="voice", when="turn")
