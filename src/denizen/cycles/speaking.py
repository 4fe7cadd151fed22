"""What an agent says while it is still saying it: the text of `send_message` streams to its space as it is written.

Frames are provisional. They begin only when it is certain where the message will go; a call after `enter_space` or
`skip` in the same response is held, because it is not. The id of the stream is the id the message will have.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pydantic_ai.messages import (
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    ToolCallPart,
    ToolCallPartDelta,
)

from denizen.bus.port import Bus
from denizen.bus.streams import StreamAborted, StreamDelta, StreamStarted, space_topic
from denizen.consciousness.lease import Lease
from denizen.ids import MessageId, SpaceId, new_id
from denizen.models.partial import PartialArguments
from denizen.tools.prebuilt import ENTER_SPACE, SEND_MESSAGE, SKIP


@dataclass
class _Utterance:
    """One message on its way."""

    position: int
    arguments: PartialArguments = field(default_factory=PartialArguments)
    id: MessageId = field(default_factory=lambda: MessageId(new_id()))
    said: int = 0
    """Characters sent so far; the stream has begun when there are some."""


class Speaker:
    """Turns the events of one response into stream frames for one space."""

    def __init__(self, bus: Bus, lease: Lease, space_id: SpaceId | None) -> None:
        self._bus = bus
        self._lease = lease
        self._space_id = space_id
        self._topic = "" if space_id is None else space_topic(space_id)
        self._certain = space_id is not None
        self._calls = 0
        self._open: dict[int, _Utterance] = {}

    @property
    def ids(self) -> dict[int, MessageId]:
        """The ids of the messages that have been streaming, by the position of their call."""
        return {each.position: each.id for each in self._open.values() if each.said}

    def hear(self, event: ModelResponseStreamEvent) -> None:
        """The model has written a little more."""
        if isinstance(event, PartStartEvent) and isinstance(event.part, ToolCallPart):
            self._begin(event.index, event.part)
        elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, ToolCallPartDelta):
            utterance = self._open.get(event.index)
            if utterance is not None and isinstance(event.delta.args_delta, str):
                self._say(utterance, event.delta.args_delta)

    def abort(self, reason: str, positions: set[int] | None = None) -> None:
        """What was streamed will not become a message: all of it, or that of these calls."""
        for each in self._open.values():
            if each.said and (positions is None or each.position in positions):
                frame = StreamAborted(self._lease.agent_id, self._lease.epoch, each.id, reason)
                self._bus.publish(self._topic, frame.to_payload())

    def _begin(self, index: int, part: ToolCallPart) -> None:
        position, self._calls = self._calls, self._calls + 1
        if part.tool_name in (ENTER_SPACE, SKIP):
            self._certain = False
        if part.tool_name != SEND_MESSAGE or not self._certain or not self._bus.attention(self._topic):
            return
        utterance = self._open[index] = _Utterance(position)
        # Some providers send the whole arguments at once.
        if isinstance(part.args, str):
            self._say(utterance, part.args)
        elif isinstance(part.args, dict) and isinstance(text := part.args.get("text"), str):
            self._send(utterance, text)

    def _say(self, utterance: _Utterance, piece: str) -> None:
        text = "".join(added for key, added in utterance.arguments.feed(piece) if key == "text")
        self._send(utterance, text)

    def _send(self, utterance: _Utterance, text: str) -> None:
        if not text or self._space_id is None:
            return
        agent_id, epoch = self._lease.agent_id, self._lease.epoch
        if not utterance.said:
            started = StreamStarted(utterance.id, agent_id, self._space_id, epoch)
            self._bus.publish(self._topic, started.to_payload())
        delta = StreamDelta(utterance.id, agent_id, epoch, utterance.said, text)
        self._bus.publish(self._topic, delta.to_payload())
        utterance.said += len(text)
