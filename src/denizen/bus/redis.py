"""The bus across processes, on the pub/sub of Redis or Valkey.

A process hands its own frames straight to its own readers and sends them to Redis for everyone else's, so that a single
instance works as usual while Redis is down. Two connections, one that publishes and one that listens, are opened and
closed together; listeners get a `Gap` for each new pair. Frames that could not be sent are dropped, oldest first, and
the readers of the topics concerned get a `Gap`, too.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeAlias, cast

import structlog
from redis.asyncio.connection import AbstractConnection, Connection, parse_url
from redis.exceptions import AuthenticationError, AuthorizationError, RedisError, ResponseError

from denizen.bus.local import LocalBus, LocalSubscription
from denizen.clock import Clock, SystemClock
from denizen.errors import BusError
from denizen.ids import new_id
from denizen.telemetry.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import TracebackType

    from pydantic import JsonValue

    from denizen.bus.port import Deliver, Frame, Gap

CONNECT_SECONDS = 5
PROBE_SECONDS = 10
"""A connection that has not answered for this long is lost, whatever the network believes."""
CLOSE_SECONDS = 2
FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 10.0
BATCH_FRAMES = 500
FRAMES_PER_TURN = 64

_NO_SENTINEL = (
    "Redis Sentinel is not supported. Set the URL of the Redis server itself, or of a proxy that follows the primary: "
    "Denizen keeps nothing in Redis, so after a failover only hints were lost."
)
_REFUSED = (AuthenticationError, AuthorizationError, ResponseError)
_AWAY = (RedisError, OSError, TimeoutError)
_GREETING_TOPIC = ""
_OPTIONS: dict[str, Any] = {
    "protocol": 2,
    "decode_responses": False,
    # Waiting is bounded by CONNECT_SECONDS and PROBE_SECONDS, and retried here, where the state is known.
    "socket_timeout": None,
    "socket_connect_timeout": None,
    "retry": None,
    "retry_on_error": [],
    "retry_on_timeout": False,
    "health_check_interval": 0,
}

Connector: TypeAlias = Callable[[], AbstractConnection]

log: structlog.typing.FilteringBoundLogger = get_logger(__name__)


class RedisBus:
    """Carries frames between all processes that share a Redis and a prefix."""

    def __init__(
        self,
        url: str,
        *,
        prefix: str = "denizen:",
        clock: Clock | None = None,
        name: str | None = None,
        outgoing_frames: int = 10_000,
        outgoing_bytes: int = 32_000_000,
    ) -> None:
        self._url = url
        self._prefix = _bytes(prefix)
        self._clock = clock or SystemClock()
        # Every message starts with the name of its sender, so that a process recognizes its own when they come back.
        self._name = name or new_id()
        self._sender = _bytes(self._name) + b"\n"
        self._local = LocalBus()
        self._outbox = Outbox(outgoing_frames, outgoing_bytes)
        self._link: _Link | None = None
        self._up = asyncio.Event()
        self._down = asyncio.Event()
        self._down.set()
        self._outage_logged = False
        self._closed = False
        self._keeper: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Start keeping a connection. Raises `BusError` if the URL is wrong or Redis refuses us, not if it is down."""
        connector = _connector(self._url)
        try:
            link = await self._connect(connector)
        except _REFUSED as error:
            if "sentinel" in str(error).lower():
                raise BusError(_NO_SENTINEL) from error
            raise BusError(f"Redis refuses this connection; check the user and password in its URL: {error}") from error
        self._keeper = asyncio.create_task(self._keep(connector, link), name=f"redis bus {self._name}")
        if link is not None:
            try:
                await link.settled.wait()
            except BaseException:
                await self.close()
                raise

    async def close(self) -> None:
        """Send what was published if Redis takes it within CLOSE_SECONDS; end all subscriptions and tasks."""
        self._closed = True
        await self._local.close()
        keeper, self._keeper = self._keeper, None
        if keeper is None:
            return
        try:
            async with asyncio.timeout(CLOSE_SECONDS if self._link else 0):
                await self._outbox.sent.wait()
        except TimeoutError:
            log.debug("redis bus closed with frames unsent", frames=len(self._outbox))
        finally:
            keeper.cancel()
            await asyncio.wait([keeper])

    def publish(self, topic: str, payload: Mapping[str, JsonValue]) -> None:
        if self._closed:
            return
        self._local.publish(topic, payload)
        body = _encode(payload)
        if body is not None:
            self._outbox.put(topic, body)

    def subscribe(self, *topics: str, limit: int = 1000, deliver: Deliver | None = None) -> RedisSubscription:
        return RedisSubscription(self, self._local.subscribe(*topics, limit=limit, deliver=deliver))

    def attention(self, topic: str) -> bool:  # noqa: ARG002 - the port asks by topic; we cannot know
        """Other processes may be listening to anything."""
        return True

    @property
    def is_connected(self) -> bool:
        return self._up.is_set()

    async def connected(self) -> None:
        """Wait until Redis is connected and every subscription is active again."""
        await self._up.wait()

    async def disconnected(self) -> None:
        """Wait until Redis is known to be down."""
        await self._down.wait()

    async def follow(self) -> None:
        """Make Redis send us exactly what local readers want, unless it is down."""
        if self._link is not None:
            await self._link.request().wait()

    def refresh(self) -> None:
        """Like `follow`, but without waiting."""
        if self._link is not None:
            self._link.request()

    async def _keep(self, connector: Connector, link: _Link | None) -> None:
        """Use the link until it is lost, then get another, for ever."""
        attempt = 0
        while True:
            if link is not None:
                attempt = 0
                await self._use(link)
                if self._closed:
                    # A link that was lost just when we were told to end has consumed the cancellation.
                    return
            await self._clock.sleep(pause(attempt, self._name))
            attempt += 1
            try:
                link = await self._connect(connector)
            except _REFUSED as error:
                link = None
                self._note_outage(error)

    async def _connect(self, connector: Connector) -> _Link | None:
        """A new link, or None if Redis is down."""
        link = _Link(connector, self._prefix)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await link.connect()
        except _REFUSED:
            await link.close()
            raise
        except _AWAY as error:
            await link.close()
            self._note_outage(error)
            return None
        except BaseException:
            await link.close()
            raise
        return link

    async def _use(self, link: _Link) -> None:
        """Carry frames over the link until it is lost."""
        self._link = link
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._receive(link), name=f"redis bus {self._name}: receive")
                tasks.create_task(self._send(link), name=f"redis bus {self._name}: send")
                tasks.create_task(self._listen(link), name=f"redis bus {self._name}: listen")
                tasks.create_task(self._probe(link), name=f"redis bus {self._name}: probe")
                await self._resume(link)
        except* Exception as lost:  # noqa: BLE001 - whatever broke it, the answer is a new link
            self._note_outage(lost.exceptions[0])
        finally:
            self._link = None
            self._up.clear()
            self._down.set()
            link.release()
            await link.close()

    async def _resume(self, link: _Link) -> None:
        """Subscribe everyone again, and tell them that frames may have been lost until now."""
        await link.request().wait()
        self._local.gap()
        self._down.clear()
        self._up.set()
        link.settled.set()
        if self._outage_logged:
            self._outage_logged = False
            log.info("redis is back", frames_dropped=self._outbox.dropped)

    async def _listen(self, link: _Link) -> None:
        """Keep what Redis sends us equal to what local readers want."""
        while True:
            await link.requested.wait()
            await link.ask(set(self._local.topics()))

    async def _receive(self, link: _Link) -> None:
        """Hand what arrives to local readers."""
        frames = 0
        while True:
            match await link.read():
                case [b"message", bytes(channel), bytes(message)]:
                    self._arrive(_text(channel[len(self._prefix) :]), message)
                    frames += 1
                    if frames % FRAMES_PER_TURN == 0:
                        # A burst already in our buffers would fill the readers' queues before they had a turn.
                        await asyncio.sleep(0)
                case [b"pong", _] | b"PONG":
                    link.answer()
                case _:
                    pass

    def _arrive(self, topic: str, message: bytes) -> None:
        if message.startswith(self._sender) or not self._local.attention(topic):
            return
        payload = _decode(message.partition(b"\n")[2])
        if payload is None:
            self._local.gap(topic)
        else:
            self._local.publish(topic, payload)

    async def _send(self, link: _Link) -> None:
        """Send what is in the outbox as it comes."""
        while True:
            await self._outbox.filled.wait()
            batch = self._outbox.take(BATCH_FRAMES)
            try:
                await link.publish([(topic, self._sender + body) for topic, body in batch])
            except BaseException:
                # It is unknown whether they were sent. Sending again could show a frame twice, so readers are told of a
                # gap.
                self._outbox.lose(batch)
                raise
            self._outbox.confirm()

    async def _probe(self, link: _Link) -> None:
        """Raise when either connection has not answered for PROBE_SECONDS."""
        while True:
            answered = link.request()
            publishing = link.publishing
            await self._clock.sleep(PROBE_SECONDS)
            if not answered.is_set() or (publishing is not None and link.publishing is publishing):
                raise ConnectionError("Redis does not answer.")

    def _note_outage(self, error: BaseException) -> None:
        if not self._outage_logged:
            self._outage_logged = True
            log.warning("redis is away", error=str(error))


