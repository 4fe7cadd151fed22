"""The outermost layer of the app: checks the host name, authenticates, enforces limits and hides internal errors.

Plain ASGI around the whole app, so that it applies to all answers, streams and internal errors included.
"""

from __future__ import annotations

import re
from email.utils import formatdate
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from denizen.access import tokens
from denizen.access.entity_pictures import MOST_BYTES
from denizen.access.tokens import SESSION_SECONDS
from denizen.amounts import human_size
from denizen.clock import SECOND
from denizen.cycles import organization
from denizen.errors import DenizenError
from denizen.files.pictures import PICTURE_TYPES
from denizen.ids import OrganizationId
from denizen.server.auth import (
    SIGNED,
    Caller,
    authenticate,
    cookie,
    cookie_name,
    note_use,
    organization_cookie_name,
    too_often,
)
from denizen.server.context import Context
from denizen.server.foreign_errors import mcp_error, openai_error, with_errors
from denizen.server.on_behalf_of import ANSWER_HEADERS
from denizen.server.problems import Problem, internal_response, problem_of, problem_response
from denizen.server.reach import Reach, Visit, visit_of, without_port
from denizen.storage.database import storable

OPEN_PATHS: Final = frozenset({"/healthz", "/readyz", "/login", "/api/sign-in"})
"""Answered without a token."""

AT_PROVIDER: Final = "/login/oidc"
"""At and below this path browsers sign in at an identity provider. Counted by address, because there is no token."""

SIGNING_IN: Final = ("POST", "/api/session")
"""Answered without a token as well: its body has a token or a login link."""
METRICS: Final = "/metrics"
"""Answered without a token only if the operator has allowed it."""

WEBHOOKS: Final = "/hooks/"
"""Webhooks of other services are below this path. They have no token, and we do not know by which name they call this
server: their requests are accepted only if they are signed.
"""

IMPORT: Final = ("POST", "/api/import")
"""Where a whole file is sent, line by line, instead of a JSON document."""
FILES: Final = "/api/files"
"""Below this path, files are uploaded: as a form, or as they are."""
WITH_FILES: Final = re.compile(r"/v1/chat/completions|/v1/responses|/api/chat|/api/agents/[^/]+/trigger|/a2a/[^/]+")
"""Paths of JSON that may hold files."""
FILE_LINKS: Final = ("/files/", "/pictures/")
"""Signed links to files, which are valid for an hour, and pictures of people: a browser that shows a picture sends no
token."""
OWN_PICTURE: Final = re.compile(r"/api/entities/[^/]+/picture")
"""Where a picture is sent as it is."""
CARDS: Final = re.compile(r"/a2a/[^/]+/\.well-known/agent-card\.json")
"""The cards of agents that were made public: anybody may read them."""
LINES: Final = ("application/jsonl", "application/x-ndjson")

FORM_BYTES: Final = 64 * 1024
"""What a form may have beside its file."""

OPENAI: Final = "/v1/"
"""Below this path, errors have OpenAI's format."""
MCP: Final = "/mcp"
"""Here they have that of JSON-RPC."""

_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}


