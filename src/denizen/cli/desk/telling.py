"""What the house holds, as a server would tell it: the API's own shapes, read as the client reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

from pydantic import BaseModel

from denizen.agents import fitness, registry, space_statuses
from denizen.agents.fitness import Unable
from denizen.agents.space_statuses import ShownStatus
from denizen.client import Call, Message, Space, SpaceStatus
from denizen.client.shapes.value import Value
from denizen.ids import AgentId, EntityId
from denizen.server.schemas import CallOut, MessageOut, SpaceOut, StatusOut
from denizen.spaces import posting, reading
from denizen.spaces.directory import Member
from denizen.storage.database import Tx
from denizen.tools import calls

_ALL: Final = 2**31
"""A person's own spaces can all be shown."""
_Told = TypeVar("_Told", bound=Value)


def told(kind: type[_Told], shape: BaseModel) -> _Told:
    """The value that a client makes of this answer."""
    return kind.model_validate(shape, from_attributes=True)


def message_from(message: posting.Message) -> Message:
    return told(Message, MessageOut.of(message))


def call_from(call: calls.Call) -> Call:
    return told(Call, CallOut.of(call))


def space_from(
    place: reading.Place,
    members: list[Member],
    statuses: Iterable[ShownStatus] = (),
    unable: Mapping[AgentId, Unable] | None = None,
) -> Space:
    return told(Space, SpaceOut.of(place, members, statuses, unable))


def spaces_from(tx: Tx, entity_id: EntityId) -> list[Space]:
    """All spaces of this entity."""
    statuses = space_statuses.in_spaces_of(tx, entity_id, registry.around(tx, entity_id))
    found = reading.places_of(tx, entity_id, limit=_ALL)
    unable = fitness.unable_around(tx, entity_id)
    return [space_from(place, there, statuses.get(place.space.id, ()), unable) for place, there in found]


def statuses_from(statuses: Iterable[ShownStatus]) -> tuple[SpaceStatus, ...]:
    return tuple(told(SpaceStatus, StatusOut.of(each)) for each in statuses)
