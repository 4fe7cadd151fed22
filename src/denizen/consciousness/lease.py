"""Leases: at most one process at a time may think for an agent. Epochs decide, clocks only say when to try.

A lease that has expired is still good until someone takes it over; from then on every write of the old holder is
refused, because each carries its epoch and the take-over has incremented it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sqlalchemy import bindparam, or_, select, update

from denizen.clock import SECOND, Instant
from denizen.errors import LeaseLost
from denizen.ids import AgentId
from denizen.storage.database import (
    Tx,
    insert_ignore,
    insert_into,
    select_where,
    statement,
    update_where,
    value,
    values,
)
from denizen.storage.schema import agents, instances, leases

LEASE_SECONDS: Final = 30


@dataclass(frozen=True, slots=True)
class Lease:
    """The right of one instance to think for one agent."""

    agent_id: AgentId
    holder: str
    epoch: int


_create = insert_into(leases, "agent_id")
_free = or_(leases.c.holder.is_(None), leases.c.until < bindparam("now"))
_acquire = statement(
    update(leases)
    .where(
        # A locked row is skipped, not waited for: its holder may be stopped in the middle of a write.
        leases.c.agent_id.in_(
            select(leases.c.agent_id)
            .where(leases.c.agent_id == bindparam("agent"), _free)
            .with_for_update(skip_locked=True)
        ),
        leases.c.agent_id.in_(
            select(agents.c.id).where(agents.c.id == bindparam("agent"), agents.c.status == "active")
        ),
    )
    .values(holder=bindparam("by"), epoch=leases.c.epoch + 1, until=bindparam("then"))
    .returning(leases.c.epoch)
)
_is_free = statement(
    select(leases.c.agent_id)
    .join(agents, agents.c.id == leases.c.agent_id)
    .where(leases.c.agent_id == bindparam("agent"), agents.c.status == "active", _free)
)
_is_active = select_where(agents, "id", "id", agents.c.status == "active")
_renew = statement(
    update(leases)
    .where(leases.c.holder == bindparam("by"))
    .values(until=bindparam("then"))
    .returning(leases.c.agent_id, leases.c.epoch)
)
_release = update_where(leases, "agent_id, holder, epoch", holder=None, until=0)
_let_go_of = update_where(leases, "agent_id, holder", holder=None, until=0)
# Shared with the holder's other writes, in conflict with a take-over, which waits for them. Without this lock a stale
# holder could commit after the take-over: what it read is from before it.
_fence = statement(
    select(leases.c.epoch, leases.c.holder).where(leases.c.agent_id == bindparam("agent_id")).with_for_update(read=True)
)
_lock = statement(
    select(leases.c.epoch).where(leases.c.agent_id == bindparam("agent_id")).with_for_update(key_share=True)
)
_held = select_where(leases, "until, epoch", "agent_id")
_seize = statement(
    update(leases)
    .where(leases.c.agent_id == bindparam("agent"))
    .values(holder=None, epoch=leases.c.epoch + 1, until=0)
    .returning(leases.c.epoch)
)


def create(tx: Tx, agent_id: AgentId) -> None:
    """Create a lease that nobody holds."""
    tx.run(_create, agent_id=agent_id)


def acquire(tx: Tx, agent_id: AgentId, holder: str, seconds: float = LEASE_SECONDS) -> Lease | None:
    """The lease, if nobody holds it or it has expired, and the agent is active.

    Never waits: None also while a write of the last holder is running. In that case `is_free` is True.
    """
    epoch = value(tx, _acquire, agent=agent_id, by=holder, now=tx.now, then=tx.now + int(seconds * SECOND))
    if epoch is None:
        return None
    lease = Lease(agent_id, holder, epoch)
    # PostgreSQL checked the agent before it locked the row: meanwhile it may have been suspended.
    if tx.one(_is_active, id=agent_id) is None:
        release(tx, lease)
        return None
    return lease


def renew(tx: Tx, holder: str, seconds: float = LEASE_SECONDS) -> dict[AgentId, int]:
    """Renew every lease of this holder. Returns the agents it still holds, with their epochs."""
    return dict(tx.all(_renew, by=holder, then=tx.now + int(seconds * SECOND)))  # pyright: ignore[reportArgumentType]


def release(tx: Tx, lease: Lease) -> None:
    """Release the lease, unless someone else holds it already."""
    tx.run(_release, agent_id=lease.agent_id, holder=lease.holder, epoch=lease.epoch)


def let_go_of(tx: Tx, agent_id: AgentId, holder: str) -> bool:
    """Release the agent if this holder holds it, under any epoch. Returns whether it did.

    For callers that know that nothing here uses that lease, as when the confirmation of an acquisition or release was
    lost.
    """
    return tx.run(_let_go_of, agent_id=agent_id, holder=holder) == 1


def fence(tx: Tx, lease: Lease, prefetch: Callable[[Tx], None] | None = None) -> None:
    """Raise unless the lease is still held. The first line of every write of a cycle.

    `prefetch` announces what the write will ask next, so that it is answered in the same round trip.
    """
    if prefetch is not None and tx.dialect == "postgresql":
        tx.prefetch(_fence, agent_id=lease.agent_id)
        prefetch(tx)
    if tx.one(_fence, agent_id=lease.agent_id) != (lease.epoch, lease.holder):
        raise LeaseLost(f"Another process thinks for the agent {lease.agent_id} now.")


def lock(tx: Tx, agent_id: AgentId) -> None:
    """Block writes of the agent's cycles until this transaction ends; waits for running ones."""
    tx.one(_lock, agent_id=agent_id)


