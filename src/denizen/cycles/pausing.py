"""Paused cycles, which wait for people: whether they can continue."""

from __future__ import annotations

from sqlalchemy import bindparam, exists, or_, select

from denizen.ids import AgentId
from denizen.inbox import parking
from denizen.storage.database import Tx, statement
from denizen.storage.schema import agents, calls, cycles, events

_unanswered = exists().where(
    calls.c.agent_id == cycles.c.agent_id,
    calls.c.state == "waiting",
    calls.c.mode == "pause",
    calls.c.cycle_id == cycles.c.id,
)
_waking = exists().where(
    events.c.agent_id == cycles.c.agent_id,
    events.c.state != "done",
    events.c.state == "pending",
    events.c.wakes == 1,
    events.c.not_before <= bindparam("now"),
)
_paused = (cycles.c.number.is_(None), cycles.c.outcome == "paused")

WAITING = select(cycles.c.agent_id).where(*_paused, _unanswered, ~_waking)
"""The agents whose cycle stays paused: an answer is missing, and nothing else wakes them."""
READY = select(cycles.c.agent_id).where(*_paused, or_(~_unanswered, _waking))
"""The agents whose paused cycle can continue."""

_stays = statement(
    WAITING.where(cycles.c.agent_id == bindparam("agent_id")).union_all(
        parking.WAITING.where(agents.c.id == bindparam("agent_id"))
    )
)


def stays_paused(tx: Tx, agent_id: AgentId) -> bool:
    """Whether the agent waits for people, and for nothing else, or is parked."""
    return tx.one(_stays, agent_id=agent_id, now=tx.now) is not None
