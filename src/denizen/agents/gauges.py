"""Metrics that are read from the database each time the metrics are requested. Bounded work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy import func, literal, select

from denizen.clock import SECOND
from denizen.errors import StorageError
from denizen.inbox.statuses import PARKING_CAUSES
from denizen.storage.database import Database, Tx, statement
from denizen.storage.schema import agents, calls, events
from denizen.telemetry.metrics import Metrics

LOOKED_AT: Final = 100_000
"""How many unfinished events and waiting calls are read; beyond that the numbers are too small."""

_STATES: Final = ("pending", "taken", "dead")

_open_events = select(events.c.state).where(events.c.state != "done").limit(LOOKED_AT).subquery()
_by_state = statement(select(_open_events.c.state, func.count()).group_by(_open_events.c.state))
_open_calls = select(literal(1).label("one")).where(calls.c.state == "waiting").limit(LOOKED_AT).subquery()
_waiting = statement(select(func.count()).select_from(_open_calls))


_people_waiting = (
    select(events.c.created_at)
    .select_from(events.join(agents, agents.c.id == events.c.agent_id))
    .where(
        events.c.state != "done",  # must match the condition of the partial index exactly
        events.c.state.in_(("pending", "taken")),
        events.c.waits == 1,
        agents.c.status == "active",
    )
    .limit(LOOKED_AT)
    .subquery()
)
_oldest = statement(select(func.min(_people_waiting.c.created_at)))
_parked = statement(
    select(agents.c.parked_cause, func.count())
    .where(agents.c.parked_cause.is_not(None), agents.c.status != "dead")
    .group_by(agents.c.parked_cause)
)


@dataclass(frozen=True, slots=True)
class Readings:
    """The current values from the database."""

    events: dict[str, int]
    calls_waiting: int
    oldest_unanswered_seconds: float
    """The age of the oldest message that people wait to have answered by agents that are not suspended; 0: none."""
    parked: dict[str, int]
    """Agents that cannot think, by cause."""


def read(tx: Tx) -> Readings:
    waiting = tx.one(_waiting)
    by_state: dict[str, int] = dict(tx.all(_by_state))
    oldest = tx.one(_oldest)
    since = tx.now if oldest is None or oldest[0] is None else oldest[0]
    return Readings(by_state, waiting[0] if waiting else 0, max(tx.now - since, 0) / SECOND, dict(tx.all(_parked)))


async def exposition(metrics: Metrics, db: Database, *, awake: int) -> str:
    """All metrics as text. If the database does not answer, the metrics say so and have what is known without it."""
    try:
        found: Readings | None = await db.read(read)
    except StorageError:
        found = None
    # No await from here on: concurrent requests must not see half of the values.
    metrics.awake.set(awake)
    metrics.commits.reach(db.commits)
    metrics.database_up.set(0 if found is None else 1)
    metrics.events.clear()
    metrics.calls_waiting.clear()
    metrics.oldest_unanswered.clear()
    metrics.parked.clear()
    if found is not None:
        for state in _STATES:
            metrics.events.set(found.events.get(state, 0), state)
        metrics.calls_waiting.set(found.calls_waiting)
        metrics.oldest_unanswered.set(found.oldest_unanswered_seconds)
        for cause in PARKING_CAUSES:
            metrics.parked.set(found.parked.get(cause, 0), cause)
    return metrics.exposition()