class Gate:
    """Lets permitted requests in, and makes sure that each gets an answer."""

    def __init__(self, app: ASGIApp, context: Context) -> None:
        self._app = app
        self._context = context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = self._context.reach.inner_path(scope["path"])
        if path != scope["path"]:
            scope = {**scope, "path": path, "raw_path": path.encode()}
        if path.startswith(OPENAI):
            send = with_errors(send, openai_error)
        elif path == MCP:
            send = with_errors(send, mcp_error)
        answering = _Answering(scope, send, self._context)
        try:
            await self._let_in(scope, receive, answering)
        except Problem as problem:
            response = problem_response(problem.code, problem.detail, headers=problem.headers, **problem.more)
            await response(scope, receive, answering)
        except DenizenError as error:
            await _answer(answering, scope, receive, problem_of(error))
        except ClientDisconnect:
            pass  # There is nobody to answer.
        except Exception as error:  # noqa: BLE001  a defect: the caller is told so, and nothing more
            await _answer(answering, scope, receive, internal_response(error))

    async def _let_in(self, scope: Scope, receive: Receive, send: _Answering) -> None:
        headers = Headers(scope=scope)
        visit = scope["visit"] = visit_of(self._context.reach, scope, headers)
        send.visit = visit
        if scope["path"].startswith(WEBHOOKS):
            await self._let_in_service(scope, _limited(receive, headers, self._context.limits.webhook_bytes), send)
            return
        _check_host(self._context.reach, headers, visit)
        if scope["path"].startswith(FILE_LINKS) or CARDS.fullmatch(scope["path"]):
            # There is no token by which to count them, and each reads the database.
            if wait := self._context.requests.take(f"{FILE_LINKS[0]} {visit.address}"):
                raise too_often(wait, "Too many requests from your address.")
            await self._app(scope, _limited(receive, headers, 0), send)
            return
        remote_pictures = await self._shows_remote_pictures(scope, headers, visit)
        page = self._context.web.answer(
            scope["method"], scope["path"], headers, self._context.reach.path, remote_pictures=remote_pictures
        )
        if page is not None:
            await page(scope, receive, send)
            return
        if scope["path"] in OPEN_PATHS or (scope["path"] == METRICS and self._context.runtime.telemetry.open_metrics):
            await self._app(scope, receive, send)
            return
        if scope["path"].startswith(AT_PROVIDER):
            if wait := self._context.requests.take(f"{AT_PROVIDER} {visit.address}"):
                raise too_often(wait, "Too many requests from your address.")
            await self._app(scope, _limited(receive, headers, 0), send)
            return
        caller = None
        if (scope["method"], scope["path"]) != SIGNING_IN:
            caller = scope["caller"] = await self._authenticate(scope, visit, send)
        limit = self._context.limits.body_bytes
        if (scope["method"], scope["path"]) == IMPORT:
            _check_media_type(headers, LINES, "Send JSON Lines, with `Content-Type: application/jsonl`.")
            limit = self._context.limits.import_bytes
        elif scope["path"].startswith(FILES) and _is_upload(scope["method"], headers):
            limit = self._context.runtime.file_limits.file_bytes + FORM_BYTES
        elif scope["method"] == "PUT" and OWN_PICTURE.fullmatch(scope["path"]):
            _check_media_type(
                headers, tuple(PICTURE_TYPES), "Send a picture, with its type: `Content-Type: image/jpeg`."
            )
            limit = MOST_BYTES
        elif scope["method"] in ("POST", "PUT", "PATCH"):
            _check_media_type(headers, ("application/json",), "Send JSON, with `Content-Type: application/json`.")
            if WITH_FILES.fullmatch(scope["path"]):
                # Base64 takes a third more; and clients of OpenAI's API send earlier pictures again.
                limit += 2 * self._context.runtime.file_limits.file_bytes
        await self._app(scope, _limited(receive, headers, limit), send)
        if caller is not None:
            await note_use(self._context.runtime, caller.token)

    async def _shows_remote_pictures(self, scope: Scope, headers: Headers, visit: Visit) -> bool:
        """Whether the page, if it is one, is for somebody whose organization lets it show pictures of other sites."""
        named = HTTPConnection(scope).cookies.get(organization_cookie_name(visit))
        if named is None or "text/html" not in headers.get("accept", ""):
            return False
        try:
            found = await self._context.runtime.db.read(organization.settings_of, OrganizationId(storable(named)))
        except DenizenError:
            return False  # the page opens all the same
        return found.remote_pictures

    async def _let_in_service(self, scope: Scope, receive: Receive, send: _Answering) -> None:
        """Services have no token: their requests are counted by address, and wrong signatures by address and path, so
        that a service with a wrong secret does not lock out others behind the same address.
        """
        assert send.visit is not None
        address = send.visit.address
        sender = f"{address} {scope['path']}"
        if wait := self._context.requests.take(f"{WEBHOOKS} {address}"):
            raise too_often(wait, "Too many requests from your address.")
        if wait := self._context.failures.wait(sender):
            raise too_often(wait, "Too many requests with a wrong signature or key from your address.")
        await self._app(scope, receive, send)
        if send.status in (401, 404) and SIGNED not in scope:
            self._context.failures.take(sender)

    async def _authenticate(self, scope: Scope, visit: Visit, answering: _Answering) -> Caller:
        """Returns the caller, within the rate limit; extends the session that was used."""
        runtime, connection = self._context.runtime, HTTPConnection(scope)
        caller = await authenticate(self._context, visit, connection)
        wait = self._context.requests.take(caller.token.id)
        if wait:
            raise too_often(wait, "Too many requests.")
        if caller.token.is_to_be_renewed(runtime.clock.now()):
            await runtime.db.write(tokens.renew, caller.token.id)
            answering.cookie = cookie(visit, connection.cookies[cookie_name(visit)], SESSION_SECONDS)
        return caller


