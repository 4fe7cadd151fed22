"""Lists, creates, rotates and revokes access tokens of people, services and agents."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from denizen.access import token_changes
from denizen.clock import instant
from denizen.errors import InvalidInput
from denizen.server.auth import Person
from denizen.server.router import new_router
from denizen.server.shapes.access import CreateToken, known_token_out, listed_token_out
from denizen.shapes.access import TokenCreated, TokenList

router = new_router()

WHO = {"x-who": "people for themselves; admins for members, services and agents; owners for everyone"}

Named = Annotated[str | None, Query(description="Whose: an id or a `@handle`; without it, your own.")]


@router.get("/api/tokens", summary="List tokens, sessions and login links", openapi_extra=WHO)
async def list_tokens(
    caller: Person,
    entity: Named = None,
    everyone: Annotated[bool, Query(description="Those of everyone that you may create tokens for.")] = False,
) -> TokenList:
    """Including revoked and expired ones, never their secrets."""
    if everyone and entity is not None:
        raise InvalidInput("Ask for the tokens of one or of everyone, not both.")
    found = await caller.read(token_changes.list_tokens, entity, everyone=everyone)
    return TokenList(tokens=[listed_token_out(each, owner.handle) for each, owner in found])


@router.post("/api/tokens", status_code=201, summary="Create an access token", openapi_extra=WHO)
async def create_token(caller: Person, wanted: CreateToken) -> TokenCreated:
    """The secret is shown only once. A token never has more rights than the one it was created with. One that speaks
    for others is for admins and owners to create.
    """
    fields = wanted.model_dump(exclude={"expires_at"})
    until = None if wanted.expires_at is None else instant(wanted.expires_at)
    token, secret = await caller.write(token_changes.create, **fields, expires_at=until)
    return TokenCreated(token=known_token_out(token), secret=secret)


@router.post("/api/tokens/{token_id}/rotate", summary="Rotate the secret of a token", openapi_extra=WHO)
async def rotate_token(caller: Person, token_id: str) -> TokenCreated:
    """The old secret stops working at once; the new one is shown only once."""
    token, secret = await caller.write(token_changes.rotate, token_id)
    return TokenCreated(token=known_token_out(token), secret=secret)


@router.delete(
    "/api/tokens/{token_id}", status_code=204, summary="Revoke a token, session or login link", openapi_extra=WHO
)
async def revoke_token(caller: Person, token_id: str) -> None:
    """It stops working at once. Repeating the request changes nothing."""
    await caller.write(token_changes.revoke, token_id)
