"""Goals, notes and plans."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from denizen.shapes.examples import MADE_FROM_OUTSIDE, example
from denizen.shapes.value import Open, Value
from denizen.shapes.vocabulary import GoalStatus, PlanKind, Priority


class GoalOut(Value):
    """A goal of an agent."""

    model_config = example(text="Keep the pantry stocked.")

    number: Annotated[int, Field(description="The number that the agent uses for it.")]
    text: str
    status: Open[GoalStatus]
    priority: Open[Priority]
    outside: Annotated[bool, Field(description=MADE_FROM_OUTSIDE)] = False


class GoalList(Value):
    """An agent's goals by priority, finished ones last. At most 50."""

    goals: list[GoalOut]


class NoteOut(Value):
    """A note of an agent, which is part of every request."""

    model_config = example(key="tea", text="Noor takes it without sugar.")

    key: str
    text: str
    outside: Annotated[bool, Field(description=MADE_FROM_OUTSIDE)] = False


class NoteList(Value):
    """An agent's notes, by key. At most 200."""

    notes: list[NoteOut]


class PlanOut(Value):
    """A plan, timer or heartbeat: when an agent is woken, and its instruction."""

    model_config = example(name="Morning round", instruction="Look whether the windows are closed.")

    id: str
    kind: Open[PlanKind]
    name: Annotated[str, Field(description="Empty for a timer and for the heartbeat.")]
    instruction: str
    schedule: Annotated[str, Field(description="In words.")]
    state: Open[Literal["waiting", "held", "failed"]]
    next_run: datetime
    last_run: Annotated[datetime | None, Field(description="The time it last ran for.")]
    outside: Annotated[bool, Field(description=MADE_FROM_OUTSIDE)] = False


class PlanList(Value):
    """An agent's plans, timers and heartbeat, the next one first."""

    plans: list[PlanOut]
