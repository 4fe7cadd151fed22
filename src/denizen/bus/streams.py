"""The messages of the bus: topic names and frames. Pure.

Frames are hints. `message.created` says that a message is in the database; everything about streams is provisional, and
carries the epoch of its lease, so that frames of a former holder can be recognized.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, ClassVar, TypeAlias, get_args

from pydantic import Field, JsonValue, Strict, TypeAdapter, ValidationError

from denizen.ids import AgentId, CallId, CycleId, EntityId, MessageId, SpaceId

WAKE = "wake"
"""The topic that tells every instance which agents have something to wake for."""

WANTED = "wanted"
"""The topic that tells every instance in which spaces a reader missed the beginning of a live text."""

PANEL = "panel"
"""The topic that tells every instance that advisors of a panel have something to answer, or to stop."""

SPACES = "space:"
"""The prefix of the topics of spaces."""


def space_topic(space: SpaceId) -> str:
    """The topic of a space's messages."""
    return f"{SPACES}{space}"


def agent_topic(agent: AgentId) -> str:
    """The topic of an agent's state."""
    return f"agent:{agent}"


def entity_topic(entity: EntityId) -> str:
    """The topic of an entity's memberships."""
    return f"entity:{entity}"


def wanted_payload(spaces: Iterable[SpaceId]) -> dict[str, JsonValue]:
    """The payload on `WANTED` that names these spaces."""
    return {"spaces": [*spaces]}


def wanted(payload: Mapping[str, JsonValue]) -> tuple[SpaceId, ...]:
    """The spaces that a payload on `WANTED` names."""
    spaces = payload.get("spaces")
    return tuple(SpaceId(space) for space in spaces if isinstance(space, str)) if isinstance(spaces, list) else ()


def wake_payload(agents: Iterable[AgentId]) -> dict[str, JsonValue]:
    """The payload on `WAKE` that names these agents."""
    return {"agents": [*agents]}


def woken(payload: Mapping[str, JsonValue]) -> tuple[AgentId, ...]:
    """The agents that a payload on `WAKE` names."""
    agents = payload.get("agents")
    return tuple(AgentId(agent) for agent in agents if isinstance(agent, str)) if isinstance(agents, list) else ()


Natural: TypeAlias = Annotated[int, Field(ge=0, strict=True)]
Truth: TypeAlias = Annotated[bool, Strict()]
Share: TypeAlias = Annotated[float, Strict()]


class Frame:
    """One frame of the bus."""

    __slots__ = ()
    type: ClassVar[str]

    def to_payload(self) -> dict[str, JsonValue]:
        return {"type": self.type, **{name: getattr(self, name) for name in self.__slots__}}


@dataclass(frozen=True, slots=True)
class MessageCreated(Frame):
    """A message is in the database. If it was streamed, the stream with that id is over."""

    type: ClassVar[str] = "message.created"

    space: SpaceId
    seq: Natural
    id: MessageId
    author: EntityId


@dataclass(frozen=True, slots=True)
class MessageEdited(Frame):
    """The text of a message in the database has changed."""

    type: ClassVar[str] = "message.edited"

    space: SpaceId
    seq: Natural
    id: MessageId


@dataclass(frozen=True, slots=True)
class MessageDeleted(Frame):
    """The text of a message in the database was deleted or forgotten."""

    type: ClassVar[str] = "message.deleted"

    space: SpaceId
    seq: Natural
    id: MessageId


@dataclass(frozen=True, slots=True)
class StreamStarted(Frame):
    """An agent begins to write in a space; `id` is the id that the message will have."""

    type: ClassVar[str] = "stream.started"

    id: MessageId
    agent: AgentId
    space: SpaceId
    epoch: Natural
    reply_to: MessageId | None = None
    again: Truth = False
    """Whether it is repeated, with all the text so far, for readers who missed the beginning."""


@dataclass(frozen=True, slots=True)
class StreamDelta(Frame):
    """A piece of the text, which begins `offset` characters (Unicode code points) into it."""

    type: ClassVar[str] = "stream.delta"

    id: MessageId
    agent: AgentId
    epoch: Natural
    offset: Natural
    text: str


@dataclass(frozen=True, slots=True)
class StreamAborted(Frame):
    """That stream will not become a message; without `id`, none of the agent's streams of lower epochs will."""

    type: ClassVar[str] = "stream.aborted"

    agent: AgentId
    epoch: Natural
    id: MessageId | None
    reason: str


@dataclass(frozen=True, slots=True)
class AgentStatus(Frame):
    """The status of an agent: sleeping, alive, paused, suspended, dead."""

    type: ClassVar[str] = "agent.status"

    agent: AgentId
    status: str
    epoch: Natural | None = None
    doing: str | None = None
    """The tool that it is using."""


@dataclass(frozen=True, slots=True)
class CallStarted(Frame):
    """An agent begins to write the arguments of a call that people may see; `id` is the id that the call will have."""

    type: ClassVar[str] = "call.started"

    id: CallId
    agent: AgentId
    space: SpaceId
    epoch: Natural
    tool: str


@dataclass(frozen=True, slots=True)
class CallDelta(Frame):
    """A piece of the arguments, which are JSON, `offset` characters into them."""

    type: ClassVar[str] = "call.delta"

    id: CallId
    agent: AgentId
    epoch: Natural
    offset: Natural
    text: str


@dataclass(frozen=True, slots=True)
class CallChanged(Frame):
    """A call of an agent is in the database, in this state."""

    type: ClassVar[str] = "call.changed"

    id: CallId
    agent: AgentId
    space: SpaceId | None
    state: str


