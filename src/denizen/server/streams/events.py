"""Every event of the streams: its name, its shape, which streams tell it, and whether one can resume after it.

The shapes say what is sent, to the field; the page docs/streams.md is checked against this table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict

from denizen.agents.registry import Status
from denizen.panel.rounds import Part
from denizen.server.live import Payload
from denizen.server.schemas import CallOut, MessageOut, StatusOut
from denizen.server.shapes.memory import ConversationMemory
from denizen.server.shapes.panels import ReplyOut, RoundOut
from denizen.server.shapes.stances import StanceOut
from denizen.server.sse import event
from denizen.spaces.directory import Space, SpaceKind
from denizen.spaces.posting import Message
from denizen.tools.calls import Call

Stream = Literal["space", "agent", "person"]


class _Event(BaseModel):
    model_config = ConfigDict(extra="forbid")


class StreamStarted(_Event):
    """An agent begins to write the message of this id."""

    type: Literal["stream.started"] = "stream.started"
    id: str
    agent: str
    space: str
    epoch: int
    reply_to: str | None
    offset: Literal[0] = 0


class StreamDelta(_Event):
    """More of its text; it begins `offset` characters (Unicode code points) into it."""

    type: Literal["stream.delta"] = "stream.delta"
    id: str
    agent: str
    epoch: int
    offset: int
    text: str


class StreamAborted(_Event):
    """This text will not be said."""

    type: Literal["stream.aborted"] = "stream.aborted"
    agent: str
    epoch: int
    id: str
    reason: str


class AgentStatus(_Event):
    """How an agent is, and with which tool it is busy."""

    type: Literal["agent.status"] = "agent.status"
    agent: str
    status: Status
    epoch: int | None
    doing: str | None = None


class CallStarted(_Event):
    """An agent begins to write the arguments of a call that people see."""

    type: Literal["call.started"] = "call.started"
    id: str
    agent: str
    space: str
    epoch: int
    tool: str


class CallDelta(_Event):
    """More of its arguments, which are JSON."""

    type: Literal["call.delta"] = "call.delta"
    id: str
    agent: str
    epoch: int
    offset: int
    text: str


class Ready(_Event):
    """The spaces the person is in; what was missed follows, then what happens."""

    type: Literal["ready"] = "ready"
    spaces: list[str]
    read: dict[str, int]


class SpaceJoined(_Event):
    """The person is in a space that it was not told of before. Its messages up to `last_seq` are to be read."""

    type: Literal["space.joined"] = "space.joined"
    space: str
    kind: SpaceKind
    name: str
    private: bool
    last_seq: int


class SpaceLeft(_Event):
    """The person is not in the space any more."""

    type: Literal["space.left"] = "space.left"
    space: str


class SpaceRead(_Event):
    """The person has read up to `read_seq` there, on this device or another, and `unread` messages are left."""

    type: Literal["space.read"] = "space.read"
    space: str
    read_seq: int
    last_seq: int
    unread: int


class SpaceChanged(_Event):
    """The space has another name or other members, or may be known to others than before."""

    type: Literal["space.changed"] = "space.changed"
    space: str
    kind: SpaceKind
    name: str
    private: bool
    last_seq: int


class SpaceStatuses(_Event):
    """All that the space shows of agents that have not answered there; an empty list: nothing any more."""

    type: Literal["space.statuses"] = "space.statuses"
    space: str
    statuses: list[StatusOut]


class MetadataUpdate(_Event):
    """What belongs to the space and was not said in it has changed: what its conversation came to."""

    type: Literal["metadata.update"] = "metadata.update"
    space: str
    rolling_memory: ConversationMemory


class CycleEnded(_Event):
    """A cycle that is part of the agent's life."""

    type: Literal["cycle"] = "cycle"
    agent: str
    cycle: str
    number: int
    outcome: str
    stop_reason: str
    summary: str
    steps: int
    started_at: datetime
    ended_at: datetime
    input_tokens: int
    output_tokens: int
    cost_micros: int


class CycleOpened(_Event):
    """The cycle that is open, as it stands; its steps and calls follow."""

    type: Literal["cycle.opened"] = "cycle.opened"
    agent: str
    cycle: str
    state: Literal["open", "paused"]
    started_at: datetime
    events: int
    attempts: int


class CycleSkipped(_Event):
    """The agent had nothing to say to what woke it; the cycle left no trace."""

    type: Literal["cycle.skipped"] = "cycle.skipped"
    agent: str
    cycle: str
    reason: str


class CycleFailed(_Event):
    """The cycle was undone, and its events wait again; or it stays open, and is tried again from its last step."""

    type: Literal["cycle.failed"] = "cycle.failed"
    agent: str
    cycle: str
    undone: bool
    error: str


class Step(_Event):
    """A step of the open cycle is stored: what the model answered."""

    type: Literal["step"] = "step"
    agent: str
    cycle: str
    step: int
    model: str | None
    tools: list[str]
    input_tokens: int
    output_tokens: int


class Tool(_Event):
    """A tool call of the open cycle: about to be made, put to people, or done."""

    type: Literal["tool"] = "tool"
    agent: str
    cycle: str
    step: int
    position: int
    tool: str
    state: Literal["intent", "asked", "done"]


class AgentBudget(_Event):
    """The agent has used most of a limit."""

    type: Literal["agent.budget"] = "agent.budget"
    agent: str
    scope: str
    used: float
    text: str


class AgentAlert(_Event):
    """Something that whoever looks after the agent should know."""

    type: Literal["agent.alert"] = "agent.alert"
    agent: str
    kind: str
    text: str


