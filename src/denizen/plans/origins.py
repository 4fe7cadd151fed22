"""The spaces that an agent's goals, notes and plans come from: those of the cycle in which it made them.

A goal, note or plan without an origin was set by a person or by a definition.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from denizen.ids import AgentId
from denizen.storage.database import Tx, delete_where, insert_ignore, select_where, values
from denizen.storage.schema import fact_spaces

_add = insert_ignore(fact_spaces, "agent_id, fact, space_id")
_remove = delete_where(fact_spaces, "agent_id, fact")
_of_agent = select_where(fact_spaces, "fact, space_id", "agent_id")
_of_fact = select_where(fact_spaces, "space_id", "agent_id, fact")


def set_origin(tx: Tx, agent_id: AgentId, facts: Iterable[str], space_ids: Iterable[str] = ()) -> None:
    """Set the spaces that these facts come from; none if a person has set them."""
    spaces = list(space_ids)
    for fact in facts:
        tx.run(_remove, agent_id=agent_id, fact=fact)
        if spaces:
            tx.many(_add, [{"agent_id": agent_id, "fact": fact, "space_id": each} for each in spaces])


def origins_of(tx: Tx, agent_id: AgentId) -> dict[str, frozenset[str]]:
    """The spaces of each fact of the agent that has an origin, by its key: `goal:1`, `note:key`, `plan:id`."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for fact, space_id in tx.all(_of_agent, agent_id=agent_id):
        found[fact].add(space_id)
    return {fact: frozenset(spaces) for fact, spaces in found.items()}


def origin_of(tx: Tx, agent_id: AgentId, fact: str) -> list[str]:
    """The spaces of one fact, in order."""
    return sorted(values(tx, _of_fact, agent_id=agent_id, fact=fact))
