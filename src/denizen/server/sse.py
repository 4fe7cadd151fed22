"""Server-sent events: the engine of every stream. The feeds decide what is sent.

A feed reads the database and sends what is new; the bus only says when to look. So a reader that was away, or whose
frames were lost, misses nothing. A reader that does not read is disconnected, not buffered for ever.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Final, Protocol, TypeAlias, TypeVar

import structlog
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from denizen.access import roles, tokens
from denizen.access.roles import Role
from denizen.bus.port import Bus, Frame, Gap
from denizen.bus.streams import MessageCreated, StreamFrame, from_payload
from denizen.errors import DenizenError, NotAMember, NotFound, SubscriberTooSlow
from denizen.ids import EntityId
from denizen.server.context import Context
from denizen.server.problems import Problem
from denizen.storage.database import Tx
from denizen.telemetry.logs import get_logger

log: structlog.typing.FilteringBoundLogger = get_logger(__name__)

MEDIA_TYPE: Final = "text/event-stream"
HEARTBEAT: Final = b": heartbeat\n\n"
MOST_GATHERED: Final = 65_536
"""The most bytes that are sent to a reader at once."""
EVENTS_GATHERED: Final = 8
"""After so many events, what was gathered is sent, even if more frames wait."""
_WELCOME: Final = b"retry: 1000\n\n"
_LINE_BREAKS: Final = str.maketrans({char: f"\\u{ord(char):04x}" for char in "\u0085\u2028\u2029"})

Say: TypeAlias = Callable[[bytes], Awaitable[None]]
"""Sends to the reader; waits while it does not read."""
Tell: TypeAlias = Callable[[Say], Awaitable[object]]
"""Sends one reader everything, and returns when there is no more to send."""
Heard: TypeAlias = tuple[str, StreamFrame]
"""A topic, and a frame from it."""


def event(name: str, data: str, id: int | str | None = None) -> bytes:
    """Formats one event; `data` is JSON, `id` is set if a reader can resume after it."""
    if id is not None:
        return ResumableEvent(name, data).with_id(id)
    return f"event: {name}\n{_data_line(data)}".encode()


class ResumableEvent:
    """An event of many readers who can resume after it, each with an id of their own. It is encoded once."""

    __slots__ = ("_after_id", "_before_id")

    def __init__(self, name: str, data: str) -> None:
        self._before_id = f"event: {name}\nid: ".encode()
        self._after_id = f"\n{_data_line(data)}".encode()

    def with_id(self, id: int | str) -> bytes:
        return self._before_id + str(id).encode() + self._after_id


def _data_line(data: str) -> str:
    # JSON is one line anyway, but some clients break lines at these as well.
    return f"data: {data.translate(_LINE_BREAKS)}\n\n"


def require_good(tx: Tx, token_id: str) -> Role:
    """Returns the highest role that the token allows, if it is still valid: checked with each look."""
    if token_id == tokens.IN_PROCESS:
        return "owner"
    token = tokens.get(tx, token_id)
    if not token.is_good(tx.now):
        raise NotFound("good token", token_id)
    return token.role


def may(tx: Tx, entity_id: EntityId, token_id: str, wanted: Role) -> bool:
    """Whether the caller still has that role. Raises if the token is no longer valid."""
    most, role = require_good(tx, token_id), roles.role_of(tx, entity_id)
    return role is not None and roles.reaches(roles.lesser(role, most), wanted)


class Feed(Protocol):
    """What one reader is sent, and its position."""

    @property
    def topics(self) -> frozenset[str]:
        """The bus topics that announce news. They may change after a look."""
        ...

    async def approach(self) -> None:
        """Finds out which topics to listen to. Sends nothing yet."""
        ...

    async def begin(self) -> None:
        """Takes the first look and sends the present state."""
        ...

    async def look(self) -> None:
        """Sends everything that is new."""
        ...

    async def hear(self, topic: str, frame: StreamFrame) -> None:
        """Sends what this frame hints at."""
        ...

    async def lose(self) -> None:
        """Sends everything that is new after frames were lost."""
        ...


FeedType = TypeVar("FeedType", bound=Feed)


async def run_feed(
    context: Context,
    write: Callable[[Say], FeedType],
    say: Say,
    *,
    rests: Callable[[FeedType, Ear], bool] | None = None,
) -> bool:
    """Runs a feed until the bus is closed. Raises if the reader loses access or is too slow.

    `rests` is called whenever everything was sent and no frame waits; the feed ends if it returns True, and so does
    this. Between its call and the end of the feed nothing else happens.
    """
    gathered = _Gathered(say)
    story = write(gathered.say)
    await story.approach()
    following = story.topics
    # Listening begins before the first look: what happens in between is heard, and looked for again.
    pause = partial(context.runtime.clock.sleep, context.limits.heartbeat_seconds)
    async with hearing(context.runtime.bus, context.limits.stream_frames, following, pause=pause) as ear:
        await say(_WELCOME)
        try:
            await story.begin()
            while not ear.over:
                if ear.is_due:
                    # However much is heard meanwhile: of a process that died, or that does not know whether it has
                    # committed, nothing is heard.
                    ear.is_due = False
                    await say(HEARTBEAT)
                    await story.look()
                    await gathered.send()
                elif (topics := story.topics) is not following and topics != following:
                    following = topics
                    await ear.follow(following)
                    await story.look()
                elif (item := ear.take()) is not None:
                    await (story.lose() if isinstance(item, Gap) else story.hear(*item))
                    await gathered.heard()
                else:
                    await gathered.send()
                    if rests is not None and ear.is_empty and rests(story, ear):
                        return True
                    ear.is_waited_for = True
                    await ear.arrived.wait()
                    ear.is_waited_for = False
        except DenizenError:
            # What was sent before belongs to the reader.
            await gathered.send()
            raise
    return False


class _Gathered:
    """Collects what is sent together: most of the cost of a stream is sending."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._told: list[bytes] = []
        self._bytes = 0

    async def say(self, data: bytes) -> None:
        self._told.append(data)
        self._bytes += len(data)
        if self._bytes >= MOST_GATHERED:
            await self.send()

    async def heard(self) -> None:
        """Notes that a frame was handled. However many come, the reader does not wait for the last of them."""
        if len(self._told) >= EVENTS_GATHERED:
            await self.send()

    async def send(self) -> None:
        told, self._told, self._bytes = self._told, [], 0
        if told:
            await self._say(b"".join(told))


