"""Suspending, resuming and deleting agents, with permission checks and entries in the audit log.

The HTTP API and `denizen.agents` call the same functions, in one transaction each.
"""

from __future__ import annotations

from denizen.access import audit
from denizen.access.requesters import Requester
from denizen.agents import registry
from denizen.agents.registry import Agent
from denizen.errors import NotFound
from denizen.ids import AgentId
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


def _managed(tx: Tx, by: Requester, named: str) -> Agent:
    by.require("admin")
    return find(tx, by, named)
