"""Goals, notes and plans of an agent, for admins. The agent hears of what is changed here with its next cycle."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path

from denizen.access.requesters import find_agent
from denizen.agents.inspection import readable_goals, readable_notes, readable_plans
from denizen.consciousness import privacy
from denizen.ids import AgentId
from denizen.plans import admin_changes, agenda, goals, notes
from denizen.plans.goals import GoalChange
from denizen.server.auth import Admin, Caller
from denizen.server.router import new_router
from denizen.server.shapes.plans import ChangeGoal, NewGoal, SetNote, SetPlan, goal_out, note_out, plan_out
from denizen.shapes.plans import GoalList, GoalOut, NoteList, NoteOut, PlanList, PlanOut
from denizen.storage.database import Tx

router = new_router()

GoalNumber = Annotated[int, Path(ge=0, le=2**62)]


@router.get("/api/agents/{agent_id}/goals", summary="List the goals of an agent")
async def list_goals(caller: Admin, agent_id: str) -> GoalList:
    return await caller.runtime.db.read(_goals, agent_id, caller)


@router.post("/api/agents/{agent_id}/goals", status_code=201, summary="Add a goal to an agent")
async def add_goal(caller: Admin, agent_id: str, wanted: NewGoal) -> GoalOut:
    """Goals are identified by their text: adding a goal that exists changes it."""
    made = await caller.write(admin_changes.add_goal, agent_id, wanted.text, wanted.status, wanted.priority)
    return goal_out(made)


@router.put("/api/agents/{agent_id}/goals/{number}", summary="Change a goal")
async def put_goal(caller: Admin, agent_id: str, number: GoalNumber, changes: ChangeGoal) -> GoalOut:
    """Fields that are not sent stay unchanged."""
    return await caller.runtime.db.write(_put_goal, agent_id, caller, number, changes)


@router.delete("/api/agents/{agent_id}/goals/{number}", status_code=204, summary="Delete a goal")
async def delete_goal(caller: Admin, agent_id: str, number: GoalNumber) -> None:
    await caller.runtime.goals.delete(AgentId(agent_id), number, by=caller.requester)


@router.get("/api/agents/{agent_id}/notes", summary="List the notes of an agent")
async def list_notes(caller: Admin, agent_id: str) -> NoteList:
    return await caller.runtime.db.read(_notes, agent_id, caller)


@router.put("/api/agents/{agent_id}/notes/{key:path}", summary="Set a note of an agent")
async def put_note(caller: Admin, agent_id: str, key: str, wanted: SetNote) -> NoteOut:
    """Replaces the note with this key."""
    return note_out(await caller.runtime.notes.set(AgentId(agent_id), key, wanted.text, by=caller.requester))


@router.delete("/api/agents/{agent_id}/notes/{key:path}", status_code=204, summary="Delete a note")
async def delete_note(caller: Admin, agent_id: str, key: str) -> None:
    await caller.runtime.notes.delete(AgentId(agent_id), key, by=caller.requester)


@router.get("/api/agents/{agent_id}/plans", summary="List the plans of an agent")
async def list_plans(caller: Admin, agent_id: str) -> PlanList:
    """Plans, timers and the heartbeat, the next one first."""
    return await caller.runtime.db.read(_plans, agent_id, caller)


@router.put("/api/agents/{agent_id}/plans/{name:path}", summary="Set a plan of an agent")
async def put_plan(caller: Admin, agent_id: str, name: str, wanted: SetPlan) -> PlanOut:
    """Replaces the plan with this name. Set exactly one of `cron`, `at` and `after`."""
    runtime, when = caller.runtime, wanted.model_dump(exclude={"instruction"})
    return plan_out(await runtime.plans.set(AgentId(agent_id), name, wanted.instruction, **when, by=caller.requester))


@router.delete("/api/agents/{agent_id}/plans/{name:path}", status_code=204, summary="Delete a plan")
async def delete_plan(caller: Admin, agent_id: str, name: str) -> None:
    """The plan with this name, or the timer with this id. A heartbeat is part of the definition."""
    await caller.runtime.plans.delete(AgentId(agent_id), name, by=caller.requester)


def _past(tx: Tx, agent_id: str, caller: Caller) -> AgentId:
    return find_agent(tx, caller.requester, agent_id, also_dead=True)


def _goals(tx: Tx, agent_id: str, caller: Caller) -> GoalList:
    agent = _past(tx, agent_id, caller)
    found = readable_goals(goals.goals_of(tx, agent), privacy.reader(tx, agent, caller.entity.id))
    return GoalList(goals=[goal_out(each) for each in found])


def _put_goal(tx: Tx, agent_id: str, caller: Caller, number: int, changes: ChangeGoal) -> GoalOut:
    change = GoalChange(number, changes.text, changes.status, changes.priority)
    made = admin_changes.set_goal(tx, caller.requester, agent_id, change)
    agent = find_agent(tx, caller.requester, agent_id)
    [shown] = readable_goals([made], privacy.reader(tx, agent, caller.entity.id))
    return goal_out(shown)


def _notes(tx: Tx, agent_id: str, caller: Caller) -> NoteList:
    agent = _past(tx, agent_id, caller)
    found = readable_notes(notes.notes_of(tx, agent), privacy.reader(tx, agent, caller.entity.id))
    return NoteList(notes=[note_out(each) for each in found])


def _plans(tx: Tx, agent_id: str, caller: Caller) -> PlanList:
    agent = _past(tx, agent_id, caller)
    found = readable_plans(agenda.plans_of(tx, agent), privacy.reader(tx, agent, caller.entity.id))
    return PlanList(plans=[plan_out(each) for each in found])
