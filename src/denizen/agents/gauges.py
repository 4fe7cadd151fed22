"""The numbers that are not counted but looked up, each time someone asks for the metrics. Bounded work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy import func, literal, select

from denizen.errors import StorageError
from denizen.storage.database import Database, Tx, statement
from denizen.storage.schema import calls, events
from denizen.telemetry.metrics import Metrics

LOOKED_AT: Final = 100_000
"""So many events that are not done, and calls that wait, are looked at; beyond that the numbers are too small."""

_STATES: Final = ("pending", "taken", "dead")

_open_events = select(events.c.state).where(events.c.state != "done").limit(LOOKED_AT).subquery()
_by_state = statement(select(_open_events.c.state, func.count()).group_by(_open_events.c.state))
_open_calls = select(literal(1).label("one")).where(calls.c.state == "waiting").limit(LOOKED_AT).subquery()
_waiting = statement(select(func.count()).select_from(_open_calls))


@dataclass(frozen=True, slots=True)
class Readings:
    """What the database says, now."""

    events: dict[str, int]
    calls_waiting: int


def read(tx: Tx) -> Readings:
    waiting = tx.one(_waiting)
    by_state: dict[str, int] = dict(tx.all(_by_state))
    return Readings(by_state, waiting[0] if waiting else 0)


async def exposition(metrics: Metrics, db: Database, *, awake: int) -> str:
    """Everything as text. Where the database does not answer, that is told, and what is known without it."""
    try:
        found: Readings | None = await db.read(read)
    except StorageError:
        found = None
    # No more waiting from here on: whoever else asks at the same time does not get half of it.
    metrics.awake.set(awake)
    metrics.commits.reach(db.commits)
    metrics.database_up.set(0 if found is None else 1)
    metrics.events.clear()
    metrics.calls_waiting.clear()
    if found is not None:
        for state in _STATES:
            metrics.events.set(found.events.get(state, 0), state)
        metrics.calls_waiting.set(found.calls_waiting)
    return metrics.exposition()
