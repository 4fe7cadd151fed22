"""Live streams of a server: what its events say, and going on after the last one when the connection is lost."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, TypeAlias

import httpx2
from pydantic import ConfigDict, JsonValue, TypeAdapter, ValidationError

from denizen.clock import Clock
from denizen.errors import ServerError, ServerUnreachable
from denizen.shapes.calls import CallOut
from denizen.shapes.events import (
    EVENTS,
    AgentStatus,
    EventData,
    SpaceStatuses,
    StreamAborted,
    StreamDelta,
    StreamStarted,
)
from denizen.shapes.spaces import MessageOut

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
class MessageChanged:
    """A message was edited or deleted: as it is now. `deleted_at` tells which."""

    message: MessageOut


@dataclass(frozen=True, slots=True)
class UnknownEvent:
    """An event of a newer server, under its name."""

    type: str
    data: Mapping[str, JsonValue]


StreamEvent: TypeAlias = (
    MessageOut | CallOut | StreamStarted | StreamDelta | StreamAborted | AgentStatus | SpaceStatuses | Connected | Lost
)
"""What `Client.stream` gives."""
LifeEvent: TypeAlias = EventData | MessageChanged | UnknownEvent | Connected | Lost
"""What `Client.stream_agent` and `Client.stream_everything` give."""

_payload: Final[TypeAdapter[dict[str, JsonValue]]] = TypeAdapter(
    dict[str, JsonValue], config=ConfigDict(defer_build=True)
)


def decode(sent: httpx2.ServerSentEvent) -> LifeEvent | None:
    """The event as its shape; None for one that only says when to try again."""
    if not sent.data:
        return None
    known = EVENTS.get(sent.event)
    try:
        if known is None:
            return UnknownEvent(sent.event, _payload.validate_json(sent.data))
        told = known.shape.model_validate_json(sent.data, extra="ignore")
    except ValidationError as error:
        raise ServerError("The server sent an event that is not Denizen's.") from error
    return MessageChanged(told) if isinstance(told, MessageOut) and sent.event != "message" else told


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
