"""Goals, notes and plans of an agent."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from denizen.clock import moment
from denizen.plans.agenda import Plan, PlanKind
from denizen.plans.goals import Goal, GoalStatus, Priority
from denizen.plans.notes import Note
from denizen.plans.schedule import describe
from denizen.server.shapes.examples import MADE_FROM_OUTSIDE, NINE, THING, asked, given


class GoalOut(BaseModel):
    """What an agent is trying to achieve."""

    model_config = given(number=1, text="Keep the pantry stocked.", status="active", priority="normal")

    number: Annotated[int, Field(description="By which the agent calls it.")]
    text: str
    status: GoalStatus
    priority: Priority
    outside: Annotated[bool, Field(description=MADE_FROM_OUTSIDE)] = False

    @classmethod
    def of(cls, goal: Goal) -> GoalOut:
        return cls(number=goal.number, text=goal.text, status=goal.status, priority=goal.priority, outside=goal.outside)


class GoalList(BaseModel):
    """An agent's goals: what matters most first, what is done last. At most 50."""

    goals: list[GoalOut]


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


class NoteOut(BaseModel):
    """Something an agent has always before its eyes."""

    model_config = given(key="tea", text="Noor takes it without sugar.")

    key: str
    text: str
    outside: Annotated[bool, Field(description=MADE_FROM_OUTSIDE)] = False

    @classmethod
    def of(cls, note: Note) -> NoteOut:
        return cls(key=note.key, text=note.text, outside=note.outside)


class NoteList(BaseModel):
    """An agent's notes, by key. At most 200."""

    notes: list[NoteOut]


class SetNote(BaseModel):
    """What shall be noted."""

    model_config = asked(text="Noor takes it without sugar.")

    text: str


class PlanOut(BaseModel):
    """When an agent is woken, and what it is told then."""

    model_config = given(
        id=THING,
        kind="plan",
        name="Morning round",
        instruction="Look whether the windows are closed.",
        schedule="0 7 * * * (Europe/Berlin)",
        state="waiting",
        next_run=NINE,
        last_run=None,
    )

    id: str
    kind: PlanKind
    name: Annotated[str, Field(description="Empty for a timer and for the heartbeat.")]
    instruction: str
    schedule: Annotated[str, Field(description="In words.")]
    state: Literal["waiting", "held", "failed"]
    next_run: datetime
    last_run: Annotated[datetime | None, Field(description="The time it last ran for.")]
    outside: Annotated[bool, Field(description=MADE_FROM_OUTSIDE)] = False

    @classmethod
    def of(cls, plan: Plan) -> PlanOut:
        return cls(
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


class PlanList(BaseModel):
    """An agent's plans, timers and heartbeat, the next one first."""

    plans: list[PlanOut]


class SetPlan(BaseModel):
    """When the agent is woken, in exactly one way of three, and what it is told then."""

    model_config = asked(instruction="Look whether the windows are closed.", cron="0 7 * * *", zone="Europe/Berlin")

    instruction: str
    cron: Annotated[str | None, Field(description="Minute, hour, day of month, month, day of week.")] = None
    at: Annotated[str | None, Field(description="Once, in ISO 8601.")] = None
    after: Annotated[str | None, Field(description="Once, after so long: `2 hours`.")] = None
    zone: Annotated[str | None, Field(description="By default that of the agent.")] = None
