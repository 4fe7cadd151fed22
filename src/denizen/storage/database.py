"""The database port: statements built once, transactions, and the protocol that runs functions in them.

A function given to `write` is plain synchronous code that only touches its `tx`. It may run twice, and its caller may
be gone before it ends: then it still happens as a whole or not at all. Announcements after the commit are attached to
the transaction with `announce`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeAlias, TypeVar

from pydantic import JsonValue
from sqlalchemy import ColumnElement, FromClause, Table, bindparam, delete, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.base import Executable

from denizen.clock import Instant
from denizen.errors import StorageError

Params: TypeAlias = int | str | float | bytes | None
Row: TypeAlias = tuple[Any, ...]
Announcement: TypeAlias = tuple[str, Mapping[str, JsonValue]]
"""A topic and its payload."""
Announce: TypeAlias = Callable[[Sequence[Announcement]], None]

P = ParamSpec("P")
T = TypeVar("T")

_UNSTORABLE = str.maketrans(dict.fromkeys([0, *range(0xD800, 0xE000)], "\ufffd"))


def storable(text: str) -> str:
    """Returns the text with characters that no database can hold (NUL, lone surrogates) replaced by U+FFFD."""
    return text if text.isascii() and "\0" not in text else text.translate(_UNSTORABLE)


class Conflict(StorageError):
    """A constraint of the schema forbids this write."""

    code = "conflict"

    def __init__(self, constraint: str) -> None:
        self.constraint = constraint
        """The violated constraint: its columns (SQLite) or its name (PostgreSQL)."""
        super().__init__(f"The database refuses this write, because it would break {constraint}.")


class Statement:
    """SQL built once: a SQLAlchemy Core expression, compiled on first use for each dialect to the driver's own SQL."""

    def __init__(self, sqlite: Executable, postgresql: Executable) -> None:
        self._for_sqlite = sqlite
        self._for_postgresql = postgresql

    @cached_property
    def sqlite(self) -> str:
        """With parameters like `:name`: to be read, and explained."""
        from denizen.storage import compiling

        return compiling.sqlite_sql(self._for_sqlite)

    @cached_property
    def sqlite_call(self) -> tuple[str, Callable[[Mapping[str, Params]], Sequence[Params]]]:
        """The same with parameters like `?1`; and what takes their values in that order from those by name.

        The driver looks up the name of each named parameter, and lets go of the interpreter's lock each time.
        """
        from denizen.storage import compiling

        sql, names = compiling.sqlite_numbered_sql(self._for_sqlite)
        return sql, itemgetter(*names) if len(names) > 1 else lambda params: [params[name] for name in names]

    @cached_property
    def postgresql(self) -> tuple[str, tuple[str, ...]]:
        """With parameters like `$1`; and their names in that order."""
        from denizen.storage import compiling

        return compiling.postgresql_sql(self._for_postgresql)


def statement(expression: Executable) -> Statement:
    """Builds the statement for `expression`; values that are not `bindparam`s become part of the SQL text."""
    return Statement(expression, expression)


def insert_into(table: Table, *names: str) -> Statement:
    """Builds an insert of a row with these columns ("id, name"), each a parameter of its own name."""
    return statement(insert(table).values(_given(table, ", ".join(names))))


def insert_ignore(table: Table, names: str | Iterable[str] = ()) -> Statement:
    """Builds an insert of these columns (all but a serial key) that does nothing if a unique key exists already."""
    listed = names if isinstance(names, str) else ", ".join(names)
    given = _given(table, listed or _all_names(table))
    return Statement(
        sqlite.insert(table).values(given).on_conflict_do_nothing(),
        postgresql.insert(table).values(given).on_conflict_do_nothing(),
    )


def insert_or_update(table: Table, names: str = "", *, set_: str = "") -> Statement:
    """Builds an insert of these columns (all but a serial key). If the primary key exists already, it updates `set_`
    instead (all but the key).
    """
    given, keys = _given(table, names or _all_names(table)), [each.name for each in table.primary_key]
    changing = set_.split(", ") if set_ else [name for name in given if name not in keys]
    rows = [dialect.insert(table).values(given) for dialect in (sqlite, postgresql)]
    return Statement(
        *(row.on_conflict_do_update(index_elements=keys, set_={n: row.excluded[n] for n in changing}) for row in rows)
    )


def select_where(
    table: FromClause,
    what: str | Iterable[ColumnElement[Any]],
    keys: str,
    *also: ColumnElement[bool],
    order_by: str = "",
    limit: int | str | None = None,
    for_update: bool = False,
) -> Statement:
    """Builds a select of the columns `what` ("id, name") where each of `keys` ("space_id, seq") equals its parameter.

    `also`: further conditions. `order_by`: columns ("seq desc, id"). `limit`: a number, or the name of a parameter.
    """
    wanted = columns(table, what) if isinstance(what, str) else what
    query = select(*wanted).where(*equal(table, keys), *also)
    for name, _, direction in (each.partition(" ") for each in order_by.split(", ") if each):
        query = query.order_by(table.c[name].desc() if direction else table.c[name])
    if limit is not None:
        query = query.limit(bindparam(limit) if isinstance(limit, str) else limit)
    return statement(query.with_for_update() if for_update else query)


def update_where(table: Table, keys: str, *also: ColumnElement[bool], set_: str = "", **to: Any) -> Statement:
    """Builds an update of the rows where each of `keys` equals the parameter of its name, and `also` holds.

    `set_`: columns that get the parameters of their names. `to`: columns that get a constant or an expression.
    """
    return statement(update(table).where(*equal(table, keys), *also).values(_given(table, set_) | to))


