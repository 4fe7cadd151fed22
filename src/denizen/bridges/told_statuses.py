"""Tells people in rooms elsewhere why their message has no answer yet: the statuses of a space that concern them.

A status that has lasted gets a row in the outbox of each room from which somebody waits because of it. Which status was
told where is kept, so that each is told once, however often the agent tries again. Each message that was set aside is
told of: the newest one that was told of is kept. What is sent is the status as it is then; nothing if it is over.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import bindparam, exists, func, select

from denizen.bridges import registry
from denizen.bridges.registry import BridgeLease
from denizen.clock import SECOND
from denizen.ids import AgentId, BridgeId, ChannelId, SpaceId
from denizen.inbox import statuses
from denizen.inbox.statuses import LEFT_UNANSWERED, SET_ASIDE, SpaceStatus
from denizen.storage.database import Tx, insert_into, insert_or_update, statement, value
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

_shown = statement(
    select(
        channels.c.id,
        channels.c.room,
        space_statuses.c.space_id,
        space_statuses.c.agent_id,
        space_statuses.c.cause,
        told_statuses.c.since,
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
    .where(channels.c.bridge_id == bindparam("bridge_id"))
    .order_by(space_statuses.c.created_at, channels.c.id)
)
_told_until = statement(
    select(func.max(told_statuses.c.since)).where(
        told_statuses.c.channel_id == bindparam("channel_id"),
        told_statuses.c.agent_id == bindparam("agent_id"),
        told_statuses.c.cause.in_(SET_ASIDE),
    )
)
_named = statement(
    select(carried.c.channel_id, carried.c.outside_id, messages.c.seq)
    .join(messages, messages.c.id == carried.c.message_id)
    .where(carried.c.message_id == bindparam("message_id"), carried.c.direction == "in")
)
_open = (
    events.c.agent_id == bindparam("agent_id"),
    events.c.state != "done",  # must match the condition of the partial index exactly
    events.c.space_id == bindparam("space_id"),
    events.c.waits == 1,
    carried.c.direction == "in",
)
# Without the channel: rooms have many messages, and few of them wait.
_held_up = statement(
    select(carried.c.channel_id, carried.c.outside_id, events.c.number)
    .select_from(events.join(carried, carried.c.message_id == events.c.message_id))
    .where(*_open, events.c.state.in_(("pending", "taken")))
    .order_by(events.c.number.desc())
)
_named_by_another = exists().where(
    space_statuses.c.space_id == events.c.space_id,
    space_statuses.c.agent_id == events.c.agent_id,
    space_statuses.c.cause != bindparam("cause"),
    space_statuses.c.message_id == events.c.message_id,
)
_set_aside = statement(
    select(carried.c.channel_id, carried.c.outside_id, messages.c.seq)
    .select_from(
        events.join(messages, messages.c.id == events.c.message_id).join(carried, carried.c.message_id == messages.c.id)
    )
    .where(*_open, events.c.state == "dead", messages.c.seq > bindparam("after"), ~_named_by_another)
    .order_by(messages.c.seq)
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
    select(carried.c.channel_id, carried.c.outside_id, messages.c.seq)
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
    since: int
    """When it began; of a message that was set aside, its number in the space."""

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
    of_messages: set[tuple[str, str, int]] = set()
    for channel_id, room, space_id, agent_id, cause, told in tx.all(_shown, bridge_id=bridge_id):
        status = statuses.find(tx, space_id, agent_id, cause)
        if status is None:
            continue
        if cause in SET_ASIDE:
            until: int = value(tx, _told_until, channel_id=channel_id, agent_id=agent_id) or 0
            for seq in _messages_set_aside(tx, channel_id, status, until):
                # A message that no status names any more may have been set aside for any of their causes.
                if (about := (channel_id, agent_id, seq)) not in of_messages:
                    of_messages.add(about)
                    found.append(UntoldStatus(channel_id, room, status, seq))
        elif told != status.created_at and _who_waits(tx, channel_id, status) is not None:
            found.append(UntoldStatus(channel_id, room, status, status.created_at))
    return found


def _who_waits(tx: Tx, channel_id: ChannelId, status: SpaceStatus) -> str | None:
    """The id, elsewhere, of the newest message from this room that waits because of the status; None: none does."""
    about, whose = {"message_id": status.message_id}, {"agent_id": status.agent_id, "space_id": status.space_id}
    is_named = status.message_id is not None
    if is_named and (found := _first_in(channel_id, tx.all(_named, **about))) is not None:
        return found  # Nearly always. The others are looked for among all that the agent has not read, in any space.
    if status.cause not in LEFT_UNANSWERED:
        return _first_in(channel_id, tx.all(_held_up, **whose))
    return _first_in(channel_id, tx.all(_left_by_its_cycle, **about, **whose)) if is_named else None


def _first_in(channel_id: ChannelId, found: Iterable[tuple[Any, ...]]) -> str | None:
    return next((outside_id for where, outside_id, _ in found if where == channel_id), None)


def _messages_set_aside(tx: Tx, channel_id: ChannelId, status: SpaceStatus, after: int) -> dict[int, str]:
    """The messages from this room, after that number, that were set aside, as the status says: their ids elsewhere, by
    number, the first one first.
    """
    rows = tx.all(_set_aside, agent_id=status.agent_id, space_id=status.space_id, cause=status.cause, after=after)
    rows += tx.all(_named, message_id=status.message_id) if status.message_id is not None else []
    found = {seq: outside_id for where, outside_id, seq in rows if where == channel_id and seq > after}
    return dict(sorted(found.items()))


def tell(tx: Tx, held: BridgeLease) -> None:
    """Have every status told that has lasted, once in each room."""
    registry.lock(tx, held.bridge_id, held)
    for each in untold(tx, held.bridge_id):
        if each.is_due(tx.now):
            status, about = each.status, f"{each.status.agent_id} {each.status.cause} {each.since}"
            tx.run(
                _tell,
                channel_id=each.channel_id,
                agent_id=status.agent_id,
                cause=status.cause,
                since=each.since,
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
    if status is None:
        return None
    if status.cause in SET_ASIDE:
        waits = _messages_set_aside(tx, channel_id, status, int(since) - 1).get(int(since))
    else:
        waits = _who_waits(tx, channel_id, status) if status.created_at == int(since) else None
    return None if waits is None else (status.text_elsewhere, waits)
