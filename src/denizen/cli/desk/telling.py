"""What the house holds, as a server would tell it: the API's own shapes, read as the client reads them."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel

from denizen.client import Call, Message, Space
from denizen.client.shapes.value import Value
from denizen.server.schemas import CallOut, MessageOut, SpaceOut
from denizen.spaces import posting, reading
from denizen.spaces.directory import Member
from denizen.tools import calls

_Told = TypeVar("_Told", bound=Value)


def told(kind: type[_Told], shape: BaseModel) -> _Told:
    """The value that a client makes of this answer."""
    return kind.model_validate(shape, from_attributes=True)


def message_from(message: posting.Message) -> Message:
    return told(Message, MessageOut.of(message))


def call_from(call: calls.Call) -> Call:
    return told(Call, CallOut.of(call))


def space_from(place: reading.Place, members: list[Member]) -> Space:
    return told(Space, SpaceOut.of(place, members))
