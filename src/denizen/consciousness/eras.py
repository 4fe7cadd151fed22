"""Eras as they are stored: each has the exact self, and the exact text before the window."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, case

from denizen.consciousness.system_prompt import Era, Facts
from denizen.ids import AgentId
from denizen.storage.database import Tx, insert_into, select_where, update_where
from denizen.storage.schema import minds, selves

_self = select_where(selves, "text, layers, shortened, outside", "agent_id, era")
_add_self = insert_into(selves, "agent_id, era, text, layers, shortened, outside, created_at")
_begin_era = update_where(
    minds,
    "agent_id",
    set_="era, era_version, news_told, told",
    outside=case((bindparam("from_outside") == 1, 1), else_=minds.c.outside),
)
_take_over = update_where(
    minds, "agent_id", set_="cycle_count, last_cycle_at, window_from, era, outside", era_version=0
)


@dataclass(frozen=True, slots=True)
class SelfInputs:
    """What a self was rendered from."""

    version: int
    """The version of the definition."""
    news: int
    """How many changes around the agent were counted by then."""
    facts: Facts


def find(tx: Tx, agent_id: AgentId, number: int) -> Era:
    """The era of that number."""
    row = tx.one(_self, agent_id=agent_id, era=number)
    if row is None:
        return Era(number, "")
    text, layers, shortened, outside = row
    return Era(number, text, layers, shortened_of(shortened), bool(outside))


def shortened_of(encoded: str | None) -> dict[int, int]:
    """The maximum characters of shortened entries, by entry number."""
    found: dict[str, Any] = json.loads(encoded or "{}")
    return {int(seq): characters for seq, characters in found.items()}


def store(tx: Tx, agent_id: AgentId, era: Era) -> None:
    """Store the era under its number."""
    shortened = json.dumps(era.shortened) if era.shortened else None
    row = {"text": era.text, "layers": era.layers, "shortened": shortened, "outside": int(era.outside)}
    tx.run(_add_self, agent_id=agent_id, era=era.number, created_at=tx.now, **row)


def begin(tx: Tx, agent_id: AgentId, era: Era, told: SelfInputs) -> None:
    """Put the stored era in force, and record what its self was rendered from."""
    tx.run(
        _begin_era,
        agent_id=agent_id,
        era=era.number,
        era_version=told.version,
        news_told=told.news,
        told=json.dumps(told.facts, ensure_ascii=False),
        from_outside=int(era.outside),
    )


def take_over(
    tx: Tx, agent_id: AgentId, *, cycles: int, ended_at: int | None, window_from: int, era: int, outside: bool
) -> None:
    """Give the agent a copied history. Its next cycle begins a new era: its surroundings are different."""
    tx.run(
        _take_over,
        agent_id=agent_id,
        cycle_count=cycles,
        last_cycle_at=ended_at,
        window_from=window_from,
        era=era,
        outside=int(outside),
    )
