"""The health of an organization: the instances that run its agents, and what needs a person. Bounded work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy import bindparam, func, select

from denizen.agents import owner_alerts
from denizen.clock import SECOND, Instant
from denizen.ids import AgentId, OrganizationId
from denizen.shapes.vocabulary import AGENTS_SHOWN as SHOWN
from denizen.storage.database import Tx, statement
from denizen.storage.schema import agents, entities, events, instances, leases

LATE_SECONDS: Final = 600
"""For how long an event may wait for an agent that can think."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A process that runs agents."""

    id: str
    seen_at: Instant
    agents: int
    """How many agents of the organization it holds."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """An agent with events that nobody takes."""

    agent_id: AgentId
    handle: str
    name: str
    events: int
    since: Instant
    """When the oldest of them came."""


@dataclass(frozen=True, slots=True)
class Health:
    """The state of all agents of an organization together."""

    instances: tuple[Instance, ...]
    dead: tuple[Trouble, ...]
    """Agents with dead events."""
    late: tuple[Trouble, ...]
    """Agents whose events wait although they can think."""
    resting: int
    """How many agents are suspended by their budget."""
    panels: tuple[str, ...] = ()
    """Why nobody can answer in a panel: one sentence for each."""


_held = (
    select(func.count())
    .select_from(leases.join(agents, agents.c.id == leases.c.agent_id))
    .where(
        leases.c.holder == instances.c.id,
        leases.c.holder.is_not(None),
        leases.c.until >= bindparam("now"),
        agents.c.organization_id == bindparam("organization_id"),
    )
    .scalar_subquery()
)
_instances = statement(
    select(instances.c.id, instances.c.seen_at, _held)
    .where(instances.c.seen_at >= bindparam("since"))
    .order_by(instances.c.id)
)
_troubles = (
    select(agents.c.id, entities.c.handle, entities.c.name, func.count(), func.min(events.c.created_at))
    .select_from(
        events.join(agents, agents.c.id == events.c.agent_id).join(entities, entities.c.id == events.c.agent_id)
    )
    .where(
        events.c.state != "done",  # must match the condition of the partial index exactly
        agents.c.organization_id == bindparam("organization_id"),
    )
    .group_by(agents.c.id, entities.c.handle, entities.c.name)
    .order_by(entities.c.handle)
    .limit(SHOWN)
)
_dead = statement(_troubles.where(events.c.state == "dead", agents.c.status != "dead"))
_late = statement(
    _troubles.where(
        events.c.state == "pending",
        events.c.wakes == 1,
        events.c.not_before <= bindparam("now"),
        events.c.created_at < bindparam("before"),
        agents.c.status == "active",
    )
)
_resting = statement(
    select(func.count())
    .select_from(agents)
    .where(
        agents.c.organization_id == bindparam("organization_id"),
        agents.c.held_by.is_not(None),
        agents.c.status == "suspended",
    )
)


def look(tx: Tx, organization_id: OrganizationId, lease_seconds: float) -> Health:
    """The current health of the organization. Instances that were silent for the time of a lease count as gone."""
    where = {"organization_id": organization_id}
    found = tx.all(_instances, now=tx.now, since=tx.now - int(lease_seconds * SECOND), **where)
    late = tx.all(_late, now=tx.now, before=tx.now - LATE_SECONDS * SECOND, **where)
    resting = tx.one(_resting, **where)
    return Health(
        tuple(Instance(id, Instant(seen_at), count) for id, seen_at, count in found),
        tuple(Trouble(*row) for row in tx.all(_dead, **where)),
        tuple(Trouble(*row) for row in late),
        resting[0] if resting else 0,
        tuple(owner_alerts.panel_troubles(tx, organization_id)[:SHOWN]),
    )
