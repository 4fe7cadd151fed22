"""A few functions for transactions, on the simplest tables of the schema: named texts and counters."""

from __future__ import annotations

import threading

from sqlalchemy import bindparam, insert, select, text, update

from denizen.storage.database import Database, Tx, statement
from denizen.storage.schema import organizations, spaces, toolsets

PUT = statement(insert(toolsets).values(digest=bindparam("name"), tools=bindparam("text")))
GET = statement(select(toolsets.c.tools).where(toolsets.c.digest == bindparam("name")))
NAMES = statement(select(toolsets.c.digest).order_by(toolsets.c.digest))
ORGANIZE = statement(insert(organizations).values(id="o", name="o", created_at=0))
MAKE_COUNTER = statement(
    insert(spaces).values(id=bindparam("id"), organization_id="o", kind="conversation", name="", created_at=0)
)
COUNT = statement(
    update(spaces)
    .where(spaces.c.id == bindparam("id"))
    .values(last_seq=spaces.c.last_seq + 1)
    .returning(spaces.c.last_seq)
)
READ_COUNTER = statement(select(spaces.c.last_seq).where(spaces.c.id == bindparam("id")))
LOCK_COUNTER = statement(select(spaces.c.last_seq).where(spaces.c.id == bindparam("id")).with_for_update())
ONE = statement(text("SELECT 1"))


def put(tx: Tx, name: str, content: str = "") -> None:
    tx.run(PUT, name=name, text=content)
    tx.announce("put", {"name": name})


def get(tx: Tx, name: str) -> str | None:
    row = tx.one(GET, name=name)
    return row[0] if row else None


def names(tx: Tx) -> list[str]:
    return [row[0] for row in tx.all(NAMES)]


def put_and_fail(tx: Tx, name: str) -> None:
    put(tx, name)
    raise LookupError(name)


def make_counters(tx: Tx, *ids: str) -> None:
    tx.run(ORGANIZE)
    tx.many(MAKE_COUNTER, [{"id": identifier} for identifier in ids])


def count(tx: Tx, identifier: str) -> int:
    row = tx.one(COUNT, id=identifier)
    assert row is not None
    return row[0]


def counted(tx: Tx, identifier: str) -> int:
    row = tx.one(READ_COUNTER, id=identifier)
    assert row is not None
    return row[0]


class Gate:
    """A write that has begun and does not end until it is let through."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self._opened = threading.Event()

    def hold(self, tx: Tx) -> None:
        tx.one(ONE)
        self.entered.set()
        assert self.wait()

    def wait(self) -> bool:
        return self._opened.wait(60)

    def open(self) -> None:
        self._opened.set()


async def everything(database: Database) -> list[str]:
    return await database.read(names)