class RedisSubscription:
    """A local subscription whose topics Redis sends to this process."""

    def __init__(self, bus: RedisBus, local: LocalSubscription) -> None:
        self._bus = bus
        self._local = local

    async def __aenter__(self) -> Self:
        await self._local.__aenter__()
        try:
            await self._bus.follow()
        except BaseException:
            self._local.finish()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._local.__aexit__(kind, error, trace)
        self._bus.refresh()

    async def follow(self, *topics: str) -> None:
        await self._local.follow(*topics)
        await self._bus.follow()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Frame | Gap:
        return await self._local.__anext__()


class Outbox:
    """Outgoing frames: the newest that fit. Remembers which topics lost some."""

    def __init__(self, max_frames: int, max_bytes: int) -> None:
        self._max_frames = max_frames
        self._max_bytes = max_bytes
        self._frames: deque[tuple[str, bytes]] = deque()
        self._bytes = 0
        self._gaps: dict[str, None] = {}
        self.dropped = 0
        self.filled = asyncio.Event()
        self.sent = asyncio.Event()
        self.sent.set()

    def __len__(self) -> int:
        return len(self._frames)

    def put(self, topic: str, body: bytes) -> None:
        """Queue a frame; make room by dropping the oldest."""
        self._frames.append((topic, body))
        self._bytes += len(body)
        while len(self._frames) > self._max_frames or (self._bytes > self._max_bytes and len(self._frames) > 1):
            self.lose([self._pop()])
        self.filled.set()
        self.sent.clear()

    def take(self, count: int) -> list[tuple[str, bytes]]:
        """The next messages to send: an empty one for each topic that lost frames, then `count` frames at most."""
        batch = [(topic, b"") for topic in self._gaps]
        self._gaps.clear()
        batch += [self._pop() for _ in range(min(count, len(self._frames)))]
        if not self._frames:
            self.filled.clear()
        return batch

    def lose(self, batch: Iterable[tuple[str, bytes]]) -> None:
        """Record that these were not sent, or perhaps not."""
        for topic, body in batch:
            self.dropped += bool(body)
            self._gaps[topic] = None
            if len(self._gaps) > self._max_frames:
                del self._gaps[next(iter(self._gaps))]
        self.filled.set()

    def confirm(self) -> None:
        """Record that what was taken has arrived."""
        if not self.filled.is_set():
            self.sent.set()

    def _pop(self) -> tuple[str, bytes]:
        topic, body = self._frames.popleft()
        self._bytes -= len(body)
        return topic, body


