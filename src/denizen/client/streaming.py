"""Decodes the events of a server's streams, and resumes after the last one when the connection is lost."""

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
    """The connection is lost; text that was being written may never be finished. The client reconnects."""

    reason: str


@dataclass(frozen=True, slots=True)
class MessageChanged:
    """A message that was edited, deleted, reacted to or pinned, as it is now."""

    message: MessageOut


@dataclass(frozen=True, slots=True)
class UnknownEvent:
    """An event of a newer server, under its name."""

    type: str
    data: Mapping[str, JsonValue]


StreamEvent: TypeAlias = (
    MessageOut
    | MessageChanged
    | CallOut
    | StreamStarted
    | StreamDelta
    | StreamAborted
    | AgentStatus
    | SpaceStatuses
    | Connected
    | Lost
)
"""The events of `Client.stream`."""
LifeEvent: TypeAlias = EventData | MessageChanged | UnknownEvent | Connected | Lost
"""The events of `Client.stream_agent` and `Client.stream_everything`."""

_payload: Final[TypeAdapter[dict[str, JsonValue]]] = TypeAdapter(
    dict[str, JsonValue], config=ConfigDict(defer_build=True)
)


def decode(sent: httpx2.ServerSentEvent) -> LifeEvent | None:
    """Decodes an event to its shape; None for one that only sets the retry time."""
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
"""Yields the events of one connection after an id, each with its own."""


async def resuming(once: Once, after: str | None, clock: Clock) -> AsyncGenerator[LifeEvent]:
    """Yields the events after that id for ever: reconnects when the connection is lost, and resumes after the
    last id.
    """
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
