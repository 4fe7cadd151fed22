"""A space as server-sent events: every message once and in order, and what is happening in between.

The database says what was said; the bus only says when to look. So a reader that was away, and one whose frames were
lost, miss nothing. Each look asks again whether the reader may still read.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import structlog
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from denizen.access import tokens
from denizen.agents import registry
from denizen.agents.registry import Presence
from denizen.bus.port import Frame, Gap, Subscription
from denizen.bus.streams import (
    CallChanged,
    MessageCreated,
    MessageDeleted,
    MessageEdited,
    SpaceChanged,
    StreamFrame,
    StreamStarted,
    agent_topic,
    from_payload,
    space_topic,
)
from denizen.errors import DenizenError, NotAMember, NotFound, SubscriberTooSlow
from denizen.ids import AgentId, CallId, EntityId, MessageId, SpaceId
from denizen.server.auth import Caller
from denizen.server.context import Context
from denizen.server.live import Live, Payload
from denizen.server.schemas import CallOut, MessageOut
from denizen.spaces import directory, posting
from denizen.spaces.posting import Message
from denizen.storage.database import Tx
from denizen.tools import calls
from denizen.tools.calls import Call

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

MEDIA_TYPE: Final = "text/event-stream"
PAGE: Final = 200
_WELCOME: Final = b"retry: 1000\n\n"
_HEARTBEAT: Final = b": heartbeat\n\n"
_LINE_BREAKS: Final = str.maketrans({char: f"\\u{ord(char):04x}" for char in "\u0085\u2028\u2029"})


def message_event(message: Message) -> bytes:
    """A message, under its sequence number as id."""
    return _event("message", MessageOut.of(message).model_dump_json(), message.seq)


def change_event(message: Message) -> bytes:
    """A message that was edited or deleted, as it is now. Its number is no place to resume from."""
    name = "message.edited" if message.deleted_at is None else "message.deleted"
    return _event(name, MessageOut.of(message).model_dump_json())


def call_event(call: Call) -> bytes:
    """A call that is shown in the space, as it stands. Without an id: whoever comes back looks again."""
    return _event("call", CallOut.of(call).model_dump_json())


def live_event(payload: Payload) -> bytes:
    """A frame under its type. Without an id: it is not what one resumes from."""
    return _event(str(payload["type"]), json.dumps(payload, ensure_ascii=False))


def _event(name: str, data: str, number: int | None = None) -> bytes:
    # JSON is one line by itself, but some clients break lines at these as well.
    data = data.translate(_LINE_BREAKS)
    identifier = "" if number is None else f"id: {number}\n"
    return f"event: {name}\n{identifier}data: {data}\n\n".encode()


class EventStream(Response):
    """Streams a space to one reader, until it leaves, may not read any more, is too slow, or the server ends."""

    media_type = MEDIA_TYPE

    def __init__(self, context: Context, caller: Caller, space_id: SpaceId, after: int) -> None:
        super().__init__(headers={"X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._context = context
        self._reader = _Reader(space_id, caller.entity.id, caller.token.id)
        self._after = after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        if await self._tell(receive, send) is _CutOff:
            # What is still to be sent would wait for the reader for ever.
            if self._context.hang_up is not None:
                self._context.hang_up(scope)
                await _left(receive)
            return
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _tell(self, receive: Receive, send: Send) -> type[_CutOff] | None:
        narrator = _Narrator(self._context, self._reader, self._after, send)
        outcome = None
        try:
            async with asyncio.TaskGroup() as tasks:
                ends = {
                    tasks.create_task(narrator.narrate(), name="stream of a space"),
                    tasks.create_task(_left(receive), name="reader of a stream leaves"),
                    tasks.create_task(self._context.ending.wait(), name="server ends"),
                }
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                for task in ends:
                    task.cancel()
        except* SubscriberTooSlow:
            log.info("slow reader of a stream was cut off")
            outcome = _CutOff
        except* (NotFound, NotAMember):
            pass  # the reader is not in the space any more, or its token is not good any more
        except* DenizenError as errors:
            log.warning("stream ended early", error=str(errors.exceptions[0]))
        return outcome


class _CutOff:
    """The reader was too slow."""


async def _left(receive: Receive) -> None:
    """The client is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


@dataclass(frozen=True, slots=True)
class _Reader:
    """Who reads what, by which right."""

    space_id: SpaceId
    entity_id: EntityId
    token_id: str


@dataclass(frozen=True, slots=True)
class _View:
    messages: list[Message]
    agents: list[Presence]


def _look(tx: Tx, reader: _Reader, after: int) -> _View:
    if not tokens.get(tx, reader.token_id).is_good(tx.now):
        raise NotFound("good token", reader.token_id)
    directory.require_member(tx, reader.space_id, reader.entity_id)
    messages = posting.messages_after(tx, reader.space_id, after, limit=PAGE)
    return _View(messages, registry.present(tx, reader.space_id))


def _changed(tx: Tx, reader: _Reader, message_id: MessageId) -> Message:
    directory.require_member(tx, reader.space_id, reader.entity_id)
    return posting.get_message(tx, message_id)


