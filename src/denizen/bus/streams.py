"""What the bus says: the names of topics, the frames, and how a reader makes text of them. Pure.

Frames are hints. `message.created` says that a message is in the database; everything about streams is provisional,
and carries the epoch of the lease under which it was thought, so that what a former holder still says is known as such.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from denizen.ids import AgentId, CallId, CycleId, EntityId, MessageId, SpaceId

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic import JsonValue

WAKE = "wake"
"""The topic on which every instance hears which agents have something to wake for."""

WANTED = "wanted"
"""The topic on which every instance hears in which spaces a reader came too late for what is being written."""

PANEL = "panel"
"""The topic on which every instance hears that advisors of a panel have something to answer, or to leave."""

REMEMBERED_STREAMS = 1000
EARLY_PIECES = 1000


SPACES = "space:"
"""How the topics of spaces begin."""


def space_topic(space: SpaceId) -> str:
    """Where one hears what is said in a space."""
    return f"{SPACES}{space}"


def agent_topic(agent: AgentId) -> str:
    """Where one hears how an agent is."""
    return f"agent:{agent}"


def entity_topic(entity: EntityId) -> str:
    """Where one hears in which spaces someone is."""
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


@dataclass(frozen=True, slots=True)
class MessageCreated:
    """A message is in the database. If it was streamed, the stream of that id is over."""

    space: SpaceId
    seq: int
    id: MessageId
    author: EntityId

    def to_payload(self) -> dict[str, JsonValue]:
        return {
            "type": "message.created",
            "space": self.space,
            "seq": self.seq,
            "id": self.id,
            "author": self.author,
        }


@dataclass(frozen=True, slots=True)
class MessageEdited:
    """A message in the database says something else now."""

    space: SpaceId
    seq: int
    id: MessageId

    def to_payload(self) -> dict[str, JsonValue]:
        return {"type": "message.edited", "space": self.space, "seq": self.seq, "id": self.id}


@dataclass(frozen=True, slots=True)
class MessageDeleted:
    """A message in the database says nothing any more: it was deleted, or forgotten."""

    space: SpaceId
    seq: int
    id: MessageId

    def to_payload(self) -> dict[str, JsonValue]:
        return {"type": "message.deleted", "space": self.space, "seq": self.seq, "id": self.id}


@dataclass(frozen=True, slots=True)
class StreamStarted:
    """An agent begins to write in a space; `id` is the id that the message will have."""

    id: MessageId
    agent: AgentId
    space: SpaceId
    epoch: int
    reply_to: MessageId | None = None
    again: bool = False
    """Told once more, with all the text there is, for whoever came too late to hear it the first time."""

    def to_payload(self) -> dict[str, JsonValue]:
        again: dict[str, JsonValue] = {"again": True} if self.again else {}
        return {
            "type": "stream.started",
            "id": self.id,
            "agent": self.agent,
            "space": self.space,
            "epoch": self.epoch,
            "reply_to": self.reply_to,
            **again,
        }


@dataclass(frozen=True, slots=True)
class StreamDelta:
    """A piece of the text, which begins `offset` characters (Unicode code points) into it."""

    id: MessageId
    agent: AgentId
    epoch: int
    offset: int
    text: str

    def to_payload(self) -> dict[str, JsonValue]:
        return {
            "type": "stream.delta",
            "id": self.id,
            "agent": self.agent,
            "epoch": self.epoch,
            "offset": self.offset,
            "text": self.text,
        }


@dataclass(frozen=True, slots=True)
class StreamAborted:
    """That stream will not become a message; without `id`, all of the agent's streams of lower epochs will not."""

    agent: AgentId
    epoch: int
    id: MessageId | None
    reason: str

    def to_payload(self) -> dict[str, JsonValue]:
        return {
            "type": "stream.aborted",
            "agent": self.agent,
            "epoch": self.epoch,
            "id": self.id,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class AgentStatus:
    """How an agent is: sleeping, alive, paused, suspended, dead."""

    agent: AgentId
    status: str
    epoch: int | None = None
    doing: str | None = None
    """The tool that it is using."""

    def to_payload(self) -> dict[str, JsonValue]:
        doing: dict[str, JsonValue] = {} if self.doing is None else {"doing": self.doing}
        return {"type": "agent.status", "agent": self.agent, "status": self.status, "epoch": self.epoch, **doing}


@dataclass(frozen=True, slots=True)
class CallStarted:
    """An agent begins to write the arguments of a call that people may see; `id` is the id that the call will have."""

    id: CallId
    agent: AgentId
    space: SpaceId
    epoch: int
    tool: str

    def to_payload(self) -> dict[str, JsonValue]:
        return {
            "type": "call.started",
            "id": self.id,
            "agent": self.agent,
            "space": self.space,
            "epoch": self.epoch,
            "tool": self.tool,
        }


@dataclass(frozen=True, slots=True)
class CallDelta:
    """A piece of the arguments, which are JSON, `offset` characters into them."""

    id: CallId
    agent: AgentId
    epoch: int
    offset: int
    text: str

    def to_payload(self) -> dict[str, JsonValue]:
        return {
            "type": "call.delta",
            "id": self.id,
            "agent": self.agent,
            "epoch": self.epoch,
            "offset": self.offset,
            "text": self.text,
        }


@dataclass(frozen=True, slots=True)
class CallChanged:
    """A call of an agent is in the database, in this state."""

    id: CallId
    agent: AgentId
    space: SpaceId | None
    state: str

    def to_payload(self) -> dict[str, JsonValue]:
        return {
            "type": "call.changed",
            "id": self.id,
            "agent": self.agent,
            "space": self.space,
            "state": self.state,
        }


@dataclass(frozen=True, slots=True)
class CycleChanged:
    """Something about a cycle is in the database: it was opened, has come further, has ended, or is no more."""

    agent: AgentId
    cycle: CycleId
    what: str
    """opened, resumed, step, ended, skipped, undone, postponed"""

    def to_payload(self) -> dict[str, JsonValue]:
        return {"type": "cycle.changed", "agent": self.agent, "cycle": self.cycle, "what": self.what}


@dataclass(frozen=True, slots=True)
class AgentBudget:
    """An agent has used most of a limit."""

    agent: AgentId
    scope: str
    used: float
    """The share of it, 1 is all."""
    text: str

    def to_payload(self) -> dict[str, JsonValue]:
        return {"type": "agent.budget", "agent": self.agent, "scope": self.scope, "used": self.used, "text": self.text}


@dataclass(frozen=True, slots=True)
class AgentAlert:
    """Something that whoever looks after an agent should know."""

    agent: AgentId
    kind: str
    text: str

    def to_payload(self) -> dict[str, JsonValue]:
        return {"type": "agent.alert", "agent": self.agent, "kind": self.kind, "text": self.text}


@dataclass(frozen=True, slots=True)
class MembershipChanged:
    """Somebody is in a space, or is not any more: the database says which. Told on the topic of that entity."""

    entity: EntityId
    space: SpaceId

    def to_payload(self) -> dict[str, JsonValue]:
        return {"type": "membership.changed", "entity": self.entity, "space": self.space}


@dataclass(frozen=True, slots=True)
class SpaceChanged:
    """A space has another name or other members, or may be known to others than before."""

    space: SpaceId

    def to_payload(self) -> dict[str, JsonValue]:
        return {"type": "space.changed", "space": self.space}


@dataclass(frozen=True, slots=True)
class SpaceRead:
    """Somebody has read further in a space, or less far: the database says how far. Told on the topic of the entity."""

    entity: EntityId
    space: SpaceId

    def to_payload(self) -> dict[str, JsonValue]:
        return {"type": "space.read", "entity": self.entity, "space": self.space}


@dataclass(frozen=True, slots=True)
class PanelChanged:
    """A panel has other settings or advisors."""

    space: SpaceId

    def to_payload(self) -> dict[str, JsonValue]:
        return {"type": "panel.changed", "space": self.space}


@dataclass(frozen=True, slots=True)
class RoundChanged:
    """A round of a panel is in the database: opened, complete, or open again."""

    space: SpaceId
    round: str

    def to_payload(self) -> dict[str, JsonValue]:
        return {"type": "round.changed", "space": self.space, "round": self.round}


@dataclass(frozen=True, slots=True)
class ReplyChanged:
    """What a voice answers in a round is in the database, in another state than before."""

    space: SpaceId
    round: str
    voice: str
    part: str

    def to_payload(self) -> dict[str, JsonValue]:
        return {
            "type": "reply.changed",
            "space": self.space,
            "round": self.round,
            "voice": self.voice,
            "part": self.part,
        }


@dataclass(frozen=True, slots=True)
class PanelDelta:
    """A piece of what a voice is writing, or thinking, `offset` characters into it. Provisional."""

    space: SpaceId
    round: str
    voice: str
    part: str
    epoch: int
    offset: int
    text: str
    thinking: bool = False

    def to_payload(self) -> dict[str, JsonValue]:
        return {
            "type": "panel.delta",
            "space": self.space,
            "round": self.round,
            "voice": self.voice,
            "part": self.part,
            "epoch": self.epoch,
            "offset": self.offset,
            "text": self.text,
            "thinking": self.thinking,
        }


@dataclass(frozen=True, slots=True)
class MetadataUpdated:
    """Something that belongs to a conversation and was not said in it has changed: the database has it."""

    space: SpaceId
    what: str
    """rolling_memory"""

    def to_payload(self) -> dict[str, JsonValue]:
        return {"type": "metadata.updated", "space": self.space, "what": self.what}


CallFrame: TypeAlias = CallStarted | CallDelta | CallChanged
MessageChange: TypeAlias = MessageEdited | MessageDeleted
LifeFrame: TypeAlias = CycleChanged | AgentBudget | AgentAlert
PlaceFrame: TypeAlias = MembershipChanged | SpaceChanged | SpaceRead | MetadataUpdated
PanelFrame: TypeAlias = PanelChanged | RoundChanged | ReplyChanged | PanelDelta
Hint: TypeAlias = MessageCreated | MessageChange | CallChanged | LifeFrame | PlaceFrame | PanelFrame
"""What only says where to look, and what no agent writes."""
StreamFrame: TypeAlias = Hint | StreamStarted | StreamDelta | StreamAborted | AgentStatus | CallStarted | CallDelta


def from_payload(payload: Mapping[str, JsonValue]) -> StreamFrame | None:
    """The frame that a payload says, or None if it says none that we know: a newer instance may say more."""
    match payload:
        case {"type": "stream.delta", "id": str(id_), "agent": str(agent), "text": str(text), **rest}:
            epoch, offset = _natural(rest.get("epoch")), _natural(rest.get("offset"))
            if epoch is not None and offset is not None:
                return StreamDelta(MessageId(id_), AgentId(agent), epoch, offset, text)
        case {"type": "stream.started", "id": str(id_), "agent": str(agent), "space": str(space), **rest}:
            epoch, reply_to, again = _natural(rest.get("epoch")), rest.get("reply_to"), "again" in rest
            if (
                epoch is not None
                and (reply_to is None or isinstance(reply_to, str))
                and rest.get("again", True) is True
            ):
                reply = None if reply_to is None else MessageId(reply_to)
                return StreamStarted(MessageId(id_), AgentId(agent), SpaceId(space), epoch, reply, again)
        case {"type": "stream.aborted", "agent": str(agent), "reason": str(reason), **rest}:
            epoch, id_ = _natural(rest.get("epoch")), rest.get("id")
            if epoch is not None and (id_ is None or isinstance(id_, str)):
                return StreamAborted(AgentId(agent), epoch, None if id_ is None else MessageId(id_), reason)
        case {"type": "message.created", "space": str(space), "id": str(id_), "author": str(author), **rest}:
            seq = _natural(rest.get("seq"))
            if seq is not None:
                return MessageCreated(SpaceId(space), seq, MessageId(id_), EntityId(author))
        case {"type": "message.edited" | "message.deleted" as type_, "space": str(space), "id": str(id_), **rest}:
            seq, change = _natural(rest.get("seq")), MessageEdited if type_ == "message.edited" else MessageDeleted
            if seq is not None:
                return change(SpaceId(space), seq, MessageId(id_))
        case {"type": "agent.status", "agent": str(agent), "status": str(status), **rest}:
            epoch = _natural(rest.get("epoch"))
            if epoch is not None or rest.get("epoch") is None:
                doing = rest.get("doing")
                return AgentStatus(AgentId(agent), status, epoch, doing if isinstance(doing, str) else None)
        case _:
            return _call_from(payload) or _life_from(payload) or _place_from(payload) or _panel_from(payload)
    return None


def _life_from(payload: Mapping[str, JsonValue]) -> LifeFrame | None:
    match payload:
        case {"type": "cycle.changed", "agent": str(agent), "cycle": str(cycle), "what": str(what)}:
            return CycleChanged(AgentId(agent), CycleId(cycle), what)
        case {"type": "agent.budget", "agent": str(agent), "scope": str(scope), "text": str(text), **rest}:
            used = rest.get("used")
            if isinstance(used, int | float) and not isinstance(used, bool):
                return AgentBudget(AgentId(agent), scope, used, text)
        case {"type": "agent.alert", "agent": str(agent), "kind": str(kind), "text": str(text)}:
            return AgentAlert(AgentId(agent), kind, text)
        case _:
            pass
    return None


def _place_from(payload: Mapping[str, JsonValue]) -> PlaceFrame | None:
    match payload:
        case {"type": "membership.changed", "entity": str(entity), "space": str(space)}:
            return MembershipChanged(EntityId(entity), SpaceId(space))
        case {"type": "space.changed", "space": str(space)}:
            return SpaceChanged(SpaceId(space))
        case {"type": "space.read", "entity": str(entity), "space": str(space)}:
            return SpaceRead(EntityId(entity), SpaceId(space))
        case {"type": "metadata.updated", "space": str(space), "what": str(what)}:
            return MetadataUpdated(SpaceId(space), what)
        case _:
            return None


def _panel_from(payload: Mapping[str, JsonValue]) -> PanelFrame | None:
    match payload:
        case {"type": "panel.changed", "space": str(space)}:
            return PanelChanged(SpaceId(space))
        case {"type": "round.changed", "space": str(space), "round": str(round_id)}:
            return RoundChanged(SpaceId(space), round_id)
        case {
            "type": "reply.changed" | "panel.delta" as type_,
            "space": str(space),
            "round": str(round_id),
            "voice": str(voice),
            "part": str(part),
            **rest,
        }:
            if type_ == "reply.changed":
                return ReplyChanged(SpaceId(space), round_id, voice, part)
            epoch, offset, text = _natural(rest.get("epoch")), _natural(rest.get("offset")), rest.get("text")
            if epoch is not None and offset is not None and isinstance(text, str):
                thinking = rest.get("thinking") is True
                return PanelDelta(SpaceId(space), round_id, voice, part, epoch, offset, text, thinking)
        case _:
            pass
    return None


def _call_from(payload: Mapping[str, JsonValue]) -> CallFrame | None:
    match payload:
        case {
            "type": "call.started",
            "id": str(id_),
            "agent": str(agent),
            "space": str(space),
            "tool": str(tool),
            **rest,
        }:
            epoch = _natural(rest.get("epoch"))
            return None if epoch is None else CallStarted(CallId(id_), AgentId(agent), SpaceId(space), epoch, tool)
        case {"type": "call.delta", "id": str(id_), "agent": str(agent), "text": str(text), **rest}:
            epoch, offset = _natural(rest.get("epoch")), _natural(rest.get("offset"))
            if epoch is not None and offset is not None:
                return CallDelta(CallId(id_), AgentId(agent), epoch, offset, text)
        case {"type": "call.changed", "id": str(id_), "agent": str(agent), "state": str(state), **rest}:
            space = rest.get("space")
            if space is None or isinstance(space, str):
                return CallChanged(CallId(id_), AgentId(agent), None if space is None else SpaceId(space), state)
        case _:
            pass
    return None


class Freshness:
    """Knows the newest epoch of each agent, and so which stream frames come from a former holder of its lease."""

    def __init__(self, known: Mapping[AgentId, int] | None = None) -> None:
        self._newest: dict[AgentId, int] = dict(known or {})

    def admit(self, agent: AgentId, epoch: int) -> bool:
        """Whether something thought under this epoch still counts. A higher epoch than any before is remembered."""
        newest = self._newest.get(agent)
        if newest is None or epoch > newest:
            self._newest[agent] = epoch
            return True
        return epoch == newest

    def admit_payload(self, payload: Mapping[str, JsonValue]) -> bool:
        """The same for a payload as it came; one without an agent or an epoch always counts."""
        agent, epoch = payload.get("agent"), payload.get("epoch")
        if agent is None or epoch is None:
            return True
        number = _natural(epoch)
        return isinstance(agent, str) and number is not None and self.admit(AgentId(agent), number)

    def newest(self, agent: AgentId) -> int | None:
        """The highest epoch seen of this agent."""
        return self._newest.get(agent)


@dataclass(frozen=True, slots=True)
class LiveStream:
    """A message that is being written, as far as its text is known without a hole."""

    id: MessageId
    agent: AgentId
    epoch: int
    text: str = ""
    started: StreamStarted | None = None
    """None for a reader who came too late to hear of the start."""


class LiveText:
    """What agents are writing at this moment, for a reader who feeds it every frame.

    Pieces may come late, twice or overlapping. A stream goes when its message is created, when it is aborted, and when
    its agent is heard of under a higher epoch. A created message never streams again; an aborted stream may start anew.
    """

    def __init__(self, known: Mapping[AgentId, int] | None = None) -> None:
        self._freshness = Freshness(known)
        self._streams: dict[MessageId, _Writing] = {}
        # Ended streams, with the epoch up to which their pieces are void; None means for ever. Bounded, because a piece
        # of a stream that ended so many streams ago does not come any more.
        self._over: OrderedDict[MessageId, int | None] = OrderedDict()

    def streams(self) -> tuple[LiveStream, ...]:
        """All live streams, in the order in which they were first heard of."""
        return tuple(
            LiveStream(id_, writing.agent, writing.epoch, "".join(writing.pieces), writing.started)
            for id_, writing in self._streams.items()
        )

    def text(self, stream: MessageId) -> str | None:
        """What is known of the text, or None if there is no such stream."""
        writing = self._streams.get(stream)
        return None if writing is None else "".join(writing.pieces)

    def feed(self, frame: StreamFrame) -> None:
        """Take one frame into account."""
        if isinstance(frame, MessageCreated):
            self._end(frame.id, None)
            return
        if isinstance(frame, Hint):
            return
        if frame.epoch is not None and not self.know(frame.agent, frame.epoch):
            return
        match frame:
            case StreamStarted():
                self._start(frame)
            case StreamDelta():
                self._extend(frame)
            case StreamAborted():
                if frame.id is not None:
                    self._end(frame.id, frame.epoch)
            case AgentStatus() | CallStarted() | CallDelta():
                pass

    def know(self, agent: AgentId, epoch: int) -> bool:
        """Whether this epoch is the agent's newest. If it is, the agent's streams of lower epochs are gone."""
        newest = self._freshness.newest(agent)
        if not self._freshness.admit(agent, epoch):
            return False
        if newest != epoch:
            for id_ in [id_ for id_, old in self._streams.items() if old.agent == agent and old.epoch < epoch]:
                del self._streams[id_]
        return True

    def _start(self, frame: StreamStarted) -> None:
        if frame.id in self._over:
            if self._over[frame.id] is None:
                return
            del self._over[frame.id]
        self._writing(frame).started = frame

    def _extend(self, frame: StreamDelta) -> None:
        void_until = self._over.get(frame.id, -1)
        if void_until is not None and frame.epoch > void_until:
            self._writing(frame).add(frame.offset, frame.text)

    def _writing(self, frame: StreamStarted | StreamDelta) -> _Writing:
        return self._streams.setdefault(frame.id, _Writing(frame.agent, frame.epoch))

    def _end(self, stream: MessageId, void_until: int | None) -> None:
        self._streams.pop(stream, None)
        if self._over.get(stream, 0) is None:
            return
        self._over[stream] = void_until
        if len(self._over) > REMEMBERED_STREAMS:
            self._over.popitem(last=False)


@dataclass(slots=True)
class _Writing:
    """A text as it grows, and the pieces that came before what they follow."""

    agent: AgentId
    epoch: int
    started: StreamStarted | None = None
    pieces: list[str] = field(default_factory=list[str])
    length: int = 0
    early: dict[int, str] = field(default_factory=dict[int, str])

    def add(self, offset: int, text: str) -> None:
        """The text holds all pieces up to the first hole."""
        if offset > self.length:
            if len(self.early) < EARLY_PIECES and len(text) > len(self.early.get(offset, "")):
                self.early[offset] = text
            return
        self._append(offset, text)
        for early in sorted(self.early):
            if early > self.length:
                break
            self._append(early, self.early.pop(early))

    def _append(self, offset: int, text: str) -> None:
        new = text[self.length - offset :]
        if not new:
            return
        self.pieces.append(new)
        self.length += len(new)


def _natural(value: JsonValue) -> int | None:
    """The value if it is a whole number from 0 up, which True is not."""
    return value if type(value) is int and value >= 0 else None
