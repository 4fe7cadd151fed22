"""Server-sent events: the engine of every stream. What is told is each story's own.

A story looks into the database and tells what is new; the bus only says when to look. So a reader that was away, and
one whose frames were lost, miss nothing. A reader that does not read is cut off, not buffered for ever.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Final, Protocol, TypeAlias

import structlog
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from denizen.access import roles, tokens
from denizen.access.roles import Role
from denizen.bus.port import Bus, Gap, Subscription
from denizen.bus.streams import MessageCreated, StreamFrame, from_payload
from denizen.errors import DenizenError, NotAMember, NotFound, SubscriberTooSlow
from denizen.ids import EntityId
from denizen.server.context import Context
from denizen.server.problems import Problem
from denizen.storage.database import Tx

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

MEDIA_TYPE: Final = "text/event-stream"
HEARTBEAT: Final = b": heartbeat\n\n"
MOST_GATHERED: Final = 65_536
"""Bytes that are told to a reader at once."""
FRAMES_GATHERED: Final = 8
"""Frames that are told to a reader at once."""
_WELCOME: Final = b"retry: 1000\n\n"
_LINE_BREAKS: Final = str.maketrans({char: f"\\u{ord(char):04x}" for char in "\u0085\u2028\u2029"})

Say: TypeAlias = Callable[[bytes], Awaitable[None]]
"""Sends to the reader; waits while it does not read."""
Tell: TypeAlias = Callable[[Say], Awaitable[None]]
"""Tells one reader everything, and returns when there is no more to tell."""
Heard: TypeAlias = tuple[str, StreamFrame]
"""A topic, and what was said there."""


def event(name: str, data: str, id: int | str | None = None) -> bytes:
    """One event; `data` is JSON, `id` where one can resume after it."""
    # JSON is one line by itself, but some clients break lines at these as well.
    data = data.translate(_LINE_BREAKS)
    identifier = "" if id is None else f"id: {id}\n"
    return f"event: {name}\n{identifier}data: {data}\n\n".encode()


def require_good(tx: Tx, token_id: str) -> Role:
    """At most this much the token allows, if it is still good: each look asks again."""
    if token_id == tokens.IN_PROCESS:
        return "owner"
    token = tokens.get(tx, token_id)
    if not token.is_good(tx.now):
        raise NotFound("good token", token_id)
    return token.role


def may(tx: Tx, entity_id: EntityId, token_id: str, wanted: Role) -> bool:
    """Whether the bearer may still do what takes that role. Raises if the token is not good any more."""
    most, role = require_good(tx, token_id), roles.role_of(tx, entity_id)
    return role is not None and roles.reaches(roles.lesser(role, most), wanted)


class Feed(Protocol):
    """What one reader is told, and how far it has come."""

    @property
    def topics(self) -> frozenset[str]:
        """Where one hears that there is something new. They may be others after a look."""
        ...

    async def approach(self) -> None:
        """It is known where to listen. Nothing is told yet."""
        ...

    async def begin(self) -> None:
        """The first look; tells how things stand."""
        ...

    async def look(self) -> None:
        """The reader knows everything there is."""
        ...

    async def hear(self, topic: str, frame: StreamFrame) -> None:
        """The reader knows what this frame hints at."""
        ...

    async def lose(self) -> None:
        """Frames were lost; the reader knows everything there is."""
        ...


async def run_feed(context: Context, write: Callable[[Say], Feed], say: Say) -> None:
    """Tell a story until the bus is closed. Raises when the reader may not read any more, or is too slow."""
    gathered = _Gathered(say)
    story, clock = write(gathered.say), context.runtime.clock
    await story.approach()
    following = story.topics
    # Listening begins before the first look: what happens in between is heard, and looked for again.
    async with hearing(context.runtime.bus, context.limits.stream_frames, following) as ear:
        await say(_WELCOME)
        try:
            await story.begin()
            while not ear.over:
                if story.topics != following:
                    following = story.topics
                    await ear.follow(following)
                    await story.look()
                elif (item := ear.take()) is not None:
                    await (story.lose() if isinstance(item, Gap) else story.hear(*item))
                    await gathered.heard()
                else:
                    await gathered.send()
                    if not await clock.wait(ear.arrived, context.limits.heartbeat_seconds):
                        await say(HEARTBEAT)
                        await story.look()
        except DenizenError:
            # What was told before is the reader's.
            await gathered.send()
            raise


class _Gathered:
    """What is told in one go is sent in one: most of what a stream costs is sending."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._told: list[bytes] = []
        self._bytes = 0
        self._heard = 0

    async def say(self, data: bytes) -> None:
        self._told.append(data)
        self._bytes += len(data)
        if self._bytes >= MOST_GATHERED:
            await self.send()

    async def heard(self) -> None:
        """A frame was told. However many come, the reader does not wait for the last of them."""
        self._heard += 1
        if self._heard >= FRAMES_GATHERED:
            await self.send()

    async def send(self) -> None:
        told, self._told, self._bytes, self._heard = self._told, [], 0, 0
        if told:
            await self._say(b"".join(told))


