"""How well an organization lives."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from denizen.agents.fitness import CHECKED, Fitness
from denizen.agents.health import SHOWN, Health, Instance, Trouble
from denizen.clock import Instant, moment
from denizen.server.schemas import AgentTrouble
from denizen.server.shapes.examples import ADA, NINE, THING, given

_INSTANCE = {"id": THING, "seen_at": NINE, "agents": 2, "answers": True}
_AGENT = {
    "agent_id": ADA,
    "handle": "ada",
    "name": "Ada",
    "can_think": False,
    "trouble": {
        "cause": "key",
        "text": "OpenAI rejected the API key of Ada.",
        "actions": ["try_again"],
        "retry_at": None,
    },
    "waiting": 1,
    "waiting_since": NINE,
    "dead": 0,
    "needs_a_person": True,
}
NAMED = 5
"""Agents that cannot think are told of one by one up to so many."""
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


class AgentHealth(BaseModel):
    """Whether an agent can think on the instance that answers, and how long people have waited for it."""

    model_config = given(**_AGENT)

    agent_id: str
    handle: str
    name: str
    can_think: bool
    trouble: Annotated[AgentTrouble | None, Field(description="Why it cannot think.")]
    waiting: Annotated[int, Field(description="How many messages of people wait for its answer.")]
    waiting_since: Annotated[datetime | None, Field(description="When the oldest of them came.")]
    dead: Annotated[int, Field(description="How many messages it has set aside; `try-again` takes them up again.")]
    needs_a_person: Annotated[bool, Field(description="Whether this stays as it is until somebody acts.")]

    @classmethod
    def of(cls, found: Fitness, now: int) -> AgentHealth:
        return cls(
            agent_id=found.agent_id,
            handle=found.handle,
            name=found.name,
            can_think=found.unable is None,
            trouble=AgentTrouble.of(found.unable),
            waiting=found.waiting,
            waiting_since=None if found.waiting_since is None else moment(Instant(found.waiting_since)),
            dead=found.dead,
            needs_a_person=found.needs_a_person(now),
        )


AlertCode = Literal[
    "not_ready",
    "nobody_thinks",
    "agents_unable",
    "panels_unable",
    "dead_events",
    "late_events",
    "people_wait",
    "budget_spent",
]


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
        agents=[_AGENT],
        agents_checked=1,
        dead=[_TROUBLE],
        late=[],
        alerts=[{"code": "dead_events", "text": "1 event was given up: look at it, and try again or leave it."}],
    )

    version: str
    missing: Annotated[list[str], Field(description="What the instance that answers lacks to take work.")]
    instances: list[InstanceOut]
    agents: Annotated[
        list[AgentHealth],
        Field(description=f"Those that need a person first, then by handle; up to {SHOWN} of them."),
    ]
    agents_checked: Annotated[int, Field(description=f"How many were looked at; up to {CHECKED:,}.")]
    dead: Annotated[list[TroubleOut], Field(description="Agents with events that were given up after five attempts.")]
    late: Annotated[list[TroubleOut], Field(description="Agents that could think, with events older than ten minutes.")]
    alerts: Annotated[list[AlertOut], Field(description="What needs a person; empty: all is well.")]

    @classmethod
    def of(
        cls, found: Health, agents: Sequence[Fitness], *, now: int, version: str, missing: list[str], answering: str
    ) -> HealthOut:
        shown = sorted([AgentHealth.of(each, now) for each in agents], key=lambda each: not each.needs_a_person)
        return cls(
            version=version,
            missing=missing,
            instances=[InstanceOut.of(each, answering) for each in found.instances],
            agents=shown[:SHOWN],
            agents_checked=len(shown),
            dead=[TroubleOut.of(each) for each in found.dead],
            late=[TroubleOut.of(each) for each in found.late],
            alerts=[AlertOut(code=code, text=text) for code, text in _alerts(found, missing, shown, now)],
        )


def _alerts(found: Health, missing: list[str], agents: Sequence[AgentHealth], now: int) -> list[tuple[AlertCode, str]]:
    alerts: list[tuple[AlertCode, str]] = []
    if missing:
        alerts.append(("not_ready", f"This instance lacks: {', '.join(missing)}."))
    if not found.instances:
        alerts.append(("nobody_thinks", "No instance thinks for the agents: start one with denizen up."))
    unable = [each for each in agents if each.trouble is not None and each.trouble.cause not in ("suspended", "budget")]
    for each in unable[:NAMED]:
        assert each.trouble is not None
        alerts.append(("agents_unable", each.trouble.text))
    if len(unable) > NAMED:
        alerts.append(("agents_unable", f"{len(unable) - NAMED:,} more agents cannot think."))
    alerts.extend(("panels_unable", text) for text in found.panels[:NAMED])
    if len(found.panels) > NAMED:
        alerts.append(("panels_unable", f"Nobody can answer in {len(found.panels) - NAMED:,} more panels."))
    if dead := sum(each.events for each in found.dead):
        what = "1 event was given up: look at it" if dead == 1 else f"{dead:,} events were given up: look at them"
        alerts.append(("dead_events", f"{what}, and try again or leave it."))
    if late := sum(each.events for each in found.late):
        what = "1 event has waited" if late == 1 else f"{late:,} events have waited"
        alerts.append(("late_events", f"{what} for more than ten minutes: the model may be failing."))
    waiting = [each for each in agents if each.waiting_since is not None and each.needs_a_person]
    if waiting:
        oldest = min(waiting, key=lambda each: each.waiting_since or moment(Instant(now)))
        minutes = int((moment(Instant(now)) - (oldest.waiting_since or moment(Instant(now)))).total_seconds() // 60)
        people = f"A person has waited {minutes:,} {'minute' if minutes == 1 else 'minutes'} for {oldest.name}"
        alerts.append(("people_wait", f"{people}: see why, and try again."))
    if found.resting:
        what = "1 agent rests" if found.resting == 1 else f"{found.resting:,} agents rest"
        alerts.append(("budget_spent", f"{what} because a budget is used up."))
    return alerts
