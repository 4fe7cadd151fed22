"""As whom the identity provider knows people."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request

from denizen.access import audit, identities, roles, spoken_for, tokens
from denizen.access.identities import Identity
from denizen.access.tokens import Token
from denizen.errors import InvalidInput, NotFound
from denizen.ids import EntityId
from denizen.server.auth import Admin, Caller, require
from denizen.server.context import context_of
from denizen.server.router import new_router
from denizen.server.routes.tokens import find_entity
from denizen.server.shapes.access import LinkIdentity, identity_out
from denizen.shapes.access import IdentityList, IdentityOut
from denizen.spaces import directory
from denizen.storage.database import Tx, storable

router = new_router()

WHO = {"x-who": "admins for members; owners for everyone"}


@router.get("/api/entities/{entity_id}/identities", summary="List someone's identities at the identity provider")
async def list_identities(request: Request, caller: Admin, entity_id: str) -> IdentityList:
    found = await context_of(request).runtime.db.read(_list, caller, entity_id)
    return IdentityList(identities=[identity_out(each) for each in found])


@router.post(
    "/api/entities/{entity_id}/identities", status_code=201, summary="Link someone to an identity", openapi_extra=WHO
)
async def link_identity(request: Request, caller: Admin, entity_id: str, given: LinkIdentity) -> IdentityOut:
    """Tokens of the identity provider for this subject then sign in as this person; with `token`, that token speaks for
    this person when it names this user. Repeating the request changes nothing.
    """
    context = context_of(request)
    if given.token is None and context.issuer is None:
        raise InvalidInput("This server has no identity provider: set oidc.issuer and oidc.audience.")
    issuer = None if context.issuer is None else context.issuer.name
    return identity_out(await context.runtime.db.write(_link, caller, entity_id, issuer, given))


@router.delete(
    "/api/entities/{entity_id}/identities",
    status_code=204,
    summary="Unlink someone from an identity",
    openapi_extra=WHO,
)
async def unlink_identity(
    request: Request,
    caller: Admin,
    entity_id: str,
    issuer: Annotated[str, Query(max_length=2_000)],
    subject: Annotated[str, Query(max_length=2_000)],
) -> None:
    """The subject no longer signs in as this person. Sessions and tokens from such sign-ins stop working."""
    await context_of(request).runtime.db.write(_unlink, caller, entity_id, issuer, subject)


def _list(tx: Tx, caller: Caller, named: str) -> list[Identity]:
    return identities.identities_of(tx, find_entity(tx, caller, named).id)


def _link(tx: Tx, caller: Caller, named: str, provider: str | None, given: LinkIdentity) -> Identity:
    person = _linkable(tx, caller, named)
    issuer = provider if given.token is None else spoken_for.issuer_of(_speaking(tx, caller, given.token).id)
    assert issuer is not None
    audit.record(tx, caller.entity.organization_id, caller.actor, "link_identity", person, issuer=issuer)
    return identities.link(tx, person, issuer, given.subject)


def _speaking(tx: Tx, caller: Caller, token_id: str) -> Token:
    token = tokens.get(tx, storable(token_id))
    if directory.get_entity(tx, token.entity_id).organization_id != caller.entity.organization_id:
        raise NotFound("token", token_id)
    if not token.speaks_for_others:
        raise InvalidInput("This token does not speak for others. Create one that does.")
    return token


def _unlink(tx: Tx, caller: Caller, named: str, issuer: str, subject: str) -> None:
    person = _linkable(tx, caller, named)
    identities.unlink(tx, person, issuer, subject)
    audit.record(tx, caller.entity.organization_id, caller.actor, "unlink_identity", person, issuer=issuer)


def _linkable(tx: Tx, caller: Caller, named: str) -> EntityId:
    """Returns the person if the caller may link them. Raises `Problem` if not.

    Signing in by a link gives the whole role of the person. So a token of smaller scope cannot make one, not even for
    oneself.
    """
    person = find_entity(tx, caller, named)
    require(caller, "owner" if roles.role_of(tx, person.id) in ("owner", "admin") else "admin")
    return person.id
