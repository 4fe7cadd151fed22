"""A WebSocket to a service, over the same guarded connections as every other request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

import httpx2
from httpx2.websockets import HTTPXWSException, WebSocketDisconnect
from wsproto.utilities import LocalProtocolError

from denizen.bridges.http_service import ServiceError, parsed
from denizen.errors import AddressRefused

if TYPE_CHECKING:
    from httpx2.websockets import AsyncWebSocketSession

OPEN_SECONDS: Final = 20.0
ANSWER_SECONDS: Final = 20.0
FRAME_BYTES: Final = 16_000_000


class SocketEnded(Exception):
    """The socket is no longer open."""


class Socket:
    """One connection at a time. Its reader opens it, and opens it again when it has ended."""

    def __init__(self, name: str, client: httpx2.AsyncClient, hear: Callable[[dict[str, Any]], None]) -> None:
        self._name, self._client, self._hear = name, client, hear
        self._session: AsyncWebSocketSession | None = None
        self._task: asyncio.Task[None] | None = None
        self.news = asyncio.Event()
        """Set when something came, or when the connection ended."""
        self.close_code: int | None = None
        """With which code the service ended the last connection."""

    @property
    def is_open(self) -> bool:
        return self._session is not None

    async def open(self, url: str, beside: Callable[[], Coroutine[Any, Any, None]] | None = None) -> None:
        """Connect; `beside` runs as long as the connection. Raises `ServiceError`."""
        await self.close()
        self.close_code = None
        opened: asyncio.Future[AsyncWebSocketSession] = asyncio.get_running_loop().create_future()
        # Not in a task group: the connection lives longer than the reading that opens it. `close` ends it.
        self._task = asyncio.create_task(self._listen(url, opened, beside), name=f"socket of {self._name}")
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                self._session = await asyncio.shield(opened)
        except TimeoutError:
            await self.close()
            raise ServiceError(f"{self._name} did not answer within {OPEN_SECONDS:g} seconds.") from None
        except BaseException:
            await self.close()
            raise

    async def _listen(
        self,
        url: str,
        opened: asyncio.Future[AsyncWebSocketSession],
        beside: Callable[[], Coroutine[Any, Any, None]] | None,
    ) -> None:
        problem = ServiceError(f"{self._name} ended the connection.")
        try:
            async with self._client.websocket(url, max_message_size_bytes=FRAME_BYTES) as session:
                opened.set_result(session)
                async with asyncio.TaskGroup() as tasks:
                    if beside is not None:
                        tasks.create_task(beside(), name=f"beside the socket of {self._name}")
                    while True:
                        self._hear(parsed(await session.receive_text()))
                        self.news.set()
        except* WebSocketDisconnect as errors:
            self.close_code = _first(errors).code
        except* AddressRefused as errors:
            problem = ServiceError(str(_first(errors)), "revoked", status=401)
        except* (httpx2.HTTPError, HTTPXWSException, SocketEnded, OSError) as errors:
            problem = ServiceError(f"{self._name} cannot be reached ({type(_first(errors)).__name__}).")
        finally:
            self._session = None
            self.news.set()
            if not opened.done():
                opened.set_exception(problem)

    async def send(self, frame: Mapping[str, Any]) -> None:
        """Raises `SocketEnded`."""
        if self._session is None:
            raise SocketEnded
        try:
            await self._session.send_text(json.dumps(frame))
        except (HTTPXWSException, LocalProtocolError) as error:  # the second: it is being closed
            raise SocketEnded from error

    async def ping(self) -> None:
        """Returns when the service has answered: all that it sent before has come. Raises `SocketEnded`."""
        if self._session is None:
            raise SocketEnded
        try:
            answered = await self._session.ping()
        except (HTTPXWSException, LocalProtocolError) as error:  # the second: it is being closed
            raise SocketEnded from error
        await self.until(answered.wait())

    async def until(self, answered: Coroutine[Any, Any, Any]) -> None:
        """Wait for something that the service answers. Raises `SocketEnded` if it does not."""
        task = self._task
        waiting = asyncio.ensure_future(answered)
        try:
            ends = [waiting] if task is None else [waiting, task]
            await asyncio.wait(ends, timeout=ANSWER_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                await self.close()
                raise SocketEnded
        finally:
            waiting.cancel()

    async def close(self) -> None:
        task, self._task, self._session = self._task, None, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait([task])


def _first(errors: BaseException) -> Any:
    while isinstance(errors, BaseExceptionGroup):
        errors = cast("BaseExceptionGroup[BaseException]", errors).exceptions[0]
    return errors
