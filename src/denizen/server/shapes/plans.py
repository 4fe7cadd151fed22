"""Goals, notes and plans of an agent."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from denizen.clock import moment
from denizen.plans.agenda import Plan
from denizen.plans.goals import Goal, GoalStatus, Priority
from denizen.plans.notes import Note
from denizen.plans.schedule import describe
from denizen.shapes.examples import asked
from denizen.shapes.plans import GoalOut, NoteOut, PlanOut


def goal_out(goal: Goal) -> GoalOut:
    return GoalOut(number=goal.number, text=goal.text, status=goal.status, priority=goal.priority, outside=goal.outside)


class NewGoal(BaseModel):
    """A goal for an agent."""

    model_config = asked(text="Keep the pantry stocked.", priority="high")

    text: str
    status: GoalStatus = "active"
    priority: Priority = "normal"


class ChangeGoal(BaseModel):
    """What shall be different about a goal; what is not there stays."""

    model_config = asked(status="done")

    text: str | None = None
    status: GoalStatus | None = None
    priority: Priority | None = None


def note_out(note: Note) -> NoteOut:
    return NoteOut(key=note.key, text=note.text, outside=note.outside)


class SetNote(BaseModel):
    """What shall be noted."""

    model_config = asked(text="Noor takes it without sugar.")

    text: str


def plan_out(plan: Plan) -> PlanOut:
    return PlanOut(
        id=plan.id,
        kind=plan.kind,
        name=plan.name,
        instruction=plan.instruction,
        schedule=describe(plan.schedule),
        state=plan.state,
        next_run=moment(plan.next_run),
        last_run=None if plan.last_run is None else moment(plan.last_run),
        outside=plan.outside,
    )


class SetPlan(BaseModel):
    """When the agent is woken, in exactly one way of three, and what it is told then."""

    model_config = asked(instruction="Look whether the windows are closed.", cron="0 7 * * *", zone="Europe/Berlin")

    instruction: str
    cron: Annotated[str | None, Field(description="Minute, hour, day of month, month, day of week.")] = None
    at: Annotated[str | None, Field(description="Once, in ISO 8601.")] = None
    after: Annotated[str | None, Field(description="Once, after so long: `2 hours`.")] = None
    zone: Annotated[str | None, Field(description="By default that of the agent.")] = None
