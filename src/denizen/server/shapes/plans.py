"""Goals, notes and plans of an agent."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from denizen.plans.agenda import Plan
from denizen.plans.goals import Goal, GoalStatus, Priority
from denizen.plans.notes import Note
from denizen.plans.schedule import describe
from denizen.server.shapes.filling import filled
from denizen.shapes.examples import body_example
from denizen.shapes.plans import GoalOut, NoteOut, PlanOut


def goal_out(goal: Goal) -> GoalOut:
    return filled(GoalOut, goal)


class NewGoal(BaseModel):
    """A goal for an agent."""

    model_config = body_example(text="Keep the pantry stocked.", priority="high")

    text: str
    status: GoalStatus = "active"
    priority: Priority = "normal"


class ChangeGoal(BaseModel):
    """Changes of a goal. Fields that are not sent stay unchanged."""

    model_config = body_example(status="done")

    text: str | None = None
    status: GoalStatus | None = None
    priority: Priority | None = None


def note_out(note: Note) -> NoteOut:
    return filled(NoteOut, note)


class SetNote(BaseModel):
    """The text of a note."""

    model_config = body_example(text="Noor takes it without sugar.")

    text: str


def plan_out(plan: Plan) -> PlanOut:
    return filled(PlanOut, plan, schedule=describe(plan.schedule))


class SetPlan(BaseModel):
    """A plan: exactly one of `cron`, `at` and `after`, and the instruction."""

    model_config = body_example(
        instruction="Look whether the windows are closed.", cron="0 7 * * *", zone="Europe/Berlin"
    )

    instruction: str
    cron: Annotated[str | None, Field(description="Minute, hour, day of month, month, day of week.")] = None
    at: Annotated[str | None, Field(description="Once, in ISO 8601.")] = None
    after: Annotated[str | None, Field(description="Once, after this time: `2 hours`.")] = None
    zone: Annotated[str | None, Field(description="By default the time zone of the agent.")] = None
