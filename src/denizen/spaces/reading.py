"""Read positions of members. Messages are numbered without holes, so the number of unread ones is a difference, and is
never counted. Only mentions of the member are counted, among the newest.

A member who joins has read everything before; a member who posts has read up to that message. Otherwise only the member
itself moves its position, in both directions: back, later messages are unread again. An agent's cycles do not move it:
what an agent has seen is in its log.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import bindparam, select

from denizen.bus.streams import SpaceRead, entity_topic
from denizen.errors import InvalidInput
from denizen.ids import EntityId, SpaceId
from denizen.shapes.vocabulary import MENTIONS_LOOKED_AT as LOOKED_AT
from denizen.spaces import directory
from denizen.spaces.directory import Entity, Member, Space
from denizen.storage.database import Tx, columns, statement, update_where
from denizen.storage.schema import entities, memberships, messages, spaces


@dataclass(frozen=True, slots=True)
class ReadPosition:
    """A space as one of its members sees it."""

    space: Space
    created_at: int
    last_seq: int
    read_seq: int
    """The number of the last message that the member has read."""
    unread_mentions: int = 0
    """How many of the newest unread messages, up to `LOOKED_AT`, mention the member."""

    @property
    def unread(self) -> int:
        return max(self.last_seq - self.read_seq, 0)


_place = (*directory.SPACE_COLUMNS, spaces.c.created_at, spaces.c.last_seq, memberships.c.read_seq)
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
        *columns(entities, "id, organization_id, kind, handle, name"),
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
_mentions = statement(
    select(messages.c.space_id, messages.c.mentions, entities.c.handle)
    .select_from(memberships)
    .join(spaces, spaces.c.id == memberships.c.space_id)
    .join(entities, entities.c.id == memberships.c.entity_id)
    .join(
        messages,
        (messages.c.space_id == memberships.c.space_id)
        & (messages.c.seq > memberships.c.read_seq)
        & (messages.c.seq > spaces.c.last_seq - LOOKED_AT),
    )
    .where(
        memberships.c.entity_id == bindparam("entity_id"),
        memberships.c.space_id >= bindparam("first"),
        memberships.c.space_id <= bindparam("last"),
        # Handles are matched in their JSON list.
        messages.c.mentions.like('%"' + entities.c.handle + '"%'),
    )
)
_mark = update_where(memberships, "space_id, entity_id", set_="read_seq")


def place_of(tx: Tx, space_id: SpaceId, entity_id: EntityId) -> ReadPosition:
    """The space as this member sees it. Raises `NotFound` for an entity that is not in it."""
    directory.require_member(tx, space_id, entity_id)
    row = tx.one(_one, space_id=space_id, entity_id=entity_id)
    assert row is not None
    return _with_mentions(tx, entity_id, [_as_place(row)])[0]


def places_of(tx: Tx, entity_id: EntityId, *, after: str = "", limit: int) -> list[tuple[ReadPosition, list[Member]]]:
    """The spaces of this entity with their members, ordered by id, after the given one."""
    # An id is a position in this list, but not in time: a space that is created meanwhile may be missed.
    places = [_as_place(row) for row in tx.all(_page, entity_id=entity_id, after=after, limit=limit)]
    if not places:
        return []
    there: defaultdict[str, list[Member]] = defaultdict(list)
    for space_id, *who in tx.all(_members, entity_id=entity_id, after=after, last=places[-1].space.id):
        there[space_id].append(Member(Entity(*who[:5]), who[5], who[6]))
    return [(each, there[each.space.id]) for each in _with_mentions(tx, entity_id, places)]


def _with_mentions(tx: Tx, entity_id: EntityId, places: list[ReadPosition]) -> list[ReadPosition]:
    """The places, ordered by id, with the number of unread mentions of the member."""
    if not any(each.unread for each in places):
        return places
    first, last = places[0].space.id, places[-1].space.id
    rows = tx.all(_mentions, entity_id=entity_id, first=first, last=last)
    # The pattern of the query treats the _ of a handle as a wildcard.
    counted = Counter(space_id for space_id, mentions, handle in rows if handle in json.loads(mentions))
    return [replace(each, unread_mentions=counted[each.space.id]) for each in places]


def mark_read(tx: Tx, space_id: SpaceId, entity_id: EntityId, seq: int) -> ReadPosition:
    """Set the member's read position to that message; later ones are unread. Announced to their other devices."""
    place = place_of(tx, space_id, entity_id)
    if not 0 <= seq <= place.last_seq:
        raise InvalidInput(f"seq: messages of this space have numbers up to {place.last_seq}, not {seq}.")
    if seq == place.read_seq:
        return place
    tx.run(_mark, space_id=space_id, entity_id=entity_id, read_seq=seq)
    tx.announce(entity_topic(entity_id), SpaceRead(entity_id, space_id).to_payload())
    return place_of(tx, space_id, entity_id)


def _as_place(row: tuple[Any, ...]) -> ReadPosition:
    return ReadPosition(directory.as_space(row), *row[-3:])
