"""An HTTP transport that calls an ASGI application in this process instead of a server.

Unlike the transport that httpx brings, it does not collect the response first: each part is handed over as the
application sends it, and the application waits until it was read. Timeouts of requests do not apply.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, TypeAlias

import httpx2

AsgiMessage: TypeAlias = MutableMapping[str, Any]
AsgiApp: TypeAlias = Callable[
    [MutableMapping[str, Any], Callable[[], Awaitable[AsgiMessage]], Callable[[AsgiMessage], Awaitable[None]]],
    Awaitable[None],
]

_ASGI: Final = {"version": "3.0", "spec_version": "2.3"}
_CLIENT: Final = ("127.0.0.1", 0)


@asynccontextmanager
async def in_process_transport(
    app: AsgiApp, scope: Mapping[str, Any] | None = None
) -> AsyncGenerator[httpx2.AsyncBaseTransport]:
    """Runs the application with its lifespan inside the block; requests over the transport go to it.

    `scope` is added to the ASGI scope of each request. At the end, unanswered requests are cancelled.
    """
    lifespan, raised = _Lifespan(), None
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(lifespan.run(app), name="lifespan of the application")
        transport = _Transport(app, scope or {}, tasks)
        try:
            await lifespan.started
            yield transport
        except Exception as error:  # noqa: BLE001  raised again below, as it is and not in a group
            raised = error
        finally:
            transport.hang_up()
            lifespan.ending.set()
    if raised is not None:
        raise raised


class _Transport(httpx2.AsyncBaseTransport):
    def __init__(self, app: AsgiApp, scope: Mapping[str, Any], tasks: asyncio.TaskGroup) -> None:
        self._app = app
        self._scope = dict(scope)
        self._tasks = tasks
        self._open: set[_Exchange] = set()

    def hang_up(self) -> None:
        for exchange in self._open:
            exchange.hang_up()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Returns the response as soon as it begins. Raises what the application raises before that."""
        exchange = _Exchange(request)
        running = exchange.run(self._app, self._scope_of(request))
        task = self._tasks.create_task(running, name=f"{request.method} {request.url.path}")
        self._open.add(exchange)
        task.add_done_callback(lambda _: self._open.discard(exchange))
        exchange.cancel = task.cancel
        try:
            status, headers = await exchange.begun
        except BaseException:
            task.cancel()
            raise
        return httpx2.Response(status, headers=headers, stream=exchange)

    def _scope_of(self, request: httpx2.Request) -> dict[str, Any]:
        return self._scope | {
            "type": "http",
            "asgi": _ASGI,
            "http_version": "1.1",
            "method": request.method,
            "headers": [(name.lower(), value) for name, value in request.headers.raw],
            "scheme": request.url.scheme,
            "path": request.url.path,
            "raw_path": request.url.raw_path.partition(b"?")[0],
            "query_string": request.url.query,
            "root_path": "",
            "server": (request.url.host, request.url.port),
            "client": _CLIENT,
        }


class _Exchange(httpx2.AsyncByteStream):
    """One request and its response stream."""

    def __init__(self, request: httpx2.Request) -> None:
        self.begun: asyncio.Future[tuple[int, list[tuple[bytes, bytes]]]] = asyncio.get_running_loop().create_future()
        self.cancel: Callable[[], object] = lambda: None
        """Ends the request in the application."""
        assert isinstance(request.stream, httpx2.AsyncByteStream)
        self._body = aiter(request.stream)
        self._body_was_read = False
        # One part at a time: a slow reader makes the application wait.
        self._parts: asyncio.Queue[bytes | None] = asyncio.Queue(maxsize=1)
        self._answered = asyncio.Event()
        self._error: Exception | None = None

    async def run(self, app: AsgiApp, scope: dict[str, Any]) -> None:
        try:
            await app(scope, self._receive, self._send)
            if not self._answered.is_set():
                raise httpx2.RemoteProtocolError("The application ended without a complete response.")
        except Exception as error:
            if self._answered.is_set():
                raise  # Nobody waits for it any more.
            if self.begun.done():
                self._error = error
                await self._parts.put(None)
            else:
                self.begun.set_exception(error)
        finally:
            if not self.begun.done():
                self.begun.cancel()

    async def _receive(self) -> AsgiMessage:
        if not self._body_was_read:
            with suppress(StopAsyncIteration):
                return {"type": "http.request", "body": await anext(self._body), "more_body": True}
            self._body_was_read = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._answered.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: AsgiMessage) -> None:
        if message["type"] == "http.response.start":
            self.begun.set_result((message["status"], list(message.get("headers", ()))))
        elif message["type"] == "http.response.body" and not self._answered.is_set():
            if body := message.get("body", b""):
                await self._parts.put(body)
            if not message.get("more_body", False):
                await self._parts.put(None)
                self._answered.set()

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        while (part := await self._parts.get()) is not None:
            yield part
        if self._error is not None:
            raise httpx2.ReadError("The application failed in the middle of its response.") from self._error

    async def aclose(self) -> None:
        self.hang_up()

    def hang_up(self) -> None:
        """Cancels a request whose response was not sent completely; otherwise the application may finish."""
        if not self._answered.is_set():
            self.cancel()


class _Lifespan:
    """The start and the end of an application. An application without a lifespan works as well."""

    def __init__(self) -> None:
        self.started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.ending = asyncio.Event()
        self._was_asked_to_start = False

    async def run(self, app: AsgiApp) -> None:
        try:
            await app({"type": "lifespan", "asgi": _ASGI, "state": {}}, self._receive, self._send)
        except Exception:
            # By the specification an application may raise if it does not support the protocol.
            if self.started.done():
                raise
        finally:
            if not self.started.done():
                self.started.set_result(None)

    async def _receive(self) -> AsgiMessage:
        if not self._was_asked_to_start:
            self._was_asked_to_start = True
            return {"type": "lifespan.startup"}
        await self.ending.wait()
        return {"type": "lifespan.shutdown"}

    async def _send(self, message: AsgiMessage) -> None:
        if message["type"] == "lifespan.startup.complete":
            self.started.set_result(None)
        elif message["type"] == "lifespan.startup.failed":
            self.started.set_exception(RuntimeError(message.get("message") or "The application did not start."))
