"""How an agent stands to the spaces it is in: the lines that it is told of its profile and state of mind there.

What they are is decided elsewhere (`profiles`, `reflection`); here they are read with the spaces, in one statement.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import bindparam, select

from denizen.ids import AgentId
from denizen.spaces.directory import Space
from denizen.storage.database import Tx, statement
from denizen.storage.schema import memberships, spaces, stances


@dataclass(frozen=True, slots=True)
class Place:
    """A space that an agent is in."""

    space: Space
    profile: str | None
    """What it is told of its profile there; None: it has none."""
    mind: str | None
    """What it is told of its state of mind there; None: it has no particular one."""


_places = statement(
    select(
        spaces.c.id,
        spaces.c.organization_id,
        spaces.c.kind,
        spaces.c.name,
        spaces.c.private,
        stances.c.profile_line,
        stances.c.mind_line,
    )
    .join(memberships, memberships.c.space_id == spaces.c.id)
    .outerjoin(stances, (stances.c.space_id == spaces.c.id) & (stances.c.agent_id == memberships.c.entity_id))
    .where(memberships.c.entity_id == bindparam("entity_id"))
    .order_by(spaces.c.id)
)


def places_of(tx: Tx, agent_id: AgentId) -> list[Place]:
    """The spaces that the agent is in, and how it stands there."""
    rows = tx.all(_places, entity_id=agent_id)
    return [Place(Space(row[0], row[1], row[2], row[3], bool(row[4])), row[5], row[6]) for row in rows]