class _Answering:
    """Sends an answer with the common headers; `started` says whether it has begun."""

    def __init__(self, scope: Scope, send: Send, context: Context) -> None:
        self.started = False
        self.status: int | None = None
        self.visit: Visit | None = None
        self.cookie: str | None = None
        """The cookie to set, unless the answer sets one itself."""
        self._scope = scope
        self._send = send
        self._context = context

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["Date"] = formatdate(self._context.runtime.clock.now() / SECOND, usegmt=True)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
            if self._scope["path"].startswith(("/api", OPENAI)):
                headers["Cache-Control"] = "no-store"
            headers.update(self._scope.get(ANSWER_HEADERS, {}))
            if self.visit is not None and self.visit.secure:
                headers.setdefault("Strict-Transport-Security", "max-age=31536000")
            if self.cookie is not None:
                name = self.cookie.partition("=")[0] + "="
                if not any(each.startswith(name) for each in headers.getlist("Set-Cookie")):
                    headers.append("Set-Cookie", self.cookie)
        await self._send(message)


async def _answer(answering: _Answering, scope: Scope, receive: Receive, response: Response) -> None:
    if not answering.started:
        await response(scope, receive, answering)


def _check_host(reach: Reach, headers: Headers, visit: Visit) -> None:
    """Rejects DNS rebinding: a page of another site whose name resolves to us still sends that site's name."""
    names = headers.getlist("host")
    if len(names) != 1 or not reach.allows(without_port(names[0])):
        known = sorted(reach.hosts) or ["localhost", "127.0.0.1", "[::1]"]
        raise Problem(
            "host_refused",
            f"Ask for this server by {', '.join(known[:-1] or known)}{f' or {known[-1]}' if len(known) > 1 else ''}.",
        )
    if not visit.secure and not visit.nearby:
        raise Problem("host_refused", "Ask for this server by HTTPS, through the proxy before it.")


def _is_upload(method: str, headers: Headers) -> bool:
    """Whether the body is a file, or a form with one, and not JSON."""
    return method == "PUT" or (method == "POST" and _media_type(headers) == "multipart/form-data")


def _media_type(headers: Headers) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _check_media_type(headers: Headers, known: tuple[str, ...], otherwise: str) -> None:
    media_type = _media_type(headers)
    if not media_type and headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers:
        return  # There is no body.
    if media_type not in known:
        raise Problem("unsupported_media_type", otherwise)


def _limited(receive: Receive, headers: Headers, limit: int) -> Receive:
    """Wraps `receive` to accept at most `limit` bytes of body."""
    # The connection stays open: closed at once, the answer could be lost while the caller is still sending.
    too_large = Problem("too_large", f"The request is too large. It may have at most {human_size(limit)}.", limit=limit)
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
