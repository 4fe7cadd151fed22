"""States of mind, feelings and signals as they are stored, and how far each agent has reflected.

A turn is kept whole, by whoever comes first: its write moves the agent's mark by one, or does nothing. Whoever writes
here holds the agent's mind first, as a cycle does that ends: so neither waits for the other for ever.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sqlalchemy import bindparam, delete, func, or_, select, update
from sqlalchemy.dialects import postgresql

from denizen.bus.streams import StanceChanged, agent_topic
from denizen.errors import NotFound
from denizen.ids import AgentId, EntityId, SpaceId
from denizen.plans import known
from denizen.reflection.signals import Counters, Detected
from denizen.reflection.state import Adjustment, StateOfMind
from denizen.storage.database import Statement, Tx, insert_ignore, insert_into, statement, storable
from denizen.storage.schema import (
    agents,
    feelings,
    leases,
    memberships,
    minds,
    redactions,
    reflecting,
    reflections,
    signals,
    stances,
)

Outcome = Literal["changed", "unchanged", "failed"]


@dataclass(frozen=True, slots=True)
class Stance:
    """How an agent stands to a conversation."""

    space_id: SpaceId
    preset: str | None
    """Its profile there."""
    preset_reason: str
    turns: int
    """Turns that profiles were chosen for."""
    state: StateOfMind = field(default_factory=StateOfMind)
    imprints: Mapping[str, str] = field(default_factory=dict[str, str])
    reflected_turns: int = 0
    overrides: Mapping[str, Any] = field(default_factory=dict[str, Any])
    updated_at: int = 0


_columns = (
    stances.c.space_id,
    stances.c.preset,
    stances.c.preset_reason,
    stances.c.turns,
    stances.c.mood,
    stances.c.skill,
    stances.c.complexity,
    stances.c.imprints,
    stances.c.reflected_turns,
    stances.c.overrides,
    stances.c.updated_at,
)
_one = statement(
    select(*_columns).where(stances.c.agent_id == bindparam("agent_id"), stances.c.space_id == bindparam("space_id"))
)
_all = statement(
    select(*_columns)
    .where(stances.c.agent_id == bindparam("agent_id"))
    .order_by(stances.c.updated_at.desc(), stances.c.space_id)
    .limit(bindparam("limit"))
)


def stance(tx: Tx, agent_id: AgentId, space_id: SpaceId) -> Stance:
    """How the agent stands to the space; one without anything particular where nothing is known."""
    row = tx.one(_one, agent_id=agent_id, space_id=space_id)
    return Stance(space_id, None, "", 0) if row is None else _stance(row)


def stances_of(tx: Tx, agent_id: AgentId, *, limit: int = 100) -> list[Stance]:
    """How the agent stands to its conversations, those that changed last first."""
    return [_stance(row) for row in tx.all(_all, agent_id=agent_id, limit=limit)]


def _stance(row: tuple[Any, ...]) -> Stance:
    space_id, preset, reason, turns, mood, skill, complexity, imprints, reflected, overrides, at = row
    return Stance(
        SpaceId(space_id),
        preset,
        reason,
        turns,
        StateOfMind(mood, skill, complexity),
        json.loads(imprints),
        reflected,
        json.loads(overrides) if overrides else {},
        at,
    )


# What is written


def _upsert(*columns: str) -> Statement:
    row = postgresql.insert(stances).values(
        {name: bindparam(name, type_=stances.c[name].type) for name in ("agent_id", "space_id", *columns, "updated_at")}
    )
    set_ = {name: row.excluded[name] for name in (*columns, "updated_at")}
    return statement(row.on_conflict_do_update(index_elements=list(stances.primary_key), set_=set_))


_put_state = _upsert("mood", "skill", "complexity", "mind_line", "imprints")
_put_turn = _upsert("reflected_turns")
_put_overrides = _upsert("overrides")
_add = insert_into(
    reflections,
    "agent_id",
    "space_id",
    "cycle",
    "metaprompt",
    "cause",
    "outcome",
    "reason",
    "state",
    "by_id",
    "created_at",
)


@dataclass(frozen=True, slots=True)
class Run:
    """A metaprompt that was asked, or what someone did by hand."""

    metaprompt: str | None
    cause: str
    adjustment: Adjustment | None
    """What is to change; None: it came to nothing, and the state stays as it was."""
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of a run."""

    outcome: Outcome
    reason: str
    state: StateOfMind
    """After it."""
    imprints: Mapping[str, str]


