"""Links people to their accounts at the identity provider."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request

from denizen.access import identities, people, people_changes
from denizen.access.identities import Identity
from denizen.server.auth import Admin, Caller
from denizen.server.context import context_of
from denizen.server.router import new_router
from denizen.server.shapes.access import LinkIdentity, identity_out
from denizen.shapes.access import IdentityList, IdentityOut
from denizen.storage.database import Tx

router = new_router()

WHO = {"x-who": "admins for members; owners for everyone"}


@router.get("/api/entities/{entity_id}/identities", summary="List someone's identities at the identity provider")
async def list_identities(caller: Admin, entity_id: str) -> IdentityList:
    found = await caller.runtime.db.read(_list, caller, entity_id)
    return IdentityList(identities=[identity_out(each) for each in found])


@router.post(
    "/api/entities/{entity_id}/identities", status_code=201, summary="Link someone to an identity", openapi_extra=WHO
)
async def link_identity(request: Request, caller: Admin, entity_id: str, given: LinkIdentity) -> IdentityOut:
    """Tokens of the identity provider for this subject then sign in as this person; with `token`, that token speaks for
    this person when it names this user. Repeating the request changes nothing.
    """
    context = context_of(request)
    issuer, write = context.issuer, context.runtime.db.write
    linked = await write(
        people_changes.link_identity,
        caller.requester,
        entity_id,
        given.subject,
        provider=None if issuer is None else issuer.name,
        token=given.token,
    )
    return identity_out(linked)


@router.delete(
    "/api/entities/{entity_id}/identities",
    status_code=204,
    summary="Unlink someone from an identity",
    openapi_extra=WHO,
)
async def unlink_identity(
    caller: Admin,
    entity_id: str,
    issuer: Annotated[str, Query(max_length=2_000)],
    subject: Annotated[str, Query(max_length=2_000)],
) -> None:
    """The subject no longer signs in as this person. Sessions and tokens from such sign-ins stop working."""
    await caller.write(people_changes.unlink_identity, entity_id, issuer, subject)


def _list(tx: Tx, caller: Caller, named: str) -> list[Identity]:
    return identities.identities_of(tx, people.find_profile(tx, caller.requester, named).entity.id)