@dataclass(frozen=True, slots=True)
class CycleChanged(Frame):
    """Something about a cycle is in the database: it was opened, has progressed, has ended, or was deleted."""

    type: ClassVar[str] = "cycle.changed"

    agent: AgentId
    cycle: CycleId
    what: str
    """opened, resumed, step, ended, skipped, undone, postponed"""


@dataclass(frozen=True, slots=True)
class AgentBudget(Frame):
    """An agent has used most of a limit."""

    type: ClassVar[str] = "agent.budget"

    agent: AgentId
    scope: str
    used: Share
    """The share that is used up; 1 is all."""
    text: str


@dataclass(frozen=True, slots=True)
class AgentAlert(Frame):
    """An alert for the owner of an agent."""

    type: ClassVar[str] = "agent.alert"

    agent: AgentId
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class PersonNotice(Frame):
    """A notice for one person. Published on the topic of that person."""

    type: ClassVar[str] = "notice"

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class StanceChanged(Frame):
    """An agent's stance in a conversation has changed: its profile there, its state of mind, or what moved it."""

    type: ClassVar[str] = "stance.changed"

    agent: AgentId
    space: SpaceId


@dataclass(frozen=True, slots=True)
class MembershipChanged(Frame):
    """Somebody has joined or left a space: the database says which. Published on the topic of that entity."""

    type: ClassVar[str] = "membership.changed"

    entity: EntityId
    space: SpaceId


@dataclass(frozen=True, slots=True)
class SpaceChanged(Frame):
    """A space has another name, other members or another visibility."""

    type: ClassVar[str] = "space.changed"

    space: SpaceId


@dataclass(frozen=True, slots=True)
class SpaceRead(Frame):
    """Somebody's read position in a space has changed: the database has it. Published on the topic of the entity."""

    type: ClassVar[str] = "space.read"

    entity: EntityId
    space: SpaceId


@dataclass(frozen=True, slots=True)
class StatusChanged(Frame):
    """The status that a space shows of an agent has changed: the database has it."""

    type: ClassVar[str] = "status.changed"

    space: SpaceId
    agent: AgentId


@dataclass(frozen=True, slots=True)
class TypingElsewhere(Frame):
    """Somebody types in a room elsewhere that is connected with the space. Stored nowhere."""

    type: ClassVar[str] = "typing"

    space: SpaceId
    name: str
    account: str


@dataclass(frozen=True, slots=True)
class PanelChanged(Frame):
    """The settings or advisors of a panel have changed."""

    type: ClassVar[str] = "panel.changed"

    space: SpaceId


@dataclass(frozen=True, slots=True)
class RoundChanged(Frame):
    """A round of a panel is in the database: opened, complete, or open again."""

    type: ClassVar[str] = "round.changed"

    space: SpaceId
    round: str


@dataclass(frozen=True, slots=True)
class ReplyChanged(Frame):
    """The state of an advisor's reply in a round has changed: the database has it."""

    type: ClassVar[str] = "reply.changed"

    space: SpaceId
    round: str
    voice: str
    part: str


@dataclass(frozen=True, slots=True)
class PanelDelta(Frame):
    """A piece of what an advisor is writing, or thinking, `offset` characters into it. Provisional."""

    type: ClassVar[str] = "panel.delta"

    space: SpaceId
    round: str
    voice: str
    part: str
    epoch: Natural
    offset: Natural
    text: str
    thinking: Truth = False


@dataclass(frozen=True, slots=True)
class MetadataUpdated(Frame):
    """Metadata of a conversation has changed: the database has it."""

    type: ClassVar[str] = "metadata.updated"

    space: SpaceId
    what: str
    """`rolling_memory`; or `agent`: the profile or the recall of a cycle."""
    agent: AgentId | None = None
    cycle: CycleId | None = None


MessageChange: TypeAlias = MessageEdited | MessageDeleted
LifeFrame: TypeAlias = CycleChanged | AgentBudget | AgentAlert | StanceChanged | PersonNotice
PlaceFrame: TypeAlias = MembershipChanged | SpaceChanged | SpaceRead | MetadataUpdated | StatusChanged | TypingElsewhere
PanelFrame: TypeAlias = PanelChanged | RoundChanged | ReplyChanged | PanelDelta
Hint: TypeAlias = MessageCreated | MessageChange | CallChanged | LifeFrame | PlaceFrame | PanelFrame
"""Frames that only say where to look, and that no agent writes."""
StreamFrame: TypeAlias = Hint | StreamStarted | StreamDelta | StreamAborted | AgentStatus | CallStarted | CallDelta


def from_payload(payload: Mapping[str, JsonValue]) -> StreamFrame | None:
    """The frame of a payload, or None if it is unknown: a newer instance may send more."""
    kind = _kinds().get(str(payload.get("type")))
    try:
        return None if kind is None else kind.validate_python(payload)
    except ValidationError:
        return None


@cache
def _kinds() -> dict[str, TypeAdapter[StreamFrame]]:
    return {kind.type: TypeAdapter(kind) for kind in get_args(StreamFrame)}


class Freshness:
    """Knows the newest epoch of each agent, and so which stream frames come from a former holder of its lease."""

    def __init__(self) -> None:
        self._newest: dict[AgentId, int] = {}

    def admit(self, agent: AgentId, epoch: int) -> bool:
        """Whether a frame of this epoch still counts. A higher epoch than any before is remembered."""
        newest = self._newest.get(agent)
        if newest is None or epoch > newest:
            self._newest[agent] = epoch
            return True
        return epoch == newest
