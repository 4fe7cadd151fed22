"""The tools with which an agent minds its own life: goals, memories, plans and timers.

What they change is the agent's own, inside the transaction that records the call; and it is entered as known, because
the call itself is in the agent's history.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from pydantic import Field

from denizen.consciousness import privacy
from denizen.errors import NotFound
from denizen.inbox.format import one_line
from denizen.inbox.sources import Source, distinct
from denizen.plans import agenda, goals, known, notes, origins
from denizen.plans.agenda import Plan, PlanDraft, When
from denizen.plans.goals import GoalChange, GoalStatus, Priority
from denizen.plans.schedule import describe, say
from denizen.storage.database import Tx
from denizen.tools.hops import hop_of_plan
from denizen.tools.tool import Arguments, Done, Hand, OwnTool

_AT: Final = "A time in ISO 8601; without an offset, in the zone."
_AFTER: Final = 'A delay, such as "2 hours" or "1 day 2 hours".'


class Memory(Arguments):
    key: str = Field(description="A short name; one that is in use is overwritten.")
    text: str


class SetMemories(Arguments):
    memories: list[Memory] = Field(min_length=1, max_length=50)


class GetMemories(Arguments):
    keys: list[str] | None = Field(default=None, description="Only these; by default all.")


class DeleteMemories(Arguments):
    keys: list[str] = Field(min_length=1)


class GoalToSet(Arguments):
    goal: int | None = Field(default=None, description="The number of a goal to change; leave it out for a new one.")
    text: str | None = None
    status: GoalStatus | None = None
    priority: Priority | None = None


class SetGoals(Arguments):
    goals: list[GoalToSet] = Field(min_length=1, max_length=50)


class DeleteGoals(Arguments):
    goals: list[int] = Field(min_length=1, description="The numbers of the goals.")


class PlanToSet(Arguments):
    name: str = Field(description="A plan of this name is replaced.")
    instruction: str = Field(description="What you will be told to do when the time comes.")
    cron: str | None = Field(default=None, description="Recurring: minute hour day-of-month month day-of-week.")
    at: str | None = Field(default=None, description=f"Once. {_AT}")
    after: str | None = Field(default=None, description=f"Once. {_AFTER}")
    zone: str | None = Field(default=None, description="A time zone such as Europe/Berlin; by default yours.")


class SetPlans(Arguments):
    plans: list[PlanToSet] = Field(min_length=1, max_length=20, description="Each with one of cron, at, after.")


class GetPlans(Arguments):
    pass


class DeletePlans(Arguments):
    plans: list[str] = Field(min_length=1, description="Names of plans, ids of timers.")


class SetTimer(Arguments):
    reason: str = Field(description="What you will be told when it goes off.")
    after: str | None = Field(default=None, description=_AFTER)
    at: str | None = Field(default=None, description=_AT)


def set_memories(tx: Tx, hand: Hand, arguments: SetMemories) -> Done:
    """The memories are kept."""
    made = notes.set_notes(
        tx, hand.agent_id, {each.key: each.text for each in arguments.memories}, outside=hand.outside
    )
    _keep_origin(tx, hand, [notes.fact(note)[0] for note in made])
    known.know(tx, hand.agent_id, dict(notes.fact(note) for note in made))
    return _done(keys=[note.key for note in made])


def get_memories(tx: Tx, hand: Hand, arguments: GetMemories) -> Done:
    """The memories as they were written."""
    kept = {note.key: note for note in notes.notes_of(tx, hand.agent_id)}
    there = {key: note.text for key, note in kept.items()}
    wanted = there if arguments.keys is None else [one_line(key) for key in arguments.keys]
    for key in wanted:
        if key not in there:
            raise NotFound("memory", key)
    return Done(
        _json({key: there[key] for key in wanted}),
        sources=_origin(tx, hand, [f"note:{key}" for key in wanted]),
        outside=tuple(Source("memory", key) for key in wanted if kept[key].outside),
    )


def delete_memories(tx: Tx, hand: Hand, arguments: DeleteMemories) -> Done:
    """The memories are no more."""
    gone = notes.remove_notes(tx, hand.agent_id, arguments.keys)
    known.know(tx, hand.agent_id, {f"note:{key}": None for key in gone})
    return _done(deleted=gone)


def set_goals(tx: Tx, hand: Hand, arguments: SetGoals) -> Done:
    """The goals are set, new or changed."""
    changes = [GoalChange(each.goal, each.text, each.status, each.priority) for each in arguments.goals]
    made = goals.change_goals(tx, hand.agent_id, changes, outside=hand.outside)
    facts = [goals.fact(goal)[0] for goal in made]
    old = [fact for fact, each in zip(facts, arguments.goals, strict=True) if each.goal is not None]
    _keep_origin(tx, hand, facts, _origin(tx, hand, old))
    known.know(tx, hand.agent_id, dict(goals.fact(goal) for goal in made))
    return _done(goals=[goal.number for goal in made])


def delete_goals(tx: Tx, hand: Hand, arguments: DeleteGoals) -> Done:
    """The goals are no more."""
    goals.remove_goals(tx, hand.agent_id, arguments.goals)
    known.know(tx, hand.agent_id, {f"goal:{number}": None for number in arguments.goals})
    return _done(deleted=arguments.goals)


def set_plans(tx: Tx, hand: Hand, arguments: SetPlans) -> Done:
    """The plans are made; the result says when each runs next."""
    drafts = [
        PlanDraft(each.name, each.instruction, When(each.cron, each.at, each.after, each.zone))
        for each in arguments.plans
    ]
    made = agenda.set_plans(tx, hand.agent_id, drafts, hop=hop_of_plan(hand.events), outside=hand.outside)
    _keep_origin(tx, hand, [f"plan:{plan.id}" for plan in made])
    _know_plans(tx, hand, made)
    return _done(plans=[{"name": plan.name, "next": _next(plan)} for plan in made])


def get_plans(tx: Tx, hand: Hand, _arguments: GetPlans) -> Done:
    """All plans and timers, the next one first."""
    planned = agenda.plans_of(tx, hand.agent_id)
    sources = _origin(tx, hand, [f"plan:{plan.id}" for plan in planned])
    outside = tuple(Source("plan", plan.name or "timer") for plan in planned if plan.outside)
    return Done(_json([_described(plan) for plan in planned]), sources=sources, outside=distinct(outside))


def delete_plans(tx: Tx, hand: Hand, arguments: DeletePlans) -> Done:
    """The plans will not run again, and the timers not go off."""
    gone = agenda.remove_plans(tx, hand.agent_id, arguments.plans)
    known.know(tx, hand.agent_id, {f"plan:{plan.id}": None for plan in gone})
    return _done(deleted=[plan.name or plan.id for plan in gone])


def set_timer(tx: Tx, hand: Hand, arguments: SetTimer) -> Done:
    """The agent will be woken then, once."""
    when = When(at=arguments.at, after=arguments.after)
    hop = hop_of_plan(hand.events)
    plan = agenda.set_timer(tx, hand.agent_id, arguments.reason, when, hop=hop, outside=hand.outside)
    _keep_origin(tx, hand, [f"plan:{plan.id}"])
    return _done(timerId=plan.id, at=_next(plan))


def _keep_origin(tx: Tx, hand: Hand, facts: Iterable[str], more: frozenset[str] = frozenset()) -> None:
    """What is written in a cycle comes from the spaces that the cycle comes from."""
    origins.set_origin(tx, hand.agent_id, facts, privacy.sources_of(tx, hand.cycle_id) | more)


def _origin(tx: Tx, hand: Hand, facts: Iterable[str]) -> frozenset[str]:
    found = origins.origins_of(tx, hand.agent_id)
    return frozenset[str]().union(*(found.get(fact, ()) for fact in facts))


def _know_plans(tx: Tx, hand: Hand, made: Iterable[Plan]) -> None:
    known.know(tx, hand.agent_id, dict(fact for plan in made if (fact := agenda.fact(plan)) is not None))


def _described(plan: Plan) -> dict[str, object]:
    called: dict[str, object] = {"timerId": plan.id} if plan.kind == "timer" else {"name": plan.name}
    late = {"problem": "It will not run again: set it anew."} if plan.state == "failed" else {"next": _next(plan)}
    return {**called, "schedule": describe(plan.schedule), **late, "instruction": plan.instruction}


def _next(plan: Plan) -> str:
    return say(plan.next_run, plan.schedule.zone)


def _done(**fields: object) -> Done:
    return Done(_json({"success": True, **fields}), changes=True)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


PLANNING: Final = (
    OwnTool("set_memories", "Keep things always before your eyes, until you delete them.", SetMemories, set_memories),
    OwnTool("get_memories", "Read your memories as you wrote them.", GetMemories, get_memories),
    OwnTool("delete_memories", "Delete memories that no longer hold.", DeleteMemories, delete_memories),
    OwnTool("set_goals", "Add goals, or change their text, status or priority.", SetGoals, set_goals),
    OwnTool("delete_goals", "Delete goals.", DeleteGoals, delete_goals),
    OwnTool("set_plans", "Plan what to do later: you will be woken with the instruction.", SetPlans, set_plans),
    OwnTool("get_plans", "List your plans and timers with their next times.", GetPlans, get_plans),
    OwnTool("delete_plans", "Delete plans and timers.", DeletePlans, delete_plans),
    OwnTool("set_timer", "Have yourself woken once, after a delay or at a time.", SetTimer, set_timer),
)
