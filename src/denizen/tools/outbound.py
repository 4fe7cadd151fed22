"""Connections to the outside, for tools: only to public addresses, unless a host is allowed by name.

A name is resolved once for each connection; all its addresses are checked, and the connection is made to one of those
that were checked, so that a name cannot mean one thing to the check and another to the connection. `Host` and the
certificate are those of the name. Proxies in the environment are not used: they would resolve names themselves.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Generator, Iterable, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, Final, Self, cast

import httpcore2
import httpx2

from denizen.tools import addresses
from denizen.tools.addresses import Address, Resolve

CONNECT_SECONDS: Final = 10.0
_IDLE_SECONDS: Final = 30.0
_CONNECTIONS: Final = 200
_IDLE_CONNECTIONS: Final = 20


class Outbound:
    """The connections of this process to services outside. Opened when first used; `async with` closes them."""

    def __init__(self, *, resolve: Resolve = addresses.resolve, tls: ssl.SSLContext | None = None) -> None:
        self._resolve = resolve
        self._tls = tls
        self._clients: dict[frozenset[str], httpx2.AsyncClient] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        while self._clients:
            await self._clients.popitem()[1].aclose()

    def client(self, allow_private: Iterable[str] = ()) -> httpx2.AsyncClient:
        """A client that reaches public hosts and these.

        Tools with the same allowed hosts share it. Others do not: a connection that is kept open to an allowed host
        must not serve a tool that may not reach it.
        """
        allowed = frozenset(allow_private)
        if allowed not in self._clients:
            self._clients[allowed] = httpx2.AsyncClient(
                transport=self.transport(allowed), trust_env=False, timeout=TIMEOUT, follow_redirects=False
            )
        return self._clients[allowed]

    def transport(self, allow_private: Iterable[str] = ()) -> GuardedTransport:
        """Connections for a client of the caller's own, which closes them."""
        return GuardedTransport(frozenset(allow_private), self._resolve, self.tls)

    @property
    def tls(self) -> ssl.SSLContext:
        """How certificates are checked."""
        return self._tls or _trusted()

    async def connect(self, host: str, port: int, allow_private: Iterable[str] = ()) -> socket.socket:
        """A connection without HTTP, not encrypted yet. Raises `AddressRefused` and `OSError`."""
        async with asyncio.timeout(CONNECT_SECONDS):
            found = await _allowed(self._resolve, host, port, frozenset(allow_private))
            problem: OSError = ConnectionError(f"{host} has no address")
            for address in found:
                sock = socket.socket(socket.AF_INET if address.version == 4 else socket.AF_INET6, socket.SOCK_STREAM)
                sock.setblocking(False)
                try:
                    await asyncio.get_running_loop().sock_connect(sock, (str(address), port))
                except OSError as error:
                    sock.close()
                    problem = error
                except BaseException:
                    sock.close()
                    raise
                else:
                    return sock
            raise problem


async def _allowed(resolve: Resolve, host: str, port: int, allow_private: frozenset[str]) -> Sequence[Address]:
    """The addresses of the host, all of which may be reached."""
    found = await resolve(host, port)
    if not addresses.is_allowed(host, port, allow_private):
        addresses.check(host, found)
    return found


@cache
def _trusted() -> ssl.SSLContext:
    """The certificate authorities of this machine, read once for the whole process: that takes 25 ms."""
    return httpx2.create_ssl_context()


TIMEOUT: Final = httpx2.Timeout(None, connect=CONNECT_SECONDS)
"""The caller of a tool limits the total time."""


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Requests over connections to checked addresses."""

    def __init__(self, allow_private: frozenset[str], resolve: Resolve, tls: ssl.SSLContext) -> None:
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=tls,
            max_connections=_CONNECTIONS,
            max_keepalive_connections=_IDLE_CONNECTIONS,
            keepalive_expiry=_IDLE_SECONDS,
            network_backend=_Guard(allow_private, resolve),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        wanted = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with _translated():
            answer = await self._pool.handle_async_request(wanted)
        extensions = cast("dict[str, Any]", answer.extensions)  # pyright: ignore[reportUnknownMemberType]
        return httpx2.Response(answer.status, headers=answer.headers, stream=_Body(answer), extensions=extensions)

    async def aclose(self) -> None:
        await self._pool.aclose()


class _Body(httpx2.AsyncByteStream):
    def __init__(self, answer: httpcore2.Response) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _translated():
            async for part in self._answer.aiter_stream():
                yield part

    async def aclose(self) -> None:
        await self._answer.aclose()


class _Guard(httpcore2.AsyncNetworkBackend):
    """Opens connections to allowed addresses only."""

    def __init__(self, allow_private: frozenset[str], resolve: Resolve) -> None:
        self._allow_private = allow_private
        self._resolve = resolve
        self._network = cast("httpcore2.AsyncNetworkBackend", httpcore2.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  the library's own signature
        local_address: str | None = None,  # noqa: ARG002
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,  # noqa: ARG002
    ) -> httpcore2.AsyncNetworkStream:
        try:
            async with asyncio.timeout(timeout):
                found = await _allowed(self._resolve, host, port, self._allow_private)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout(f"{host} could not be resolved in time") from error
        except OSError as error:
            raise httpcore2.ConnectError(f"{host} could not be resolved") from error
        return await self._first_of(found, port, timeout)

    async def _first_of(
        self, found: Iterable[Address], port: int, seconds: float | None
    ) -> httpcore2.AsyncNetworkStream:
        """A connection to the first address that accepts one. Each gets an equal part of the time."""
        left = [str(each) for each in found]
        each = None if seconds is None else seconds / max(len(left), 1)
        problem: Exception = httpcore2.ConnectError("there is no address")
        for address in left:
            try:
                return await self._network.connect_tcp(address, port, timeout=each)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                problem = error
        raise problem

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@contextmanager
def _translated() -> Generator[None]:
    """Translates errors of the lower library to those of the upper one, which uses the same names."""
    try:
        yield
    except (
        httpcore2.TimeoutException,
        httpcore2.NetworkError,
        httpcore2.ProtocolError,
        httpcore2.UnsupportedProtocol,
    ) as error:
        raise getattr(httpx2, type(error).__name__, httpx2.TransportError)(str(error)) from error
