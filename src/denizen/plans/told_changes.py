"""What an agent was told of its goals, notes and plans, so that each change is told once, whoever made it.

Changes by others are counted as news, and shown by the next cycle's inbox message. Changes by the agent itself are in
its history already: they are recorded as told, so that no later message repeats them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from sqlalchemy import bindparam, select, update

from denizen.errors import NotFound
from denizen.ids import AgentId
from denizen.storage.database import Tx, statement
from denizen.storage.schema import agents, cycles, minds

_status = statement(select(agents.c.status, agents.c.zone).where(agents.c.id == bindparam("agent_id")))
_lock = statement(select(minds.c.told).where(minds.c.agent_id == bindparam("agent_id")).with_for_update())
_count_news = statement(update(minds).where(minds.c.agent_id == bindparam("agent")).values(news=minds.c.news + 1))
_tell = statement(update(minds).where(minds.c.agent_id == bindparam("agent")).values(told=bindparam("facts")))
_open = statement(
    select(cycles.c.id, cycles.c.told).where(
        cycles.c.agent_id == bindparam("agent_id"), cycles.c.number.is_(None), cycles.c.told.is_not(None)
    )
)
_tell_open = statement(update(cycles).where(cycles.c.id == bindparam("cycle")).values(told=bindparam("facts")))


def lock(tx: Tx, agent_id: AgentId) -> None:
    """Lock the agent's goals, notes and plans until this transaction ends. Always before the lock on its plans."""
    tx.one(_lock, agent_id=agent_id)


def zone_of(tx: Tx, agent_id: AgentId) -> tuple[str, bool]:
    """The time zone of a living agent, and whether it is suspended. Raises `NotFound` for a dead one."""
    row = tx.one(_status, agent_id=agent_id)
    if row is None or row[0] == "dead":
        raise NotFound("living agent", agent_id)
    return row[1] or "UTC", row[0] == "suspended"


def tell(tx: Tx, agent_id: AgentId) -> None:
    """Someone else changed something: the next cycle is told what."""
    tx.run(_count_news, agent=agent_id)


def know(tx: Tx, agent_id: AgentId, lines: Mapping[str, str | None]) -> None:
    """Record that the agent knows these facts already; None for one that is removed."""
    row = tx.one(_lock, agent_id=agent_id)
    if row is None:
        return
    tx.run(_tell, agent=agent_id, facts=_with(json.loads(row[0]), lines))
    # The open cycle keeps what it was told when it began, and records that when it ends.
    for cycle_id, kept in tx.all(_open, agent_id=agent_id):
        told = json.loads(kept)
        if "facts" not in told:
            continue
        told["facts"] = json.loads(_with(told["facts"], lines))
        tx.run(_tell_open, cycle=cycle_id, facts=json.dumps(told, ensure_ascii=False))


def _with(facts: dict[str, str], lines: Mapping[str, str | None]) -> str:
    both = {**facts, **lines}
    return json.dumps({key: line for key, line in both.items() if line is not None}, ensure_ascii=False)
