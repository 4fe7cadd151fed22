"""Limits on connections: how many there may be, and how long each may take to send a request.

Uvicorn waits for the headers and the body of a request for ever, and accepts any number of connections. This protocol
wraps its own: it gives each connection a deadline, and limits the connections of each address. A refused client gets a
problem with `Retry-After`, and its request is not read.
"""

from __future__ import annotations

import asyncio
import json
import resource
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final, Literal, cast

import h11
import structlog
from uvicorn.protocols.http.h11_impl import H11Protocol

from denizen.clock import SECOND, Clock
from denizen.server.context import ServerLimits
from denizen.server.problems import KINDS, MEDIA_TYPE
from denizen.telemetry.logs import get_logger

log: structlog.typing.FilteringBoundLogger = get_logger(__name__)

ACCEPTED_AT_ONCE: Final = 100
"""How many connections are accepted before the accepted ones are handled."""
RESERVED_DESCRIPTORS: Final = 256
"""Open files reserved for everything but admitted connections: databases, providers, programs of MCP servers."""
WANTED_DESCRIPTORS: Final = 65_536
SLOWEST_BYTES: Final = 1_024
"""Bytes per second: the slowest rate at which a body may arrive."""
_FAREWELL_SECONDS: Final = 1.0
"""How long a refused client may take to read the reason. If we closed at once, its unread request would destroy the
answer.
"""
_FAREWELLS: Final = 100
"""How many refused clients are answered at a time; the others are closed at once."""
RETRY_SECONDS: Final = 1.0
"""When no connection could be accepted, how long until the next try."""
_WARNED_SECONDS: Final = 60
"""The least time between two log lines about that."""


