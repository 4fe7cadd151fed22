"""Claims on turns to reflect on: which instance reflects next, so that no two pay for the same reflection.

A claim needs no renewal: it holds while its instance sends heartbeats, and a dead instance is recognized after the
duration of a lease. Results of a former claimant are refused.
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
    """An instance that was not seen for so long counts as dead."""


def is_free(table: Table) -> ColumnElement[bool]:
    """Whether no other living instance has claimed the row. It takes the parameters of `parameters`."""
    alive = select(instances.c.id).where(instances.c.seen_at >= bindparam("since"))
    holder = table.c.holder
    return or_(holder.is_(None), holder == bindparam("claimant"), holder.not_in(alive))


def parameters(tx: Tx, by: Claimant) -> dict[str, Any]:
    return {"claimant": by.instance, "since": tx.now - int(by.lease_seconds * SECOND)}


def claiming(table: Table, key: Column[Any], counted: Column[Any]) -> Statement:
    """Claims the row `whose` for `claimant`, if it is free and at most `before` of its turns have been reflected on."""
    return statement(
        update(table)
        .where(key == bindparam("whose"), counted == bindparam("before"), is_free(table))
        .values(holder=bindparam("claimant"))
    )


def advancing(table: Table, key: Column[Any], counted: Column[Any]) -> Statement:
    """Counts one more turn of the row `whose` and releases the claim, if `claimant` still holds it."""
    return statement(
        update(table)
        .where(key == bindparam("whose"), counted == bindparam("before"), table.c.holder == bindparam("claimant"))
        .values({counted.name: bindparam("after"), "holder": None})
    )
