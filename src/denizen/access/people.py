"""The members of an organization, and leaving it. Agents are listed here, but they are created and deleted elsewhere.

A member who has left keeps name and handle: what they said, and what mentions them, stays readable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, or_, select

from denizen.access import roles
from denizen.access.requesters import Requester
from denizen.access.roles import Role
from denizen.errors import InvalidInput, NotFound, existing
from denizen.ids import EntityId, OrganizationId
from denizen.spaces import directory, leaving
from denizen.spaces.directory import Entity, EntityKind
from denizen.storage.database import Tx, columns, delete_where, select_where, statement, storable, update_where, value
from denizen.storage.schema import agents, entities, secrets, tokens


@dataclass(frozen=True, slots=True)
class Profile:
    """A member of an organization: entity, role, and since when."""

    entity: Entity
    role: Role
    created_at: int
    left_at: int | None
    """When it left."""


_profile = columns(entities, "id, organization_id, kind, handle, name, role, created_at, left_at")
_get = select_where(entities, _profile, "organization_id, id")
_is_dead = select_where(agents, "id", "id", agents.c.status == "dead")
# By handle, because that is how the index has them: a page costs the same however many there are.
_present = (
    select(*_profile)
    .outerjoin(agents, agents.c.id == entities.c.id)
    .where(
        entities.c.organization_id == bindparam("organization_id"),
        entities.c.handle > bindparam("after"),
        entities.c.left_at.is_(None),
        or_(agents.c.id.is_(None), agents.c.status != "dead"),
    )
    .order_by(entities.c.handle)
    .limit(bindparam("limit"))
)
_page = statement(_present)
_page_of_kind = statement(_present.where(entities.c.kind == bindparam("kind")))
_leave = update_where(entities, "id", entities.c.left_at.is_(None), set_="left_at")
_revoke = update_where(tokens, "entity_id", tokens.c.revoked_at.is_(None), set_="revoked_at")
_drop_keys = delete_where(secrets, "owner_id")


def get(tx: Tx, organization_id: OrganizationId, named: str) -> Profile:
    """The member with this `@handle` now, or with this id; by id also those who have left."""
    if named.startswith("@"):
        named = directory.find_entity(tx, organization_id, named).id
    return _as_profile(existing(tx.one(_get, organization_id=organization_id, id=named), "entity", named))


def find_profile(tx: Tx, by: Requester, named: str) -> Profile:
    """The member of the requester's organization with this `@handle` or id."""
    try:
        return get(tx, by.home(tx), storable(named))
    except NotFound as error:
        # One answer for who is not there and for who is of another organization.
        raise _nobody(tx, by.home(tx), named) from error


def find_present(tx: Tx, organization_id: OrganizationId, named: str) -> Entity:
    """The member with this `@handle` or id, if it can be in a space: it has not left, and is not a deleted agent."""
    try:
        profile = get(tx, organization_id, storable(named))
        if profile.left_at is None and value(tx, _is_dead, id=profile.entity.id) is None:
            return profile.entity
    except NotFound:
        pass
    # One error for those who are not there and for those of another organization.
    raise _nobody(tx, organization_id, named)


def _nobody(tx: Tx, organization_id: OrganizationId, named: str) -> NotFound:
    if named.startswith("@"):
        return directory.no_such_handle(tx, organization_id, storable(named))
    return NotFound("entity", named)


def page(
    tx: Tx, organization_id: OrganizationId, *, kind: EntityKind | None = None, after: str = "", limit: int
) -> list[Profile]:
    """The current members, by their handles after the given one."""
    only = {} if kind is None else {"kind": kind}
    listed = _page_of_kind if only else _page
    rows = tx.all(listed, organization_id=organization_id, after=after, limit=limit, **only)
    return [_as_profile(row) for row in rows]


def leave(tx: Tx, entity_id: EntityId) -> None:
    """Remove the person or service: it leaves every space, its tokens become invalid, its own keys are deleted.

    What it said stays. An organization keeps at least one owner.
    """
    if directory.get_entity(tx, entity_id).kind == "agent":
        raise InvalidInput("Agents cannot be removed like people. Delete the agent instead.")
    roles.keep_an_owner(tx, entity_id)
    if roles.role_of(tx, entity_id) is None:
        raise NotFound("entity", entity_id)
    # First, so that nobody adds them to another space meanwhile.
    tx.run(_leave, id=entity_id, left_at=tx.now)
    for space in directory.spaces_of(tx, entity_id):
        leaving.leave(tx, space.id, entity_id)
    tx.run(_revoke, entity_id=entity_id, revoked_at=tx.now)
    tx.run(_drop_keys, owner_id=entity_id)


def _as_profile(row: tuple[Any, ...]) -> Profile:
    *entity, role, created_at, left_at = row
    return Profile(Entity(*entity), role, created_at, left_at)
