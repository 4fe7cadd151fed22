"""Tokens and login links as people list, create, rotate and revoke them: for themselves and for those they manage."""

from __future__ import annotations

from collections.abc import Iterator

from denizen.access import audit, people, roles, tokens
from denizen.access.requesters import Requester
from denizen.access.roles import Role
from denizen.access.tokens import Token
from denizen.bus.streams import PersonNotice, entity_topic
from denizen.clock import Instant
from denizen.errors import NotAllowed, NotFound
from denizen.ids import EntityId
from denizen.spaces import directory
from denizen.spaces.directory import Entity
from denizen.storage.database import Tx, storable


def list_tokens(tx: Tx, by: Requester, named: str | None, *, everyone: bool = False) -> list[tuple[Token, Entity]]:
    """Tokens, sessions and login links with their owners: of the one with this id or `@handle`, by default of the
    requester, or of everyone that the requester may create tokens for.
    """
    whose = _all_manageable(tx, by) if everyone else [_manageable(tx, by, named)]
    return [(each, who) for who in whose for each in tokens.tokens_of(tx, who.id)]


def create(
    tx: Tx,
    by: Requester,
    name: str,
    *,
    entity: str | None = None,
    role: Role | None = None,
    expires_at: Instant | None = None,
    speaks_for_others: bool = False,
) -> tuple[Token, str]:
    """Creates a token, with its secret. One that speaks for others is for admins to create."""
    owner = _manageable(tx, by, entity)
    if owner.kind == "human":
        most = _scope_for(tx, by, owner)
        role = roles.lesser(most, role or most)
    if speaks_for_others:
        by.require("admin")
    made = tokens.create(tx, owner.id, name, role=role, expires_at=expires_at, speaks_for_others=speaks_for_others)
    _record(tx, by, "create_token", made[0])
    _tell_owner(tx, by, owner.id, f"created the access token {made[0].name!r} for you")
    return made


def rotate(tx: Tx, by: Requester, token_id: str) -> tuple[Token, str]:
    """Gives the token a new secret, and returns it."""
    token = _get(tx, by, token_id)
    if token.entity_id == by.entity_id:
        # Otherwise a token of small scope would be worth as much as the greatest of its owner.
        by.require(roles.lesser(roles.role_of(tx, token.entity_id) or "member", token.role))
    if token.speaks_for_others:
        # Whoever knows its secret has its right.
        by.require("admin")
    made = tokens.rotate(tx, token.id)
    _record(tx, by, "rotate_token", made[0])
    _tell_owner(tx, by, token.entity_id, f"gave your access token {token.name!r} a new secret")
    return made


def revoke(tx: Tx, by: Requester, token_id: str) -> None:
    """Ends the token, session or login link. Idempotent."""
    token = _get(tx, by, token_id)
    tokens.revoke(tx, token.id)
    if token.revoked_at is None:
        _record(tx, by, "revoke_token", token)


def create_login(tx: Tx, by: Requester, named: str | None = None, *, below: str | None = None) -> tuple[Token, str]:
    """Creates a login link, with its secret, for the person with this id or `@handle`, by default the requester.

    The requester's own link ends with the token `below`.
    """
    person = _manageable(tx, by, named)
    # A link for another is theirs, and outlasts how its maker came in. Signing out elsewhere ends no other session.
    below = below if person.id == by.entity_id else None
    made = tokens.create_login(tx, person.id, _scope_for(tx, by, person), below=below)
    audit.record(tx, person.organization_id, by.actor, "create_login", person.id, token=made[0].id)
    _tell_owner(tx, by, person.id, "created a login link for you")
    return made


def _manageable(tx: Tx, by: Requester, named: str | None) -> Entity:
    """The one with this id or `@handle`, if the requester may decide how they sign in; by default the requester."""
    entity = people.find_profile(tx, by, by.entity_id if named is None else named).entity
    if entity.id != by.entity_id:
        by.require("owner" if roles.role_of(tx, entity.id) in ("owner", "admin") else "admin")
    return entity


def _all_manageable(tx: Tx, by: Requester) -> Iterator[Entity]:
    """The requester, and those for whom they may create tokens."""
    for each in directory.list_entities(tx, by.home(tx)):
        try:
            yield _manageable(tx, by, each.id)
        except NotAllowed:
            continue


def _scope_for(tx: Tx, by: Requester, person: Entity) -> Role:
    """The most that a token which the requester creates for this person can ever do: what the person can do now; for
    oneself, what one came with.
    """
    # Not more: whoever creates a token knows its secret, also when its person is an owner one day.
    own = by.role if person.id == by.entity_id else None
    return own or roles.role_of(tx, person.id) or "member"


def _get(tx: Tx, by: Requester, token_id: str) -> Token:
    token = tokens.get(tx, storable(token_id))
    if directory.get_entity(tx, token.entity_id).organization_id != by.home(tx):
        raise NotFound("token", token_id)
    _manageable(tx, by, token.entity_id)
    return token


def _tell_owner(tx: Tx, by: Requester, owner: EntityId, what: str) -> None:
    """The owner of a token learns at once that somebody else knows its secret."""
    if owner == by.entity_id:
        return
    who = directory.get_entity(tx, by.entity_id)
    text = f"{who.name} (@{who.handle}) {what}. You can revoke it on your own page (You)."
    tx.announce(entity_topic(owner), PersonNotice("token_created", text).to_payload())


def _record(tx: Tx, by: Requester, action: str, token: Token) -> None:
    more = {"speaks_for_others": True} if token.speaks_for_others else {}
    audit.record(
        tx, by.home(tx), by.actor, action, token.entity_id, token=token.id, role=token.role, kind=token.kind, **more
    )