def seize(tx: Tx, agent_id: AgentId) -> int:
    """Take the lease away from its holder. Returns the new epoch. For suspending and deleting."""
    return value(tx, _seize, agent=agent_id) or 0


def is_free(tx: Tx, agent_id: AgentId) -> bool:
    """Whether the agent is active and nobody has a valid lease on it."""
    return tx.one(_is_free, agent=agent_id, now=tx.now) is not None


def is_held(tx: Tx, agent_id: AgentId) -> bool:
    """Whether someone has a valid lease on this agent."""
    return (value(tx, _held, agent_id=agent_id) or 0) >= tx.now


def epoch_of(tx: Tx, agent_id: AgentId) -> int:
    _, epoch = tx.one(_held, agent_id=agent_id) or (0, 0)
    return epoch


_free_all = update_where(leases, "holder", holder=None, until=0)
_ahead = statement(select(instances.c.id, instances.c.seen_at).where(instances.c.seen_at > bindparam("now")))
_seen = update_where(instances, "id", set_="seen_at")
# A renewal that was cancelled may still arrive after the instance appears again.
_appear = insert_ignore(instances, "id, seen_at")
_alive = statement(select(instances.c.id).where(instances.c.seen_at >= bindparam("since")).order_by(instances.c.id))
_forget = statement(instances.delete().where(instances.c.seen_at < bindparam("before")))
_vanish = statement(instances.delete().where(instances.c.id == bindparam("instance")))


def appear(tx: Tx, instance: str, lease_seconds: float) -> list[str]:
    """Record that this instance is alive. Returns all seen within the time of a lease; deletes those long gone."""
    if tx.run(_seen, id=instance, seen_at=tx.now) == 0:
        tx.run(_appear, id=instance, seen_at=tx.now)
    lease = int(lease_seconds * SECOND)
    tx.run(_forget, before=tx.now - 20 * lease)
    return values(tx, _alive, since=tx.now - lease)


def vanish(tx: Tx, instance: str) -> None:
    """Record that this instance is gone, so that the others need not wait for it."""
    tx.run(_vanish, instance=instance)


def seen_ahead(tx: Tx) -> tuple[Instant, dict[str, int]]:
    """The current time, and the instances that were seen in the future, with that time: the clock was set back since.

    Their leases were renewed when they were seen, and end that much too late. An instance that is alive is soon seen
    again.
    """
    return tx.now, dict(tx.all(_ahead, now=tx.now))  # pyright: ignore[reportArgumentType]


def free_all_of(tx: Tx, instance: str) -> None:
    """Free the leases of an instance that is gone. If it writes again, it is refused."""
    tx.run(_free_all, holder=instance)
    vanish(tx, instance)
