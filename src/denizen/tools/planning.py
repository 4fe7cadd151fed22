"""The tools with which an agent manages its goals, memories, plans and timers.

They change only the agent's own data, inside the transaction that records the call; the changes are recorded as known,
because the call itself is in the agent's history.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Final

from pydantic import Field, TypeAdapter, ValidationError, field_validator

from denizen.consciousness import privacy
from denizen.errors import NotFound
from denizen.inbox.format import one_line
from denizen.inbox.sources import Source, distinct
from denizen.plans import agenda, goals, notes, origins, told_changes
from denizen.plans.agenda import Plan, PlanDraft, When
from denizen.plans.goals import GoalChange, GoalStatus, Priority
from denizen.plans.schedule import describe, say
from denizen.storage.database import Tx
from denizen.tools.hops import hop_of_plan
from denizen.tools.tool import Arguments, Done, Hand, OwnTool


class _Memory(Arguments):
    key: str
    text: str


_LISTED: Final = TypeAdapter(list[_Memory])


class SetMemories(Arguments):
    memories: dict[str, str] = Field(min_length=1, max_length=50, description="Text by key; empty: delete")

    @field_validator("memories", mode="before")
    @classmethod
    def _by_key(cls, given: object) -> object:
        """Earlier versions took a list of keys and texts. A model keeps writing what it sees in its own past."""
        try:
            return {each.key: each.text for each in _LISTED.validate_python(given)}
        except ValidationError:
            return given


class SetGoals(Arguments):
    goal: int | None = Field(default=None, description="Its number; none: new")
    text: str | None = Field(default=None, description="Empty: delete")
    status: GoalStatus | None = None
    priority: Priority | None = None


class SetTimer(Arguments):
    reason: str = Field(description="Empty: delete")
    after: str | None = Field(default=None, description='"2 hours"')
    at: str | None = Field(default=None, description="ISO 8601")
    cron: str | None = None
    zone: str | None = None
    name: str | None = Field(default=None, description="Of the plan to set, replace or delete")


def set_memories(tx: Tx, hand: Hand, arguments: SetMemories) -> Done:
    """Store the memories; delete those with an empty text."""
    wanted, unwanted = _parted(arguments.memories)
    _require_memories(tx, hand, unwanted)
    made = notes.set_notes(tx, hand.agent_id, wanted, outside=hand.outside) if wanted else []
    _keep_origin(tx, hand, [notes.fact(note)[0] for note in made])
    gone = notes.remove_notes(tx, hand.agent_id, unwanted)
    told_changes.know(
        tx, hand.agent_id, {**dict(notes.fact(note) for note in made), **{f"note:{key}": None for key in gone}}
    )
    return _done(keys=[note.key for note in made], deleted=gone)


def _parted(texts: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The memories to store, and the keys of those to delete because their text is empty."""
    return {key: text for key, text in texts.items() if text.strip()}, [
        k for k, text in texts.items() if not text.strip()
    ]


def _require_memories(tx: Tx, hand: Hand, keys: Iterable[str]) -> None:
    there = {note.key for note in notes.notes_of(tx, hand.agent_id)}
    for key in keys:
        if one_line(key) not in there:
            raise NotFound("memory", one_line(key))


def read_memories(tx: Tx, hand: Hand) -> Done:
    """The memories as they were written."""
    there = notes.notes_of(tx, hand.agent_id)
    return Done(
        _json({note.key: note.text for note in there}),
        sources=_origin(tx, hand, [f"note:{note.key}" for note in there]),
        outside=tuple(Source("memory", note.key) for note in there if note.outside),
    )


def set_goals(tx: Tx, hand: Hand, arguments: SetGoals) -> Done:
    """Set a goal, new or changed; an empty text deletes it."""
    number = arguments.goal
    if number is not None and arguments.text is not None and not arguments.text.strip():
        goals.remove_goals(tx, hand.agent_id, [number])
        told_changes.know(tx, hand.agent_id, {f"goal:{number}": None})
        return _done(deleted=number)
    change = GoalChange(number, arguments.text, arguments.status, arguments.priority)
    [goal] = goals.change_goals(tx, hand.agent_id, [change], outside=hand.outside)
    fact, line = goals.fact(goal)
    _keep_origin(tx, hand, [fact], _origin(tx, hand, [fact] if number is not None else []))
    told_changes.know(tx, hand.agent_id, {fact: line})
    return _done(goal=goal.number)


