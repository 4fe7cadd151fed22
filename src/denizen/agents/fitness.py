"""Whether agents can think, here and now: the stored state, how long people wait, and what is missing.

What is stored (parked, suspended, over budget) is known everywhere. What a process lacks (a key, a tool, a price) is
found out by the process that is asked, which prepares each agent as it would for a cycle.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import JsonValue
from sqlalchemy import and_, bindparam, case, func, or_, select

from denizen.clock import SECOND, Instant
from denizen.ids import AgentId, EntityId, OrganizationId, SpaceId
from denizen.inbox.statuses import Action, Cause, SpaceStatus
from denizen.shapes.vocabulary import AGENTS_CHECKED as CHECKED
from denizen.storage.database import Tx, columns, statement
from denizen.storage.schema import agents, entities, events, memberships

LATE_SECONDS: Final = 600
"""For how long a person may wait for an agent that can think."""
_NOWHERE: Final = SpaceId("")


@dataclass(frozen=True, slots=True)
class Unable:
    """Why an agent cannot think."""

    agent_id: AgentId
    name: str
    cause: Cause
    detail: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    retry_at: Instant | None = None

    @property
    def _status(self) -> SpaceStatus:
        return SpaceStatus(_NOWHERE, self.agent_id, self.name, self.cause, self.detail)

    @property
    def text(self) -> str:
        """What prevents it, and who can fix it."""
        return self._status.text.replace("Your message is kept. ", "")

    @property
    def actions(self) -> tuple[Action, ...]:
        return self._status.actions


@dataclass(frozen=True, slots=True)
class Fitness:
    """The state of one agent."""

    agent_id: AgentId
    handle: str
    name: str
    unable: Unable | None
    """Why it cannot think; None if it can."""
    waiting: int
    """How many messages of people wait for its answer."""
    waiting_since: Instant | None
    """When the oldest of them came."""
    dead: int
    """How many events it has set aside."""
    context_too_large: str | None = None
    """A sentence, if the server of a model has shown that it accepts less than what is configured here."""

    def needs_a_person(self, now: int) -> bool:
        """Whether this stays as it is until somebody acts."""
        if self.dead:
            return True
        if self.unable is None:
            return self.waiting_since is not None and self.waiting_since < now - LATE_SECONDS * SECOND
        # The person who suspended an agent, or gave it a budget, knows; people who wait for it do not.
        return self.unable.cause not in ("suspended", "budget") or self.waiting > 0


_condition = (
    agents.c.id,
    entities.c.name,
    *columns(agents, "status, held_by, held_until, parked_cause, parked_detail, parked_until"),
)
_agents_with_names = agents.join(entities, entities.c.id == agents.c.id)
_all = statement(
    select(*_condition, entities.c.handle)
    .select_from(_agents_with_names)
    .where(entities.c.organization_id == bindparam("organization_id"), agents.c.status != "dead")
    .order_by(entities.c.handle)
    .limit(CHECKED)
)
_is_unable = or_(agents.c.parked_cause.is_not(None), agents.c.status != "active")
_their_spaces = select(memberships.c.space_id).where(memberships.c.entity_id == bindparam("entity_id"))
_unable_around = statement(
    select(*_condition)
    .select_from(_agents_with_names)
    .where(
        _is_unable,
        agents.c.id.in_(select(memberships.c.entity_id).where(memberships.c.space_id.in_(_their_spaces))),
    )
)
_unable_in_space = statement(
    select(*_condition)
    .select_from(_agents_with_names.join(memberships, memberships.c.entity_id == agents.c.id))
    .where(_is_unable, memberships.c.space_id == bindparam("space_id"))
)
_unable_of_organization = statement(
    select(*_condition)
    .select_from(_agents_with_names)
    .where(_is_unable, agents.c.organization_id == bindparam("organization_id"))
    .limit(CHECKED)
)
_one = statement(select(*_condition).select_from(_agents_with_names).where(agents.c.id == bindparam("agent_id")))
_is_waiting = and_(events.c.waits == 1, events.c.state.in_(("pending", "taken")))
_inboxes = statement(
    select(
        events.c.agent_id,
        func.sum(case((_is_waiting, 1), else_=0)),
        func.min(case((_is_waiting, events.c.created_at))),
        func.sum(case((events.c.state == "dead", 1), else_=0)),
    )
    .select_from(events.join(agents, agents.c.id == events.c.agent_id))
    .where(
        events.c.state != "done",  # must match the condition of the partial index exactly
        agents.c.organization_id == bindparam("organization_id"),
        agents.c.status != "dead",
    )
    .group_by(events.c.agent_id)
)


def of_organization(tx: Tx, organization_id: OrganizationId) -> list[Fitness]:
    """The stored state of its agents, in the order of their handles, up to `CHECKED`."""
    inboxes = {agent_id: inbox for agent_id, *inbox in tx.all(_inboxes, organization_id=organization_id)}
    found: list[Fitness] = []
    for *state, handle in tx.all(_all, organization_id=organization_id):
        agent_id, name, *_ = state
        waiting, since, dead = inboxes.get(agent_id, (0, None, 0))
        found.append(Fitness(agent_id, handle, name, _unable(state), int(waiting or 0), since, int(dead or 0)))
    return found


def unable(tx: Tx, agent_id: AgentId) -> Unable | None:
    """Why this agent cannot think, as far as that is stored."""
    row = tx.one(_one, agent_id=agent_id)
    return None if row is None else _unable(row)


def unable_around(tx: Tx, entity_id: EntityId) -> dict[AgentId, Unable]:
    """The agents in the spaces of this entity that cannot think, as far as that is stored."""
    return _by_agent(tx.all(_unable_around, entity_id=entity_id))


def unable_in_space(tx: Tx, space_id: SpaceId) -> dict[AgentId, Unable]:
    """The agents in this space that cannot think, as far as that is stored."""
    return _by_agent(tx.all(_unable_in_space, space_id=space_id))


def unable_of_organization(tx: Tx, organization_id: OrganizationId) -> dict[AgentId, Unable]:
    """The agents of this organization that cannot think, as far as that is stored."""
    return _by_agent(tx.all(_unable_of_organization, organization_id=organization_id))


def _by_agent(rows: Iterable[tuple[Any, ...]]) -> dict[AgentId, Unable]:
    found = (_unable(row) for row in rows)
    return {each.agent_id: each for each in found if each is not None}


def _unable(row: Sequence[Any]) -> Unable | None:
    agent_id, name, status, held_by, held_until, parked, detail, until = row
    if status == "dead":
        return Unable(agent_id, name, "deleted")
    if status == "suspended" and held_by is None:
        return Unable(agent_id, name, "suspended")
    if status == "suspended":
        return Unable(agent_id, name, "budget", retry_at=held_until)
    if parked is None:
        return None
    return Unable(agent_id, name, parked, json.loads(detail or "{}"), until)