def settle(before: Stance, run: Run) -> Settled:
    """What a run makes of a stance. Pure."""
    if run.adjustment is None:
        return Settled("failed", run.why_not, before.state, before.imprints)
    state, imprints = run.adjustment.apply(before.state), run.adjustment.imprint(before.imprints)
    changed = (state, imprints) != (before.state, dict(before.imprints))
    return Settled("changed" if changed else "unchanged", run.adjustment.why, state, imprints)


def enter(
    tx: Tx, agent_id: AgentId, space_id: SpaceId, run: Run, *, cycle: int | None = None, by: EntityId | None = None
) -> None:
    """The run is in the history, and what it changed is so; the agent is told with its next cycle."""
    before = stance(tx, agent_id, space_id)
    _enter(tx, agent_id, before, run, settle(before, run), cycle, by)


def _enter(
    tx: Tx, agent_id: AgentId, before: Stance, run: Run, settled: Settled, cycle: int | None, by: EntityId | None
) -> None:
    if settled.outcome == "changed":
        _put(tx, agent_id, before, settled)
    tx.run(
        _add,
        agent_id=agent_id,
        space_id=before.space_id,
        cycle=cycle,
        metaprompt=run.metaprompt,
        cause=run.cause,
        outcome=settled.outcome,
        reason=storable(settled.reason),
        state=json.dumps(settled.state.as_dict()),
        by_id=by,
        created_at=tx.now,
    )


def _put(tx: Tx, agent_id: AgentId, before: Stance, after: Settled) -> None:
    state = after.state
    tx.run(
        _put_state,
        agent_id=agent_id,
        space_id=before.space_id,
        mood=state.mood,
        skill=state.user_skill,
        complexity=state.task_complexity,
        mind_line=state.line(),
        imprints=storable(json.dumps(dict(after.imprints), ensure_ascii=False)),
        updated_at=tx.now,
    )
    if state.line() != before.state.line():
        known.tell(tx, agent_id)


def announce(tx: Tx, agent_id: AgentId, space_id: SpaceId) -> None:
    """Whoever watches the agent looks how it stands to the conversation."""
    tx.announce(agent_topic(agent_id), StanceChanged(agent_id, space_id).to_payload())


_is_member = statement(
    select(memberships.c.space_id).where(
        memberships.c.space_id == bindparam("space_id"), memberships.c.entity_id == bindparam("agent_id")
    )
)


def require_there(tx: Tx, agent_id: AgentId, space_id: SpaceId) -> None:
    """Raises `NotFound` where the agent is not in the space."""
    if tx.one(_is_member, space_id=space_id, agent_id=agent_id) is None:
        raise NotFound("space", space_id)


def set_state(
    tx: Tx, agent_id: AgentId, space_id: SpaceId, wanted: Adjustment, *, by: EntityId | None = None
) -> Stance:
    """The state of mind is what somebody wants it to be; what they did not say stays."""
    known.lock(tx, agent_id)
    require_there(tx, agent_id, space_id)
    enter(tx, agent_id, space_id, Run(None, "set", wanted), by=by)
    announce(tx, agent_id, space_id)
    return stance(tx, agent_id, space_id)


_drop_feelings = statement(
    delete(feelings).where(feelings.c.agent_id == bindparam("agent"), feelings.c.space_id == bindparam("space"))
)


def reset(tx: Tx, agent_id: AgentId, space_id: SpaceId, *, by: EntityId | None = None) -> Stance:
    """Nothing is imprinted, nothing counted, and the agent has no particular state of mind. The history stays."""
    known.lock(tx, agent_id)
    require_there(tx, agent_id, space_id)
    before = stance(tx, agent_id, space_id)
    changed = (before.state, dict(before.imprints)) != (StateOfMind(), {})
    settled = Settled("changed" if changed else "unchanged", "", StateOfMind(), {})
    _enter(tx, agent_id, before, Run(None, "reset", None), settled, None, by)
    tx.run(_drop_feelings, agent=agent_id, space=space_id)
    announce(tx, agent_id, space_id)
    return stance(tx, agent_id, space_id)


