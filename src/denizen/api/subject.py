"""The base of all subjects of a runtime, and the types of their arguments."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from typing import Any

from denizen.access.requesters import THIS_PROCESS, Requester
from denizen.agents.registry import Agent
from denizen.api.wiring import Wiring
from denizen.errors import InvalidInput
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
    """Returns the id of a thing given as itself or as its id. Raises `InvalidInput` if it is neither."""
    id = thing if isinstance(thing, str) else getattr(thing, "id", None)
    if isinstance(id, str):
        return id
    if isinstance(thing, Coroutine):
        thing.close()  # It is never awaited now, and this error says more than a warning.
        raise InvalidInput(f"This is a coroutine. Put `await` before the call of {thing.__qualname__}.")
    kind = "None" if thing is None else f"A value of the type {type(thing).__name__}"
    raise InvalidInput(f"{kind} was given in place of an agent, person, space or the like. Give that, or its id.")


def ids_of(things: Any, name: str) -> list[Any]:
    """Returns the ids of several things. Raises `InvalidInput` if it is one thing, not a list of them."""
    return [id_of(each) for each in listed(things, name)]


def listed(things: Any, name: str) -> list[Any]:
    """Returns the things as a list. Raises `InvalidInput` if it is one thing, or a text, which would be its letters."""
    if isinstance(things, str | bytes) or not isinstance(things, Iterable):
        raise InvalidInput(f"`{name}` is {_kind_of(things)}. Give a list, also for a single one.")
    return [*things]


def text_of(value: Any, name: str) -> str:
    """Returns the value. Raises `InvalidInput` if it is no text."""
    if not isinstance(value, str):
        raise InvalidInput(f"`{name}` is {_kind_of(value)}. Give a string.")
    return value


def _kind_of(value: object) -> str:
    return "None" if value is None else f"of the type {type(value).__name__}"


def requester_of(who: EntityRef | Requester) -> Requester:
    """Returns the requester of a change that is made in the name of this person, agent or service."""
    return who if isinstance(who, Requester) else THIS_PROCESS.acting_as(id_of(who))


def optional_id_of(thing: Any) -> Any:
    """The same, if the thing may be None."""
    return None if thing is None else id_of(thing)
