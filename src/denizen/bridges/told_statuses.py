"""Tells people in rooms elsewhere why their message has no answer yet: the statuses of a space that concern them.

A status that has lasted gets a row in the outbox of each room from which somebody waits because of it. Which status was
told where is kept, so that each is told once, however often the agent tries again. What is sent is the status as it is
then; nothing is, if it is over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy import bindparam, exists, or_, select

from denizen.bridges import registry
from denizen.bridges.registry import BridgeLease
from denizen.clock import SECOND
from denizen.ids import AgentId, BridgeId, ChannelId, SpaceId
from denizen.inbox import statuses
from denizen.inbox.statuses import LEFT_UNANSWERED, SpaceStatus
from denizen.storage.database import Tx, insert_into, insert_or_update, select_where, statement
from denizen.storage.schema import (
    bridges,
    carried,
    channels,
    events,
    memberships,
    messages,
    outbox,
    space_statuses,
    told_statuses,
)

SETTLED_SECONDS: Final = 60
"""Trouble that is over sooner is not told elsewhere."""
LOOKED_AT: Final = 50
"""So many messages before the newest that waits are looked at for others that the same cycle left without an answer."""

_untold = statement(
    select(
        channels.c.id,
        channels.c.room,
        space_statuses.c.space_id,
        space_statuses.c.agent_id,
        space_statuses.c.cause,
    )
    .join(bridges, bridges.c.id == channels.c.bridge_id)
    .join(
        memberships,
        (memberships.c.space_id == channels.c.space_id) & (memberships.c.entity_id == bridges.c.entity_id),
    )
    .join(space_statuses, space_statuses.c.space_id == channels.c.space_id)
    .outerjoin(
        told_statuses,
        (told_statuses.c.channel_id == channels.c.id)
        & (told_statuses.c.agent_id == space_statuses.c.agent_id)
        & (told_statuses.c.cause == space_statuses.c.cause),
    )
    .where(
        channels.c.bridge_id == bindparam("bridge_id"),
        or_(told_statuses.c.since.is_(None), told_statuses.c.since != space_statuses.c.created_at),
    )
    .order_by(space_statuses.c.created_at, channels.c.id)
)
_came_in = select_where(carried, "channel_id, outside_id", "message_id", carried.c.direction == "in")
# Without the channel: rooms have many messages, and few of them wait.
_waiting = statement(
    select(carried.c.channel_id, carried.c.outside_id)
    .select_from(events.join(carried, carried.c.message_id == events.c.message_id))
    .where(
        events.c.agent_id == bindparam("agent_id"),
        events.c.state != "done",  # must match the condition of the partial index exactly
        events.c.space_id == bindparam("space_id"),
        events.c.waits == 1,
        carried.c.direction == "in",
    )
    .order_by(events.c.number.desc())
)
_newest, _about, _own = messages.alias("newest"), events.alias("about"), messages.alias("own")
_newest_seq = select(_newest.c.seq).where(_newest.c.id == bindparam("message_id")).scalar_subquery()
_its_cycle = (
    select(_about.c.cycle_id)
    .where(_about.c.message_id == bindparam("message_id"), _about.c.agent_id == bindparam("agent_id"))
    .scalar_subquery()
)
_spoke_since = exists().where(
    _own.c.space_id == messages.c.space_id, _own.c.seq > messages.c.seq, _own.c.author_id == events.c.agent_id
)
_left_by_its_cycle = statement(
    select(carried.c.channel_id, carried.c.outside_id)
    .select_from(
        messages.join(events, events.c.message_id == messages.c.id).join(carried, carried.c.message_id == messages.c.id)
    )
    .where(
        messages.c.space_id == bindparam("space_id"),
        messages.c.seq <= _newest_seq,
        messages.c.seq > _newest_seq - LOOKED_AT,
        events.c.agent_id == bindparam("agent_id"),
        events.c.waits == 1,
        events.c.cycle_id == _its_cycle,
        carried.c.direction == "in",
        ~_spoke_since,
    )
    .order_by(messages.c.seq.desc())
)
_tell = insert_or_update(told_statuses, set_="since")
_send = insert_into(
    outbox, "bridge_id", "channel_id", "target", "action", "transaction_id", "detail", "next_at", "created_at"
)


@dataclass(frozen=True, slots=True)
class UntoldStatus:
    """A status that somebody in a room elsewhere waits because of, and has not been told."""

    channel_id: ChannelId
    room: str
    status: SpaceStatus

    @property
    def at(self) -> int:
        """When it is to be told."""
        return self.status.created_at + SETTLED_SECONDS * SECOND

    def is_due(self, now: int) -> bool:
        """Whether it has lasted. One that begins later than now is told: the clock was set back."""
        return self.at <= now or self.status.created_at > now


def untold(tx: Tx, bridge_id: BridgeId) -> list[UntoldStatus]:
    """The statuses that are to be told in rooms of the bridge, now or later, oldest first."""
    found: list[UntoldStatus] = []
    for channel_id, room, space_id, agent_id, cause in tx.all(_untold, bridge_id=bridge_id):
        status = statuses.find(tx, space_id, agent_id, cause)
        if status is not None and who_waits(tx, channel_id, status) is not None:
            found.append(UntoldStatus(channel_id, room, status))
    return found


def who_waits(tx: Tx, channel_id: ChannelId, status: SpaceStatus) -> str | None:
    """The id, elsewhere, of the newest message from this room that waits because of the status; None: none does."""
    whose = {"agent_id": status.agent_id, "space_id": status.space_id}
    found = tx.all(_waiting, **whose)
    if status.message_id is not None:
        newest = tx.all(_came_in, message_id=status.message_id)
        left = (
            tx.all(_left_by_its_cycle, message_id=status.message_id, **whose) if status.cause in LEFT_UNANSWERED else []
        )
        found = [*newest, *left, *found]
    return next((outside_id for where, outside_id in found if where == channel_id), None)


def tell(tx: Tx, held: BridgeLease) -> None:
    """Have every status told that has lasted, once in each room."""
    registry.lock(tx, held.bridge_id, held)
    for each in untold(tx, held.bridge_id):
        if each.is_due(tx.now):
            status, about = each.status, f"{each.status.agent_id} {each.status.cause} {each.status.created_at}"
            tx.run(
                _tell,
                channel_id=each.channel_id,
                agent_id=status.agent_id,
                cause=status.cause,
                since=status.created_at,
            )
            tx.run(
                _send,
                bridge_id=held.bridge_id,
                channel_id=each.channel_id,
                target=each.room,
                action="status",
                transaction_id=f"{each.channel_id} {about}".replace(" ", "."),
                detail=about,
                next_at=tx.now,
                created_at=tx.now,
            )


def find(tx: Tx, channel_id: ChannelId, about: str) -> tuple[str, str] | None:
    """What is to be said of the status now, and the id, elsewhere, of the message that waits; None if it is over."""
    agent_id, cause, since = about.split(" ")
    channel = registry.get_channel(tx, channel_id)
    status = statuses.find(tx, SpaceId(channel.space_id), AgentId(agent_id), cause)
    if status is None or status.created_at != int(since):
        return None
    waits = who_waits(tx, channel_id, status)
    return None if waits is None else (status.text_elsewhere, waits)