# What a conversation has instead of the agent's settings

_begin = insert_ignore(reflecting, ("agent_id", "cycle"))
_end = statement(delete(reflecting).where(reflecting.c.agent_id == bindparam("agent")))
_overrides = statement(
    select(stances.c.overrides).where(stances.c.agent_id == bindparam("agent_id"), stances.c.overrides.is_not(None))
)
_lived = statement(select(minds.c.cycle_count).where(minds.c.agent_id == bindparam("agent_id")))
_new_version = statement(update(agents).where(agents.c.id == bindparam("agent")).values(version=agents.c.version + 1))


def set_overrides(tx: Tx, agent_id: AgentId, space_id: SpaceId, wanted: Mapping[str, Any], *, reflects: bool) -> None:
    """These settings hold in the conversation instead of the agent's; without any, the agent's own do.

    `reflects`: whether the agent does so elsewhere.
    """
    known.lock(tx, agent_id)
    require_there(tx, agent_id, space_id)
    encoded = json.dumps(dict(wanted), ensure_ascii=False) if wanted else None
    tx.run(_put_overrides, agent_id=agent_id, space_id=space_id, overrides=encoded, updated_at=tx.now)
    announce(tx, agent_id, space_id)
    # Whoever lives with the old settings loads the agent anew.
    tx.run(_new_version, agent=agent_id)
    keep_reflecting(tx, agent_id, on=reflects)


def keep_reflecting(tx: Tx, agent_id: AgentId, *, on: bool) -> None:
    """The agent's cycles are reflected on from now on if it wants that, or a conversation of it does."""
    wanted = on or any(json.loads(row[0]).get("reflection") for row in tx.all(_overrides, agent_id=agent_id))
    if not wanted:
        tx.run(_end, agent=agent_id)
        return
    row = tx.one(_lived, agent_id=agent_id)
    tx.run(_begin, agent_id=agent_id, cycle=row[0] if row else 0)


_skip = statement(
    update(reflecting)
    .where(reflecting.c.agent_id == bindparam("agent"))
    .values(cycle=select(minds.c.cycle_count).where(minds.c.agent_id == reflecting.c.agent_id).scalar_subquery())
)


def leave_past(tx: Tx, agent_id: AgentId) -> None:
    """What the agent has lived so far is not reflected on any more: somebody else has, or lived it elsewhere."""
    tx.run(_skip, agent=agent_id)


# A turn that was reflected on

_mark = statement(select(reflecting.c.cycle).where(reflecting.c.agent_id == bindparam("agent_id")))
_advance = statement(
    update(reflecting)
    .where(reflecting.c.agent_id == bindparam("agent"), reflecting.c.cycle == bindparam("before"))
    .values(cycle=bindparam("after"))
)
_counters = statement(
    select(feelings.c.counters).where(
        feelings.c.agent_id == bindparam("agent_id"),
        feelings.c.space_id == bindparam("space_id"),
        feelings.c.person_id == bindparam("person_id"),
    )
)
_felt = postgresql.insert(feelings).values(
    {name: bindparam(name) for name in ("agent_id", "space_id", "person_id", "counters", "updated_at")}
)
_feel = statement(
    _felt.on_conflict_do_update(
        index_elements=list(feelings.primary_key),
        set_={name: _felt.excluded[name] for name in ("counters", "updated_at")},
    )
)
_signal = insert_into(signals, "agent_id", "space_id", "person_id", "cycle", "name", "rule", "score", "created_at")


@dataclass(frozen=True, slots=True)
class Seen:
    """A signal, and whom it is about."""

    person_id: EntityId | None
    detected: Detected
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """What reflecting on one conversation's turn has come to."""

    space_id: SpaceId
    turn: int
    """Its number, counted from 1."""
    counters: Mapping[EntityId, Counters]
    seen: Sequence[Seen]
    runs: Sequence[Run]
    by_hand: int = 0
    """What `last_by_hand` was when it was begun."""


