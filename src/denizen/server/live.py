"""Filters the live text that one reader of a stream is sent. Pure.

The bus may lose, repeat and overlap frames; the reader must not notice. A `stream.started` always comes first; then the
deltas of that id follow from its beginning without a gap, until the message with that id or its `stream.aborted` comes.
A restarted stream begins anew. If the beginning or a piece is missing, nothing is sent until the text has been repeated
from its beginning: `wanted` names the spaces for which that has to be requested.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from pydantic import JsonValue

from denizen.agents.registry import Presence
from denizen.bus.streams import (
    AgentStatus,
    CallDelta,
    CallStarted,
    Freshness,
    Hint,
    StreamAborted,
    StreamDelta,
    StreamFrame,
    StreamStarted,
)
from denizen.ids import AgentId, MessageId, SpaceId
from denizen.storage.database import storable

REMEMBERED_MESSAGES: Final = 1_000
"""The most messages a reader may be behind: no frames of older messages are under way."""

Payload: TypeAlias = dict[str, JsonValue]
LiveFrame: TypeAlias = StreamStarted | StreamDelta | StreamAborted | AgentStatus | CallStarted | CallDelta


def payload_of(frame: LiveFrame) -> Payload:
    """The data of the event for this frame: the same for all readers."""
    payload = frame.to_payload()
    match frame:
        case StreamStarted():
            del payload["again"]  # For a reader that is sent it, it is the first time.
            payload["offset"] = 0
        case StreamDelta() | CallDelta():
            payload["text"] = storable(frame.text)
        case _:
            pass
    return payload


@dataclass(slots=True)
class _Writing:
    agent: AgentId
    epoch: int
    space: SpaceId
    length: int = 0
    """The offset of the next piece."""


class Live:
    """What this reader has been sent, which decides what a frame means to it."""

    def __init__(self, space_id: SpaceId | None = None) -> None:
        self._space_id = space_id
        """The space of frames that do not name one."""
        self._freshness = Freshness()
        self._writing: dict[MessageId, _Writing] = {}
        self._statuses: dict[AgentId, tuple[str, str | None]] = {}
        self._said: OrderedDict[MessageId, None] = OrderedDict()
        self._missed: dict[MessageId, SpaceId] = {}
        self._asked: set[MessageId] = set()

    @property
    def told(self) -> object:
        """The texts in progress and statuses that the reader has. Equal for readers that have the same."""
        texts = {id_: (each.epoch, each.space, each.length) for id_, each in self._writing.items()}
        return texts, dict(self._statuses)

    def said(self, message_id: MessageId) -> None:
        """Notes that the reader has the message. Later frames about it are dropped."""
        self._writing.pop(message_id, None)
        self._missed.pop(message_id, None)
        self._said[message_id] = None
        if len(self._said) > REMEMBERED_MESSAGES:
            self._said.popitem(last=False)

    def seen(self, agents: Iterable[Presence]) -> list[LiveFrame]:
        """Compares with the state of the agents in the database; returns the frames for what is new."""
        told: list[LiveFrame] = []
        known = {agent.agent_id: agent for agent in agents}
        for agent in known.values():
            told += self.hear(AgentStatus(agent.agent_id, agent.status, agent.epoch))
        for gone in self._statuses.keys() - known.keys():
            del self._statuses[gone]
        # What was requested and did not come may be requested again.
        self._asked.clear()
        return told

    def lost(self) -> list[StreamAborted]:
        """Ends all open streams after frames were lost, perhaps one that ended a stream; live ones begin anew."""
        self._asked.clear()
        return [*self._abort(list(self._writing), "interrupted")]

    def left(self, space_id: SpaceId) -> None:
        """Notes that the reader has left the space."""
        for id_ in [id_ for id_, writing in self._writing.items() if writing.space == space_id]:
            del self._writing[id_]

    def wanted(self) -> set[SpaceId]:
        """Returns the spaces with a text that this reader lacks a piece of, and that was not requested yet."""
        spaces = {space for id_, space in self._missed.items() if id_ not in self._asked}
        self._asked.update(self._missed)
        self._missed.clear()
        return spaces

    def hear(self, frame: StreamFrame, where: SpaceId | None = None) -> list[LiveFrame]:
        """Returns the frames for the reader because of this frame from that space."""
        if isinstance(frame, Hint):
            return []
        if frame.epoch is not None and not self._freshness.admit(frame.agent, frame.epoch):
            return []
        # Another process runs the agent now: it does not continue the text of the former.
        told: list[LiveFrame] = [*self._abort(self._outdated(frame.agent, frame.epoch), "resumed")]
        match frame:
            case StreamStarted():
                told += self._start(frame, where or self._space_id)
            case StreamDelta():
                told += self._extend(frame, where or self._space_id)
            case StreamAborted():
                told += self._abort([frame.id] if frame.id in self._writing else [], frame.reason)
            case AgentStatus():
                told += self._status(frame)
            # Only a preview of a call being written: the stored call replaces it.
            case CallStarted() | CallDelta():
                told.append(frame)
        return told

    def _outdated(self, agent: AgentId, epoch: int | None) -> list[MessageId]:
        if epoch is None:
            return []
        return [id_ for id_, each in self._writing.items() if each.agent == agent and each.epoch < epoch]

    def _abort(self, ids: Iterable[MessageId | None], reason: str) -> Iterator[StreamAborted]:
        for id_ in ids:
            if id_ is not None:
                writing = self._writing.pop(id_)
                yield StreamAborted(writing.agent, writing.epoch, id_, reason)

    def _start(self, frame: StreamStarted, where: SpaceId | None) -> Iterator[StreamStarted]:
        if frame.id in self._said or frame.space != where:
            return
        if frame.again and frame.id in self._writing:
            return  # Repeated for another reader, or for a piece that is missing here: the text that follows has it.
        self._writing[frame.id] = _Writing(frame.agent, frame.epoch, frame.space)
        yield frame

    def _extend(self, frame: StreamDelta, where: SpaceId | None) -> Iterator[StreamDelta]:
        if frame.id in self._said or where is None:
            return
        writing = self._writing.get(frame.id)
        if writing is None or frame.offset > writing.length:
            self._missed[frame.id] = where
            return
        new = frame.text[writing.length - frame.offset :]
        if new:
            yield frame if frame.offset == writing.length else replace(frame, offset=writing.length, text=new)
            writing.length += len(new)

    def _status(self, frame: AgentStatus) -> Iterator[AgentStatus]:
        how = (frame.status, frame.doing)
        if self._statuses.get(frame.agent) != how:
            self._statuses[frame.agent] = how
            yield frame