@asynccontextmanager
async def hearing(bus: Bus, limit: int, topics: Iterable[str]) -> AsyncGenerator[Ear]:
    """Inside, what is told on these topics is heard."""
    async with bus.subscribe(*sorted(topics), limit=limit) as frames, asyncio.TaskGroup() as tasks:
        ear = Ear(frames, limit)
        # A task of its own, which never waits for the reader: how else would one notice that it does not read?
        listening = tasks.create_task(ear.listen(), name="bus of a stream")
        yield ear
        listening.cancel()


class Ear:
    """What the bus told and the reader was not told yet."""

    def __init__(self, frames: Subscription, limit: int) -> None:
        self.arrived = asyncio.Event()
        self.over = False
        """The bus is closed."""
        self._frames = frames
        self._limit = limit
        self._waiting: deque[Heard | Gap] = deque()

    async def follow(self, topics: Iterable[str]) -> None:
        """From now on these topics are listened to."""
        await self._frames.follow(*sorted(topics))

    async def listen(self) -> None:
        """Keep what comes, until the bus is closed. Raises `SubscriberTooSlow` when too much waits to be taken."""
        async for item in self._frames:
            if isinstance(item, Gap):
                self._put(item)
            elif (frame := from_payload(item.payload)) is not None:
                self._put((item.topic, frame))
        self.over = True
        self.arrived.set()

    def take(self) -> Heard | Gap | None:
        """What came first."""
        item = self._waiting.popleft() if self._waiting else None
        if not self._waiting and not self.over:
            self.arrived.clear()
        return item

    def _put(self, item: Heard | Gap) -> None:
        if self._waiting and _same_place(self._waiting[-1], item):
            # One look finds both; it is the later one that must not have been seen yet.
            self._waiting.pop()
        self._waiting.append(item)
        if len(self._waiting) > self._limit:
            raise SubscriberTooSlow
        self.arrived.set()


def _same_place(one: Heard | Gap, other: Heard | Gap) -> bool:
    """Whether both tell of a new message in the same space."""
    if isinstance(one, Gap) or isinstance(other, Gap):
        return False
    return one[0] == other[0] and isinstance(one[1], MessageCreated) and isinstance(other[1], MessageCreated)


class EventStream(Response):
    """Tells one reader, until it leaves, may not read any more, is too slow, or the server ends.

    With `has_last_words`, what is told notices by itself that the server ends, and comes to its own end.
    """

    media_type = MEDIA_TYPE

    def __init__(self, context: Context, tell: Tell, *, has_last_words: bool = False) -> None:
        super().__init__(headers={"X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._context = context
        self._tell_all = tell
        self._has_last_words = has_last_words

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reader, streams = scope["caller"].entity.id, self._context.streams
        most = self._context.limits.streams_per_person
        if most and streams[reader] >= most:
            raise Problem(
                "too_many_streams",
                f"You have {most} streams open, which is as many as you may. Close some, then try again.",
                headers={"Retry-After": "5"},
            )
        streams[reader] += 1
        try:
            await self._answer(scope, receive, send)
        finally:
            streams[reader] -= 1
            if not streams[reader]:
                del streams[reader]

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        if await self._tell(receive, send) is _CutOff:
            # What is still to be sent would wait for the reader for ever.
            if self._context.hang_up is not None:
                self._context.hang_up(scope)
                await left(receive)
            return
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _ending(self) -> None:
        await self._context.ending.wait()

    async def _tell(self, receive: Receive, send: Send) -> type[_CutOff] | None:
        async def say(data: bytes) -> None:
            await send({"type": "http.response.body", "body": data, "more_body": True})

        async def tell() -> None:
            await self._tell_all(say)

        outcome = None
        try:
            async with asyncio.TaskGroup() as tasks:
                ends = {
                    tasks.create_task(tell(), name="stream"),
                    tasks.create_task(left(receive), name="reader of a stream leaves"),
                }
                if not self._has_last_words:
                    ends.add(tasks.create_task(self._ending(), name="server ends"))
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                for task in ends:
                    task.cancel()
        except* SubscriberTooSlow:
            log.info("slow reader of a stream was cut off")
            outcome = _CutOff
        except* (NotFound, NotAMember):
            pass  # the reader may not read this any more, or its token is not good any more
        except* DenizenError as errors:
            log.warning("stream ended early", error=str(errors.exceptions[0]))
        return outcome


class _CutOff:
    """The reader was too slow."""


async def left(receive: Receive) -> None:
    """The client is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
