"""Health of the server and of agents."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from denizen.shapes.agents import AgentTrouble
from denizen.shapes.examples import example
from denizen.shapes.value import Open, Value
from denizen.shapes.vocabulary import AGENTS_CHECKED, AGENTS_SHOWN


class Health(Value):
    """The server answers."""

    ok: Literal[True] = True
    version: str


class Ready(Value):
    """This instance is ready."""

    ready: Literal[True] = True
    version: str


class InstanceOut(Value):
    """A process that runs agents."""

    id: str
    seen_at: datetime
    agents: Annotated[int, Field(description="How many of your agents are awake on it.")]
    answers: Annotated[bool, Field(description="Whether it is the one that answered this request.")]


class TroubleOut(Value):
    """An agent with events that are not handled."""

    agent_id: str
    handle: str
    name: str
    events: int
    since: Annotated[datetime, Field(description="When the oldest of them came.")]


class AgentHealth(Value):
    """Whether an agent can think on the instance that answers, and how long people have waited for it."""

    agent_id: str
    handle: str
    name: str
    can_think: bool
    trouble: Annotated[AgentTrouble | None, Field(description="Why it cannot think.")]
    waiting: Annotated[int, Field(description="How many messages of people wait for its answer.")]
    waiting_since: Annotated[datetime | None, Field(description="When the oldest of them came.")]
    dead: Annotated[int, Field(description="How many messages it has set aside; `try-again` takes them up again.")]
    needs_a_person: Annotated[bool, Field(description="Whether this stays as it is until somebody acts.")]


AlertCode = Literal[
    "data_missing",
    "disk_full",
    "not_ready",
    "nobody_thinks",
    "agents_unable",
    "panels_unable",
    "dead_events",
    "late_events",
    "people_wait",
    "budget_spent",
    "mcp_unreachable",
    "context_too_large",
]


class AlertOut(Value):
    """Something that needs a person."""

    model_config = example(code="dead_events", text="1 event was given up: look at it, and try again or leave it.")

    code: Open[AlertCode]
    text: str


class HealthOut(Value):
    """The present health of your organization."""

    version: str
    missing: Annotated[list[str], Field(description="Why the instance that answered is not ready.")]
    instances: list[InstanceOut]
    agents: Annotated[
        list[AgentHealth],
        Field(description=f"Those that need a person first, then by handle; up to {AGENTS_SHOWN} of them."),
    ]
    agents_checked: Annotated[int, Field(description=f"How many were looked at; up to {AGENTS_CHECKED:,}.")]
    dead: Annotated[list[TroubleOut], Field(description="Agents with events that were given up after five attempts.")]
    late: Annotated[list[TroubleOut], Field(description="Agents that could think, with events older than ten minutes.")]
    alerts: Annotated[list[AlertOut], Field(description="Problems that need a person; empty: none.")]