def mark(tx: Tx, agent_id: AgentId) -> int | None:
    """The number of the last cycle that was reflected on; None for an agent that does not reflect."""
    row = tx.one(_mark, agent_id=agent_id)
    return None if row is None else row[0]


def counters(tx: Tx, agent_id: AgentId, space_id: SpaceId, person_id: EntityId) -> Counters:
    """What was counted of the person in the conversation."""
    row = tx.one(_counters, agent_id=agent_id, space_id=space_id, person_id=person_id)
    return Counters() if row is None else Counters.from_json(row[0])


_by_hand = statement(
    select(func.max(reflections.c.number)).where(
        reflections.c.agent_id == bindparam("agent_id"),
        reflections.c.space_id == bindparam("space_id"),
        reflections.c.cycle.is_(None),
    )
)


def last_by_hand(tx: Tx, agent_id: AgentId, space_id: SpaceId) -> int:
    """The number of the newest line of the history that is someone's doing; 0: there is none."""
    row = tx.one(_by_hand, agent_id=agent_id, space_id=space_id)
    return 0 if row is None or row[0] is None else row[0]


_redactions = statement(
    select(func.count())
    .select_from(redactions)
    .join(agents, agents.c.organization_id == redactions.c.organization_id)
    .where(agents.c.id == bindparam("agent_id"))
)


def redactions_so_far(tx: Tx, agent_id: AgentId) -> int:
    """How often something was forgotten in the agent's organization."""
    row = tx.one(_redactions, agent_id=agent_id)
    assert row is not None
    return row[0]


def keep_turn(tx: Tx, agent_id: AgentId, cycle: int, conversations: Sequence[Conversation], *, forgotten: int) -> bool:
    """The cycle was reflected on, and this came of it; False, and nothing, if someone else was faster.

    The same if more was forgotten than `redactions_so_far` said before: what a model was shown, and has perhaps
    repeated, may be just that.
    """
    known.lock(tx, agent_id)
    if redactions_so_far(tx, agent_id) != forgotten:
        return False
    if tx.run(_advance, agent=agent_id, before=cycle - 1, after=cycle) == 0:
        return False
    for each in conversations:
        if tx.one(_is_member, space_id=each.space_id, agent_id=agent_id) is None:
            continue  # left, or forgotten, meanwhile
        tx.run(_put_turn, agent_id=agent_id, space_id=each.space_id, reflected_turns=each.turn, updated_at=tx.now)
        if last_by_hand(tx, agent_id, each.space_id) != each.by_hand:
            continue  # what someone has set or reset meanwhile stands: this came of what was before
        for person_id, counted in each.counters.items():
            tx.run(
                _feel,
                agent_id=agent_id,
                space_id=each.space_id,
                person_id=person_id,
                counters=counted.to_json(),
                updated_at=tx.now,
            )
        for seen in each.seen:
            tx.run(
                _signal,
                agent_id=agent_id,
                space_id=each.space_id,
                person_id=seen.person_id,
                cycle=cycle,
                name=seen.detected.name,
                rule=seen.detected.rule,
                score=None if seen.score is None else round(seen.score * 1_000),
                created_at=tx.now,
            )
        for run in each.runs:
            enter(tx, agent_id, each.space_id, run, cycle=cycle)
        if each.seen or each.runs:
            announce(tx, agent_id, each.space_id)
    return True


_behind = statement(
    select(reflecting.c.agent_id)
    .join(minds, minds.c.agent_id == reflecting.c.agent_id)
    .join(agents, agents.c.id == reflecting.c.agent_id)
    .join(leases, leases.c.agent_id == reflecting.c.agent_id)
    .where(
        minds.c.cycle_count > reflecting.c.cycle,
        agents.c.status != "dead",
        or_(leases.c.holder.is_(None), leases.c.holder == bindparam("instance"), leases.c.until < bindparam("now")),
    )
    .order_by(reflecting.c.agent_id)
)


def behind(tx: Tx, instance: str) -> list[AgentId]:
    """The agents that have cycles to reflect on, and that no other instance lives with: that one does it."""
    return [AgentId(row[0]) for row in tx.all(_behind, instance=instance, now=tx.now)]