class _Narrator:
    """Tells one reader what happens, from the message after `after` on."""

    def __init__(self, context: Context, reader: _Reader, after: int, send: Send) -> None:
        self._runtime = context.runtime
        self._limits = context.limits
        self._reader = reader
        self._after = after
        self._send = send
        self._live = Live(reader.space_id)
        self._heard = _Heard(context.limits.stream_frames)
        self._last_call: tuple[CallId, str] | None = None

    async def narrate(self) -> None:
        """Returns when the bus is closed; raises when the reader may not read any more, or is too slow."""
        # Listening begins before the first look: what happens in between is heard, and looked for again.
        async with self._hearing([space_topic(self._reader.space_id)]):
            await self._say(_WELCOME)
            agents = await self._look()
            await self._say_open_calls()
            while not self._heard.over:
                async with self._hearing([agent_topic(each) for each in sorted(agents)]):
                    agents = await self._tell_while_present(agents)

    async def _tell_while_present(self, agents: frozenset[AgentId]) -> frozenset[AgentId]:
        """Tell what happens until other agents are in the space than these, and say who is."""
        present = await self._look()
        while present == agents and not self._heard.over:
            if not await self._runtime.clock.wait(self._heard.arrived, self._limits.heartbeat_seconds):
                await self._say(_HEARTBEAT)
                present = await self._look()
            elif (item := self._heard.take()) is not None:
                present = await self._tell(item, present)
        return present

    async def _tell(self, item: StreamFrame | Gap, present: frozenset[AgentId]) -> frozenset[AgentId]:
        match item:
            case Gap():
                await self._say_live(self._live.lost())
                return await self._look()
            case MessageCreated():
                return await self._look() if item.seq > self._after else present
            case MessageEdited() | MessageDeleted():
                # One that the reader does not have yet comes as it is now.
                if item.seq <= self._after:
                    await self._say_changed(item.id)
                return present
            case CallChanged():
                # Frames of the agent's own topic come here as well, of calls in other spaces too.
                if item.space == self._reader.space_id:
                    await self._say_call(item.id)
                return present
            case SpaceChanged():
                # First the look: whoever is not in the space any more is told nothing of it.
                present = await self._look()
                await self._say(live_event(item.to_payload()))
                return present
            case StreamStarted():
                # Whoever left the space since the last message does not get to read the next one as it is written.
                present = await self._look()
            case _:
                pass
        await self._say_live(self._live.hear(item))
        return present

    async def _look(self) -> frozenset[AgentId]:
        """The reader has every message there is; gives the agents in the space."""
        while True:
            view = await self._runtime.db.read(_look, self._reader, self._after)
            for message in view.messages:
                self._live.said(message.id)
                self._after = message.seq
            told = [message_event(each) for each in view.messages]
            told += [live_event(each) for each in self._live.seen(view.agents)]
            if told:
                await self._say(b"".join(told))
            if len(view.messages) < PAGE:
                return frozenset(each.agent_id for each in view.agents)

    async def _say_open_calls(self) -> None:
        """Whoever comes sees what still waits; what was settled long ago is found with the messages."""
        waiting = await self._runtime.db.read(calls.waiting_in, self._reader.space_id)
        if waiting:
            await self._say(b"".join(call_event(each) for each in waiting))

    async def _say_changed(self, message_id: MessageId) -> None:
        """The message as it stands now: a frame may be older than what it tells of."""
        message = await self._runtime.db.read(_changed, self._reader, message_id)
        await self._say(change_event(message))

    async def _say_call(self, call_id: CallId) -> None:
        """The call as it stands now: a frame may be older than what it tells of."""
        call = await self._runtime.db.read(calls.require_visible, call_id, self._reader.entity_id)
        # It is heard of from the space and from its agent.
        if self._last_call != (call.id, call.state):
            self._last_call = (call.id, call.state)
            await self._say(call_event(call))

    async def _say_live(self, payloads: Iterable[Payload]) -> None:
        told = b"".join(live_event(each) for each in payloads)
        if told:
            await self._say(told)

    async def _say(self, data: bytes) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    @asynccontextmanager
    async def _hearing(self, topics: list[str]) -> AsyncGenerator[None]:
        """Inside, what is told on these topics is heard."""
        if not topics:
            yield
            return
        subscription = self._runtime.bus.subscribe(*topics, limit=self._limits.stream_frames)
        async with subscription as frames, asyncio.TaskGroup() as tasks:
            # A task of its own, which never waits for the reader: how else would one notice that it does not read?
            listening = tasks.create_task(self._heard.listen(frames), name="bus of a stream")
            yield
            listening.cancel()


class _Heard:
    """What the bus told and the reader was not told yet."""

    def __init__(self, limit: int) -> None:
        self.arrived = asyncio.Event()
        self.over = False
        """The bus is closed."""
        self._limit = limit
        self._waiting: deque[StreamFrame | Gap] = deque()

    async def listen(self, frames: Subscription) -> None:
        """Keep what comes, until the bus is closed. Raises `SubscriberTooSlow` when too much waits to be taken."""
        async for item in frames:
            self._put(item)
        self.over = True
        self.arrived.set()

    def take(self) -> StreamFrame | Gap | None:
        """What came first."""
        item = self._waiting.popleft() if self._waiting else None
        if not self._waiting and not self.over:
            self.arrived.clear()
        return item

    def _put(self, item: Frame | Gap) -> None:
        heard = item if isinstance(item, Gap) else from_payload(item.payload)
        if heard is None:
            return
        if isinstance(heard, MessageCreated) and self._waiting and isinstance(self._waiting[-1], MessageCreated):
            # One look finds both; it is the later one that must not have been seen yet.
            self._waiting.pop()
        self._waiting.append(heard)
        if len(self._waiting) > self._limit:
            raise SubscriberTooSlow
        self.arrived.set()