class _Link:
    """Two connections, one that publishes and one that listens, until either is lost."""

    def __init__(self, connector: Connector, prefix: bytes) -> None:
        self._prefix = prefix
        self._outbound = connector()
        self._inbound = connector()
        self._asked: set[str] = set()
        self._next_answer = asyncio.Event()
        self._answers: deque[asyncio.Event] = deque()
        self.requested = asyncio.Event()
        self.settled = asyncio.Event()
        """Set once the link is in use, or lost."""
        self.publishing: object | None = None
        """The running batch, if there is one."""

    async def connect(self) -> None:
        """Open both connections, so that we can publish and subscribe."""
        greeting = self._channel(_GREETING_TOPIC)
        await self._outbound.connect()
        await self._inbound.connect()
        await _write(self._inbound, [("SUBSCRIBE", greeting)])
        await _read(self._inbound)
        await _write(self._outbound, [("PUBLISH", greeting, b"")])
        await _read(self._outbound)

    async def close(self) -> None:
        # Without waiting: a peer that no longer reads would block us for ever.
        await self._outbound.disconnect(nowait=True)
        await self._inbound.disconnect(nowait=True)

    def request(self) -> asyncio.Event:
        """Request the topics again; the event is set once that is in effect, or the link is lost."""
        self.requested.set()
        return self._next_answer

    async def ask(self, topics: set[str]) -> None:
        """Subscribe to new topics, unsubscribe from old ones, and request a confirmation after that."""
        self.requested.clear()
        self._answers.append(self._next_answer)
        self._next_answer = asyncio.Event()
        commands: list[tuple[str | bytes, ...]] = []
        if new := topics - self._asked:
            commands.append(("SUBSCRIBE", *map(self._channel, new)))
        if gone := self._asked - topics:
            commands.append(("UNSUBSCRIBE", *map(self._channel, gone)))
        self._asked = topics
        await _write(self._inbound, [*commands, ("PING",)])

    def answer(self) -> None:
        """Redis has confirmed the first request."""
        self._answers.popleft().set()

    def release(self) -> None:
        """Release everyone who waits for this link."""
        for answer in (*self._answers, self._next_answer, self.settled):
            answer.set()

    async def read(self) -> list[object] | bytes:
        """The next message from Redis to a listener."""
        return await _read(self._inbound)

    async def publish(self, batch: list[tuple[str, bytes]]) -> None:
        """Publish the batch; returns when Redis has taken every message."""
        self.publishing = batch
        await _write(self._outbound, [("PUBLISH", self._channel(topic), message) for topic, message in batch])
        for _ in batch:
            await _read(self._outbound)
        self.publishing = None

    def _channel(self, topic: str) -> bytes:
        return self._prefix + _bytes(topic)


