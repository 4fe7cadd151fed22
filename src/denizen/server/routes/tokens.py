"""What lets people, services and agents in: listed, made, given a new secret, revoked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from fastapi import Query, Request

from denizen.access import audit, roles, tokens
from denizen.access.roles import Role
from denizen.access.tokens import Token
from denizen.bus.streams import PersonNotice, entity_topic
from denizen.clock import instant
from denizen.errors import InvalidInput, NotFound
from denizen.ids import EntityId
from denizen.server.auth import Caller, Person, require
from denizen.server.context import context_of
from denizen.server.problems import Problem
from denizen.server.router import new_router
from denizen.server.shapes.access import CreateToken, known_token_out, listed_token_out
from denizen.shapes.access import TokenCreated, TokenList
from denizen.spaces import directory
from denizen.spaces.directory import Entity
from denizen.storage.database import Tx, storable

router = new_router()

WHO = {"x-who": "people for themselves; admins for members, services and agents; owners for everyone"}

Named = Annotated[str | None, Query(description="Whose: an id or a `@handle`; without it, your own.")]


@router.get("/api/tokens", summary="List tokens, sessions and login links", openapi_extra=WHO)
async def list_tokens(
    request: Request,
    caller: Person,
    entity: Named = None,
    everyone: Annotated[bool, Query(description="Those of everyone that you may create tokens for.")] = False,
) -> TokenList:
    """Including revoked and expired ones, never their secrets."""
    if everyone and entity is not None:
        raise InvalidInput("Ask for the tokens of one or of everyone, not both.")
    return await context_of(request).runtime.db.read(_list, caller, entity, everyone)


@router.post("/api/tokens", status_code=201, summary="Create an access token", openapi_extra=WHO)
async def create_token(request: Request, caller: Person, wanted: CreateToken) -> TokenCreated:
    """The secret is shown only once. A token never has more rights than the one it was created with. One that speaks
    for others is for admins and owners to create.
    """
    token, secret = await context_of(request).runtime.db.write(_create, caller, wanted)
    return TokenCreated(token=known_token_out(token), secret=secret)


@router.post("/api/tokens/{token_id}/rotate", summary="Rotate the secret of a token", openapi_extra=WHO)
async def rotate_token(request: Request, caller: Person, token_id: str) -> TokenCreated:
    """The old secret stops working at once; the new one is shown only once."""
    token, secret = await context_of(request).runtime.db.write(_rotate, caller, token_id)
    return TokenCreated(token=known_token_out(token), secret=secret)


@router.delete(
    "/api/tokens/{token_id}", status_code=204, summary="Revoke a token, session or login link", openapi_extra=WHO
)
async def revoke_token(request: Request, caller: Person, token_id: str) -> None:
    """It stops working at once. Repeating the request changes nothing."""
    await context_of(request).runtime.db.write(_revoke, caller, token_id)


def let_in(tx: Tx, caller: Caller, named: str | None) -> Entity:
    """The one by that id or `@handle`, if the caller may decide how they come in."""
    if named is None:
        return caller.entity
    entity = find_entity(tx, caller, named)
    if entity.id != caller.entity.id:
        role = roles.role_of(tx, entity.id)
        require(caller, "owner" if role in ("owner", "admin") else "admin")
    return entity


def scope_for(tx: Tx, caller: Caller, person: Entity) -> Role:
    """The most that a way in which the caller makes for this person may ever do: what the person may do now, or, for
    oneself, what one came with."""
    # Not more: whoever makes a token knows its secret, also when its person is an owner one day.
    return caller.role if person.id == caller.entity.id else roles.role_of(tx, person.id) or "member"


def find_entity(tx: Tx, caller: Caller, named: str) -> Entity:
    """Whoever of the caller's organization has this id or `@handle`."""
    wanted = storable(named)
    try:
        if wanted.startswith("@"):
            return directory.find_entity(tx, caller.entity.organization_id, wanted)
        entity = directory.get_entity(tx, EntityId(wanted))
        if entity.organization_id == caller.entity.organization_id:
            return entity
    except NotFound:
        pass
    # One answer for what is not there and for what is not the caller's.
    raise NotFound("entity", named)


def _list(tx: Tx, caller: Caller, named: str | None, everyone: bool) -> TokenList:
    whose = _all_let_in(tx, caller) if everyone else [let_in(tx, caller, named)]
    found = [(each, who.handle) for who in whose for each in tokens.tokens_of(tx, who.id)]
    return TokenList(tokens=[listed_token_out(each, handle) for each, handle in found])


def _all_let_in(tx: Tx, caller: Caller) -> Iterator[Entity]:
    """Oneself, and those for whom one may make tokens."""
    for each in directory.list_entities(tx, caller.entity.organization_id):
        try:
            yield let_in(tx, caller, each.id)
        except Problem:
            continue


def _create(tx: Tx, caller: Caller, wanted: CreateToken) -> tuple[Token, str]:
    entity = let_in(tx, caller, wanted.entity)
    role: Role | None = wanted.role
    if entity.kind == "human":
        role = scope_for(tx, caller, entity)
        role = roles.lesser(role, wanted.role or role)
    if wanted.speaks_for_others:
        require(caller, "admin")
    made = tokens.create(
        tx,
        entity.id,
        wanted.name,
        role=role,
        expires_at=None if wanted.expires_at is None else instant(wanted.expires_at),
        speaks_for_others=wanted.speaks_for_others,
    )
    _record(tx, caller, "create_token", made[0])
    tell_owner(tx, caller, entity.id, f"created the access token {made[0].name!r} for you")
    return made


def _rotate(tx: Tx, caller: Caller, token_id: str) -> tuple[Token, str]:
    token = _get(tx, caller, token_id)
    if token.entity_id == caller.entity.id:
        # Else a token of small scope would be worth as much as the greatest of its owner.
        require(caller, roles.lesser(roles.role_of(tx, token.entity_id) or "member", token.role))
    if token.speaks_for_others:
        # Whoever knows its secret has its right.
        require(caller, "admin")
    made = tokens.rotate(tx, token.id)
    _record(tx, caller, "rotate_token", made[0])
    tell_owner(tx, caller, token.entity_id, f"gave your access token {token.name!r} a new secret")
    return made


def _revoke(tx: Tx, caller: Caller, token_id: str) -> None:
    token = _get(tx, caller, token_id)
    tokens.revoke(tx, token.id)
    if token.revoked_at is None:
        _record(tx, caller, "revoke_token", token)


def tell_owner(tx: Tx, caller: Caller, owner: EntityId, what: str) -> None:
    """The owner of a token learns at once that somebody else knows its secret."""
    if owner == caller.entity.id:
        return
    text = f"{caller.entity.name} (@{caller.entity.handle}) {what}. You can revoke it on your own page (You)."
    tx.announce(entity_topic(owner), PersonNotice("token_created", text).to_payload())


def _record(tx: Tx, caller: Caller, action: str, token: Token) -> None:
    home = caller.entity.organization_id
    more = {"speaks_for_others": True} if token.speaks_for_others else {}
    audit.record(
        tx, home, caller.actor, action, token.entity_id, token=token.id, role=token.role, kind=token.kind, **more
    )


def _get(tx: Tx, caller: Caller, token_id: str) -> Token:
    token = tokens.get(tx, storable(token_id))
    if directory.get_entity(tx, token.entity_id).organization_id != caller.entity.organization_id:
        raise NotFound("token", token_id)
    let_in(tx, caller, token.entity_id)
    return token
