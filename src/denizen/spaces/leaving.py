"""Leaving a space, with everything that ends with the membership."""

from __future__ import annotations

from sqlalchemy import bindparam, update

from denizen.ids import EntityId, SpaceId
from denizen.inbox import statuses
from denizen.spaces import directory, floor
from denizen.storage.database import Tx, statement
from denizen.storage.schema import events

_wait_no_more = statement(
    update(events)
    .where(
        events.c.agent_id == bindparam("agent"),
        events.c.state != "done",  # must match the condition of the partial index exactly
        events.c.space_id == bindparam("space"),
        events.c.waits == 1,
    )
    .values(waits=0)
)


def leave(tx: Tx, space_id: SpaceId, entity_id: EntityId) -> None:
    """Remove the entity from the space; announces it to the agents there.

    What an agent was to answer there goes to the next agent, if the floor of the space passes it on; nobody waits for
    this one any more, and the space shows no status of it.
    """
    directory.end_membership(tx, space_id, entity_id)
    floor.hand_over(tx, entity_id, space_id)
    tx.run(_wait_no_more, agent=entity_id, space=space_id)
    statuses.clear_agent_in_space(tx, entity_id, space_id)
