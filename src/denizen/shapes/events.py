"""Every event of the streams: its name, its shape, which streams send it, and whether one can resume after it.

The server, the description of the HTTP API and the Python client come from this table; the types of the web client are
generated from that description. The page docs/streams.md is checked against the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field

from denizen.shapes.calls import CallOut
from denizen.shapes.memory import ConversationMemory, RetrievalOut
from denizen.shapes.panels import ReplyOut, RoundOut
from denizen.shapes.spaces import MessageOut, StatusOut
from denizen.shapes.stances import PromptProfileOut, StanceOut
from denizen.shapes.value import Open, Value
from denizen.shapes.vocabulary import AgentState, ReplyPart, SpaceKind


class StreamStarted(Value):
    """An agent begins to write the message of this id."""

    type: Literal["stream.started"] = "stream.started"
    id: str
    agent: str
    space: str
    epoch: int
    reply_to: str | None
    offset: Literal[0] = 0


class StreamDelta(Value):
    """More of its text; it begins `offset` characters (Unicode code points) into it."""

    type: Literal["stream.delta"] = "stream.delta"
    id: str
    agent: str
    epoch: int
    offset: int
    text: str


class StreamAborted(Value):
    """This text is not posted."""

    type: Literal["stream.aborted"] = "stream.aborted"
    agent: str
    epoch: int
    id: str
    reason: str


class AgentStatus(Value):
    """How an agent is, and with which tool it is busy."""

    type: Literal["agent.status"] = "agent.status"
    agent: str
    status: Open[AgentState]
    epoch: int | None
    doing: str | None = None


class CallStarted(Value):
    """An agent begins to write the arguments of a call that people see."""

    type: Literal["call.started"] = "call.started"
    id: str
    agent: str
    space: str
    epoch: int
    tool: str


class CallDelta(Value):
    """More of its arguments, which are JSON."""

    type: Literal["call.delta"] = "call.delta"
    id: str
    agent: str
    epoch: int
    offset: int
    text: str


class StreamReady(Value):
    """The spaces the person is in; what was missed follows, then what happens."""

    type: Literal["ready"] = "ready"
    spaces: list[str]
    read: dict[str, int]


class SpaceJoined(Value):
    """The person is a member of a space that was not sent before. Read its messages up to `last_seq`."""

    type: Literal["space.joined"] = "space.joined"
    space: str
    kind: Open[SpaceKind]
    name: str
    private: bool
    last_seq: int


class SpaceLeft(Value):
    """The person is no longer a member of the space."""

    type: Literal["space.left"] = "space.left"
    space: str


class SpaceRead(Value):
    """The person has read up to `read_seq` there, on this device or another, and `unread` messages are left."""

    type: Literal["space.read"] = "space.read"
    space: str
    read_seq: int
    last_seq: int
    unread: int


class SpaceChanged(Value):
    """The name, the members or the privacy of the space changed."""

    type: Literal["space.changed"] = "space.changed"
    space: str
    kind: Open[SpaceKind]
    name: str
    private: bool
    last_seq: int


class SpaceStatuses(Value):
    """All statuses of agents that have not answered in the space; an empty list: none are left."""

    type: Literal["space.statuses"] = "space.statuses"
    space: str
    statuses: list[StatusOut]


class TypingElsewhere(Value):
    """Somebody is typing in a connected room of another service. It holds for about ten seconds."""

    type: Literal["typing"] = "typing"
    space: str
    name: str
    account: Annotated[str, Field(description="The account at that service, to tell people of the same name apart.")]


class MetadataUpdate(Value):
    """The metadata of a conversation has changed: its summary; or the profile or the memories of an agent in it."""

    type: Literal["metadata.update"] = "metadata.update"
    space: str
    rolling_memory: Annotated[
        ConversationMemory | None, Field(description="The summary, if it is new; null otherwise.")
    ] = None
    agent: Annotated[str | None, Field(description="The agent whose cycle has ended; null for a summary.")] = None
    prompt_profile: Annotated[
        PromptProfileOut | None, Field(description="The agent's profile there; null without profiles.")
    ] = None
    long_term_memory: Annotated[
        RetrievalOut | None, Field(description="The recall in that cycle; null if there was none.")
    ] = None


class CycleEnded(Value):
    """A cycle that ended and is part of the agent's history."""

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


class CycleOpened(Value):
    """The running cycle; its steps and calls follow."""

    type: Literal["cycle.opened"] = "cycle.opened"
    agent: str
    cycle: str
    state: Open[Literal["open", "paused"]]
    started_at: datetime
    events: int
    attempts: int


class CycleSkipped(Value):
    """The agent skipped the cycle, which left no trace."""

    type: Literal["cycle.skipped"] = "cycle.skipped"
    agent: str
    cycle: str
    reason: str


class CycleFailed(Value):
    """The cycle was undone, and its events wait again; or it stays open, and is tried again from its last step."""

    type: Literal["cycle.failed"] = "cycle.failed"
    agent: str
    cycle: str
    undone: bool
    error: str


class Step(Value):
    """A step of the open cycle is stored: what the model answered."""

    type: Literal["step"] = "step"
    agent: str
    cycle: str
    step: int
    model: str | None
    tools: list[str]
    input_tokens: int
    output_tokens: int


