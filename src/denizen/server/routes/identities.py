"""As whom the identity provider knows people."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request

from denizen.access import audit, identities, roles
from denizen.access.identities import Identity
from denizen.errors import InvalidInput
from denizen.ids import EntityId
from denizen.server.auth import Admin, Caller, require
from denizen.server.context import context_of
from denizen.server.router import new_router
from denizen.server.routes.tokens import find_entity
from denizen.server.shapes.access import LinkIdentity, identity_out
from denizen.shapes.access import IdentityList, IdentityOut
from denizen.storage.database import Tx

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
    """Tokens of the identity provider for this subject then sign in as this person. Repeating the request changes
    nothing.
    """
    context = context_of(request)
    if context.issuer is None:
        raise InvalidInput("This server has no identity provider: set oidc.issuer and oidc.audience.")
    return identity_out(await context.runtime.db.write(_link, caller, entity_id, context.issuer.name, given.subject))


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


def _link(tx: Tx, caller: Caller, named: str, issuer: str, subject: str) -> Identity:
    person = _linkable(tx, caller, named)
    audit.record(tx, caller.entity.organization_id, caller.actor, "link_identity", person, issuer=issuer)
    return identities.link(tx, person, issuer, subject)


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
