"""The base of all subjects of a runtime, and the types of their arguments."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar

from denizen.access.requesters import THIS_PROCESS, Requester, find_agent
from denizen.agents.registry import Agent
from denizen.api.arguments import listed
from denizen.api.wiring import Wiring
from denizen.errors import InvalidInput
from denizen.ids import AgentId, EntityId, OrganizationId, SpaceId
from denizen.panel.panels import Panel
from denizen.spaces import directory
from denizen.spaces.directory import Entity, Organization, Space
from denizen.storage.database import Tx

P = ParamSpec("P")
T = TypeVar("T")

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

    async def _read_agent(
        self, agent: AgentRef, read: Callable[Concatenate[Tx, AgentId, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Returns what `read` returns of the agent, also of a deleted one. Raises `NotFound` if there is no such agent,
        which would look like one that has nothing.
        """
        return await self._runtime.db.read(_of_agent, id_of(agent), read, *args, **kwargs)

    async def _read_space(
        self, space: PanelRef, read: Callable[Concatenate[Tx, SpaceId, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """The same of a space or panel."""
        return await self._runtime.db.read(_of_space, id_of(space), read, *args, **kwargs)

    async def _read_entity(
        self, who: EntityRef, read: Callable[Concatenate[Tx, EntityId, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """The same of a person, an agent or a service."""
        return await self._runtime.db.read(_of_entity, id_of(who), read, *args, **kwargs)


def _of_agent(tx: Tx, id: str, read: Callable[Concatenate[Tx, AgentId, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
    return read(tx, find_agent(tx, THIS_PROCESS, id, also_dead=True), *args, **kwargs)


def _of_space(
    tx: Tx, id: SpaceId, read: Callable[Concatenate[Tx, SpaceId, P], T], *args: P.args, **kwargs: P.kwargs
) -> T:
    return read(tx, directory.get_space(tx, id).id, *args, **kwargs)


def _of_entity(
    tx: Tx, id: EntityId, read: Callable[Concatenate[Tx, EntityId, P], T], *args: P.args, **kwargs: P.kwargs
) -> T:
    return read(tx, directory.get_entity(tx, id).id, *args, **kwargs)


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


def requester_of(who: EntityRef | Requester) -> Requester:
    """Returns the requester of a change that is made in the name of this person, agent or service."""
    return who if isinstance(who, Requester) else THIS_PROCESS.acting_as(id_of(who))


def optional_id_of(thing: Any) -> Any:
    """The same, if the thing may be None."""
    return None if thing is None else id_of(thing)