class Tool(Value):
    """A tool call of the open cycle: about to be made, put to people, or done."""

    type: Literal["tool"] = "tool"
    agent: str
    cycle: str
    step: int
    position: int
    tool: str
    state: Open[Literal["intent", "asked", "done"]]


class AgentBudget(Value):
    """The agent has used most of a limit."""

    type: Literal["agent.budget"] = "agent.budget"
    agent: str
    scope: str
    used: float
    text: str


class AgentAlert(Value):
    """Something that the agent's owner should know."""

    type: Literal["agent.alert"] = "agent.alert"
    agent: str
    kind: str
    text: str


class Notice(Value):
    """Something that this person should know: that nobody can answer in a panel that they look after, or that somebody
    made an access token for them."""

    type: Literal["notice"] = "notice"
    kind: str
    text: str


class AgentStance(Value):
    """The agent's present profile, state of mind and signals in a conversation."""

    type: Literal["agent.stance"] = "agent.stance"
    agent: str
    stance: StanceOut


class PanelDelta(Value):
    """More of what an advisor says or thinks; it begins `offset` characters (Unicode code points) into it."""

    type: Literal["panel.delta"] = "panel.delta"
    panel: str
    round: str
    advisor: str
    part: Open[ReplyPart]
    epoch: int
    offset: int
    text: str
    thinking: bool


class PanelReply(Value):
    """The reply of an advisor in a round, in its present state."""

    type: Literal["panel.reply"] = "panel.reply"
    panel: str
    round: str
    all_completed: bool
    reply: ReplyOut


class PanelChanged(Value):
    """The settings, the advisors or a state of mind of the panel changed: get it again."""

    type: Literal["panel.changed"] = "panel.changed"
    panel: str


Stream = Literal["space", "agent", "person"]
EventData: TypeAlias = (
    MessageOut
    | TypingElsewhere
    | CallOut
    | RoundOut
    | StreamStarted
    | StreamDelta
    | StreamAborted
    | AgentStatus
    | CallStarted
    | CallDelta
    | StreamReady
    | SpaceJoined
    | SpaceLeft
    | SpaceRead
    | SpaceChanged
    | SpaceStatuses
    | MetadataUpdate
    | CycleEnded
    | CycleOpened
    | CycleSkipped
    | CycleFailed
    | Step
    | Tool
    | AgentBudget
    | AgentAlert
    | Notice
    | AgentStance
    | PanelDelta
    | PanelReply
    | PanelChanged
)


@dataclass(frozen=True, slots=True)
class EventKind:
    """One event of the table."""

    shape: type[EventData]
    streams: tuple[Stream, ...]
    resumable: tuple[Stream, ...] = ()
    """The streams in which it has an id, so that one can resume after it."""


_ALL: Final[tuple[Stream, ...]] = ("space", "agent", "person")
_SHARED: Final[tuple[Stream, ...]] = ("space", "person")

EVENTS: Final[Mapping[str, EventKind]] = {
    "message": EventKind(MessageOut, _ALL, _SHARED),
    "message.edited": EventKind(MessageOut, _SHARED),
    "message.deleted": EventKind(MessageOut, _SHARED),
    "stream.started": EventKind(StreamStarted, _ALL),
    "stream.delta": EventKind(StreamDelta, _ALL),
    "stream.aborted": EventKind(StreamAborted, _ALL),
    "agent.status": EventKind(AgentStatus, _ALL),
    "call": EventKind(CallOut, _SHARED),
    "call.started": EventKind(CallStarted, _SHARED),
    "call.delta": EventKind(CallDelta, _SHARED),
    "ready": EventKind(StreamReady, ("person",), ("person",)),
    "space.joined": EventKind(SpaceJoined, ("person",), ("person",)),
    "space.left": EventKind(SpaceLeft, ("person",), ("person",)),
    "space.changed": EventKind(SpaceChanged, _SHARED),
    "space.read": EventKind(SpaceRead, ("person",)),
    "space.statuses": EventKind(SpaceStatuses, _SHARED),
    "typing": EventKind(TypingElsewhere, _SHARED),
    "panel.round": EventKind(RoundOut, _SHARED),
    "panel.reply": EventKind(PanelReply, _SHARED),
    "panel.delta": EventKind(PanelDelta, _SHARED),
    "panel.changed": EventKind(PanelChanged, _SHARED),
    "metadata.update": EventKind(MetadataUpdate, _SHARED),
    "cycle": EventKind(CycleEnded, ("agent",), ("agent",)),
    "cycle.opened": EventKind(CycleOpened, ("agent",)),
    "step": EventKind(Step, ("agent",)),
    "tool": EventKind(Tool, ("agent",)),
    "cycle.skipped": EventKind(CycleSkipped, ("agent",)),
    "cycle.failed": EventKind(CycleFailed, ("agent",)),
    "agent.budget": EventKind(AgentBudget, ("agent",)),
    "agent.alert": EventKind(AgentAlert, ("agent",)),
    "notice": EventKind(Notice, ("person",)),
    "agent.stance": EventKind(AgentStance, ("agent", "person")),
}
