"""The private spaces of a person and an agent."""

from __future__ import annotations

from typing import Final
from uuid import UUID, uuid5

from denizen.access.requesters import Requester
from denizen.agents import managing
from denizen.agents.registry import Agent
from denizen.ids import AgentId, EntityId, SpaceId
from denizen.spaces import directory
from denizen.spaces.directory import Entity, Space
from denizen.spaces.handles import MAX_NAME_CHARS
from denizen.storage.database import Tx, storable

_PRIVATE: Final = UUID("7c6f3a52-0d2f-4c0b-8b3e-5a0f6d1e9c47")
"""The UUID namespace for the ids of private spaces of two."""


def open_private_space(tx: Tx, by: Requester, agent_named: str) -> Space:
    """The private space of the requester, a person, and this agent, created on first use."""
    by.require("member")
    return private_space(tx, directory.get_entity(tx, by.entity_id), managing.find(tx, by, agent_named))


def private_space_id(person_id: EntityId, agent_id: AgentId, named: str = "") -> SpaceId:
    """The id of the private space of these two, whether it exists or not."""
    return SpaceId(str(uuid5(_PRIVATE, storable(f"{person_id} {agent_id} {named}"))))


def private_space(tx: Tx, person: Entity, agent: Agent, named: str = "") -> Space:
    """The private space of these two, created on first use; with a name, another one of theirs."""
    id = private_space_id(person.id, agent.id, named)
    title = f"{person.name} and {agent.name}" + (f": {named}" if named else "")
    name = " ".join("".join(char if char.isprintable() else " " for char in storable(title)).split())
    space = directory.found_space(tx, person.organization_id, id, name=name[:MAX_NAME_CHARS], private=True)
    for member in (person.id, agent.id):
        if not directory.is_member(tx, space.id, member):
            directory.join(tx, space.id, member)
    return space
