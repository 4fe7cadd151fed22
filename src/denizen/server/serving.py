"""Serves an application on a port, from `ready` to `stop`. Signals are left to the caller."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

import uvicorn
from fastapi import FastAPI
from starlette.types import Scope
from uvicorn.server import ServerState

from denizen.errors import InvalidInput, PortTaken
from denizen.server.connections import (
    Acceptor,
    Handshakes,
    LimitedProtocol,
    Places,
    TlsProtocol,
)
from denizen.server.context import Context
from denizen.settings.loopback import is_loopback

GRACE_SECONDS: Final = 5
"""How long running requests may take to finish when the server stops. Streams end at once."""
_BACKLOG: Final = 2048


@dataclass(frozen=True, slots=True)
class Tls:
    """The server's certificate and its key, both PEM files."""

    certificate: Path
    key: Path


async def serve(app: FastAPI, host: str, port: int, *, ready: asyncio.Event, stop: asyncio.Event) -> None:
    """Serves on that port from `ready` until `stop` is set. Raises `PortTaken` and `InvalidInput` before `ready`."""
    await serve_on(app, bind(host, port), ready=ready, stop=stop)


def check_tls(tls: Tls) -> None:
    """Raises `InvalidInput` if a server could not use these files."""
    for file in (tls.certificate, tls.key):
        if not os.access(file, os.R_OK):
            raise InvalidInput(f"The file {file} for HTTPS is not there, or this user may not read it.")
    try:
        # With an empty password, so that a key with a password is refused instead of waiting for someone to type it.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(tls.certificate, tls.key, password="")
    except (OSError, ValueError) as error:
        raise InvalidInput(
            f"{tls.certificate} and {tls.key} do not belong together, are not PEM files, or need a password: {error}"
        ) from error


def bind(host: str, port: int, *, beyond_loopback: bool = False) -> socket.socket:
    """Returns a bound socket for `serve_on`; port 0 is any free port.

    A caller that binds beyond loopback must make sure that the traffic is encrypted.
    """
    if not beyond_loopback and not is_loopback(host):
        raise InvalidInput(
            f"Denizen answers only on loopback, and {host!r} is not: use 127.0.0.1, localhost or ::1. "
            "To reach it from elsewhere, put a tunnel (`ssh -L`) in between."
        )
    address = "127.0.0.1" if host.lower() == "localhost" else host
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    # With the protocol given: asyncio sets TCP_NODELAY only on sockets that it knows to be TCP. Otherwise each answer
    # waits 40 ms for the acknowledgement of its own headers.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        # Listens already here, so that of two servers that start at once the second is refused.
        listener.listen(_BACKLOG)
    except (OSError, OverflowError) as error:
        listener.close()
        raise _why_not(error, host, port) from error
    listener.setblocking(False)
    return listener


def _why_not(error: OSError | OverflowError, host: str, port: int) -> PortTaken | InvalidInput:
    if isinstance(error, OverflowError):
        return InvalidInput(f"There is no port {port}: ports go from 1 to 65535. Set DENIZEN_PORT or --port.")
    if error.errno == errno.EADDRINUSE:
        return PortTaken(host, port)
    if error.errno == errno.EACCES:
        return InvalidInput(f"This user may not open port {port}: choose one above 1023 with DENIZEN_PORT or --port.")
    return InvalidInput(f"Port {port} on {host} cannot be opened: {error.strerror or error}.")


async def serve_on(
    app: FastAPI, listener: socket.socket, *, ready: asyncio.Event, stop: asyncio.Event, tls: Tls | None = None
) -> None:
    """Like `serve`, on a bound socket, which is closed afterwards. With `tls`, it speaks HTTPS."""
    async with asyncio.TaskGroup() as tasks:
        await _serve(app, listener, ready, stop, tls, tasks)


async def _serve(
    app: FastAPI,
    listener: socket.socket,
    ready: asyncio.Event,
    stop: asyncio.Event,
    tls: Tls | None,
    tasks: asyncio.TaskGroup,
) -> None:
    context: Context = app.state.context
    places = Places(context.limits, context.reach.trusts)
    handshakes = None if tls is None else Handshakes(_tls_context(tls), context.limits, places, tasks)
    server = _server(app, places, handshakes)
    context.hang_up = lambda scope: _hang_up(server.server_state, scope)
    protocol = cast("Callable[..., LimitedProtocol | TlsProtocol]", server.config.http_protocol_class)
    make = partial(protocol, config=server.config, server_state=server.server_state, app_state=server.lifespan.state)
    acceptor = Acceptor(listener, make, context.runtime.clock, tasks)
    try:
        await server.startup(sockets=[])
        acceptor.start()
        ready.set()
        # Instead of uvicorn's own loop, which takes over signals and polls ten times a second whether to stop.
        await stop.wait()
    finally:
        acceptor.stop()
        context.ending.set()
        if handshakes is not None:
            handshakes.end()
        await server.shutdown(sockets=[listener])
        # A connection accepted at the last moment is known only after a few rounds of the event loop.
        for _ in range(4):
            await asyncio.sleep(0)
        for connection in list(server.server_state.connections):
            connection.transport.abort()


def _tls_context(tls: Tls) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tls.certificate, tls.key)
    return context


def _server(app: FastAPI, places: Places, handshakes: Handshakes | None) -> uvicorn.Server:
    context: Context = app.state.context

    def protocol(**given: Any) -> LimitedProtocol | TlsProtocol:
        make = partial(LimitedProtocol, limits=context.limits, places=places, **given)
        return make() if handshakes is None else TlsProtocol(handshakes, make)

    config = uvicorn.Config(
        app,
        # It is only used as a factory of protocols.
        http=cast("type[LimitedProtocol]", protocol),
        lifespan="off",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,  # uvicorn's comes from the loop that we do not use; the gate sends one.
        proxy_headers=False,
        timeout_keep_alive=context.limits.idle_seconds,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    config.load()
    # It logs every start and end, which we log ourselves.
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    return server


def _hang_up(state: ServerState, scope: Scope) -> None:
    for connection in list(state.connections):
        if getattr(connection, "client", None) == scope["client"]:
            connection.transport.abort()
