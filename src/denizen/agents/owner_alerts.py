"""Alerts for owners: an agent has trouble, or nobody can answer in a panel. Sent once for each agent or panel and
cause, since owners may not be in the space.

A row says that a cause has begun and was reported. It is deleted when the cause is over, so that the next time is
reported again. While a panel is asked again, its causes are not over: only an answer ends them. The row also holds what
is to be sent to a webhook, so that it survives a restart; a row is claimed before it is sent, so that only one instance
sends it. A webhook that failed is tried again for about a day.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from sqlalchemy import Column, Table, bindparam, delete, or_, select, update

from denizen.bus.streams import AgentAlert, PersonNotice, agent_topic, entity_topic
from denizen.clock import SECOND, Instant
from denizen.ids import AgentId, OrganizationId, SpaceId
from denizen.inbox.statuses import CAUSES, LEFT_UNANSWERED, Cause, SpaceStatus
from denizen.panel import unanswered
from denizen.panel.unanswered import PanelStatus
from denizen.storage.database import Tx, insert_ignore, select_where, statement
from denizen.storage.schema import agents, alerts, entities, panel_alerts, space_statuses, spaces

ALERTING: Final[tuple[Cause, ...]] = tuple(
    cause for cause in CAUSES if cause not in ("failing", *LEFT_UNANSWERED, "suspended", "deleted")
)
"""Causes that owners are alerted to: those that an owner can fix and did not bring about."""
CLAIM_SECONDS: Final = 60
"""Seconds after which an alert that was claimed and not sent is sent again; doubled each time, up to an hour."""
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
    """The values for the sentence, as JSON."""
    created_at: Instant

    @property
    def text(self) -> str:
        """What prevents it from thinking, and what to do."""
        status = SpaceStatus(_NOWHERE, self.agent_id, self.name, self.cause, json.loads(self.detail))
        return status.text.replace("Your message is kept. ", "")


@dataclass(frozen=True, slots=True)
class PanelAlert:
    """Nobody can answer in a panel."""

    space_id: SpaceId
    name: str | None
    """None for a private panel: only its members know about it."""
    cause: Cause
    detail: str
    """Why, and what to do."""
    created_at: Instant

    @property
    def text(self) -> str:
        """What prevents the answers, and what to do."""
        where = "a private panel" if self.name is None else f"the panel {self.name}"
        return f"Nobody can answer in {where}: {self.detail}"


Alert: TypeAlias = OwnerAlert | PanelAlert


class _Alerts:
    """The statements for one of the two tables of alerts."""

    def __init__(self, table: Table, subject: Column[Any], *shown: Column[Any], names: Table) -> None:
        is_row = (subject == bindparam("subject"), table.c.cause == bindparam("why"))
        self.known = statement(select(subject, table.c.cause))
        # Another instance may have noticed the cause at the same time.
        self.insert = insert_ignore(table)
        self.delete = statement(delete(table).where(*is_row))
        self.due = statement(
            select(subject, *shown, table.c.cause, table.c.detail, table.c.created_at, table.c.tries)
            .select_from(table.join(names, names.c.id == subject))
            .where(
                table.c.sent_at.is_(None),
                # No pause is longer: if this one is, the clock was set back since.
                or_(table.c.next_at <= bindparam("now"), table.c.next_at > bindparam("latest")),
                table.c.tries < TRIES,
            )
            .order_by(table.c.created_at)
            .limit(AT_ONCE)
        )
        self.claim = statement(
            update(table)
            .where(*is_row, table.c.tries == bindparam("known_tries"), table.c.sent_at.is_(None))
            .values(tries=table.c.tries + 1, next_at=bindparam("later"))
        )
        self.sent = statement(update(table).where(*is_row).values(sent_at=bindparam("at")))


_of_agents = _Alerts(alerts, alerts.c.agent_id, entities.c.handle, entities.c.name, names=entities)
_of_panels = _Alerts(panel_alerts, panel_alerts.c.space_id, spaces.c.name, spaces.c.private, names=spaces)


@dataclass(frozen=True, slots=True)
class Changes:
    """Causes that have begun and were not reported yet, and those that are over."""

    begun: tuple[Alert, ...] = ()
    over: tuple[tuple[AgentId, Cause], ...] = ()
    over_in_panels: tuple[tuple[SpaceId, Cause], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.begun or self.over or self.over_in_panels)


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
_panel = select_where(spaces, "name, private", "id")
_admins = statement(
    select(entities.c.id)
    .join(spaces, spaces.c.organization_id == entities.c.organization_id)
    .where(spaces.c.id == bindparam("space_id"), entities.c.role.in_(("owner", "admin")), entities.c.left_at.is_(None))
)


def changes(tx: Tx) -> Changes:
    """The causes that have begun or ended since the rows were written."""
    now: dict[tuple[str, str], tuple[Any, ...]] = {}
    for row in [*tx.all(_parked), *tx.all(_shown)]:
        now.setdefault(_subject_and_cause(row), row)
    known = set(tx.all(_of_agents.known))
    begun = [_alert(row, tx.now) for key, row in now.items() if key not in known]
    over = tuple((AgentId(agent), cause) for agent, cause in sorted(known - now.keys()))
    silent, told = _panel_alerts(tx, unanswered.anywhere(tx)), set(tx.all(_of_panels.known))
    ended = told - silent.keys()
    if ended:
        asked_again = unanswered.being_answered(tx)
        ended = {(panel, cause) for panel, cause in ended if panel not in asked_again}
    in_panels = [each for key, each in silent.items() if key not in told]
    return Changes((*begun, *in_panels), over, tuple((SpaceId(panel), cause) for panel, cause in sorted(ended)))


def panel_troubles(tx: Tx, organization_id: OrganizationId) -> list[str]:
    """Why nobody can answer in a panel of this organization, and what to do: a sentence for each panel."""
    return [each.text for each in _panel_alerts(tx, unanswered.in_organization(tx, organization_id)).values()]


def _panel_alerts(tx: Tx, silent: Iterable[PanelStatus]) -> dict[tuple[str, str], PanelAlert]:
    found: dict[tuple[str, str], PanelAlert] = {}
    for each in silent:
        if each.cause in ALERTING and (row := tx.one(_panel, id=each.space_id)) is not None:
            alert = PanelAlert(each.space_id, _public_name(*row), each.cause, each.reason, Instant(tx.now))
            found[each.space_id, each.cause] = alert
    return found


def record(tx: Tx) -> None:
    """Add a row for every cause that has begun, and announce it to connected owners; delete rows of ended causes."""
    found = changes(tx)
    for agent_id, cause in found.over:
        tx.run(_of_agents.delete, subject=agent_id, why=cause)
    for space_id, cause in found.over_in_panels:
        tx.run(_of_panels.delete, subject=space_id, why=cause)
    for each in found.begun:
        row = {"cause": each.cause, "detail": each.detail, "created_at": tx.now, "sent_at": None, "tries": 0}
        if isinstance(each, PanelAlert):
            if tx.run(_of_panels.insert, space_id=each.space_id, next_at=tx.now, **row):
                for (admin,) in tx.all(_admins, space_id=each.space_id):
                    tx.announce(entity_topic(admin), PersonNotice("panel_trouble", each.text).to_payload())
        elif tx.run(_of_agents.insert, agent_id=each.agent_id, next_at=tx.now, **row):
            tx.announce(agent_topic(each.agent_id), AgentAlert(each.agent_id, each.cause, each.text).to_payload())


def has_due(tx: Tx) -> bool:
    """Whether an alert is due to be sent."""
    return any(tx.one(each.due, **_now(tx)) is not None for each in (_of_agents, _of_panels))


def _now(tx: Tx) -> dict[str, int]:
    return {"now": tx.now, "latest": tx.now + LONGEST_PAUSE_SECONDS * SECOND}


def _subject_and_cause(row: Sequence[Any]) -> tuple[str, str]:
    subject, _, _, cause, *_ = row
    return subject, cause


def claim(tx: Tx) -> list[Alert]:
    """Claim the alerts that this instance sends now: no other instance sends them for a while."""
    claimed: list[Alert] = []
    for store in (_of_agents, _of_panels):
        for *row, created_at, tries in tx.all(store.due, **_now(tx)):
            pause = min(CLAIM_SECONDS * 2**tries, LONGEST_PAUSE_SECONDS) * SECOND
            subject, cause = _subject_and_cause(row)
            if tx.run(store.claim, subject=subject, why=cause, known_tries=tries, later=tx.now + pause):
                claimed.append((_alert if store is _of_agents else _panel_alert)(tuple(row), created_at))
    return claimed


def mark_sent(tx: Tx, alert: Alert) -> None:
    """Mark the alert as sent: it is not sent again while the cause lasts."""
    store, subject = (_of_panels, alert.space_id) if isinstance(alert, PanelAlert) else (_of_agents, alert.agent_id)
    tx.run(store.sent, subject=subject, why=alert.cause, at=tx.now)


def _alert(row: tuple[Any, ...], created_at: int) -> OwnerAlert:
    agent_id, handle, name, cause, detail = row
    return OwnerAlert(agent_id, handle, name, cause, detail or "{}", Instant(created_at))


def _panel_alert(row: tuple[Any, ...], created_at: int) -> PanelAlert:
    space_id, name, private, cause, detail = row
    return PanelAlert(space_id, _public_name(name, private), cause, detail, Instant(created_at))


def _public_name(name: str, private: int) -> str | None:
    return None if private else name
