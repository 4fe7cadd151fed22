"""People and services as admins add, change and remove them, and link them to identities elsewhere."""

from __future__ import annotations

from typing import Literal

from pydantic import JsonValue

from denizen.access import audit, identities, on_behalf_of, people, roles, tokens
from denizen.access.identities import Identity
from denizen.access.people import Profile
from denizen.access.requesters import Requester
from denizen.access.roles import Role
from denizen.access.tokens import Token
from denizen.errors import IdempotencyKeyReused, InvalidInput, NotFound
from denizen.ids import EntityId
from denizen.spaces import directory
from denizen.spaces.directory import Entity
from denizen.spaces.handles import check_handle, check_name, handle_from
from denizen.storage.database import Tx, storable


def create(
    tx: Tx,
    by: Requester,
    kind: Literal["human", "service"],
    name: str,
    *,
    handle: str | None = None,
    role: Role | None = None,
    id: EntityId | None = None,
) -> Profile:
    """Adds a person or a service, without a space and without a token. With an id that exists, returns what was made
    with it. Raises `IdempotencyKeyReused` if that is something else.
    """
    by.require("admin")
    if role is not None and kind != "human":
        raise InvalidInput("role: only people have a role.")
    if role in ("owner", "admin"):
        by.require("owner")
    name = check_name(name)
    handle = check_handle(handle) if handle is not None else handle_from(name)
    role = role or ("member" if kind == "human" else "service")
    if id is not None:
        # Two requests with the same key at the same time: the second finds what the first has made.
        directory.hold(tx, by.entity_id)
        made = _made(tx, by, id)
        if made is not None:
            if (made.entity.kind, made.entity.name, made.entity.handle, made.role) != (kind, name, handle, role):
                raise IdempotencyKeyReused
            return made
    entity = directory.create_entity(tx, by.home(tx), kind, name=name, handle=handle, id=id)
    if kind == "human":
        roles.set_role(tx, entity.id, role)
    audit.record(tx, entity.organization_id, by.actor, "create_entity", entity.id, kind=kind, role=role)
    return people.find_profile(tx, by, entity.id)


def _made(tx: Tx, by: Requester, id: EntityId) -> Profile | None:
    try:
        return people.find_profile(tx, by, id)
    except NotFound:
        return None


def change(tx: Tx, by: Requester, named: str, *, name: str | None = None, role: Role | None = None) -> Profile:
    """Changes the name, or as an owner the role, of the person or service with this id or `@handle`."""
    who = _changeable(tx, by, named)
    if role is not None and role != who.role:
        by.require("owner")
        if who.entity.kind != "human":
            raise InvalidInput("role: only people have a role.")
        roles.set_role(tx, who.entity.id, role)
    if name is not None:
        directory.rename(tx, who.entity.id, name)
    after = people.find_profile(tx, by, who.entity.id)
    renamed, promoted = after.entity.name != who.entity.name, after.role != who.role
    if renamed or promoted:
        roles_now: dict[str, JsonValue] = {"role": [who.role, after.role]} if promoted else {}
        audit.record(tx, by.home(tx), by.actor, "change_entity", who.entity.id, renamed=renamed, **roles_now)
    return after


def rename_self(tx: Tx, by: Requester, name: str) -> Entity:
    """Changes the requester's own name. Their handle stays."""
    by.require("member")
    before = directory.get_entity(tx, by.entity_id)
    directory.rename(tx, before.id, name)
    after = directory.get_entity(tx, before.id)
    if after.name != before.name:
        audit.record(tx, after.organization_id, by.actor, "change_entity", after.id, renamed=True)
    return after


def remove(tx: Tx, by: Requester, named: str) -> None:
    """Removes the person or service from the organization; admins and owners are for owners to remove."""
    who = _changeable(tx, by, named)
    if who.role in ("owner", "admin") and who.entity.id != by.entity_id:
        by.require("owner")
    people.leave(tx, who.entity.id)
    audit.record(tx, by.home(tx), by.actor, "remove_entity", who.entity.id, role=who.role)


def _changeable(tx: Tx, by: Requester, named: str) -> Profile:
    by.require("admin")
    who = people.find_profile(tx, by, named)
    if who.left_at is not None:
        raise NotFound("entity", named)
    if who.entity.kind == "agent":
        raise InvalidInput(f"@{who.entity.handle} is an agent: change it or delete it at /api/agents/{who.entity.id}.")
    return who


def link_identity(
    tx: Tx, by: Requester, named: str, subject: str, *, provider: str | None, token: str | None = None
) -> Identity:
    """Links the person to this subject of the identity provider; with `token`, to the user of that name for whom that
    token speaks.
    """
    person = _linkable(tx, by, named)
    issuer = provider if token is None else on_behalf_of.issuer_of(_speaking(tx, by, token).id)
    if issuer is None:
        raise InvalidInput("This server has no identity provider: set oidc.issuer and oidc.audience.")
    audit.record(tx, by.home(tx), by.actor, "link_identity", person, issuer=issuer)
    return identities.link(tx, person, issuer, subject)


def unlink_identity(tx: Tx, by: Requester, named: str, issuer: str, subject: str) -> None:
    """Removes the link: the subject no longer signs in as this person."""
    person = _linkable(tx, by, named)
    identities.unlink(tx, person, issuer, subject)
    audit.record(tx, by.home(tx), by.actor, "unlink_identity", person, issuer=issuer)


def _speaking(tx: Tx, by: Requester, token_id: str) -> Token:
    token = tokens.get(tx, storable(token_id))
    if directory.get_entity(tx, token.entity_id).organization_id != by.home(tx):
        raise NotFound("token", token_id)
    if not token.speaks_for_others:
        raise InvalidInput("This token does not speak for others. Create one that does.")
    return token


def _linkable(tx: Tx, by: Requester, named: str) -> EntityId:
    """Returns the person if the requester may link them.

    Signing in by a link gives the whole role of the person. So a token of smaller scope cannot make one, not even for
    oneself.
    """
    person = people.find_profile(tx, by, named).entity
    by.require("owner" if roles.role_of(tx, person.id) in ("owner", "admin") else "admin")
    return person.id
