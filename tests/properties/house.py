"""A real database for state machines, which are synchronous: one event loop, one clock, emptied for each example."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import delete, select, text

from denizen.clock import ManualClock
from denizen.storage.database import Announcement, Database, Row, Tx, statement
from denizen.storage.opening import open_database
from denizen.storage.schema import agents, events, metadata

P = ParamSpec("P")
T = TypeVar("T")

Rows = dict[str, list[Row]]
"""Everything that is stored, by table."""

_TABLES = {
    table.name: statement(select(table).order_by(*table.primary_key.columns)) for table in metadata.sorted_tables
}
_EMPTY = [statement(delete(table)) for table in reversed(metadata.sorted_tables)]
_TRIGGERS = statement(text("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"))
_WITHOUT_TRIGGERS = statement(text("SET LOCAL session_replication_role = replica"))
COLUMNS = {table.name: [column.name for column in table.columns] for table in metadata.sorted_tables}


class House:
    """The database, and the loop on which it lives."""

    def __init__(self, runner: asyncio.Runner, db: Database, clock: ManualClock) -> None:
        self._runner = runner
        self.db = db
        self.clock = clock

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def write(self, fn: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.run(self.db.write(fn, *args, **kwargs))

    def read(self, fn: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.run(self.db.read(fn, *args, **kwargs))

    def at_once(self, *writes: tuple[Any, ...]) -> list[Any]:
        """Run these writes concurrently, each given as its function and arguments; exceptions are results."""

        async def gather() -> list[Any]:
            return await asyncio.gather(*(self.db.write(*each) for each in writes), return_exceptions=True)

        return self.run(gather())

    def rows(self) -> Rows:
        return self.read(everything)

    def empty(self) -> None:
        self.write(delete_everything)


def everything(tx: Tx) -> Rows:
    """All rows of all tables, in the order of their keys."""
    return {name: tx.all(query) for name, query in _TABLES.items()}


def delete_everything(tx: Tx) -> None:
    """No table has a row, the audit log neither, which triggers keep from everyone else."""
    triggers: list[Row] = []
    if tx.dialect == "sqlite":
        triggers = tx.all(_TRIGGERS)
        for name, _ in triggers:
            tx.run(statement(text(f"DROP TRIGGER {name}")))
    else:
        tx.run(_WITHOUT_TRIGGERS)
    for each in _EMPTY:
        tx.run(each)
    for _, made in triggers:
        tx.run(statement(text(made)))


def column(rows: Rows, table: str, name: str) -> list[Any]:
    """One column of a table."""
    at = COLUMNS[table].index(name)
    return [row[at] for row in rows[table]]


def records(rows: Rows, table: str) -> list[dict[str, Any]]:
    """The rows of a table by the names of its columns."""
    return [dict(zip(COLUMNS[table], row, strict=True)) for row in rows[table]]


# What a chain of agents left beyond its budget waits, by design, for something that wakes.
# What is for a parked agent waits until somebody changes what keeps it from thinking.
_unfinished = statement(
    select(events.c.id)
    .join(agents, agents.c.id == events.c.agent_id)
    .where(events.c.state.in_(["pending", "taken"]), events.c.wakes == 1, agents.c.parked_cause.is_(None))
)


def unfinished(tx: Tx) -> list[Row]:
    """The events that someone must still attend to."""
    return tx.all(_unfinished)


def violations(tx: Tx) -> Sequence[object]:
    """What the runtime's own checker finds wrong, where there is one."""
    if importlib.util.find_spec("denizen.checker") is None:
        return []
    from denizen import checker  # pyright: ignore[reportAttributeAccessIssue]

    return checker.check_deeply(tx)  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]


@contextmanager
def opened(url: str) -> Iterator[House]:
    clock = ManualClock()
    with asyncio.Runner() as runner:
        db = runner.run(open_database(url, clock=clock, announce=_tell_nobody))
        try:
            yield House(runner, db, clock)
        finally:
            runner.run(db.close())


def _tell_nobody(_: Sequence[Announcement]) -> None:
    pass