def set_timer(tx: Tx, hand: Hand, arguments: SetTimer) -> Done:
    """Wake the agent then: once, or regularly by a named plan. An empty reason deletes it."""
    name = (arguments.name or "").strip()
    if name and not arguments.reason.strip():
        gone = agenda.remove_plans(tx, hand.agent_id, [name])
        told_changes.know(tx, hand.agent_id, {f"plan:{plan.id}": None for plan in gone})
        return _done(deleted=[plan.name or plan.id for plan in gone])
    when = When(arguments.cron, arguments.at, arguments.after, arguments.zone)
    hop = hop_of_plan(hand.events)
    if not name and arguments.cron is None:
        timer = agenda.set_timer(tx, hand.agent_id, arguments.reason, when, hop=hop, outside=hand.outside)
        _keep_origin(tx, hand, [f"plan:{timer.id}"])
        return _done(timerId=timer.id, at=_next(timer))
    draft = PlanDraft(name or arguments.reason[: agenda.NAME_CHARACTERS], arguments.reason, when)
    made = agenda.set_plans(tx, hand.agent_id, [draft], hop=hop, outside=hand.outside)
    _keep_origin(tx, hand, [f"plan:{plan.id}" for plan in made])
    _know_plans(tx, hand, made)
    return _done(name=made[0].name, next=_next(made[0]))


def read_plans(tx: Tx, hand: Hand) -> Done:
    """All plans and timers, the next one first."""
    planned = agenda.plans_of(tx, hand.agent_id)
    sources = _origin(tx, hand, [f"plan:{plan.id}" for plan in planned])
    outside = tuple(Source("plan", plan.name or "timer") for plan in planned if plan.outside)
    return Done(_json([_described(plan) for plan in planned]), sources=sources, outside=distinct(outside))


def _keep_origin(tx: Tx, hand: Hand, facts: Iterable[str], more: frozenset[str] = frozenset()) -> None:
    """Record that what is written in a cycle comes from the cycle's spaces."""
    origins.set_origin(tx, hand.agent_id, facts, privacy.sources_of(tx, hand.cycle_id) | more)


def _origin(tx: Tx, hand: Hand, facts: Iterable[str]) -> frozenset[str]:
    found = origins.origins_of(tx, hand.agent_id)
    return frozenset[str]().union(*(found.get(fact, ()) for fact in facts))


def _know_plans(tx: Tx, hand: Hand, made: Iterable[Plan]) -> None:
    told_changes.know(tx, hand.agent_id, dict(fact for plan in made if (fact := agenda.fact(plan)) is not None))


def _described(plan: Plan) -> dict[str, object]:
    called: dict[str, object] = {"timerId": plan.id} if plan.kind == "timer" else {"name": plan.name}
    late = {"problem": "It will not run again: set it again."} if plan.state == "failed" else {"next": _next(plan)}
    return {**called, "schedule": describe(plan.schedule), **late, "instruction": plan.instruction}


def _next(plan: Plan) -> str:
    return say(plan.next_run, plan.schedule.zone)


def _done(**fields: object) -> Done:
    """The result, without empty lists."""
    return Done(
        _json({"success": True, **{name: value for name, value in fields.items() if value != []}}), changes=True
    )


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


SET_TIMER: Final = OwnTool("set_timer", "Be woken later: once (after, at) or regularly (cron).", SetTimer, set_timer)
PLANNING: Final = (
    OwnTool("set_memories", "Keep facts in view.", SetMemories, set_memories),
    OwnTool("set_goals", "Add or change a goal.", SetGoals, set_goals),
    SET_TIMER,
)