def pause(attempt: int, name: str) -> float:
    """Seconds to wait before connecting again: doubling, bounded, and spread out by the name of the process."""
    longest = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** min(attempt, 30))
    spread = zlib.crc32(f"{name} {attempt}".encode(errors="surrogatepass")) / 2**32
    return longest * (1 + spread) / 2


def _connector(url: str) -> Connector:
    """Makes connections to that address. Raises `BusError` if the address is invalid."""
    if "sentinel" in url.partition("://")[0].lower():
        raise BusError(_NO_SENTINEL)
    try:
        options: dict[str, Any] = {**parse_url(url), **_OPTIONS}
        kind: type[AbstractConnection] = options.pop("connection_class", Connection)
        kind(**options)
    except (ValueError, TypeError, RedisError):
        # Not chained: the cause may quote a part of the password.
        raise BusError(
            "Invalid Redis URL. Write it as redis://user:password@host:port/database, "
            "with rediss:// for TLS, or as unix:///path/to/socket."
        ) from None
    return partial(kind, **options)


async def _write(connection: AbstractConnection, commands: list[tuple[str | bytes, ...]]) -> None:
    if not connection.is_connected:
        # redis-py would reconnect by itself, and nothing would be subscribed.
        raise ConnectionError("The connection to Redis is lost.")
    await connection.send_packed_command(connection.pack_commands(commands), check_health=False)


async def _read(connection: AbstractConnection) -> list[object] | bytes:
    return cast("list[object] | bytes", await connection.read_response())


def _encode(payload: Mapping[str, JsonValue]) -> bytes | None:
    try:
        return _bytes(json.dumps(dict(payload), ensure_ascii=False, separators=(",", ":")))
    except (TypeError, ValueError, RecursionError) as error:
        log.error("frame cannot be written as JSON", error=str(error))
        return None


def _decode(body: bytes) -> dict[str, JsonValue] | None:
    """The payload, or None for anything else: an empty body is how a sender says that it lost frames."""
    try:
        payload: object = json.loads(_text(body))
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, JsonValue]", payload) if isinstance(payload, dict) else None


def _bytes(text: str) -> bytes:
    # Half a surrogate pair is not valid UTF-8, but models do cut text in the middle of one.
    return text.encode(errors="surrogatepass")


def _text(data: bytes) -> str:
    return data.decode(errors="surrogatepass")
