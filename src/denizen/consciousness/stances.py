"""The lines about an agent's profile and state of mind in its spaces.

Their content is decided elsewhere (`profiles`, `reflection`); here they are read with the spaces, in one statement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, select

from denizen.ids import AgentId, SpaceId
from denizen.spaces import directory
from denizen.spaces.directory import Space
from denizen.storage.database import Tx, statement
from denizen.storage.schema import memberships, spaces, stances


@dataclass(frozen=True, slots=True)
class SpaceWithStance:
    """A space that an agent is in."""

    space: Space
    profile: str | None
    """The line about its profile there; None: it has none."""
    mind: str | None
    """The line about its state of mind there; None: it has no particular one."""


_newest = (
    select(memberships.c.space_id)
    .where(memberships.c.entity_id == bindparam("entity_id"))
    .order_by(memberships.c.space_id.desc())
    .limit(bindparam("limit"))
    .subquery()
)
_place = (
    select(
        *directory.SPACE_COLUMNS,
        stances.c.profile_line,
        stances.c.mind_line,
    )
    .select_from(spaces)
    .outerjoin(stances, (stances.c.space_id == spaces.c.id) & (stances.c.agent_id == bindparam("entity_id")))
)
_places = statement(_place.join(_newest, _newest.c.space_id == spaces.c.id).order_by(spaces.c.id))
_one = statement(_place.where(spaces.c.id == bindparam("space_id")))


def places_of(tx: Tx, agent_id: AgentId, *, limit: int) -> list[SpaceWithStance]:
    """The newest of the agent's spaces with its stances there, oldest of them first."""
    return [_read(row) for row in tx.all(_places, entity_id=agent_id, limit=limit)]


def place(tx: Tx, agent_id: AgentId, space_id: SpaceId) -> SpaceWithStance | None:
    """One space, its members, and the agent's stance there."""
    row = tx.one(_one, entity_id=agent_id, space_id=space_id)
    return None if row is None else _read(row)


def _read(row: tuple[Any, ...]) -> SpaceWithStance:
    *space, profile, mind = row
    return SpaceWithStance(directory.as_space(space), profile, mind)
