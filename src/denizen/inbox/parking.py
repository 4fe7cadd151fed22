"""Parked agents: those that cannot think until something changes, such as a rejected key or an unknown model.

The events of a parked agent stay pending, in their order, and no attempt is counted. It tries again when its
definition or a key changes, when an instance starts, when a person asks for it, and by itself after a while.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue
from sqlalchemy import bindparam, exists, or_, select, update

from denizen.bus.streams import WAKE, wake_payload
from denizen.clock import SECOND, Instant
from denizen.ids import AgentId, MessageId, OrganizationId, SpaceId
from denizen.inbox import statuses
from denizen.inbox.statuses import PARKING_CAUSES, Cause, ParkingCause
from denizen.storage.database import Tx, select_where, statement, update_where, values
from denizen.storage.schema import agents, space_statuses

PROBE_SECONDS: Final = (600, 1200, 2400, 3600)
"""Seconds after which a parked agent tries again by itself: accounts are topped up, models are pulled."""


MAY_THINK: Final = or_(agents.c.parked_cause.is_(None), agents.c.parked_until <= bindparam("now"))
"""Condition on agents: not parked, or due for another try."""
WAITING: Final = select(agents.c.id).where(agents.c.parked_cause.is_not(None), agents.c.parked_until > bindparam("now"))
"""The ids of agents that are parked and not due for another try yet."""
HAS_TROUBLE: Final = or_(
    agents.c.parked_cause.is_not(None),
    exists().where(space_statuses.c.agent_id == agents.c.id, space_statuses.c.cause.in_((*PARKING_CAUSES, "failing"))),
)
"""Condition on agents: a space shows a status of it that the next cycle may clear."""


@dataclass(frozen=True, slots=True)
class ParkedAgent:
    """Why an agent cannot think, and when it tries again."""

    agent_id: AgentId
    cause: ParkingCause
    detail: dict[str, JsonValue]
    until: Instant
    tries: int


_park = update_where(agents, "id", set_="parked_cause, parked_detail, parked_until, parked_tries")
_parked = (agents.c.id, agents.c.parked_cause, agents.c.parked_detail, agents.c.parked_until, agents.c.parked_tries)
_get = select_where(agents, _parked, "id", agents.c.parked_cause.is_not(None))
_retry = statement(
    update(agents)
    .where(agents.c.id == bindparam("agent"), agents.c.parked_cause.is_not(None))
    .values(parked_until=0)
    .returning(agents.c.id)
)
_retry_organization = statement(
    update(agents)
    .where(agents.c.organization_id == bindparam("organization"), agents.c.parked_cause.is_not(None))
    .values(parked_until=0)
    .returning(agents.c.id)
)
_retry_all = statement(
    update(agents).where(agents.c.parked_cause.is_not(None)).values(parked_until=0).returning(agents.c.id)
)


def park(tx: Tx, agent_id: AgentId, cause: ParkingCause, **detail: JsonValue) -> ParkedAgent:
    """Park the agent until the cause changes; every space in which somebody waits for it shows why."""
    parked = mark(tx, agent_id, cause, detail)
    tell(tx, parked)
    return parked


def mark(tx: Tx, agent_id: AgentId, cause: ParkingCause, detail: Mapping[str, JsonValue]) -> ParkedAgent:
    """Park the agent until the cause changes, without showing it: another agent may take over first."""
    before = get(tx, agent_id)
    tries = 0 if before is None or before.cause != cause else before.tries + 1
    until = tx.now + PROBE_SECONDS[min(tries, len(PROBE_SECONDS) - 1)] * SECOND
    tx.run(
        _park,
        id=agent_id,
        parked_cause=cause,
        parked_detail=json.dumps(dict(detail)),
        parked_until=until,
        parked_tries=tries,
    )
    return ParkedAgent(agent_id, cause, dict(detail), Instant(until), tries)


def tell(tx: Tx, parked: ParkedAgent) -> None:
    """Show the reason in every space in which somebody waits for the agent."""
    over: list[Cause] = ["failing", *(each for each in PARKING_CAUSES if each != parked.cause)]
    statuses.clear(tx, parked.agent_id, over)
    statuses.show_where_someone_waits(tx, parked.agent_id, parked.cause, retry_at=parked.until, **parked.detail)


def unpark(tx: Tx, agent_id: AgentId) -> None:
    """Unpark the agent, and clear the statuses that showed why."""
    tx.run(_park, id=agent_id, parked_cause=None, parked_detail=None, parked_until=None, parked_tries=0)
    statuses.clear(tx, agent_id, PARKING_CAUSES)


def recover(tx: Tx, agent_id: AgentId) -> None:
    """Clear what kept the agent from thinking: it has finished a cycle."""
    unpark(tx, agent_id)
    statuses.clear_failing(tx, agent_id)


def show_if_unable(
    tx: Tx,
    agent_id: AgentId,
    space_id: SpaceId,
    message_id: MessageId | None,
    *,
    status: str,
    held_by: str | None,
    held_until: int | None,
) -> None:
    """If the agent cannot think now, because of its status or because it is parked, the space shows why."""
    if status == "dead":
        statuses.show(tx, agent_id, space_id, "deleted", message_id=message_id)
    elif status == "suspended" and held_by is None:
        statuses.show(tx, agent_id, space_id, "suspended", message_id=message_id)
    elif status == "suspended":
        statuses.show(tx, agent_id, space_id, "budget", message_id=message_id, retry_at=held_until, scope=held_by)
    elif (parked := get(tx, agent_id)) is not None:
        cause, until = parked.cause, parked.until
        statuses.show(tx, agent_id, space_id, cause, message_id=message_id, retry_at=until, **parked.detail)


_has_trouble = select_where(agents, "id", "id", HAS_TROUBLE)


def has_trouble(tx: Tx, agent_id: AgentId) -> bool:
    """Whether a space shows a status of this agent that the end of a cycle clears."""
    return tx.one(_has_trouble, id=agent_id) is not None


def get(tx: Tx, agent_id: AgentId) -> ParkedAgent | None:
    """Why the agent is parked; None if it is not."""
    row = tx.one(_get, id=agent_id)
    if row is None:
        return None
    id, cause, detail, until, tries = row
    return ParkedAgent(id, cause, json.loads(detail or "{}"), Instant(until), tries)


def retry(tx: Tx, agent_id: AgentId) -> None:
    """Let a parked agent try again now."""
    _wake(tx, values(tx, _retry, agent=agent_id))


def retry_organization(tx: Tx, organization_id: OrganizationId) -> None:
    """Let the parked agents of the organization try again now: one of its keys or prices has changed."""
    _wake(tx, values(tx, _retry_organization, organization=organization_id))


def retry_all(tx: Tx) -> None:
    """Let all parked agents try again now: an instance has started, perhaps with other settings."""
    _wake(tx, values(tx, _retry_all))


def _wake(tx: Tx, agent_ids: list[AgentId]) -> None:
    if agent_ids:
        tx.announce(WAKE, wake_payload(agent_ids))
