"""Roles in an organization, from the most to the least powerful: owner, admin, member, guest.

Agents and services have roles of their own. Guests are people who write through a bridge: their words are text from
outside. A token has a role as well, as its scope: its bearer has the lesser of the two.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import bindparam, func, select

from denizen.errors import InvalidInput, NotFound, existing
from denizen.ids import EntityId, OrganizationId
from denizen.shapes.vocabulary import Role
from denizen.storage.database import Tx, select_where, statement, update_where, value
from denizen.storage.schema import entities, organizations

PERSONAL: Final[tuple[Role, ...]] = ("owner", "admin", "member", "guest")
"""The roles of people, the most powerful first."""
ROLES: Final[tuple[Role, ...]] = (*PERSONAL, "agent", "service")


def lesser(role: Role, scope: Role) -> Role:
    """The role limited by a scope. Agents and services keep theirs."""
    if role not in PERSONAL or scope not in PERSONAL:
        return role if role not in PERSONAL else scope
    return PERSONAL[max(PERSONAL.index(role), PERSONAL.index(scope))]


def reaches(role: Role, wanted: Role) -> bool:
    """Whether this role has the permissions of the wanted one."""
    return role in PERSONAL and PERSONAL.index(role) <= PERSONAL.index(wanted)


_role = select_where(entities, "role", "id", entities.c.left_at.is_(None))
_set_role = update_where(entities, "id", entities.c.kind == "human", entities.c.left_at.is_(None), set_="role")
_is_owner = (
    entities.c.organization_id == bindparam("organization_id"),
    entities.c.role == "owner",
    entities.c.left_at.is_(None),
)
_owners = statement(select(func.count()).select_from(entities).where(*_is_owner))
_first_owner = statement(select(entities.c.id).where(*_is_owner).order_by(entities.c.id).limit(1))
# Two owners who leave at once would each see the other. The key stays free for rows that refer to it.
_lock_home = statement(
    select(organizations.c.id).where(organizations.c.id == bindparam("id")).with_for_update(key_share=True)
)
_home = select_where(entities, "organization_id", "id")


def role_of(tx: Tx, entity_id: EntityId) -> Role | None:
    """The role of the entity; None if it has left."""
    return value(tx, _role, id=entity_id)


def set_role(tx: Tx, entity_id: EntityId, role: Role) -> None:
    """Set the person's role. An organization keeps at least one owner."""
    if role not in PERSONAL:
        raise InvalidInput(f"People are {', '.join(PERSONAL)}; {role!r} is not for them.")
    if role != "owner":
        keep_an_owner(tx, entity_id)
    if tx.run(_set_role, id=entity_id, role=role) == 0:
        raise NotFound("person", entity_id)


def keep_an_owner(tx: Tx, entity_id: EntityId) -> None:
    """Raises if the organization would have no owner without this one. Holds until the commit: others wait."""
    home = existing(tx.one(_home, id=entity_id), "person", entity_id)
    # Before the reads that decide: owners may change while this waits.
    tx.one(_lock_home, id=home[0])
    require_another_owner(tx, entity_id, home[0])


def require_another_owner(tx: Tx, entity_id: EntityId, home: OrganizationId) -> None:
    """The same for callers that hold the lock already."""
    if role_of(tx, entity_id) == "owner" and count_owners(tx, home) <= 1:
        raise InvalidInput("An organization needs an owner. Make someone else an owner first.")


def count_owners(tx: Tx, organization_id: OrganizationId) -> int:
    return value(tx, _owners, organization_id=organization_id) or 0


def first_owner(tx: Tx, organization_id: OrganizationId) -> EntityId:
    """The first of the organization's owners to join."""
    return existing(
        value(tx, _first_owner, organization_id=organization_id), "owner of the organization", organization_id
    )
