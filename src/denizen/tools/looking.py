"""The tools with which an agent looks at itself: its past cycles, and what waits for it. They change nothing."""

from __future__ import annotations

import json
from typing import Any, Final

from pydantic import Field
from sqlalchemy import bindparam, select

from denizen.consciousness import privacy
from denizen.inbox import delivery
from denizen.inbox.format import format_preview
from denizen.inbox.sources import sources_of_events
from denizen.plans.schedule import say
from denizen.storage.database import Tx, statement
from denizen.storage.schema import cycles
from denizen.tools.tool import Arguments, Done, Hand, OwnTool

_NEWEST: Final = 2**62


class GetMyCycles(Arguments):
    before: int | None = Field(default=None, ge=1, description="Only cycles before this number.")
    limit: int = Field(default=10, ge=1, le=50)


class PeekInbox(Arguments):
    pass


_ended = statement(
    select(cycles.c.number, cycles.c.started_at, cycles.c.outcome, cycles.c.stop_reason, cycles.c.summary, cycles.c.id)
    .where(
        cycles.c.agent_id == bindparam("agent_id"),
        cycles.c.number.is_not(None),
        cycles.c.number < bindparam("before"),
    )
    .order_by(cycles.c.number.desc())
    .limit(bindparam("limit"))
)


def get_my_cycles(tx: Tx, hand: Hand, arguments: GetMyCycles) -> Done:
    """A page of the cycles that have ended, the newest first."""
    before = min(arguments.before or _NEWEST, _NEWEST)  # models write numbers that no database takes
    rows = tx.all(_ended, agent_id=hand.agent_id, before=before, limit=arguments.limit)
    told = json.dumps([_cycle(row) for row in rows], ensure_ascii=False, separators=(",", ":"))
    return Done(told, sources=frozenset[str]().union(*(privacy.sources_of(tx, row[5]) for row in rows)))


def _cycle(row: tuple[Any, ...]) -> dict[str, object]:
    number, started_at, outcome, stop_reason, summary, _ = row
    told: dict[str, object] = {"number": number, "time": say(started_at), "outcome": outcome, "summary": summary}
    return told if outcome == "acted" else {**told, "reason": stop_reason}


def peek_inbox(tx: Tx, hand: Hand, _arguments: PeekInbox) -> Done:
    """What waits in the inbox, one short line each. It goes on waiting."""
    waiting = delivery.pending(tx, hand.agent_id)
    if not waiting:
        return Done("Nothing waits in your inbox.")
    spaces = frozenset[str]().union(*map(privacy.sources_of_event, waiting))
    return Done(format_preview(waiting), sources=spaces, outside=sources_of_events(waiting))


LOOKING: Final = (
    OwnTool("get_my_cycles", "List your past cycles with their summaries, newest first.", GetMyCycles, get_my_cycles),
    OwnTool("peek_inbox", "See what waits in your inbox, without taking it.", PeekInbox, peek_inbox),
)
