"""What stands before every route: only loopback names, only with a token, only so much; no defect shows its insides.

Plain ASGI, outermost in the app, so that it holds for answers of any kind, streams and defects included.
"""

from __future__ import annotations

import ipaddress
from email.utils import formatdate
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from denizen.clock import SECOND
from denizen.errors import DenizenError
from denizen.server.auth import authenticate, note_use
from denizen.server.context import Context
from denizen.server.problems import Problem, internal_response, problem_of, problem_response

OPEN_PATHS: Final = frozenset({"/healthz"})
"""Answered without a token."""

WEBHOOKS: Final = "/hooks/"
"""Below it services tell of things. They have no token, and their names for this server are not ours to know: what they
send is believed only if it is signed."""

_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}


class Gate:
    """Lets requests in that may come in, and sees to it that each gets an answer."""

    def __init__(self, app: ASGIApp, context: Context) -> None:
        self._app = app
        self._context = context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answering = _Answering(scope, send, self._context)
        try:
            await self._let_in(scope, receive, answering)
        except Problem as problem:
            response = problem_response(problem.code, problem.detail, headers=problem.headers)
            await response(scope, receive, answering)
        except DenizenError as error:
            await _answer(answering, scope, receive, problem_of(error))
        except Exception as error:  # noqa: BLE001  a defect: the caller is told so, and nothing more
            await _answer(answering, scope, receive, internal_response(error))

    async def _let_in(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        if scope["path"].startswith(WEBHOOKS):
            await self._app(scope, _limited(receive, headers, self._context.limits.webhook_bytes), send)
            return
        _check_host(headers)
        if scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        caller = await authenticate(self._context.runtime, HTTPConnection(scope))
        scope["caller"] = caller
        if scope["method"] in ("POST", "PUT", "PATCH"):
            _check_media_type(headers)
        await self._app(scope, _limited(receive, headers, self._context.limits.body_bytes), send)
        await note_use(self._context.runtime, caller.token)


class _Answering:
    """Sends an answer with the headers that all of them have; `started` says whether it has begun."""

    def __init__(self, scope: Scope, send: Send, context: Context) -> None:
        self.started = False
        self._scope = scope
        self._send = send
        self._context = context

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            headers = MutableHeaders(scope=message)
            headers["Date"] = formatdate(self._context.runtime.clock.now() / SECOND, usegmt=True)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
            if self._scope["path"].startswith("/api"):
                headers["Cache-Control"] = "no-store"
        await self._send(message)


async def _answer(answering: _Answering, scope: Scope, receive: Receive, response: Response) -> None:
    if not answering.started:
        await response(scope, receive, answering)


def _check_host(headers: Headers) -> None:
    """A page of another site, whose name was made to lead here, still sends that site's name."""
    names = headers.getlist("host")
    if len(names) != 1 or not is_loopback(_without_port(names[0])):
        raise Problem("host_refused", "Ask for this server by localhost, 127.0.0.1 or [::1].")


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def is_loopback(host: str) -> bool:
    """Whether this name or address can only lead to the machine itself."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check_media_type(headers: Headers) -> None:
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise Problem("unsupported_media_type", "Send JSON, with `Content-Type: application/json`.")


def _limited(receive: Receive, headers: Headers, limit: int) -> Receive:
    """Receives as before, but no more than `limit` bytes of body."""
    # The connection stays open: closed at once, the answer could be lost while the caller is still sending.
    too_large = Problem("too_large", f"A request may have {limit:,} bytes.")
    announced = headers.get("content-length", "0")
    if announced.isdecimal() and int(announced) > limit:
        raise too_large
    received = 0

    async def limited() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > limit:
            raise too_large
        return message

    return limited
