"""A proxy that breaks connections: at any byte, or, where it understands PostgreSQL, at any statement and at COMMIT."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final, Literal

Way = Literal["drop", "reset", "half-close", "freeze", "dark"]
WAYS: Final[tuple[Way, ...]] = ("drop", "reset", "half-close", "freeze", "dark")
"""`drop`: both ends are closed. `reset`: the same by RST. `half-close`: the client is told that nothing more comes.
`freeze`: not a byte passes, and later all of them do. `dark`: not a byte passes, and nothing is ever said."""
Where = Literal["before", "after"]
"""`before`: what was asked never arrives. `after`: it does, and the answer never comes back."""

_LINGER: Final = struct.pack("ii", 1, 0)


@dataclass
class Trap:
    """Breaks the connection that first sends something of this kind."""

    matches: Callable[[str], bool]
    way: Way
    where: Where
    sprung: asyncio.Event = field(default_factory=asyncio.Event)
    on_sprung: Callable[[], None] | None = None


class Proxy:
    """Forwards connections from a port of loopback to a server, until told otherwise."""

    def __init__(self, host: str, port: int | None, *, speaks_postgresql: bool) -> None:
        self.target = (host, port)
        self.port = 0
        self.trap: Trap | None = None
        self.light = asyncio.Event()
        """Cleared: new connections are accepted, and nothing is forwarded."""
        self.light.set()
        self.refuses = False
        """New connections are reset."""
        self._links: set[_Link] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.speaks_postgresql = speaks_postgresql
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        self.heal()
        for link in list(self._links):
            link.end(reset=True)
        if self._tasks:  # each ends by itself, now that its connection has
            await asyncio.wait(self._tasks, timeout=5)

    def break_all(self, way: Way) -> None:
        """Every connection that there is now."""
        for link in list(self._links):
            link.break_by(way)

    def heal(self) -> None:
        """What is frozen goes on; what is dark is reset; new connections work."""
        self.trap, self.refuses = None, False
        self.light.set()
        for link in list(self._links):
            if link.dark:
                link.end(reset=True)
            link.open.set()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = _Link(self, reader, writer)
        self._links.add(link)
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            if not self.refuses:
                await self.light.wait()
                await link.run()
        except* (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            link.end(reset=self.refuses)
            self._links.discard(link)


class _Link:
    """One connection."""

    def __init__(self, proxy: Proxy, near: asyncio.StreamReader, near_out: asyncio.StreamWriter) -> None:
        self._proxy = proxy
        self._near, self._near_out = near, near_out
        self._far_out: asyncio.StreamWriter | None = None
        self.open = asyncio.Event()
        self.open.set()
        self.dark = False
        self._mute = False
        """Nothing that the server says is passed on."""
        self._statements: dict[bytes, str] = {}
        self._portals: dict[bytes, str] = {}

    async def run(self) -> None:
        host, port = self._proxy.target
        far, self._far_out = (
            await asyncio.open_unix_connection(host) if port is None else await asyncio.open_connection(host, port)
        )
        async with asyncio.TaskGroup() as tasks:
            back = tasks.create_task(self._backward(far))
            if self._proxy.speaks_postgresql:
                await self._startup()
                await self._forward_messages()
            else:
                await self._forward_bytes()
            self.end(reset=False)
            back.cancel()

    def break_by(self, way: Way) -> None:
        match way:
            case "drop":
                self.end(reset=False)
            case "reset":
                self.end(reset=True)
            case "half-close":
                self._mute = True
                with suppress(OSError, RuntimeError):
                    self._near_out.write_eof()
            case "freeze":
                self.open.clear()
            case "dark":
                self.dark = True
                self.open.clear()

    def end(self, *, reset: bool) -> None:
        for writer in (self._near_out, self._far_out):
            if writer is None:
                continue
            if reset and (raw := writer.get_extra_info("socket")) is not None and raw.family != socket.AF_UNIX:
                with suppress(OSError):
                    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER)
            if reset:
                writer.transport.abort()
            else:
                writer.close()

    async def _backward(self, far: asyncio.StreamReader) -> None:
        with suppress(OSError):
            while data := await far.read(65_536):
                await self.open.wait()
                if not self._mute and not self.dark:
                    self._near_out.write(data)
                    await self._near_out.drain()
        if not self.dark and not self._mute:
            self.end(reset=False)

    async def _forward_bytes(self) -> None:
        while data := await self._near.read(65_536):
            await self._pass("bytes", data)

    # PostgreSQL: https://www.postgresql.org/docs/current/protocol-message-formats.html

    async def _startup(self) -> None:
        """What comes before the first message with a type: requests for encryption, and the startup message."""
        while True:
            head = await self._near.readexactly(4)
            rest = await self._near.readexactly(int.from_bytes(head) - 4)
            await self._pass("startup", head + rest)
            if int.from_bytes(rest[:4]) == 196_608 or rest[:2] == b"\x00\x03":
                return

    async def _forward_messages(self) -> None:
        while True:
            head = await self._near.readexactly(5)
            body = await self._near.readexactly(int.from_bytes(head[1:]) - 4)
            await self._pass(self._statement(head[:1], body), head + body)

    def _statement(self, kind: bytes, body: bytes) -> str:
        """The SQL that this message has the server run, or an empty text."""
        match kind:
            case b"Q":
                return body.rstrip(b"\0").decode(errors="replace")
            case b"P":
                name, sql, _ = body.split(b"\0", 2)
                self._statements[name] = sql.decode(errors="replace")
            case b"B":
                portal, statement, _ = body.split(b"\0", 2)
                self._portals[portal] = self._statements.get(statement, "")
            case b"E":
                return self._portals.get(body.split(b"\0", 1)[0], "")
            case _:
                pass
        return ""

    async def _pass(self, statement: str, data: bytes) -> None:
        assert self._far_out is not None
        trap = self._proxy.trap
        if trap is not None and statement and trap.matches(statement):
            self._proxy.trap = None
            if trap.where == "after":
                self._mute = trap.way != "freeze"
                self._far_out.write(data)
                await self._far_out.drain()
                await asyncio.sleep(0.02)  # the server acts on it; its answer is not passed on
                data = b""
            if trap.on_sprung is not None:
                trap.on_sprung()
            self.break_by(trap.way)
            trap.sprung.set()
        await self.open.wait()
        if not self.dark and data:
            self._far_out.write(data)
            await self._far_out.drain()


def is_commit(statement: str) -> bool:
    return statement.upper().startswith("COMMIT")


@asynccontextmanager
async def proxy(host: str, port: int | None, *, speaks_postgresql: bool = False) -> AsyncGenerator[Proxy]:
    """A proxy before that server; without a port, `host` is the path of a Unix socket."""
    made = Proxy(host, port, speaks_postgresql=speaks_postgresql)
    await made.open()
    try:
        yield made
    finally:
        await made.close()
