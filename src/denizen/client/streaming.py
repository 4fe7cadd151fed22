"""Live streams of a server: what its events say, and going on after the last one when the connection is lost."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, TypeAlias

import httpx2
from pydantic import ConfigDict, JsonValue, TypeAdapter, ValidationError

from denizen.client.shapes.agents import Call
from denizen.client.shapes.places import Message, SpaceStatus
from denizen.client.shapes.stances import Stance
from denizen.clock import Clock
from denizen.errors import ServerError, ServerUnreachable

FIRST_PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Connected:
    """From here on the stream is live."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The connection is gone; what was being written when it broke may never be finished. It is tried again."""

    reason: str


@dataclass(frozen=True, slots=True)
class Started:
    """An agent begins to write the message of this id. Its text is heard from `offset` on; starting again is anew."""

    id: str
    agent_id: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Delta:
    """More of its text, which begins `offset` characters into it."""

    id: str
    agent_id: str
    offset: int
    text: str


@dataclass(frozen=True, slots=True)
class Aborted:
    """It will not become a message."""

    id: str
    agent_id: str


@dataclass(frozen=True, slots=True)
class Status:
    """How an agent is from now on: sleeping, alive, paused, suspended, dead."""

    agent_id: str
    status: str
    doing: str | None = None
    """The tool that it is using."""


@dataclass(frozen=True, slots=True)
class Read:
    """One has read in a space up to that number, here or on another device."""

    space_id: str
    read_seq: int
    unread: int


@dataclass(frozen=True, slots=True)
class SpaceStatuses:
    """All that a space shows of agents that have not answered there. A space of which none comes shows nothing."""

    space_id: str
    statuses: tuple[SpaceStatus, ...]


@dataclass(frozen=True, slots=True)
class Stands:
    """An agent stands so to a conversation from now on: its profile there, its state of mind. Told to admins."""

    agent_id: str
    stance: Stance


@dataclass(frozen=True, slots=True)
class Happened:
    """Anything else that a stream tells, under its name: a cycle, a step, a space that one has come into."""

    type: str
    data: Mapping[str, JsonValue]


Frame: TypeAlias = Started | Delta | Aborted | Status
StreamEvent: TypeAlias = Message | Call | Frame | SpaceStatuses | Connected | Lost
LifeEvent: TypeAlias = StreamEvent | Read | Stands | Happened


def frame_from(payload: Mapping[str, JsonValue]) -> Frame | None:
    """The frame that a payload of the stream says, or None if it says none that we know."""
    match payload:
        case {"type": "stream.started", "id": str(id_), "agent": str(agent), **rest}:
            offset = rest.get("offset", 0)
            return Started(id_, agent, offset if isinstance(offset, int) else 0)
        case {"type": "stream.delta", "id": str(id_), "agent": str(agent), "offset": int(offset), "text": str(text)}:
            return Delta(id_, agent, offset, text)
        case {"type": "stream.aborted", "id": str(id_), "agent": str(agent)}:
            return Aborted(id_, agent)
        case {"type": "agent.status", "agent": str(agent), "status": str(status), **rest}:
            doing = rest.get("doing")
            return Status(agent, status, doing if isinstance(doing, str) else None)
        case _:
            return None


_LATER: Final = ConfigDict(defer_build=True)
"""They are built when a stream is read."""
_payload: Final[TypeAdapter[dict[str, JsonValue]]] = TypeAdapter(dict[str, JsonValue], config=_LATER)
_statuses: Final[TypeAdapter[tuple[SpaceStatus, ...]]] = TypeAdapter(tuple[SpaceStatus, ...], config=_LATER)


def decode(
    sent: httpx2.ServerSentEvent,
) -> Message | Call | Frame | SpaceStatuses | Read | Stands | Happened | None:
    """What an event says; None of one that only says when to try again."""
    if not sent.data:
        return None
    try:
        if sent.event == "message":
            return Message.model_validate_json(sent.data)
        if sent.event == "call":
            return Call.model_validate_json(sent.data)
        told = _payload.validate_json(sent.data)
        if sent.event == "space.statuses":
            return SpaceStatuses(str(told.get("space")), _statuses.validate_python(told.get("statuses")))
        if sent.event == "agent.stance":
            return Stands(str(told.get("agent")), Stance.model_validate(told.get("stance")))
    except ValidationError as error:
        raise ServerError("The server sent an event that is not Denizen's.") from error
    return frame_from(told) or _read_from(told) or Happened(sent.event, told)


def _read_from(payload: Mapping[str, JsonValue]) -> Read | None:
    match payload:
        case {"type": "space.read", "space": str(space), "read_seq": int(read_seq), "unread": int(unread)}:
            return Read(space, read_seq, unread)
        case _:
            return None


Once: TypeAlias = Callable[[str | None], AsyncGenerator[tuple[str | None, LifeEvent]]]
"""One connection's worth of events after an id, each with its own."""


async def resuming(once: Once, after: str | None, clock: Clock) -> AsyncGenerator[LifeEvent]:
    """What is told after that id, for ever: a connection that is lost is made again, after the last id that came."""
    pause = FIRST_PAUSE_SECONDS
    while True:
        try:
            async with aclosing(once(after)) as events:
                async for id, event in events:
                    pause = FIRST_PAUSE_SECONDS
                    after = id or after
                    yield event
            reason = "The server ended the stream."
        except ServerUnreachable as error:
            reason = str(error)
        yield Lost(reason)
        await clock.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
