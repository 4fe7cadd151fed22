"""Live streaming of what an agent says: the text of `send_message` streams to its space as it is written.

Frames are provisional. They begin only when it is certain where the message will go; a call after `enter_space` or
`skip` in the same response is held, because it is not. A message may name its space before its text: then it streams
there. The id of the stream is the id the message will have. The arguments of calls that people may see stream likewise.
Where the privacy guard may still stop it, a message is shown a few words late, and a call only when it is made. A
reader who connects in the middle of a message requests it on the topic `wanted`, and gets it from its beginning.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Container, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Final

from pydantic_ai.messages import (
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    ToolCallPart,
    ToolCallPartDelta,
)

from denizen.bus.hearing import hearing
from denizen.bus.port import Bus, Frame, Gap
from denizen.bus.streams import (
    WANTED,
    CallDelta,
    CallStarted,
    StreamAborted,
    StreamDelta,
    StreamStarted,
    space_topic,
    wanted,
)
from denizen.clock import Clock
from denizen.consciousness.lease import Lease
from denizen.cycles.stopped_answers import Utterance
from denizen.ids import CallId, MessageId, SpaceId, new_id
from denizen.models.partial_json import PartialArguments
from denizen.models.surrogates import WholeCharacters
from denizen.spaces.quotes import words
from denizen.tools.prebuilt import ENTER_SPACE, SEND_MESSAGE, SKIP
from denizen.tools.privacy_guard import Caution


@dataclass
class _Utterance:
    """One message, or the arguments of one call, being streamed."""

    position: int
    tool: str
    space_id: SpaceId | None
    """The space it streams to; None while that is not certain."""
    arguments: PartialArguments = field(default_factory=PartialArguments)
    characters: WholeCharacters = field(default_factory=WholeCharacters)
    """Whether it is the arguments of a call, which are shown as they are written."""
    named: str = ""
    """The space that the message itself names, as far as it is written."""
    id: str = field(default_factory=new_id)
    said: int = 0
    """Number of characters that may be shown so far; the stream has begun if there are any."""
    pieces: list[str] = field(default_factory=list[str])
    """Those characters, for readers who connect later."""
    waiting: str = ""
    """Text that is written and must be checked before it is sent."""
    before: str = ""
    """The end of what was sent: the first words of a private phrase may stand in it."""
    looked_at: int = 0
    """How much was waiting at the last check."""


@dataclass(frozen=True)
class Doubt:
    """Text that may be shown if it holds nothing private."""

    utterance: _Utterance
    space_id: SpaceId
    text: str
    """The text to check: from a little before the new part to its end."""
    characters: int
    """How much of the waiting text may be sent then."""


LOOK_EVERY: Final = 60
"""After how many new characters the waiting text is checked again."""


class LiveResponse:
    """Turns the events of one response into stream frames.

    `space_id` is where messages go that name no space; `spaces` are those that may be named. Under `caution` text is
    shown a few words late outside its free spaces: see `doubts`. In `stopped` spaces nothing is shown.
    """

    def __init__(
        self,
        bus: Bus,
        lease: Lease,
        space_id: SpaceId | None,
        *,
        visible: Container[str] = (),
        spaces: Container[str] = (),
        may_speak: bool = True,
        caution: Caution | None = None,
        stopped: Container[str] = (),
    ) -> None:
        self._bus = bus
        self._lease = lease
        self._space_id = space_id
        self._visible = visible
        self._spaces = spaces
        self._may_speak = may_speak
        self._caution = caution
        self._stopped = stopped
        self._certain = True
        self._calls = 0
        self._open: dict[int, _Utterance] = {}
        self._newest: _Utterance | None = None
        """The message that is being written."""

    @property
    def writing_to(self) -> SpaceId | None:
        """The space that a message is being written to now, as far as people can see."""
        return None if self._newest is None or not self._newest.said else self._newest.space_id

    @property
    def shown(self) -> dict[int, Utterance]:
        """What people have been shown of each message, by the position of its call."""
        told = [each for each in self._open.values() if each.tool == SEND_MESSAGE]
        return {each.position: Utterance("".join(each.pieces), each.named or None) for each in told}

    @property
    def ids(self) -> dict[int, str]:
        """The ids of the messages and calls that have been streaming, by the position of their call."""
        return {each.position: each.id for each in self._open.values() if each.said}

    def hear(self, event: ModelResponseStreamEvent) -> None:
        """Process the next event of the model's response."""
        if isinstance(event, PartStartEvent):
            self._newest = None
            if isinstance(event.part, ToolCallPart):
                self._begin(event.index, event.part)
        elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, ToolCallPartDelta):
            utterance = self._open.get(event.index)
            if utterance is not None and isinstance(event.delta.args_delta, str):
                self._hear(utterance, event.delta.args_delta)

    def abort(self, reason: str, positions: set[int] | None = None) -> None:
        """Tell readers that streamed text will not become a message or call: all of it, or that of these calls."""
        for each in self._open.values():
            if each.said and each.space_id is not None and (positions is None or each.position in positions):
                frame = StreamAborted(self._lease.agent_id, self._lease.epoch, MessageId(each.id), reason)
                self._bus.publish(space_topic(each.space_id), frame.to_payload())

    def say_again(self, spaces: Container[str]) -> bool:
        """Repeat what was streamed so far for late readers of these spaces. Returns whether there was anything."""
        late = [each for each in self._open.values() if each.pieces and (each.space_id or "") in spaces]
        for each in late:
            self._tell(each, 0, "".join(each.pieces), again=True)
        return bool(late)

    def _begin(self, index: int, part: ToolCallPart) -> None:
        position, self._calls = self._calls, self._calls + 1
        if part.tool_name in (ENTER_SPACE, SKIP):
            self._certain = False
        speaks = part.tool_name == SEND_MESSAGE and self._may_speak
        if not speaks and part.tool_name not in self._visible:
            return
        stopped = self._space_id is not None and self._space_id in self._stopped
        where = self._space_id if self._certain and not stopped else None
        utterance = self._open[index] = _Utterance(position, part.tool_name, where)
        self._newest = utterance if speaks else None
        # Some providers send the whole arguments at once, some their beginning, which is not valid JSON yet.
        if part.args:
            self._hear(utterance, part.args if isinstance(part.args, str) else part.args_as_json_str())

    def _hear(self, utterance: _Utterance, piece: str) -> None:
        if utterance.tool != SEND_MESSAGE:
            self._show(utterance, utterance.characters.take(piece))
            return
        text = ""
        for key, added in utterance.arguments.feed(piece):
            if key == "space_id":
                utterance.named += added
            elif key == "text":
                text += added
        if text and not utterance.said and utterance.named:
            # The name is complete when the text begins. A space that is not part of this cycle gets the message later.
            known = utterance.named in self._spaces and utterance.named not in self._stopped
            utterance.space_id = SpaceId(utterance.named) if known else None
        self._say(utterance, text)

    def doubts(self) -> list[Doubt]:
        """The texts that can be sent if they hold nothing that is private elsewhere.

        All but the last words: a private phrase may begin with them.
        """
        return [doubt for each in self._open.values() if (doubt := self._doubt(each)) is not None]

    def _doubt(self, utterance: _Utterance) -> Doubt | None:
        if self._caution is None or utterance.space_id is None or not utterance.waiting:
            return None
        if not self._bus.attention(space_topic(utterance.space_id)):
            return None  # it is checked when there is a reader
        if len(utterance.waiting) < utterance.looked_at + LOOK_EVERY:
            return None
        utterance.looked_at = len(utterance.waiting)
        found = words(utterance.waiting)
        if len(found) <= self._caution.words:
            return None
        clear = found[-self._caution.words].start
        return Doubt(utterance, utterance.space_id, f"{utterance.before}{utterance.waiting}", clear)

    def settle(self, doubt: Doubt, free: bool) -> None:
        """Apply the result of the check: send the text, or stop streaming it."""
        utterance = doubt.utterance
        if not free:
            self.abort("private", {utterance.position})
            utterance.space_id, utterance.said, utterance.waiting = None, 0, ""
            utterance.pieces.clear()
            return
        shown, utterance.waiting = utterance.waiting[: doubt.characters], utterance.waiting[doubt.characters :]
        assert self._caution is not None
        told = f"{utterance.before}{shown}"
        last = words(told)[-self._caution.words :]
        utterance.before = told[last[0].start :] if last else ""
        utterance.looked_at = len(utterance.waiting)
        self._send(utterance, shown)

    def _say(self, utterance: _Utterance, text: str) -> None:
        if not text or utterance.space_id is None:
            return
        if self._caution is not None and utterance.space_id not in self._caution.free:
            utterance.waiting += text
            return
        self._send(utterance, text)

    def _send(self, utterance: _Utterance, text: str) -> None:
        """Stream the text. If nobody listens, it is only kept for later readers."""
        assert utterance.space_id is not None
        offset, utterance.said = utterance.said, utterance.said + len(text)
        utterance.pieces.append(text)
        if self._bus.attention(space_topic(utterance.space_id)):
            self._tell(utterance, offset, text)

    def _tell(self, utterance: _Utterance, offset: int, text: str, *, again: bool = False) -> None:
        assert utterance.space_id is not None
        agent_id, epoch = self._lease.agent_id, self._lease.epoch
        id, topic = MessageId(utterance.id), space_topic(utterance.space_id)
        if offset == 0:
            started = StreamStarted(id, agent_id, utterance.space_id, epoch, again=again)
            self._bus.publish(topic, started.to_payload())
        self._bus.publish(topic, StreamDelta(id, agent_id, epoch, offset, text).to_payload())

    def _show(self, utterance: _Utterance, piece: str) -> None:
        if not piece or not self._has_listeners(utterance):
            return
        assert utterance.space_id is not None
        if self._caution is not None and utterance.space_id not in self._caution.free:
            # Arguments can only be judged when they are complete: in JSON a word may be spelt in several ways.
            return
        agent_id, epoch = self._lease.agent_id, self._lease.epoch
        id, topic = CallId(utterance.id), space_topic(utterance.space_id)
        if not utterance.said:
            started = CallStarted(id, agent_id, utterance.space_id, epoch, utterance.tool)
            self._bus.publish(topic, started.to_payload())
        self._bus.publish(topic, CallDelta(id, agent_id, epoch, utterance.said, piece).to_payload())
        utterance.said += len(piece)

    def _has_listeners(self, utterance: _Utterance) -> bool:
        """Decided at its beginning: later readers must not get it from its middle."""
        where = utterance.space_id
        if where is not None and not utterance.said:
            utterance.space_id = where if self._bus.attention(space_topic(where)) else None
        return utterance.space_id is not None


