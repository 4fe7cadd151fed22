"""An agent's view of itself: its past cycles, and what waits for it. Read-only."""

from __future__ import annotations

import json
from typing import Any, Final

from sqlalchemy import bindparam

from denizen.consciousness import privacy
from denizen.inbox import delivery
from denizen.inbox.format import format_preview
from denizen.inbox.sources import sources_of_events
from denizen.plans.schedule import say
from denizen.storage.database import Tx, select_where
from denizen.storage.schema import cycles
from denizen.tools.tool import Done, Hand

CYCLES: Final = 20
"""How many cycles are listed at once."""

_ended = select_where(
    cycles,
    "number, started_at, outcome, stop_reason, summary, id",
    "agent_id",
    cycles.c.number.is_not(None),
    cycles.c.number < bindparam("before"),
    order_by="number desc",
    limit="limit",
)


def read_cycles(tx: Tx, hand: Hand, before: int) -> Done:
    """The cycles before that number, newest first, and where older ones are."""
    rows = tx.all(_ended, agent_id=hand.agent_id, before=before, limit=CYCLES)
    told = json.dumps([_cycle(row) for row in rows], ensure_ascii=False, separators=(",", ":"))
    older = f'\n… [read_entry("cycles:{rows[-1][0]}") shows older ones]' if rows and rows[-1][0] > 1 else ""
    return Done(told + older, sources=frozenset[str]().union(*(privacy.sources_of(tx, row[5]) for row in rows)))


def _cycle(row: tuple[Any, ...]) -> dict[str, object]:
    number, started_at, outcome, stop_reason, summary, _ = row
    told: dict[str, object] = {"number": number, "time": say(started_at), "outcome": outcome, "summary": summary}
    return told if outcome == "acted" else {**told, "reason": stop_reason}


def read_inbox(tx: Tx, hand: Hand) -> Done:
    """What waits in the inbox, one short line each. It stays there."""
    waiting = delivery.pending(tx, hand.agent_id)
    if not waiting:
        return Done("Nothing waits in your inbox.")
    spaces = frozenset[str]().union(*map(privacy.sources_of_event, waiting))
    return Done(format_preview(waiting), sources=spaces, outside=sources_of_events(waiting))
