"""Telling owners that an agent has trouble: once for each agent and cause, since they may not be in the space.

A row says that a cause has begun and was told. It goes when the cause is over, so that the next time is told again.
What is to be sent to a webhook is in the row as well, so that it survives a restart; a row is claimed before it is
sent, so that instances do not send it together. A webhook that failed is tried again for about a day.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import bindparam, delete, select, update
from sqlalchemy.dialects import postgresql, sqlite

from denizen.bus.streams import AgentAlert, agent_topic
from denizen.clock import SECOND, Instant
from denizen.ids import AgentId, SpaceId
from denizen.inbox.statuses import CAUSES, Cause, SpaceStatus
from denizen.storage.database import Statement, Tx, statement
from denizen.storage.schema import agents, alerts, entities, space_statuses

ALERTING: Final[tuple[Cause, ...]] = tuple(
    cause for cause in CAUSES if cause not in ("failing", "limit", "no_reply", "suspended", "deleted")
)
"""Causes that owners are told of: those that an owner can do something about and has not brought about."""
CLAIM_SECONDS: Final = 60
"""After so long an alert that was claimed and not sent is sent again, then after twice as long, up to an hour."""
LONGEST_PAUSE_SECONDS: Final = 3600
TRIES: Final = 30
AT_ONCE: Final = 20
_NOWHERE: Final = SpaceId("")


@dataclass(frozen=True, slots=True)
class OwnerAlert:
    """An agent has trouble."""

    agent_id: AgentId
    handle: str
    name: str
    cause: Cause
    detail: str
    """What the sentence needs, as JSON."""
    created_at: Instant

    @property
    def text(self) -> str:
        """What prevents it from thinking, and what to do."""
        status = SpaceStatus(_NOWHERE, self.agent_id, self.name, self.cause, json.loads(self.detail))
        return status.text.replace("Your message is kept. ", "")


@dataclass(frozen=True, slots=True)
class Changes:
    """Causes that have begun and that were not told of yet, and those that are over."""

    begun: tuple[OwnerAlert, ...] = ()
    over: tuple[tuple[AgentId, Cause], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.begun or self.over)


_living = agents.c.status != "dead"
_named = agents.join(entities, entities.c.id == agents.c.id)
_parked = statement(
    select(agents.c.id, entities.c.handle, entities.c.name, agents.c.parked_cause, agents.c.parked_detail)
    .select_from(_named)
    .where(agents.c.parked_cause.is_not(None), _living)
)
_shown = statement(
    select(agents.c.id, entities.c.handle, entities.c.name, space_statuses.c.cause, space_statuses.c.detail)
    .select_from(_named.join(space_statuses, space_statuses.c.agent_id == agents.c.id))
    .where(space_statuses.c.cause.in_(ALERTING), _living)
    .order_by(space_statuses.c.created_at)
)
_known = statement(select(alerts.c.agent_id, alerts.c.cause))
_values = {column.name: bindparam(column.name, type_=column.type) for column in alerts.c}
# Another instance may have seen it begin at the same time.
_insert = Statement(
    sqlite.insert(alerts).values(_values).on_conflict_do_nothing(),
    postgresql.insert(alerts).values(_values).on_conflict_do_nothing(),
)
_delete = statement(delete(alerts).where(alerts.c.agent_id == bindparam("agent"), alerts.c.cause == bindparam("why")))
_due = statement(
    select(
        alerts.c.agent_id,
        entities.c.handle,
        entities.c.name,
        alerts.c.cause,
        alerts.c.detail,
        alerts.c.created_at,
        alerts.c.tries,
    )
    .select_from(alerts.join(entities, entities.c.id == alerts.c.agent_id))
    .where(alerts.c.sent_at.is_(None), alerts.c.next_at <= bindparam("now"), alerts.c.tries < TRIES)
    .order_by(alerts.c.created_at)
    .limit(AT_ONCE)
)
_claim = statement(
    update(alerts)
    .where(
        alerts.c.agent_id == bindparam("agent"),
        alerts.c.cause == bindparam("why"),
        alerts.c.tries == bindparam("known_tries"),
        alerts.c.sent_at.is_(None),
    )
    .values(tries=alerts.c.tries + 1, next_at=bindparam("later"))
)
_sent = statement(
    update(alerts)
    .where(alerts.c.agent_id == bindparam("agent"), alerts.c.cause == bindparam("why"))
    .values(sent_at=bindparam("at"))
)


def changes(tx: Tx) -> Changes:
    """What has begun and what is over since the rows were written last."""
    now: dict[tuple[str, str], tuple[Any, ...]] = {}
    for row in [*tx.all(_parked), *tx.all(_shown)]:
        now.setdefault((row[0], row[3]), row)
    known = {(row[0], row[1]) for row in tx.all(_known)}
    begun = tuple(_alert(row, tx.now) for key, row in now.items() if key not in known)
    return Changes(begun, tuple((AgentId(agent), cause) for agent, cause in sorted(known - now.keys())))


def record(tx: Tx) -> None:
    """Every cause that has begun has a row, and whoever watches the agent hears of it; what is over has none."""
    found = changes(tx)
    for agent_id, cause in found.over:
        tx.run(_delete, agent=agent_id, why=cause)
    for each in found.begun:
        new = tx.run(
            _insert,
            agent_id=each.agent_id,
            cause=each.cause,
            detail=each.detail,
            created_at=tx.now,
            sent_at=None,
            tries=0,
            next_at=tx.now,
        )
        if new:
            tx.announce(agent_topic(each.agent_id), AgentAlert(each.agent_id, each.cause, each.text).to_payload())


def has_due(tx: Tx) -> bool:
    """Whether something is to be sent."""
    return tx.one(_due, now=tx.now) is not None


def claim(tx: Tx) -> list[OwnerAlert]:
    """What this instance is to send now: nobody else sends it for a while."""
    claimed: list[OwnerAlert] = []
    for *row, created_at, tries in tx.all(_due, now=tx.now):
        pause = min(CLAIM_SECONDS * 2**tries, LONGEST_PAUSE_SECONDS) * SECOND
        if tx.run(_claim, agent=row[0], why=row[3], known_tries=tries, later=tx.now + pause):
            claimed.append(_alert(tuple(row), created_at))
    return claimed


def mark_sent(tx: Tx, alert: OwnerAlert) -> None:
    """It was sent and is not sent again while the cause lasts."""
    tx.run(_sent, agent=alert.agent_id, why=alert.cause, at=tx.now)


def _alert(row: tuple[Any, ...], created_at: int) -> OwnerAlert:
    agent_id, handle, name, cause, detail = row
    return OwnerAlert(agent_id, handle, name, cause, detail or "{}", Instant(created_at))
