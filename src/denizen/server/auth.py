"""Authentication by access token, session or identity provider, and the roles that routes require."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from math import ceil
from typing import Annotated, Any, Concatenate, Final, ParamSpec, TypeVar

import structlog
from fastapi import Depends, Security
from fastapi.security import APIKeyCookie, HTTPBearer
from starlette.requests import HTTPConnection, Request

from denizen.access import identities, roles, tokens
from denizen.access.audit import OPERATOR, Actor
from denizen.access.oidc import Claims, looks_like_jwt
from denizen.access.requesters import Requester
from denizen.access.roles import Role
from denizen.access.tokens import Kind, Token
from denizen.app import Runtime
from denizen.errors import StorageError, TokenNotBelieved, existing
from denizen.ids import EntityId, OrganizationId
from denizen.server import failed_sign_ins
from denizen.server.context import Context
from denizen.server.problems import Problem
from denizen.server.reach import Visit
from denizen.spaces import directory
from denizen.spaces.directory import Entity
from denizen.storage.database import Tx
from denizen.telemetry.logs import get_logger

log: structlog.typing.FilteringBoundLogger = get_logger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

_CHALLENGE = {"WWW-Authenticate": "Bearer"}
PAGE_KEY_HEADER: Final = "Denizen-Page-Key"
"""The header with the half of a session's secret that only pages of one origin know. Cookies go to every port of a
host.
"""
_READING: Final = ("GET", "HEAD", "OPTIONS")
IN_PROCESS: Final = "denizen.in_process_entity"
"""The key of an ASGI scope under which a process that calls the application directly names the caller. The server
builds the scope of a request from a socket itself, so no request can set this key.
"""

SIGNED: Final = "denizen.signed"
"""The key of an ASGI scope under which a route notes that a service has signed its request. Such a request is not a
guess, whatever it is answered with.
"""


@dataclass(frozen=True, slots=True)
class Caller:
    """The authenticated entity, its token, and the role that both allow."""

    entity: Entity
    token: Token
    role: Role
    runtime: Runtime = field(repr=False, compare=False)
    """What they call."""

    async def read(self, use_case: Callable[Concatenate[Tx, Requester, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs a use case for the caller that only reads."""
        return await self.runtime.db.read(use_case, self.requester, *args, **kwargs)

    async def write(self, use_case: Callable[Concatenate[Tx, Requester, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs a use case for the caller."""
        return await self.runtime.db.write(use_case, self.requester, *args, **kwargs)

    @property
    def is_in_process(self) -> bool:
        """Whether the caller is a program on the server's own machine, without a request over a socket."""
        return self.token.id == tokens.IN_PROCESS

    @property
    def requester(self) -> Requester:
        """The caller as use cases check them."""
        return Requester(self.actor, self.entity.organization_id, self.role, acts_as=self.entity.id)

    @property
    def actor(self) -> Actor:
        """The caller as the audit log records it: a program on the server's own machine has no name."""
        return OPERATOR if self.is_in_process else Actor(self.entity.id, self.token.id)


async def authenticate(context: Context, visit: Visit, connection: HTTPConnection) -> Caller:
    """Returns the caller of the request's token or session. Raises `Problem` if there is none."""
    if (entity_id := connection.scope.get(IN_PROCESS)) is not None:
        return await context.runtime.db.read(_in_process, context.runtime, entity_id)
    scheme, _, bearer = connection.headers.get("authorization", "").partition(" ")
    if scheme:
        secret = bearer.strip() if scheme.lower() == "bearer" else ""
        find = _by_token if not _is_of_issuer(context, secret) else _by_issuer
    else:
        secret, find = _session_secret(visit, connection), _by_session
    if not secret:
        raise Problem("unauthorized", "Send your access token: `Authorization: Bearer dz_…`.", headers=_CHALLENGE)
    if find is _by_session:
        check_same_site(context, visit, connection)
    # An expired session is not a failed sign-in: every browser that is left open overnight sends one.
    return await guarded(context, visit, secret, lambda: find(context, secret), audited=find is not _by_session)


async def guarded(
    context: Context, visit: Visit, secret: str, find: Callable[[], Awaitable[T | None]], *, audited: bool = True
) -> T:
    """Returns what `find` finds by the secret. Raises `Problem` if nothing, or after too many failures from this
    address.
    """
    digest = hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
    wait = context.failures.wait(visit.address)
    # Wrong secrets from others behind the same address must not lock out a caller that was signed in before.
    if wait and digest not in context.known:
        raise too_often(wait, "Too many requests with wrong tokens from your address.")
    found = await find()
    if found is None:
        context.failures.take(visit.address)
        context.known.pop(digest, None)
        if audited:
            await failed_sign_ins.note(context.runtime, context.failed_sign_ins, visit.address, secret)
        raise Problem("unauthorized", "This access token is unknown, revoked or expired.", headers=_CHALLENGE)
    context.remember(digest)
    return found


def too_often(wait: float, why: str) -> Problem:
    return Problem("rate_limited", f"{why} Wait, then try again.", headers={"Retry-After": str(ceil(wait))})


def cookie_name(visit: Visit) -> str:
    """The name of the session's cookie. Without HTTPS it has the port: all ports of a host share their cookies."""
    return "__Host-denizen" if visit.secure else f"denizen-{visit.port}"


def _session_secret(visit: Visit, connection: HTTPConnection) -> str:
    """Joins the two halves of the secret: the cookie, which browsers send to every port of the host, and the page's
    key.
    """
    value, page_key = connection.cookies.get(cookie_name(visit)), connection.headers.get(PAGE_KEY_HEADER)
    if not value:
        return ""
    if not page_key:
        raise Problem(
            "unauthorized",
            f"A session needs the key of its page: `{PAGE_KEY_HEADER}: dzp_…`. Sign in again.",
            headers=_CHALLENGE,
        )
    return tokens.joined(value, page_key)


def cookie(visit: Visit, secret: str, seconds: int) -> str:
    """The `Set-Cookie` header of the session; with 0 seconds, one that deletes it."""
    secure = "; Secure" if visit.secure else ""
    return (
        f"{cookie_name(visit)}={tokens.halves(secret)[0]}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"
    )


def organization_cookie_name(visit: Visit) -> str:
    return "__Host-denizen-organization" if visit.secure else f"denizen-organization-{visit.port}"


def organization_cookie(visit: Visit, organization_id: OrganizationId) -> str:
    """The `Set-Cookie` header that names the organization of the person who uses this browser. It opens nothing."""
    secure = "; Secure" if visit.secure else ""
    name = organization_cookie_name(visit)
    return f"{name}={organization_id}; Path=/; Max-Age=31536000; HttpOnly; SameSite=Lax{secure}"


def check_same_site(context: Context, visit: Visit, connection: HTTPConnection) -> None:
    """Raises `Problem` unless the request comes from one of our pages: browsers send cookies whichever page made the
    request.
    """
    origin, site = connection.headers.get("origin"), connection.headers.get("sec-fetch-site")
    foreign = site not in (None, "same-origin", "none")
    if origin is not None:
        foreign = foreign or origin.lower() not in (visit.origin, context.reach.origin)
    elif connection.scope["method"] not in _READING:
        foreign = site != "same-origin"
    if foreign:
        raise Problem(
            "cross_site", "A session counts only for pages of this server. Programs send a token: `Authorization: …`."
        )


def _is_of_issuer(context: Context, secret: str) -> bool:
    return context.issuer is not None and looks_like_jwt(secret)


async def _by_token(context: Context, secret: str) -> Caller | None:
    return await context.runtime.db.read(_find, context.runtime, secret, "token")


async def _by_session(context: Context, secret: str) -> Caller | None:
    return await context.runtime.db.read(_find, context.runtime, secret, "session")


async def _by_issuer(context: Context, secret: str) -> Caller | None:
    """Returns the caller whom the identity provider names, if that person exists here or may be created."""
    assert context.issuer is not None
    settings = context.issuer.settings
    try:
        claims = await context.issuer.verify(secret)
    except TokenNotBelieved as error:
        log.info("token of an identity provider is not believed", why=str(error))
        return None
    found = await context.runtime.db.read(_known, context.runtime, claims, secret)
    if found is not None:
        return found
    home = OrganizationId(settings.organization) if settings.organization else None
    return await context.runtime.db.write(admit, context.runtime, claims, secret, settings.create_people, home)


def _known(tx: Tx, runtime: Runtime, claims: Claims, secret: str) -> Caller | None:
    known = identities.find(tx, claims.issuer, claims.subject)
    token = tokens.find(tx, secret, "jwt")
    return (
        None
        if known is None or token is None or token.entity_id != known.entity_id
        else _caller_with(tx, runtime, token)
    )


def admit(
    tx: Tx, runtime: Runtime, claims: Claims, secret: str, may_create: bool, home: OrganizationId | None
) -> Caller | None:
    known = identities.find(tx, claims.issuer, claims.subject)
    if known is None and not may_create:
        raise Problem(
            "unauthorized",
            f"The identity provider calls you {claims.subject!r}, but no account here is linked to that name. "
            "Ask an admin to link yours.",
            headers=_CHALLENGE,
        )
    if known is None:
        person = identities.create_person(tx, home, claims.issuer, claims.subject, claims.name, claims.handle)
        entity_id = person.id
    else:
        entity_id = known.entity_id
    token = tokens.see(tx, entity_id, secret, claims.issuer, claims.expires_at)
    return None if token is None or token.entity_id != entity_id else _caller_with(tx, runtime, token)


def _in_process(tx: Tx, runtime: Runtime, entity_id: EntityId) -> Caller:
    return existing(_caller_with(tx, runtime, tokens.in_process(entity_id, tx.now)), "entity", entity_id)


def _find(tx: Tx, runtime: Runtime, secret: str, kind: Kind) -> Caller | None:
    token = tokens.find(tx, secret, kind)
    return None if token is None else _caller_with(tx, runtime, token)


def _caller_with(tx: Tx, runtime: Runtime, token: Token) -> Caller | None:
    role = roles.role_of(tx, token.entity_id)
    if role is None:
        return None
    return Caller(directory.get_entity(tx, token.entity_id), token, roles.lesser(role, token.role), runtime)


async def note_use(runtime: Runtime, token: Token) -> None:
    """Records, to the minute, when the token was last used. Never raises: the request does not depend on it."""
    if not token.use_is_old(runtime.clock.now()):
        return
    try:
        await runtime.db.write(tokens.note_use, token.id)
    except StorageError as error:
        log.warning("use of a token was not noted", token=token.id, error=str(error))


# The gate has authenticated the caller already; the scheme is only here for the OpenAPI document.
_described = HTTPBearer(auto_error=False, description="An access token: `dz_…`. `denizen up` shows one at first start.")


_session = APIKeyCookie(
    name="__Host-denizen",
    auto_error=False,
    description=f"The session of a browser, with the header `{PAGE_KEY_HEADER}`. Over plain HTTP the cookie is "
    "named `denizen-` and the port.",
)


async def who_asks(
    request: Request, _: Annotated[object, Security(_described)], __: Annotated[object, Security(_session)]
) -> Caller:
    return request.scope["caller"]


Authenticated = Annotated[Caller, Depends(who_asks)]
"""A route's parameter: the caller."""


ROLE_ASKED: Final[dict[object, Role]] = {}
"""The role that each of the parameters below requires, for the generated page on permissions."""


def _at_least(wanted: Role) -> Callable[..., Coroutine[Any, Any, Caller]]:
    async def caller(who: Authenticated) -> Caller:
        require(who, wanted)
        return who

    ROLE_ASKED[caller] = wanted
    return caller


def require(caller: Caller, wanted: Role) -> None:
    """Raises `Problem` unless the caller has this role."""
    if not roles.reaches(caller.role, wanted):
        whose = "people" if wanted == "member" else f"{wanted}s"
        raise Problem("not_allowed", f"Only {whose} of the organization can do this. Your role is {caller.role}.")


Person = Annotated[Caller, Depends(_at_least("member"))]
"""A route's parameter: the caller if it is a person, not an agent or a service."""
Admin = Annotated[Caller, Depends(_at_least("admin"))]
Owner = Annotated[Caller, Depends(_at_least("owner"))]
