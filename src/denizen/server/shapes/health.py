"""How well an organization lives."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from denizen.agents.health import Health, Instance, Trouble
from denizen.clock import moment
from denizen.server.shapes.examples import ADA, NINE, THING, given

_INSTANCE = {"id": THING, "seen_at": NINE, "agents": 2, "answers": True}
_TROUBLE = {"agent_id": ADA, "handle": "ada", "name": "Ada", "events": 1, "since": NINE}


class InstanceOut(BaseModel):
    """A process that thinks for agents."""

    model_config = given(**_INSTANCE)

    id: str
    seen_at: datetime
    agents: Annotated[int, Field(description="How many of your agents it holds awake.")]
    answers: Annotated[bool, Field(description="Whether it is the one that answers you now.")]

    @classmethod
    def of(cls, instance: Instance, answering: str) -> InstanceOut:
        return cls(
            id=instance.id,
            seen_at=moment(instance.seen_at),
            agents=instance.agents,
            answers=instance.id == answering,
        )


class TroubleOut(BaseModel):
    """An agent with events that nobody takes."""

    model_config = given(**_TROUBLE)

    agent_id: str
    handle: str
    name: str
    events: int
    since: Annotated[datetime, Field(description="When the oldest of them came.")]

    @classmethod
    def of(cls, trouble: Trouble) -> TroubleOut:
        return cls(
            agent_id=trouble.agent_id,
            handle=trouble.handle,
            name=trouble.name,
            events=trouble.events,
            since=moment(trouble.since),
        )


AlertCode = Literal["not_ready", "nobody_thinks", "dead_events", "late_events", "budget_spent"]


class AlertOut(BaseModel):
    """Something that needs a person."""

    model_config = given(code="dead_events", text="1 event was given up: look at it, and try again or leave it.")

    code: AlertCode
    text: str


class HealthOut(BaseModel):
    """How your organization lives at this moment."""

    model_config = given(
        version="0.1.0",
        missing=[],
        instances=[_INSTANCE],
        dead=[_TROUBLE],
        late=[],
        alerts=[{"code": "dead_events", "text": "1 event was given up: look at it, and try again or leave it."}],
    )

    version: str
    missing: Annotated[list[str], Field(description="What the instance that answers lacks to take work.")]
    instances: list[InstanceOut]
    dead: Annotated[list[TroubleOut], Field(description="Agents with events that were given up after five attempts.")]
    late: Annotated[list[TroubleOut], Field(description="Agents that could think, with events older than ten minutes.")]
    alerts: Annotated[list[AlertOut], Field(description="What needs a person; empty: all is well.")]

    @classmethod
    def of(cls, found: Health, *, version: str, missing: list[str], answering: str) -> HealthOut:
        return cls(
            version=version,
            missing=missing,
            instances=[InstanceOut.of(each, answering) for each in found.instances],
            dead=[TroubleOut.of(each) for each in found.dead],
            late=[TroubleOut.of(each) for each in found.late],
            alerts=[AlertOut(code=code, text=text) for code, text in _alerts(found, missing)],
        )


def _alerts(found: Health, missing: list[str]) -> list[tuple[AlertCode, str]]:
    alerts: list[tuple[AlertCode, str]] = []
    if missing:
        alerts.append(("not_ready", f"This instance lacks: {', '.join(missing)}."))
    if not found.instances:
        alerts.append(("nobody_thinks", "No instance thinks for the agents: start one with denizen up."))
    if dead := sum(each.events for each in found.dead):
        what = "1 event was given up: look at it" if dead == 1 else f"{dead:,} events were given up: look at them"
        alerts.append(("dead_events", f"{what}, and try again or leave it."))
    if late := sum(each.events for each in found.late):
        what = "1 event has waited" if late == 1 else f"{late:,} events have waited"
        alerts.append(("late_events", f"{what} for more than ten minutes: the model may be failing."))
    if found.resting:
        what = "1 agent rests" if found.resting == 1 else f"{found.resting:,} agents rest"
        alerts.append(("budget_spent", f"{what} because a budget is used up."))
    return alerts
