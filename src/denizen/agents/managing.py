"""Suspending, resuming, deleting and waking agents, with permission checks and entries in the audit log.

The HTTP API and `denizen.agents` call the same functions, in one transaction each.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from denizen.access import audit
from denizen.access.requesters import Requester
from denizen.agents import registry
from denizen.agents.registry import Agent
from denizen.errors import IdempotencyKeyReused, NotFound
from denizen.ids import AgentId
from denizen.inbox import delivery
from denizen.inbox.delivery import Delivery
from denizen.spaces import directory
from denizen.storage.database import Tx, storable


def find(tx: Tx, by: Requester, named: str, *, also_dead: bool = False) -> Agent:
    """The agent of this id or, in the requester's organization, of this `@handle`.

    Raises `NotFound` for an agent of another organization as for one that does not exist. A deleted agent is found only
    with `also_dead`.
    """
    wanted = storable(named)
    try:
        if wanted.startswith("@") and by.organization_id is not None:
            wanted = directory.find_entity(tx, by.organization_id, wanted).id
        agent = registry.get(tx, AgentId(wanted))
        is_theirs = by.organization_id in (None, agent.entity.organization_id)
        if is_theirs and (also_dead or registry.status(tx, agent.id) != "dead"):
            return agent
    except NotFound:
        pass
    raise NotFound("agent", named)


def suspend(tx: Tx, by: Requester, named: str) -> Agent:
    """Stop the agent from thinking until it is resumed. Its events wait; a running cycle stops where it is."""
    agent = _managed(tx, by, named)
    registry.suspend(tx, agent.id)
    audit.record(tx, agent.entity.organization_id, by.actor, "suspend_agent", agent.id)
    return agent


def resume(tx: Tx, by: Requester, named: str) -> Agent:
    """Let the agent think again, and wake it."""
    agent = _managed(tx, by, named)
    registry.resume(tx, agent.id)
    audit.record(tx, agent.entity.organization_id, by.actor, "resume_agent", agent.id)
    return agent


def delete(tx: Tx, by: Requester, named: str) -> None:
    """Delete the agent: it never wakes again. Its history stays."""
    agent = _managed(tx, by, named)
    registry.delete(tx, agent.id)
    audit.record(tx, agent.entity.organization_id, by.actor, "delete_agent", agent.id)


def trigger(
    tx: Tx,
    by: Requester,
    named: str,
    id: str,
    payload: Mapping[str, JsonValue],
    *,
    urgent: bool = False,
    must_match: bool = False,
) -> None:
    """Put an event from outside into the agent's inbox, and wake the agent. Idempotent by `id`.

    With `must_match`, raises `IdempotencyKeyReused` if the inbox has another event with this `id`.
    """
    agent = find(tx, by, named)
    delivery.deliver(tx, [Delivery(agent.id, id, "service_trigger", tx.now, urgent=urgent, payload=payload)])
    if must_match:
        stored = delivery.find(tx, agent.id, id)
        if stored is None or stored.payload != payload:
            raise IdempotencyKeyReused


def _managed(tx: Tx, by: Requester, named: str) -> Agent:
    by.require("admin")
    return find(tx, by, named)
