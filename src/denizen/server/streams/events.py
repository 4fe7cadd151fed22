"""Formats the events of the streams. `denizen.shapes.events` has their shapes."""

from __future__ import annotations

import json
from functools import lru_cache

from denizen.bus.streams import TypingElsewhere as TypingFrame
from denizen.server.live import LiveFrame, Payload, payload_of
from denizen.server.shapes.calls import call_out
from denizen.server.shapes.spaces import message_out
from denizen.server.sse import event
from denizen.shapes.events import (
    AgentStance,
    CycleEnded,
    CycleFailed,
    CycleOpened,
    CycleSkipped,
    MetadataUpdate,
    Notice,
    PanelChanged,
    PanelReply,
    SpaceChanged,
    SpaceJoined,
    SpaceLeft,
    SpaceRead,
    SpaceStatuses,
    Step,
    StreamReady,
    Tool,
    TypingElsewhere,
)
from denizen.shapes.panels import RoundOut
from denizen.spaces.directory import Space
from denizen.spaces.posting import Message
from denizen.storage.database import storable
from denizen.tools.calls import Call


def message_event(message: Message, id: int | str | None = None) -> bytes:
    """A message, with its position in the stream."""
    return event("message", message_json(message), id)


def message_json(message: Message) -> str:
    """A message: the data of its event."""
    return message_out(message).model_dump_json()


def change_event(message: Message) -> bytes:
    """An edited or deleted message, as it is now. Its number is not a position to resume from."""
    name = "message.edited" if message.deleted_at is None else "message.deleted"
    return event(name, message_out(message).model_dump_json())


def call_event(call: Call) -> bytes:
    """A call shown in the space, in its present state. Without an id: a reader that comes back looks again."""
    return event("call", call_out(call).model_dump_json())


@lru_cache(maxsize=64)
def live_event(frame: LiveFrame) -> bytes:
    """A frame under its type. It is encoded once: many readers are sent it at the same moment."""
    return payload_event(payload_of(frame))


def payload_event(payload: Payload) -> bytes:
    """A payload under its type. Without an id: a reader cannot resume from it."""
    return event(str(payload["type"]), json.dumps(payload, ensure_ascii=False))


def round_event(told: RoundOut) -> bytes:
    """A round in its present state. Without an id: a reader that comes back is sent the rounds in progress, and reads
    the others.
    """
    return event("panel.round", told.model_dump_json())


_OfSpaces = SpaceJoined | SpaceLeft | SpaceChanged | SpaceRead | SpaceStatuses | MetadataUpdate | TypingElsewhere
_OfPlaces = Notice | StreamReady | _OfSpaces
PanelEvent = PanelReply | PanelChanged
Typed = _OfPlaces | CycleEnded | CycleOpened | CycleSkipped | CycleFailed | Step | Tool | AgentStance | PanelEvent


def typed_event(told: Typed, id: int | str | None = None) -> bytes:
    """An event of the table under its type."""
    return event(told.type, told.model_dump_json(), id)


def space_changed_event(space: Space, last_seq: int) -> bytes:
    """The space as it is now."""
    told = SpaceChanged(space=space.id, kind=space.kind, name=space.name, private=space.private, last_seq=last_seq)
    return typed_event(told)


def typing_event(frame: TypingFrame) -> bytes:
    """Somebody types elsewhere."""
    return typed_event(TypingElsewhere(space=frame.space, name=storable(frame.name), account=storable(frame.account)))
