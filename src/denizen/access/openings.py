"""Opening a private space: an owner who is not in it may read it for an hour, with a reason that its members see.

The notice to the members, the entry of the audit log and the opening itself are one transaction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy import bindparam

from denizen.access import audit, roles
from denizen.access.audit import Actor
from denizen.clock import SECOND, moment
from denizen.errors import InvalidInput, NotAllowed, NotFound
from denizen.ids import EntityId, OrganizationId, SpaceId, new_id
from denizen.spaces import directory, posting
from denizen.spaces.directory import Space
from denizen.storage.database import Tx, insert_into, select_where
from denizen.storage.schema import openings

OPEN_SECONDS: Final = 3_600
REASON_CHARACTERS: Final = 500


@dataclass(frozen=True, slots=True)
class Opening:
    """A private space that an owner may read for a while."""

    id: str
    space_id: SpaceId
    by_id: EntityId
    reason: str
    created_at: int
    until: int


_add = insert_into(openings, "id, organization_id, space_id, by_id, reason, after_seq, created_at, until")
_open = select_where(openings, "id", "space_id, by_id", openings.c.until > bindparam("now"), limit=1)


def open_private_space(tx: Tx, organization_id: OrganizationId, by: Actor, space_id: SpaceId, reason: str) -> Opening:
    """Let the owner read the space for an hour. A lasting notice tells everyone in it by whom, why and how long."""
    owner = by.entity_id
    if owner is None or roles.role_of(tx, owner) != "owner":
        raise NotAllowed("Only an owner of the organization can open a private space.")
    why = " ".join(reason.split())
    if not why or len(why) > REASON_CHARACTERS:
        raise InvalidInput(f"reason: give a reason of 1 to {REASON_CHARACTERS} characters. The members will read it.")
    space = directory.get_space(tx, space_id)
    if space.organization_id != organization_id:
        raise NotFound("space", space_id)
    if not space.private or directory.is_member(tx, space_id, owner):
        raise InvalidInput("You can read this space already: only private spaces that you are not in can be opened.")
    if space.kind != "conversation":
        raise InvalidInput("Only conversations can be opened: panels are read by their members only.")
    opening = Opening(new_id(), space_id, owner, why, tx.now, tx.now + OPEN_SECONDS * SECOND)
    until = f"{moment(opening.until):%Y-%m-%d %H:%M} UTC"
    text = f"I am an owner of this organization and opened this private space to read it, until {until}. Reason: {why}"
    notice = posting.post_notice(tx, space_id, owner, posting.draft(text), {"opening": opening.id})
    tx.run(
        _add,
        id=opening.id,
        organization_id=organization_id,
        space_id=space_id,
        by_id=owner,
        reason=why,
        after_seq=notice.seq,
        created_at=opening.created_at,
        until=opening.until,
    )
    audit.record(tx, organization_id, by, "open_private_space", opening.id, space=space_id, until=until)
    return opening


def require_reader(tx: Tx, space_id: SpaceId, entity_id: EntityId) -> Space:
    """The space, if this entity is in it, or is an owner who has opened it. For reading only."""
    try:
        return directory.require_member(tx, space_id, entity_id)
    except NotFound:
        if not _has_opened(tx, space_id, entity_id):
            raise
        return directory.get_space(tx, space_id)


def may_read_what_came_from(tx: Tx, space_id: SpaceId, entity_id: EntityId) -> bool:
    """Whether this entity may read what others know from the space: it is not private, or the entity may read it."""
    try:
        space = directory.get_space(tx, space_id)
    except NotFound:
        return False
    return not space.private or directory.is_member(tx, space_id, entity_id) or _has_opened(tx, space_id, entity_id)


def _has_opened(tx: Tx, space_id: SpaceId, entity_id: EntityId) -> bool:
    opened = tx.one(_open, space_id=space_id, by_id=entity_id, now=tx.now)
    return opened is not None and roles.role_of(tx, entity_id) == "owner"
