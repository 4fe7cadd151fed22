"""Which instance reflects on the next turn of an agent or a panel, so that no two pay for the same reflection.

A claim needs no renewal: it holds as long as its instance is seen, and an instance that dies is not seen any more after
the time of a lease. What a former holder made of the turn is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, ColumnElement, Table, bindparam, or_, select, update

from denizen.clock import SECOND
from denizen.storage.database import Statement, Tx, statement
from denizen.storage.schema import instances


@dataclass(frozen=True, slots=True)
class Claimant:
    """An instance that reflects."""

    instance: str
    lease_seconds: float
    """After so long without being seen, an instance is taken for dead."""


def is_free(table: Table) -> ColumnElement[bool]:
    """Whether no other living instance has claimed the row. Its parameters are those of `parameters`."""
    alive = select(instances.c.id).where(instances.c.seen_at >= bindparam("since"))
    holder = table.c.holder
    return or_(holder.is_(None), holder == bindparam("claimant"), holder.not_in(alive))


def parameters(tx: Tx, by: Claimant) -> dict[str, Any]:
    return {"claimant": by.instance, "since": tx.now - int(by.lease_seconds * SECOND)}


def claiming(table: Table, key: Column[Any], counted: Column[Any]) -> Statement:
    """Claims the row `whose` for `claimant`, if it is free and nobody has reflected on more than `before` turns."""
    return statement(
        update(table)
        .where(key == bindparam("whose"), counted == bindparam("before"), is_free(table))
        .values(holder=bindparam("claimant"))
    )


def advancing(table: Table, key: Column[Any], counted: Column[Any]) -> Statement:
    """Counts one more turn of the row `whose`, and gives up the claim, if that is still `claimant`'s."""
    return statement(
        update(table)
        .where(key == bindparam("whose"), counted == bindparam("before"), table.c.holder == bindparam("claimant"))
        .values({counted.name: bindparam("after"), "holder": None})
    )
