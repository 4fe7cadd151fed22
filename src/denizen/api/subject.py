"""The base of all subjects of a runtime, and the types of their arguments."""

from __future__ import annotations

from typing import Any

from denizen.access.requesters import THIS_PROCESS, Requester
from denizen.agents.registry import Agent
from denizen.api.wiring import Wiring
from denizen.ids import AgentId, EntityId, OrganizationId, SpaceId
from denizen.panel.panels import Panel
from denizen.spaces.directory import Entity, Organization, Space

AgentRef = Agent | AgentId
"""An agent, or its id."""
EntityRef = Entity | Agent | EntityId
"""A person, an agent or a service, or the id of one."""
PersonRef = Entity | EntityId
"""A person, or their id."""
SpaceRef = Space | SpaceId
"""A space, or its id."""
PanelRef = Panel | Space | SpaceId
"""A panel, or its id."""
OrganizationRef = Organization | OrganizationId
"""An organization, or its id."""


class Subject:
    """One subject of a runtime, such as `denizen.agents`. It has no state of its own."""

    def __init__(self, runtime: Wiring) -> None:
        self._runtime = runtime


def id_of(thing: Any) -> Any:
    """Returns the id of a thing given as itself or as its id."""
    return thing if isinstance(thing, str) else thing.id


def requester_of(who: EntityRef | Requester) -> Requester:
    """Returns the requester of a change that is made in the name of this person, agent or service."""
    return who if isinstance(who, Requester) else THIS_PROCESS.acting_as(id_of(who))


def optional_id_of(thing: Any) -> Any:
    """The same, if the thing may be None."""
    return None if thing is None else id_of(thing)
