"""Who is asking, the bearer of an access token, and what a route asks of them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Annotated, Any, Final

import structlog
from fastapi import Depends, Security
from fastapi.security import HTTPBearer
from starlette.requests import HTTPConnection, Request

from denizen.access import roles, tokens
from denizen.access.roles import Role
from denizen.access.tokens import Token
from denizen.app import Runtime
from denizen.errors import StorageError
from denizen.server.problems import Problem
from denizen.spaces import directory
from denizen.spaces.directory import Entity
from denizen.storage.database import Tx

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

_CHALLENGE = {"WWW-Authenticate": "Bearer"}


@dataclass(frozen=True, slots=True)
class Caller:
    """An entity, the token it came with, and what the two of them may do."""

    entity: Entity
    token: Token
    role: Role


async def authenticate(runtime: Runtime, connection: HTTPConnection) -> Caller:
    """The caller that the request's token stands for. Raises `Problem` if there is none."""
    scheme, _, secret = connection.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        raise Problem("unauthorized", "Send your access token: `Authorization: Bearer dz_…`.", headers=_CHALLENGE)
    caller = await runtime.db.read(_find, secret.strip())
    if caller is None:
        raise Problem(
            "unauthorized", "This access token is unknown, or it was revoked or has expired.", headers=_CHALLENGE
        )
    return caller


def _find(tx: Tx, secret: str) -> Caller | None:
    token = tokens.find(tx, secret)
    role = None if token is None else roles.role_of(tx, token.entity_id)
    if token is None or role is None:
        return None
    return Caller(directory.get_entity(tx, token.entity_id), token, roles.lesser(role, token.role))


async def note_use(runtime: Runtime, token: Token) -> None:
    """It is known, to the minute, when the token was last used. Never fails: it is not what the caller asked for."""
    if not token.use_is_old(runtime.clock.now()):
        return
    try:
        await runtime.db.write(tokens.note_use, token.id)
    except StorageError as error:
        log.warning("use of a token was not noted", token=token.id, error=str(error))


# The gate has let the caller in already; the scheme is here so that the API's description tells of it.
_described = HTTPBearer(auto_error=False, description="An access token: `dz_…`. `denizen up` shows one at first start.")


async def _caller(request: Request, _: Annotated[object, Security(_described)]) -> Caller:
    return request.scope["caller"]


Authenticated = Annotated[Caller, Depends(_caller)]
"""A route's parameter: whoever is asking."""


ROLE_ASKED: Final[dict[object, Role]] = {}
"""What each of the parameters below asks, for the page that tells who may do what."""


def _at_least(wanted: Role) -> Callable[..., Coroutine[Any, Any, Caller]]:
    async def caller(who: Authenticated) -> Caller:
        require(who, wanted)
        return who

    ROLE_ASKED[caller] = wanted
    return caller


def require(caller: Caller, wanted: Role) -> None:
    """Raises `Problem` unless the caller may do what takes this role."""
    if not roles.reaches(caller.role, wanted):
        whose = "people" if wanted == "member" else f"{wanted}s"
        raise Problem("not_allowed", f"This is for {whose} of the organization; you came as {caller.role}.")


Person = Annotated[Caller, Depends(_at_least("member"))]
"""A route's parameter: a person who is asking, not an agent or a service."""
Admin = Annotated[Caller, Depends(_at_least("admin"))]
Owner = Annotated[Caller, Depends(_at_least("owner"))]