class Notice(_Event):
    """Something that this person should know: that nobody can answer in a panel that they look after, or that somebody
    made an access token for them."""

    type: Literal["notice"] = "notice"
    kind: str
    text: str


class AgentStance(_Event):
    """How the agent stands to a conversation, as it is now: its profile there, its state of mind, its signals."""

    type: Literal["agent.stance"] = "agent.stance"
    agent: str
    stance: StanceOut


class PanelDelta(_Event):
    """More of what an advisor says or thinks; it begins `offset` characters (Unicode code points) into it."""

    type: Literal["panel.delta"] = "panel.delta"
    panel: str
    round: str
    advisor: str
    part: Part
    epoch: int
    offset: int
    text: str
    thinking: bool


class PanelReply(_Event):
    """What a voice answers in a round, in the state that it is in now."""

    type: Literal["panel.reply"] = "panel.reply"
    panel: str
    round: str
    all_completed: bool
    reply: ReplyOut


class PanelChanged(_Event):
    """The panel has other settings or advisors, or one of its voices thinks otherwise of people: read it again."""

    type: Literal["panel.changed"] = "panel.changed"
    panel: str


@dataclass(frozen=True, slots=True)
class Kind:
    """One event of the table."""

    shape: type[BaseModel]
    streams: tuple[Stream, ...]
    resumable: tuple[Stream, ...] = ()
    """The streams in which it has an id, so that one can resume after it."""


_ALL: Final[tuple[Stream, ...]] = ("space", "agent", "person")
_SHARED: Final[tuple[Stream, ...]] = ("space", "person")

EVENTS: Final[Mapping[str, Kind]] = {
    "message": Kind(MessageOut, _ALL, _SHARED),
    "message.edited": Kind(MessageOut, _SHARED),
    "message.deleted": Kind(MessageOut, _SHARED),
    "stream.started": Kind(StreamStarted, _ALL),
    "stream.delta": Kind(StreamDelta, _ALL),
    "stream.aborted": Kind(StreamAborted, _ALL),
    "agent.status": Kind(AgentStatus, _ALL),
    "call": Kind(CallOut, _SHARED),
    "call.started": Kind(CallStarted, _SHARED),
    "call.delta": Kind(CallDelta, _SHARED),
    "ready": Kind(Ready, ("person",), ("person",)),
    "space.joined": Kind(SpaceJoined, ("person",), ("person",)),
    "space.left": Kind(SpaceLeft, ("person",), ("person",)),
    "space.changed": Kind(SpaceChanged, _SHARED),
    "space.read": Kind(SpaceRead, ("person",)),
    "space.statuses": Kind(SpaceStatuses, _SHARED),
    "panel.round": Kind(RoundOut, _SHARED),
    "panel.reply": Kind(PanelReply, _SHARED),
    "panel.delta": Kind(PanelDelta, _SHARED),
    "panel.changed": Kind(PanelChanged, _SHARED),
    "metadata.update": Kind(MetadataUpdate, _SHARED),
    "cycle": Kind(CycleEnded, ("agent",), ("agent",)),
    "cycle.opened": Kind(CycleOpened, ("agent",)),
    "step": Kind(Step, ("agent",)),
    "tool": Kind(Tool, ("agent",)),
    "cycle.skipped": Kind(CycleSkipped, ("agent",)),
    "cycle.failed": Kind(CycleFailed, ("agent",)),
    "agent.budget": Kind(AgentBudget, ("agent",)),
    "agent.alert": Kind(AgentAlert, ("agent",)),
    "notice": Kind(Notice, ("person",)),
    "agent.stance": Kind(AgentStance, ("agent", "person")),
}


def message_event(message: Message, id: int | str | None = None) -> bytes:
    """A message, under the place in the stream that it has."""
    return event("message", MessageOut.of(message).model_dump_json(), id)


def change_event(message: Message) -> bytes:
    """A message that was edited or deleted, as it is now. Its number is no place to resume from."""
    name = "message.edited" if message.deleted_at is None else "message.deleted"
    return event(name, MessageOut.of(message).model_dump_json())


def call_event(call: Call) -> bytes:
    """A call that is shown in the space, as it stands. Without an id: whoever comes back looks again."""
    return event("call", CallOut.of(call).model_dump_json())


def live_event(payload: Payload) -> bytes:
    """A frame under its type. Without an id: it is not what one resumes from."""
    return event(str(payload["type"]), json.dumps(payload, ensure_ascii=False))


def round_event(told: RoundOut) -> bytes:
    """A round, as it stands. Without an id: whoever comes back is told what is under way, and reads the others."""
    return event("panel.round", told.model_dump_json())


_OfPlaces = Notice | Ready | SpaceJoined | SpaceLeft | SpaceChanged | SpaceRead | SpaceStatuses | MetadataUpdate
PanelEvent = PanelReply | PanelChanged
Typed = _OfPlaces | CycleEnded | CycleOpened | CycleSkipped | CycleFailed | Step | Tool | AgentStance | PanelEvent


def typed_event(told: Typed, id: int | str | None = None) -> bytes:
    """An event of the table under its type."""
    return event(told.type, told.model_dump_json(), id)


def metadata_event(memory: ConversationMemory) -> bytes:
    """What the conversation of a space came to."""
    return typed_event(MetadataUpdate(space=memory.space_id, rolling_memory=memory))


def space_changed_event(space: Space, last_seq: int) -> bytes:
    """The space as it is now."""
    told = SpaceChanged(space=space.id, kind=space.kind, name=space.name, private=space.private, last_seq=last_seq)
    return typed_event(told)
