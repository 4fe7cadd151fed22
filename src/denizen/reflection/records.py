"""The stored states of mind of agents: changes by people, settings per conversation, and how far each has reflected.

The result of a turn is written as a whole and only once: the write moves the agent's cursor by one, or does nothing. A
writer locks the agent's mind first, as a cycle does when it ends, so that the two cannot deadlock.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import bindparam, or_, select

from denizen.bus.streams import StanceChanged, agent_topic
from denizen.errors import NotFound
from denizen.ids import AgentId, EntityId, SpaceId
from denizen.plans import told_changes
from denizen.reflection.cursor import AGENT_CURSOR, Claimant
from denizen.reflection.stance_store import AGENTS, ReflectedTurn, Run, Stance, upsert
from denizen.reflection.state import Adjustment
from denizen.storage.database import Tx, select_where, statement, update_where, value, values
from denizen.storage.schema import agents, leases, memberships, minds, reflecting, stances


def announce(tx: Tx, agent_id: AgentId, space_id: SpaceId) -> None:
    """Tells the agent's watchers that its state of mind in the conversation has changed."""
    tx.announce(agent_topic(agent_id), StanceChanged(agent_id, space_id).to_payload())


_is_member = select_where(memberships, "space_id", "space_id, entity_id")


def require_there(tx: Tx, agent_id: AgentId, space_id: SpaceId) -> None:
    """Raises `NotFound` if the agent is not in the space."""
    if tx.one(_is_member, space_id=space_id, entity_id=agent_id) is None:
        raise NotFound("space", space_id)


def set_state(
    tx: Tx, agent_id: AgentId, space_id: SpaceId, wanted: Adjustment, *, by: EntityId | None = None
) -> Stance:
    """Sets the state of mind; values that are not given stay."""
    return enter(tx, agent_id, space_id, Run(None, "set", wanted), by=by)


def enter(tx: Tx, agent_id: AgentId, space_id: SpaceId, run: Run, *, by: EntityId | None = None) -> Stance:
    """Records a change by hand in the history and applies it; the agent is told in its next cycle."""
    told_changes.lock(tx, agent_id)
    require_there(tx, agent_id, space_id)
    if AGENTS.enter(tx, agent_id, space_id, run, by=by):
        told_changes.tell(tx, agent_id)
    announce(tx, agent_id, space_id)
    return AGENTS.stance(tx, agent_id, space_id)


def reset(tx: Tx, agent_id: AgentId, space_id: SpaceId, *, by: EntityId | None = None) -> Stance:
    """Clears imprints, counters and the state of mind. The history stays."""
    told_changes.lock(tx, agent_id)
    require_there(tx, agent_id, space_id)
    if AGENTS.reset(tx, agent_id, space_id, by=by):
        told_changes.tell(tx, agent_id)
    announce(tx, agent_id, space_id)
    return AGENTS.stance(tx, agent_id, space_id)


# Settings of a conversation that replace the agent's

_put_overrides = upsert(stances, "overrides")
_overrides = select_where(stances, "overrides", "agent_id", stances.c.overrides.is_not(None))
_lived = select_where(minds, "cycle_count", "agent_id")
_new_version = update_where(agents, "id", version=agents.c.version + 1)


def set_overrides(tx: Tx, agent_id: AgentId, space_id: SpaceId, wanted: Mapping[str, Any], *, reflects: bool) -> None:
    """Stores settings of the conversation that replace the agent's; without any, the agent's own apply.

    `reflects`: whether the agent reflects in other conversations.
    """
    told_changes.lock(tx, agent_id)
    require_there(tx, agent_id, space_id)
    encoded = json.dumps(dict(wanted), ensure_ascii=False) if wanted else None
    tx.run(_put_overrides, agent_id=agent_id, space_id=space_id, overrides=encoded, updated_at=tx.now)
    announce(tx, agent_id, space_id)
    # A process that runs the agent with the old settings reloads it.
    tx.run(_new_version, id=agent_id)
    keep_reflecting(tx, agent_id, on=reflects)


def keep_reflecting(tx: Tx, agent_id: AgentId, *, on: bool) -> None:
    """Switches reflection on the agent's cycles on if the agent or one of its conversations wants it, otherwise off."""
    wanted = on or any(json.loads(each).get("reflection") for each in values(tx, _overrides, agent_id=agent_id))
    AGENT_CURSOR.set_reflecting(tx, agent_id, wanted, value(tx, _lived, agent_id=agent_id) or 0)


_skip = update_where(
    reflecting,
    "agent_id",
    cycle=select(minds.c.cycle_count).where(minds.c.agent_id == reflecting.c.agent_id).scalar_subquery(),
)


def leave_past(tx: Tx, agent_id: AgentId) -> None:
    """Marks all cycles so far as reflected on: for a fork or an imported agent, whose past belongs to another."""
    tx.run(_skip, agent_id=agent_id)


# Turns that were reflected on


def keep_turn(
    tx: Tx, agent_id: AgentId, cycle: int, conversations: Sequence[ReflectedTurn], *, forgotten: int, instance: str
) -> bool:
    """Stores the result of reflecting on the cycle. Returns False, and changes nothing, if another instance does it, or
    something was forgotten meanwhile.
    """
    told_changes.lock(tx, agent_id)
    if not AGENT_CURSOR.advance(tx, agent_id, cycle, instance, forgotten=forgotten):
        return False
    for each in conversations:
        if tx.one(_is_member, space_id=each.space_id, entity_id=agent_id) is None:
            continue  # Left or forgotten meanwhile.
        if AGENTS.keep(tx, agent_id, cycle, each):
            told_changes.tell(tx, agent_id)
        if each.seen or each.runs:
            announce(tx, agent_id, each.space_id)
    return True


_behind = statement(
    select(reflecting.c.agent_id)
    .join(minds, minds.c.agent_id == reflecting.c.agent_id)
    .join(agents, agents.c.id == reflecting.c.agent_id)
    .join(leases, leases.c.agent_id == reflecting.c.agent_id)
    .where(
        minds.c.cycle_count > reflecting.c.cycle,
        agents.c.status != "dead",
        or_(leases.c.holder.is_(None), leases.c.holder == bindparam("claimant"), leases.c.until < bindparam("now")),
        AGENT_CURSOR.unclaimed,
    )
    .order_by(reflecting.c.agent_id)
)


def behind(tx: Tx, by: Claimant) -> list[AgentId]:
    """Returns the agents with cycles to reflect on that no other instance runs or reflects on."""
    return [AgentId(each) for each in values(tx, _behind, now=tx.now, **by.parameters(tx))]
