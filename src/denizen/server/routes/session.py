"""Signs browsers in and out: a link that works once becomes a session."""

from __future__ import annotations

from fastapi import Request, Response

from denizen.access import audit, token_changes, tokens
from denizen.access.audit import Actor
from denizen.access.tokens import Token
from denizen.clock import SECOND, moment
from denizen.server.auth import Authenticated, Person, check_same_site, cookie, guarded, organization_cookie
from denizen.server.context import context_of
from denizen.server.login_page import CONTENT_SECURITY_POLICY, PAGE
from denizen.server.reach import Visit
from denizen.server.router import new_router
from denizen.server.shapes.access import CreateLogin, OpenSession, known_token_out
from denizen.shapes.access import LoginCreated, SessionOpened
from denizen.spaces import directory
from denizen.storage.database import Tx

router = new_router()


@router.post(
    "/api/logins",
    status_code=201,
    summary="Create a login link",
    openapi_extra={"x-who": "people for themselves; admins for members; owners for everyone"},
)
async def create_login(caller: Person, wanted: CreateLogin) -> LoginCreated:
    """The first person who opens it within ten minutes is signed in. Do not share it."""
    below = tokens.root(caller.token)
    login, secret = await caller.write(token_changes.create_login, wanted.entity, below=below)
    assert login.expires_at is not None
    return LoginCreated(
        url=tokens.login_url(caller.runtime.public_url, secret), secret=secret, expires_at=moment(login.expires_at)
    )


@router.post("/api/session", status_code=201, summary="Sign in; no token needed")
async def open_session(request: Request, response: Response, given: OpenSession) -> SessionOpened:
    """Sets a session cookie that scripts cannot read. A login link can be used once.

    Browsers send cookies to every port of the host, so the cookie is only valid together with the `page_key` of the
    response: send it with each request, as the header `Denizen-Page-Key`.
    """
    context, visit = context_of(request), _visit(request)
    if "origin" in request.headers or "sec-fetch-site" in request.headers:
        check_same_site(context, visit, request)
    db = context.runtime.db
    session, secret = await guarded(context, visit, given.secret, lambda: db.write(_open, given.secret))
    response.headers["Set-Cookie"] = cookie(visit, secret, _seconds(session, context.runtime.clock.now()))
    home = (await db.read(directory.get_entity, session.entity_id)).organization_id
    response.headers.append("Set-Cookie", organization_cookie(visit, home))
    return SessionOpened(**known_token_out(session).model_dump(), page_key=tokens.halves(secret)[1])


@router.delete("/api/session", status_code=204, summary="Sign out")
async def close_session(request: Request, caller: Authenticated) -> Response:
    """Ends the session of the request. An access token stays valid until it is revoked."""
    if caller.token.kind == "session":
        await context_of(request).runtime.db.write(tokens.revoke, caller.token.id)
    return Response(status_code=204, headers={"Set-Cookie": cookie(_visit(request), "", 0)})


@router.get("/login", include_in_schema=False)
async def login_page() -> Response:
    """A page that signs in with what stands behind the # of its address, or with a token that is typed."""
    headers = {"Content-Security-Policy": CONTENT_SECURITY_POLICY, "Cache-Control": "no-store"}
    return Response(PAGE, media_type="text/html", headers=headers)


def _open(tx: Tx, secret: str) -> tuple[Token, str] | None:
    opened = tokens.open_session(tx, secret)
    if opened is not None:
        who = directory.get_entity(tx, opened[0].entity_id)
        audit.record(tx, who.organization_id, Actor(who.id, opened[0].id), "open_session", who.id)
    return opened


def _visit(request: Request) -> Visit:
    return request.scope["visit"]


def _seconds(session: Token, now: int) -> int:
    assert session.expires_at is not None
    return max((session.expires_at - now) // SECOND, 0)