def delete_where(table: Table, keys: str, *also: ColumnElement[bool]) -> Statement:
    """Builds a delete of the rows where each of `keys` equals the parameter of its name, and `also` holds."""
    return statement(delete(table).where(*equal(table, keys), *also))


def _all_names(table: Table) -> str:
    return ", ".join(each.name for each in table.c if each is not table.autoincrement_column)


def _given(table: Table, names: str) -> dict[str, Any]:
    """Returns a parameter for each of these columns."""
    return {name: bindparam(name, type_=table.c[name].type) for name in names.split(", ") if name}


def columns(table: FromClause, names: str) -> tuple[ColumnElement[Any], ...]:
    """Returns these columns ("id, name") of the table."""
    return tuple(table.c[name] for name in names.split(", "))


def equal(table: FromClause, keys: str) -> list[ColumnElement[bool]]:
    """Builds the conditions that each of `keys` ("agent_id, number") equals the parameter of its name."""
    return [table.c[name] == bindparam(name) for name in keys.split(", ")]


_long_running: set[Callable[..., Any]] = set()


def long_running(fn: Callable[P, T]) -> Callable[P, T]:
    """Marks a function for `write` or `read` in which one statement, or the work between two, may take minutes.

    Others are limited to seconds, because they may keep another process waiting.
    """
    _long_running.add(fn)
    return fn


def is_long_running(fn: Callable[..., Any]) -> bool:
    return fn in _long_running


class Tx(Protocol):
    """One transaction, inside the function that was given to `write` or `read`."""

    @property
    def dialect(self) -> Literal["sqlite", "postgresql"]: ...

    @property
    def now(self) -> Instant:
        """The time of this transaction: always the same value."""
        ...

    def run(self, statement: Statement, /, **params: Params) -> int:
        """Executes it; returns the number of changed rows."""
        ...

    def send(self, statement: Statement, /, **params: Params) -> None:
        """Executes it; on PostgreSQL with the next statement whose answer is needed, so that an error may come then."""
        ...

    def prefetch(self, statement: Statement, /, **params: Params) -> None:
        """Announces that `one` or `all` will be called with just this: on PostgreSQL, all that were announced are one
        round trip. The answer is that of now: nothing that is written in between may change it.
        """
        ...

    def one(self, statement: Statement, /, **params: Params) -> Row | None:
        """Executes it; returns the first row."""
        ...

    def all(self, statement: Statement, /, **params: Params) -> list[Row]:
        """Executes it; returns all rows."""
        ...

    def many(self, statement: Statement, rows: Sequence[Mapping[str, Params]], /) -> None:
        """Executes it once for each of `rows`."""
        ...

    def note_head(self, kind: str, id: str, position: int, digest: bytes) -> None:
        """Notes outside the database, after the commit, how far a chain of digests has come; see `heads.py`."""
        ...

    def announce(self, topic: str, payload: Mapping[str, JsonValue]) -> None:
        """Publishes to `topic` after the commit; never before it, and never if it fails."""
        ...

    def call_up(self, key: str) -> None:
        """Lets the write that stands by under `key`, if there is one, run after this one and share its commit."""
        ...


def value(tx: Tx, statement: Statement, /, **params: Params) -> Any:
    """Returns the first column of the first row; None if there is no row."""
    row = tx.one(statement, **params)
    return None if row is None else row[0]


def values(tx: Tx, statement: Statement, /, **params: Params) -> list[Any]:
    """Returns the first column of every row."""
    return [row[0] for row in tx.all(statement, **params)]


class Database(Protocol):
    """The database. Opened on an event loop by `opening.open_database`, and used on that loop only."""

    commits: int
    """Transactions committed by writes."""
    writes: int
    """Functions whose write was committed."""
    missing: str | None
    """What was stored before and was missing when it was opened, as a sentence; None if nothing is known to be."""

    @property
    def is_full(self) -> bool:
        """Whether writes fail because its disk is full."""
        ...

    @property
    def blobs(self) -> Database:
        """Where the contents of files are: another database on SQLite, this one on PostgreSQL.

        A transaction there is not one with the others: see `denizen.files.storing`.
        """
        ...

    async def write(self, fn: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs `fn` in a transaction; when this returns, its writes are durable."""
        ...

    async def write_first(self, fn: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Like `write`, but ahead of whatever is queued. For lease renewals."""
        ...

    async def read(self, fn: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs `fn` on one consistent snapshot of everything committed so far. It cannot write."""
        ...

    def stand_by(
        self,
        key: str,
        then: Callable[[], None],
        fn: Callable[Concatenate[Tx, P], T],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> asyncio.Future[T]:
        """Keeps a write ready that runs when another one calls it up (`Tx.call_up`), and shares the commit of that.

        Its failure does not fail the other. `then` is called on the loop when both are durable, before the future has
        its result: after everything that it may have read was announced, and before anything newer is. Only a hint: it
        may never be called up, as on PostgreSQL, where writes share no commits.
        """
        ...

    def withdraw(self, key: str, /) -> bool:
        """Takes the stand-by write back. False: it was called up, and its future gets a result."""
        ...

    def end_within(self, seconds: float) -> None:
        """Nobody waits longer than that for a database that does not answer: the process is stopping. When a call got
        no answer until then, it fails, and so does every other.
        """
        ...

    async def close(self) -> None:
        """Finishes the queued writes and closes the database."""
        ...