SAID_AGAIN_SECONDS: Final = 0.1
"""How often at most live text is repeated: however many readers connect, they are served together."""


class LiveTexts:
    """What agents are saying in this process right now."""

    def __init__(self) -> None:
        self._speakers: dict[LiveResponse, None] = {}

    @contextmanager
    def speaking(self, speaker: LiveResponse) -> Generator[None]:
        """While entered, readers who connect late can get what this speaker has said."""
        self._speakers[speaker] = None
        try:
            yield
        finally:
            del self._speakers[speaker]

    def say_again(self, spaces: Container[str]) -> bool:
        """Repeat the live texts in these spaces from their beginning. Returns whether there was anything."""
        return sum(speaker.say_again(spaces) for speaker in self._speakers) > 0


@asynccontextmanager
async def heard_by_latecomers(bus: Bus, voices: LiveTexts, clock: Clock) -> AsyncGenerator[None]:
    """While entered, these texts are repeated for readers who ask, on any instance."""
    spaces: set[SpaceId] = set()
    something = asyncio.Event()

    def hear(item: Frame | Gap) -> None:
        if isinstance(item, Frame):
            spaces.update(wanted(item.payload))
            something.set()

    async def repeat() -> None:
        while True:
            await something.wait()
            something.clear()
            said = voices.say_again(spaces)
            spaces.clear()
            if said:
                await clock.sleep(SAID_AGAIN_SECONDS)

    async with hearing(bus, WANTED, hear):
        # Not a task group: errors inside the `with` block are not this task's, and must be raised unwrapped.
        task = asyncio.create_task(repeat(), name="repeating for latecomers")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])