@asynccontextmanager
async def hearing(
    bus: Bus, limit: int, topics: Iterable[str], *, pause: Callable[[], Awaitable[None]] | None = None
) -> AsyncGenerator[Ear]:
    """Listens to these topics inside the block. With `pause`, it is time to look after each of them."""
    ear = Ear(bus, limit, topics)
    async with ear.subscription, asyncio.TaskGroup() as tasks:
        # A task of its own, which never waits for the reader: only so is a reader cut off that does not read.
        running = [tasks.create_task(ear.listen(), name="bus of a stream")]
        if pause is not None:
            running.append(tasks.create_task(ear.tick(pause), name="heartbeat of a stream"))
        yield ear
        for each in running:
            each.cancel()


_DECODED: Final[deque[tuple[Frame, StreamFrame | None]]] = deque(maxlen=16)
"""The last frames of the bus: one reaches many readers in the same turn of the event loop."""


def _decoded(item: Frame) -> StreamFrame | None:
    for known, frame in _DECODED:
        if known is item:
            return frame
    frame = from_payload(item.payload)
    _DECODED.appendleft((item, frame))
    return frame


class Ear:
    """The frames from the bus that the reader was not sent yet."""

    def __init__(self, bus: Bus, limit: int, topics: Iterable[str]) -> None:
        self.subscription = bus.subscribe(*sorted(topics), deliver=self.put)
        self.arrived = asyncio.Event()
        self.over = False
        """Whether the bus is closed."""
        self.is_due = False
        """Whether it is time to look at the database although nothing was heard."""
        self.is_waited_for = False
        """Whether the feed waits for frames, and has sent everything before."""
        self._limit = limit
        self._waiting: deque[Heard | Gap] = deque()

    @property
    def is_empty(self) -> bool:
        """Whether the feed has handled every frame that was published so far."""
        return not self._waiting

    async def follow(self, topics: Iterable[str]) -> None:
        """Listens to these topics from now on."""
        await self.subscription.follow(*sorted(topics))

    async def listen(self) -> None:
        """Waits until the bus is closed. Raises `SubscriberTooSlow` if too many frames wait."""
        async for _ in self.subscription:
            raise AssertionError("Frames are delivered to `put`.")
        self.over = True
        self.arrived.set()

    async def tick(self, pause: Callable[[], Awaitable[None]]) -> None:
        """One timer for the whole stream: one for each wait would cost more than the wait."""
        while True:
            await pause()
            self.is_due = True
            self.arrived.set()

    def take(self) -> Heard | Gap | None:
        """Returns the oldest frame."""
        item = self._waiting.popleft() if self._waiting else None
        if not self._waiting and not self.over:
            self.arrived.clear()
        return item

    def put(self, item: Frame | Gap) -> bool:
        """Takes what the bus has published; returns whether not too many frames wait."""
        if isinstance(item, Gap):
            if not self._waiting or not isinstance(self._waiting[-1], Gap):
                self._waiting.append(item)
        elif (frame := _decoded(item)) is not None:
            new = (item.topic, frame)
            if self._waiting and _same_place(self._waiting[-1], new):
                # One look finds both; the later one is kept, because it must not have been seen yet.
                self._waiting.pop()
            self._waiting.append(new)
        else:
            return True
        self.arrived.set()
        return len(self._waiting) <= self._limit


def _same_place(one: Heard | Gap, other: Heard) -> bool:
    """Whether both announce a new message in the same space."""
    if not isinstance(other[1], MessageCreated) or isinstance(one, Gap):
        return False
    return one[0] == other[0] and isinstance(one[1], MessageCreated)


@contextmanager
def counted_stream(context: Context, scope: Scope) -> Generator[None]:
    """Counts a stream of the caller inside the block. Raises `Problem` if they have too many."""
    reader, streams, most = scope["caller"].entity.id, context.streams, context.limits.streams_per_person
    if most and streams[reader] >= most:
        raise Problem(
            "too_many_streams",
            f"You have {most} streams open, which is as many as you may. Close some, then try again.",
            headers={"Retry-After": "5"},
        )
    streams[reader] += 1
    try:
        yield
    finally:
        streams[reader] -= 1
        if not streams[reader]:
            del streams[reader]


class EventStream(Response):
    """Streams to one reader until it disconnects, loses access, is too slow, or the server stops.

    With `has_last_words`, the stream notices itself that the server stops, and ends by itself.
    """

    media_type = MEDIA_TYPE

    def __init__(self, context: Context, tell: Tell, *, has_last_words: bool = False) -> None:
        super().__init__(headers={"X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._context = context
        self._tell_all = tell
        self._has_last_words = has_last_words

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with counted_stream(self._context, scope):
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        if await self._tell(receive, send) is _CutOff:
            # What is left to send would wait for the reader for ever.
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
            pass  # The reader may not read this any more, or its token is not valid any more.
        except* DenizenError as errors:
            log.warning("stream ended early", error=str(errors.exceptions[0]))
        return outcome


class _CutOff:
    """The reader was too slow."""


async def left(receive: Receive) -> None:
    """Returns when the client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass
