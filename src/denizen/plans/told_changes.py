"""What an agent was told of its goals, notes and plans, so that each change is told once.

Changes by others are counted as news, and shown by the next cycle's inbox message. Changes by the agent itself are in
its history already: they are recorded as told, so that no later message repeats them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from denizen.errors import NotFound
from denizen.ids import AgentId
from denizen.storage.database import Tx, select_where, update_where, value
from denizen.storage.schema import agents, cycles, minds

_status = select_where(agents, "status, zone", "id")
_lock = select_where(minds, "told", "agent_id", for_update=True)
_count_news = update_where(minds, "agent_id", news=minds.c.news + 1)
_tell = update_where(minds, "agent_id", set_="told")
_open = select_where(cycles, "id, told", "agent_id", cycles.c.number.is_(None), cycles.c.told.is_not(None))
_tell_open = update_where(cycles, "id", set_="told")


def lock(tx: Tx, agent_id: AgentId) -> None:
    """Lock the agent's goals, notes and plans until this transaction ends. Always before the lock on its plans."""
    tx.one(_lock, agent_id=agent_id)


def zone_of(tx: Tx, agent_id: AgentId) -> tuple[str, bool]:
    """The time zone of a living agent, and whether it is suspended. Raises `NotFound` for a dead one."""
    status, zone = tx.one(_status, id=agent_id) or ("dead", None)
    if status == "dead":
        raise NotFound("living agent", agent_id)
    return zone or "UTC", status == "suspended"


def tell(tx: Tx, agent_id: AgentId) -> None:
    """Someone else changed something: the next cycle is told what."""
    tx.run(_count_news, agent_id=agent_id)


def know(tx: Tx, agent_id: AgentId, lines: Mapping[str, str | None]) -> None:
    """Record that the agent knows these facts already; None for one that is removed."""
    told = value(tx, _lock, agent_id=agent_id)
    if told is None:
        return
    tx.run(_tell, agent_id=agent_id, told=_with(json.loads(told), lines))
    # The open cycle keeps what it was told when it began, and records that when it ends.
    for cycle_id, kept in tx.all(_open, agent_id=agent_id):
        told = json.loads(kept)
        if "facts" not in told:
            continue
        told["facts"] = json.loads(_with(told["facts"], lines))
        tx.run(_tell_open, id=cycle_id, told=json.dumps(told, ensure_ascii=False))


def _with(facts: dict[str, str], lines: Mapping[str, str | None]) -> str:
    both = {**facts, **lines}
    return json.dumps({key: line for key, line in both.items() if line is not None}, ensure_ascii=False)
