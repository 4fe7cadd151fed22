"""How far members have read. Messages are numbered without holes: what is unread is a difference, and is never counted.

Whoever joins has read what was said before; whoever says something has read up to it. Only the member itself moves its
mark otherwise, in both directions: back, what follows is unread again. An agent's cycles move no mark: what it has seen
is in its log.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, select, update

from denizen.errors import InvalidInput
from denizen.ids import EntityId, SpaceId
from denizen.spaces import directory
from denizen.spaces.directory import Entity, Member, Space
from denizen.storage.database import Tx, statement
from denizen.storage.schema import entities, memberships, spaces


@dataclass(frozen=True, slots=True)
class Place:
    """A space as one of its members finds it."""

    space: Space
    created_at: int
    last_seq: int
    read_seq: int
    """The number of the last message that the member has read."""

    @property
    def unread(self) -> int:
        return max(self.last_seq - self.read_seq, 0)


_place = (
    spaces.c.id,
    spaces.c.organization_id,
    spaces.c.kind,
    spaces.c.name,
    spaces.c.private,
    spaces.c.created_at,
    spaces.c.last_seq,
    memberships.c.read_seq,
)
_mine = (
    select(*_place)
    .join(memberships, memberships.c.space_id == spaces.c.id)
    .where(memberships.c.entity_id == bindparam("entity_id"))
)
_one = statement(_mine.where(memberships.c.space_id == bindparam("space_id")))
_page = statement(
    _mine.where(memberships.c.space_id > bindparam("after")).order_by(memberships.c.space_id).limit(bindparam("limit"))
)
_own = memberships.alias("own")
_members = statement(
    select(
        memberships.c.space_id,
        entities.c.id,
        entities.c.organization_id,
        entities.c.kind,
        entities.c.handle,
        entities.c.name,
        memberships.c.role,
        memberships.c.attention,
    )
    .select_from(_own)
    .join(memberships, memberships.c.space_id == _own.c.space_id)
    .join(entities, entities.c.id == memberships.c.entity_id)
    .where(
        _own.c.entity_id == bindparam("entity_id"),
        _own.c.space_id > bindparam("after"),
        _own.c.space_id <= bindparam("last"),
    )
    .order_by(memberships.c.joined_at, entities.c.id)
)
_mark = statement(
    update(memberships)
    .where(memberships.c.space_id == bindparam("space"), memberships.c.entity_id == bindparam("entity"))
    .values(read_seq=bindparam("read"))
)


def place_of(tx: Tx, space_id: SpaceId, entity_id: EntityId) -> Place:
    """The space as this member finds it. Whoever is none is refused as at every door."""
    directory.require_member(tx, space_id, entity_id)
    row = tx.one(_one, space_id=space_id, entity_id=entity_id)
    assert row is not None
    return _as_place(row)


def places_of(tx: Tx, entity_id: EntityId, *, after: str = "", limit: int) -> list[tuple[Place, list[Member]]]:
    """The spaces this entity is in, and who is in each of them, in the order of their ids after the given one."""
    # An id is a place in this list, and none in time: a space that is made meanwhile may be passed by.
    places = [_as_place(row) for row in tx.all(_page, entity_id=entity_id, after=after, limit=limit)]
    if not places:
        return []
    there: defaultdict[str, list[Member]] = defaultdict(list)
    for space_id, *who in tx.all(_members, entity_id=entity_id, after=after, last=places[-1].space.id):
        there[space_id].append(Member(Entity(*who[:5]), who[5], who[6]))
    return [(each, there[each.space.id]) for each in places]


def mark_read(tx: Tx, space_id: SpaceId, entity_id: EntityId, seq: int) -> Place:
    """The member has read up to the message of that number, and not what follows it."""
    place = place_of(tx, space_id, entity_id)
    if not 0 <= seq <= place.last_seq:
        raise InvalidInput(f"seq: messages of this space have numbers up to {place.last_seq}, not {seq}.")
    tx.run(_mark, space=space_id, entity=entity_id, read=seq)
    return Place(place.space, place.created_at, place.last_seq, seq)


def _as_place(row: tuple[Any, ...]) -> Place:
    return Place(Space(row[0], row[1], row[2], row[3], bool(row[4])), row[5], row[6], row[7])