def raise_descriptor_limit() -> None:
    """Raises the process's limit of open files as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = WANTED_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, WANTED_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(OSError, ValueError):  # A supervisor may forbid it.
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


class Places:
    """Counts the connections, in total and by address."""

    def __init__(self, limits: ServerLimits, is_proxy: Callable[[str], bool]) -> None:
        self._most = _at_most(limits.connections)
        self._per_address = limits.connections_per_address
        self._is_proxy = is_proxy
        self._taken: Counter[str] = Counter()
        self._count = 0
        self.farewells = 0
        self.idle: dict[LimitedProtocol, None] = {}
        """The connections between two requests, the longest idle first. They make room for new ones."""

    def take(self, address: str) -> Literal["too_many_connections", "overloaded"] | None:
        """Counts a connection in any case; returns why it is over a limit, or None."""
        self._count += 1
        self._taken[address] += 1
        # All clients behind a proxy share its address.
        if self._per_address and self._taken[address] > self._per_address and not self._is_proxy(address):
            return "too_many_connections"
        if self._count > self._most and self.idle:
            next(iter(self.idle)).make_room()
        return "overloaded" if self._count > self._most else None

    def leave(self, address: str) -> None:
        self._count -= 1
        self._taken[address] -= 1
        if not self._taken[address]:
            del self._taken[address]


def _at_most(wanted: int) -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    possible = WANTED_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft
    most = max(possible - RESERVED_DESCRIPTORS - ACCEPTED_AT_ONCE - _FAREWELLS, 10)
    return min(wanted, most) if wanted else most


class LimitedProtocol(H11Protocol):
    """One connection, counted and with deadlines."""

    def __init__(self, *, limits: ServerLimits, places: Places, **given: Any) -> None:
        super().__init__(**given)
        self._limits = limits
        self._places = places
        self._address = ""
        self._turned_away = False
        self._says_farewell = False
        self._waiting_for: Literal["headers", "body"] | None = None
        self._since = 0.0
        self._received = 0
        self._deadline: asyncio.TimerHandle | None = None
        self._send_deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        self._address = self.client[0] if self.client else ""
        refused = self._places.take(self._address)
        if refused == "too_many_connections":
            self._turn_away(refused, "Too many connections are open from your address. Close some, then try again.")
        elif refused == "overloaded":
            self._turn_away(refused, "The server has as many connections as it can take. Try again later.")
        else:
            self._wait_for("headers")

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._turned_away:
            self._leave()
        self._places.farewells -= self._says_farewell
        for timer in (self._deadline, self._send_deadline):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._turned_away:
            return
        self._places.idle.pop(self, None)
        super().data_received(data)
        state = self.conn.their_state
        waiting_for = "headers" if state is h11.IDLE else "body" if state is h11.SEND_BODY else None
        if waiting_for != self._waiting_for:
            self._wait_for(waiting_for)
        self._received += len(data)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete and not self.transport.is_closing():
            self._places.idle[self] = None

    def make_room(self) -> None:
        """Closes this idle connection."""
        self._turned_away = True
        self._leave()
        self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._send_deadline = self.loop.call_later(self._limits.send_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        if self._send_deadline is not None:
            self._send_deadline.cancel()
        super().resume_writing()

    def _wait_for(self, what: Literal["headers", "body"] | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._waiting_for, self._since, self._received = what, self.loop.time(), 0
        seconds = self._limits.header_seconds if what == "headers" else self._limits.body_seconds
        self._deadline = None if what is None else self.loop.call_later(seconds, self._on_deadline)

    def _on_deadline(self) -> None:
        if self.transport.is_closing():
            return
        if self._waiting_for == "body":
            if self.flow.read_paused:
                self._wait_for("body")  # We have paused reading: that is not the sender's fault.
                return
            left = self._since + self._limits.body_seconds + self._received / SLOWEST_BYTES - self.loop.time()
            if left > 0:
                self._deadline = self.loop.call_later(left, self._on_deadline)
                return
        cycle = cast("Any", self.cycle)
        if self._waiting_for == "headers" and not self.conn.trailing_data[0]:
            self.transport.close()  # It has sent nothing, so there is nothing to answer.
        elif cycle is not None and cycle.response_started and not cycle.response_complete:
            self.transport.abort()
        else:
            if cycle is not None:
                cycle.disconnected = True
                cycle.message_event.set()
            what = "The headers" if self._waiting_for == "headers" else "The body"
            self._turn_away("request_timeout", f"{what} of the request did not arrive in time. Send it again.")

    def _leave(self) -> None:
        self._places.leave(self._address)
        self._places.idle.pop(self, None)

    def _turn_away(self, code: str, why: str) -> None:
        """Answers with a problem, reads nothing more, and closes the connection."""
        self._turned_away = True
        self._leave()
        self.transport.write(_answer(code, why))
        if self._places.farewells >= _FAREWELLS:
            self.transport.close()
            return
        self._places.farewells += 1
        self._says_farewell = True
        if self.transport.can_write_eof():
            self.transport.write_eof()
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(_FAREWELL_SECONDS, self.transport.close)


class TlsProtocol(asyncio.Protocol):
    """A connection during its TLS handshake. It is counted and has a deadline, like one that sends its headers.

    With a TLS context, asyncio's own server would do the handshake before our protocol sees the connection, for any
    number of connections, and for up to a minute each.
    """

    def __init__(self, handshakes: Handshakes, make: Callable[[], LimitedProtocol]) -> None:
        self._with = handshakes
        self._make = make
        self._received = bytearray()
        self._is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        address = (transport.get_extra_info("peername") or ("",))[0]
        if self._with.places.take(address) is not None and self._with.places.farewells >= _FAREWELLS:
            # The reason is sent after the handshake, to a limited number at a time.
            self._with.places.leave(address)
            cast("asyncio.Transport", transport).abort()
            return
        self._with.begin(self._shake_hands(cast("asyncio.Transport", transport), address))

    def data_received(self, data: bytes) -> None:
        self._received += data

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  as asyncio calls it
        self._is_lost = True

    async def _shake_hands(self, transport: asyncio.Transport, address: str) -> None:
        secured: asyncio.Transport | None = None
        try:
            with suppress(OSError):  # The client left, took too long, or does not speak TLS.
                secured = await asyncio.get_running_loop().start_tls(
                    transport,
                    self,
                    self._with.context,
                    server_side=True,
                    ssl_handshake_timeout=self._with.seconds,
                )
        finally:
            self._with.places.leave(address)
            if secured is None:
                transport.abort()
        if secured is None or self._is_lost:
            return
        protocol = self._make()
        secured.set_protocol(protocol)
        protocol.connection_made(secured)
        if self._received:
            protocol.data_received(bytes(self._received))


class Handshakes:
    """The TLS handshakes in progress."""

    def __init__(self, tls: ssl.SSLContext, limits: ServerLimits, places: Places, tasks: asyncio.TaskGroup) -> None:
        self.context = tls
        self.places = places
        self.seconds = limits.header_seconds
        self._tasks = tasks
        self._under_way: set[asyncio.Task[None]] = set()

    def begin(self, handshake: Coroutine[Any, Any, None]) -> None:
        task = self._tasks.create_task(handshake, name="TLS handshake")
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    def end(self) -> None:
        """Aborts all of them."""
        for task in self._under_way:
            task.cancel()


def _answer(code: str, why: str) -> bytes:
    kind = KINDS[code]
    body = json.dumps({"type": "about:blank", "title": kind.title, "status": kind.status, "code": code, "detail": why})
    lines = [
        f"HTTP/1.1 {kind.status} {HTTPStatus(kind.status).phrase}",
        f"Content-Type: {MEDIA_TYPE}",
        f"Content-Length: {len(body)}",
        "Retry-After: 5",
        "Cache-Control: no-store",
        "Connection: close",
    ]
    return "\r\n".join([*lines, "", body]).encode()


class Acceptor:
    """Accepts connections on a listening socket, from `start` to `stop`.

    Event loops differ in what their own servers do when no more files can be opened: uvloop's logs nothing. Here what
    cannot be accepted waits in the queue of the system, and one line a minute is logged.
    """

    def __init__(
        self, listener: socket.socket, make: Callable[[], asyncio.Protocol], clock: Clock, tasks: asyncio.TaskGroup
    ) -> None:
        self._listener = listener
        self._make = make
        self._clock = clock
        self._tasks = tasks
        self._loop = asyncio.get_running_loop()
        self._next_try: asyncio.TimerHandle | None = None
        self._warned = 0

    def start(self) -> None:
        self._loop.add_reader(self._listener, self._accept)

    def stop(self) -> None:
        self._loop.remove_reader(self._listener)
        if self._next_try is not None:
            self._next_try.cancel()

    def _accept(self) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                accepted, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                # The system goes on reporting the socket as ready.
                self._loop.remove_reader(self._listener)
                self._next_try = self._loop.call_later(RETRY_SECONDS, self.start)
                self._warn(error)
                return
            accepted.setblocking(False)
            self._tasks.create_task(self._connect(accepted), name="accepted connection")

    async def _connect(self, accepted: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._make, accepted)
        except OSError:  # It is gone already.
            accepted.close()
        except Exception:  # the boundary of one connection: the others, and the server, go on
            log.exception("connection ended by a defect")
            accepted.close()

    def _warn(self, error: OSError) -> None:
        now = self._clock.now()
        if now - self._warned >= _WARNED_SECONDS * SECOND:
            self._warned = now
            log.error("no connection can be accepted", error=str(error))
