"""The rows of bridges and channels: reading them, and the lease under which one process carries a bridge's messages.

Nothing here checks who asks: `managing` does.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, bindparam, func, or_, select, update

from denizen.clock import SECOND, Instant
from denizen.errors import LeaseLost, existing
from denizen.ids import BridgeId, ChannelId, EntityId, OrganizationId, SpaceId
from denizen.shapes.vocabulary import BridgeState
from denizen.storage.database import Tx, select_where, statement, storable, update_where
from denizen.storage.schema import bridges, channels, entities, memberships, outbox, spaces

PARKED_SECONDS: Final = 3600
"""After so long a parked bridge tries again by itself."""

PROBLEM_CHARACTERS: Final = 500


@dataclass(frozen=True, slots=True)
class Bridge:
    """A connection to a service elsewhere."""

    id: BridgeId
    organization_id: OrganizationId
    entity_id: EntityId
    """The service that stands for it in spaces."""
    name: str
    handle: str
    kind: str
    settings: Mapping[str, Any]
    sealed: str | None
    parked_reason: str | None
    parked_until: Instant | None
    error: str | None
    error_at: Instant | None
    connected_at: Instant | None
    paused_at: Instant | None
    holder: str | None
    until: Instant
    created_at: Instant

    @property
    def purpose(self) -> str:
        """What its secret is sealed for."""
        return secret_purpose(self.id)


def secret_purpose(bridge_id: BridgeId) -> str:
    return f"bridge {bridge_id}"


@dataclass(frozen=True, slots=True)
class Channel:
    """A room elsewhere, and the space that it is bound to."""

    id: ChannelId
    bridge_id: BridgeId
    space_id: SpaceId
    room: str
    cursor: str | None
    parent_id: ChannelId | None
    """The channel that this conversation was read from; None if somebody connected it."""
    created_at: Instant
    space_name: str
    private: bool
    joined: bool
    """Whether the bridge is still in the space: otherwise nothing is carried."""
    hidden: bool = False
    """Whether its room and space are hidden from who asked: the space is private, and they are not in it."""


@dataclass(frozen=True, slots=True)
class BridgeLease:
    """The right to carry the messages of a bridge, until another process takes it."""

    bridge_id: BridgeId
    holder: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Backlog:
    """What of a bridge waits to be sent."""

    waiting: int
    oldest_at: Instant | None
    failed: int


_bridge = (
    bridges.c.id,
    bridges.c.organization_id,
    bridges.c.entity_id,
    entities.c.name,
    entities.c.handle,
    bridges.c.kind,
    bridges.c.settings,
    bridges.c.sealed,
    bridges.c.parked_reason,
    bridges.c.parked_until,
    bridges.c.error,
    bridges.c.error_at,
    bridges.c.connected_at,
    bridges.c.paused_at,
    bridges.c.holder,
    bridges.c.until,
    bridges.c.created_at,
)
_bridges = select(*_bridge).join(entities, entities.c.id == bridges.c.entity_id)
_get = statement(_bridges.where(bridges.c.id == bindparam("id")))
_of_organization = statement(
    _bridges.where(bridges.c.organization_id == bindparam("organization_id")).order_by(bridges.c.id)
)
_channel = (
    select(
        channels.c.id,
        channels.c.bridge_id,
        channels.c.space_id,
        channels.c.room,
        channels.c.cursor,
        channels.c.parent_id,
        channels.c.created_at,
        spaces.c.name,
        spaces.c.private,
        memberships.c.entity_id,
    )
    .join(spaces, spaces.c.id == channels.c.space_id)
    .join(bridges, bridges.c.id == channels.c.bridge_id)
    .outerjoin(
        memberships,
        (memberships.c.space_id == channels.c.space_id) & (memberships.c.entity_id == bridges.c.entity_id),
    )
)
_of_bridge = statement(
    _channel.where(channels.c.bridge_id == bindparam("bridge_id"), channels.c.parent_id.is_(None)).order_by(
        channels.c.id
    )
)
_conversations = statement(
    _channel.where(
        channels.c.bridge_id == bindparam("bridge_id"), channels.c.parent_id == bindparam("parent_id")
    ).order_by(channels.c.id)
)
_counted = statement(
    select(channels.c.parent_id, func.count())
    .where(channels.c.bridge_id == bindparam("bridge_id"), channels.c.parent_id.is_not(None))
    .group_by(channels.c.parent_id)
)
_in_space = statement(
    _channel.where(channels.c.space_id == bindparam("space_id"), channels.c.bridge_id == bindparam("bridge_id"))
)
_in_room = statement(
    _channel.where(channels.c.bridge_id == bindparam("bridge_id"), channels.c.room == bindparam("room"))
)
_one_channel = statement(_channel.where(channels.c.id == bindparam("id")))
_backlog = statement(
    select(
        func.count(outbox.c.number).filter(outbox.c.failed.is_(None)),
        func.min(outbox.c.created_at).filter(outbox.c.failed.is_(None)),
        func.count(outbox.c.failed),
    ).where(outbox.c.bridge_id == bindparam("bridge_id"))
)


def get(tx: Tx, bridge_id: str) -> Bridge:
    return _as_bridge(existing(tx.one(_get, id=storable(bridge_id)), "bridge", bridge_id))


def bridges_of(tx: Tx, organization_id: OrganizationId) -> list[Bridge]:
    """The bridges of the organization, oldest first."""
    return [_as_bridge(row) for row in tx.all(_of_organization, organization_id=organization_id)]


def channels_of(tx: Tx, bridge_id: BridgeId) -> list[Channel]:
    """The channels of the bridge that somebody connected, oldest first."""
    return [_as_channel(row) for row in tx.all(_of_bridge, bridge_id=bridge_id)]


def conversations_of(tx: Tx, channel: Channel) -> list[Channel]:
    """The conversations that were read from the channel, oldest first."""
    return [_as_channel(row) for row in tx.all(_conversations, bridge_id=channel.bridge_id, parent_id=channel.id)]


def count_conversations(tx: Tx, bridge_id: BridgeId) -> dict[ChannelId, int]:
    """How many conversations were read from each channel of the bridge."""
    return dict(tx.all(_counted, bridge_id=bridge_id))


def channels_in(tx: Tx, bridge_id: BridgeId, space_id: SpaceId) -> list[Channel]:
    """The channels of the bridge that are bound to this space."""
    return [_as_channel(row) for row in tx.all(_in_space, bridge_id=bridge_id, space_id=space_id)]


def get_channel(tx: Tx, channel_id: str) -> Channel:
    return _as_channel(existing(tx.one(_one_channel, id=storable(channel_id)), "channel", channel_id))


def find_channel(tx: Tx, bridge_id: BridgeId, room: str) -> Channel | None:
    """The channel of the bridge for this room, if there is one."""
    row = tx.one(_in_room, bridge_id=bridge_id, room=storable(room))
    return None if row is None else _as_channel(row)


def backlog_of(tx: Tx, bridge_id: BridgeId) -> Backlog:
    row = tx.one(_backlog, bridge_id=bridge_id)
    assert row is not None
    return Backlog(*row)


def _as_bridge(row: tuple[Any, ...]) -> Bridge:
    id, organization_id, entity_id, name, handle, kind, settings, *rest = row
    return Bridge(id, organization_id, entity_id, name, handle, kind, json.loads(settings), *rest)


def _as_channel(row: tuple[Any, ...]) -> Channel:
    *known, private, joined = row
    return Channel(*known, private=bool(private), joined=joined is not None)


def state_of(bridge: Bridge, now: int) -> BridgeState:
    """How the bridge does. Pure."""
    if bridge.paused_at is not None:
        return "paused"
    if bridge.parked_reason is not None:
        return "parked"
    if bridge.holder is None or bridge.until < now:
        return "stopped"
    return "connected" if bridge.error is None else "failing"


# The lease

_free = (
    or_(bridges.c.holder.is_(None), bridges.c.until < bindparam("now")),
    or_(
        bridges.c.parked_until.is_(None),
        bridges.c.parked_until <= bindparam("now"),
        # Nothing is parked for longer: the clock was set back since.
        bridges.c.parked_until > bindparam("latest", type_=bridges.c.parked_until.type),
    ),
    bridges.c.paused_at.is_(None),
)
_due = statement(select(bridges.c.id).where(*_free).order_by(bridges.c.id))
_take = statement(
    update(bridges)
    .where(bridges.c.id == bindparam("bridge"), *_free)
    .values(holder=bindparam("by"), epoch=bridges.c.epoch + 1, until=bindparam("later"))
    .returning(bridges.c.epoch)
)
_renew = update_where(bridges, "id, holder, epoch", set_="until")
_release = update_where(bridges, "id, holder, epoch", holder=None, until=0)
_free_all = update_where(bridges, "holder", holder=None, until=0)
_lock = statement(
    select(bridges.c.holder, bridges.c.epoch).where(bridges.c.id == bindparam("id")).with_for_update(key_share=True)
)


def any_free(tx: Tx) -> bool:
    """Whether a bridge has nobody who carries its messages."""
    return tx.one(_due, now=tx.now, latest=_latest(tx)) is not None


def take_leases(tx: Tx, holder: str, lease_seconds: float) -> list[BridgeLease]:
    """Take every bridge that nobody carries messages for."""
    taken: list[BridgeLease] = []
    now, latest, later = tx.now, _latest(tx), tx.now + int(lease_seconds * SECOND)
    for (bridge_id,) in tx.all(_due, now=now, latest=latest):
        row = tx.one(_take, bridge=bridge_id, by=holder, now=now, latest=latest, later=later)
        if row is not None:
            taken.append(BridgeLease(bridge_id, holder, row[0]))
    return taken


def renew_leases(tx: Tx, carried: Iterable[BridgeLease], lease_seconds: float) -> dict[BridgeId, int]:
    """Renew the leases of the bridges that a process carries; returns the epochs that it still holds.

    No others of its own: one that was given, or not given back, while the connection broke, is carried by nobody.
    """
    until = tx.now + int(lease_seconds * SECOND)
    return {
        each.bridge_id: each.epoch
        for each in sorted(carried, key=lambda each: each.bridge_id)  # in one order, or two might wait for each other
        if tx.run(_renew, id=each.bridge_id, holder=each.holder, epoch=each.epoch, until=until)
    }


def release_lease(tx: Tx, held: BridgeLease) -> None:
    tx.run(_release, id=held.bridge_id, holder=held.holder, epoch=held.epoch)


def free_all_of(tx: Tx, instance: str) -> None:
    """Free the bridges of an instance that is gone. If it carries more, its writes are refused."""
    tx.run(_free_all, holder=instance)


def is_parked(tx: Tx, bridge_id: BridgeId) -> bool:
    """Whether the bridge waits until somebody changes something, or until it tries again by itself."""
    until = get(tx, bridge_id).parked_until
    return until is not None and tx.now < until <= _latest(tx)


def _latest(tx: Tx) -> int:
    """Nothing is parked until later."""
    return tx.now + PARKED_SECONDS * SECOND


def lock(tx: Tx, bridge_id: BridgeId, held: BridgeLease | None = None) -> None:
    """Lock the bridge until the commit: others who carry its messages wait. Raises `LeaseLost` unless the given lease
    is still held, and `NotFound` for a bridge that was removed.
    """
    row = existing(tx.one(_lock, id=bridge_id), "bridge", bridge_id)
    if held is not None and row != (held.holder, held.epoch):
        raise LeaseLost


# Its state

_worked = update_where(bridges, "id", set_="connected_at", error=None, error_at=None)
_heard_from = update_where(bridges, "id", set_="connected_at")
_failed = update_where(bridges, "id", set_="error, error_at")
_park = update_where(bridges, "id", set_="parked_reason, parked_until, error, error_at")
_unpark = update_where(bridges, "id", parked_reason=None, parked_until=None)
_probe = statement(update(bridges).where(bridges.c.parked_reason.is_not(None)).values(parked_until=bindparam("now")))
_is_parked: ColumnElement[bool] = bridges.c.parked_reason.is_not(None)
_parked = select_where(bridges, "parked_reason", "id", _is_parked)
_mark_bridged = update_where(spaces, "id", bridged=1)
_pause = update_where(bridges, "id", set_="paused_at")


def note_success(tx: Tx, bridge_id: BridgeId) -> bool:
    """Something went through. Returns whether the bridge was parked before."""
    was_parked = tx.one(_parked, id=bridge_id) is not None
    tx.run(_worked, id=bridge_id, connected_at=tx.now)
    if was_parked:
        tx.run(_unpark, id=bridge_id)
    return was_parked


def note_received(tx: Tx, bridge_id: BridgeId) -> None:
    """Something came from the service. Whether something can be sent to it is not known by that."""
    tx.run(_heard_from, id=bridge_id, connected_at=tx.now)


def note_problem(tx: Tx, bridge_id: BridgeId, reason: str) -> None:
    tx.run(_failed, id=bridge_id, error=storable(reason)[:PROBLEM_CHARACTERS], error_at=tx.now)


def park(tx: Tx, bridge_id: BridgeId, reason: str) -> bool:
    """Let the bridge rest until something changes, or a while has passed. Returns whether it was not parked before."""
    is_new = tx.one(_parked, id=bridge_id) is None
    why, now = storable(reason)[:PROBLEM_CHARACTERS], tx.now
    tx.run(_park, id=bridge_id, parked_reason=why, parked_until=_latest(tx), error=why, error_at=now)
    return is_new


def probe(tx: Tx, bridge_id: BridgeId | None = None) -> None:
    """Have a parked bridge, or all of them, try again now."""
    if bridge_id is None:
        tx.run(_probe, now=tx.now)
    else:
        tx.run(_unpark, id=bridge_id)


def set_paused(tx: Tx, bridge_id: BridgeId, *, paused: bool) -> None:
    """Have the bridge carry nothing, or carry again."""
    tx.run(_pause, id=bridge_id, paused_at=tx.now if paused else None)


def mark_bridged(tx: Tx, space_id: SpaceId) -> None:
    """Note that the space is, or was, connected with a room elsewhere: only then a post looks for rooms."""
    tx.run(_mark_bridged, id=space_id)
