"""Checks the database without creating, migrating or changing anything in it."""

from __future__ import annotations

import os
import sqlite3
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from denizen.amounts import human_size
from denizen.cli.findings import Finding, counted, is_there, may_write
from denizen.clock import SECOND
from denizen.consciousness.lease import LEASE_SECONDS
from denizen.storage.migrating import HEAD, REVISIONS

QUICK_CHECK_BYTES: Final = 200_000_000
"""Files up to this size are checked completely; a larger one would take too long."""
QUICK_CHECK_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 3

Query = Callable[[str], Any]
"""Runs a query that returns one row."""

_SQLITE_OPEN_LOCK: Final = 128
"""Every process that has a database in write-ahead mode open holds a lock on this byte of its -shm file."""
# C's `struct flock`, which Python does not define: its layout, and the order of its five fields: type of lock, whence,
# start, length, process.
_LOCK_OF_LINUX: Final = ("hhqqi4x", (0, 1, 2, 3, 4))
_LOCK_OF_MACOS: Final = ("qqihh", (2, 3, 4, 0, 1))


def examine(url: str, embedder: str = "none") -> list[Finding]:
    """Returns the findings about the database at `url` and its agents. Blocks; call it in a thread.

    `embedder` is the name of the vectors with which agents should recall.
    """
    scheme, _, rest = url.partition("://")
    if scheme.startswith("postgresql"):
        return list(_examine_postgresql(f"postgresql://{rest}", embedder))
    name = rest.removeprefix("/")
    if name in ("", ":memory:"):
        said = "SQLite in a temporary file: everything is forgotten when Denizen stops."
        return [Finding("Database", "note", said, "Set DATABASE_URL=sqlite:///path to keep it.")]
    return list(_examine_sqlite(Path(name).absolute(), embedder))


def _examine_sqlite(path: Path, embedder: str) -> Iterator[Finding]:
    from denizen.storage.sqlite_errors import translate

    if not is_there(path):
        said = f"There is no database at {path} yet."
        yield Finding("Database", "note", said, "Nothing to do: the first `denizen up` makes it.")
        return
    holder = _holder(path)  # Before we have it open ourselves.
    try:
        with closing(_connect_sqlite(path)) as connection:

            def query(sql: str) -> Any:
                return connection.execute(sql).fetchone()

            query("SELECT count(*) FROM sqlite_master")  # The first query that reads the file.
            yield _sqlite_itself(path, holder)
            yield _integrity(connection, path)
            versioned = query("SELECT name FROM sqlite_master WHERE name = 'alembic_version'")
            yield from _contents(query, versioned, _now, embedder)
    except sqlite3.Error as error:
        yield Finding("Database", "problem", str(translate(error, path)))


def _connect_sqlite(path: Path) -> sqlite3.Connection:
    # For reading and writing, though nothing is written: a read-only connection leaves its -wal and -shm behind.
    connection = sqlite3.connect(f"file:{quote(str(path))}?mode=rw", uri=True, timeout=1.0, isolation_level=None)
    connection.execute("PRAGMA query_only = ON")
    return connection


def _sqlite_itself(path: Path, holder: int | None) -> Finding:
    bytes_used = sum(_size(Path(f"{path}{suffix}")) for suffix in ("", "-wal"))
    said = f"SQLite {sqlite3.sqlite_version} at {path}, {human_size(bytes_used)}"
    if not (may_write(path) and may_write(path.parent)):
        advice = "Give this user the right to write the file and the folder that it is in."
        return Finding("Database", "problem", f"{said}, may not be written to.", advice)
    return Finding("Database", "ok", f"{said}, {'not in use' if holder is None else f'open in process {holder}'}.")


def _integrity(connection: sqlite3.Connection, path: Path) -> Finding:
    if _size(path) > QUICK_CHECK_BYTES:
        return Finding(
            "Integrity", "ok", f"Not checked, the file is large. `sqlite3 {path} 'PRAGMA quick_check'` does."
        )
    give_up_at = time.monotonic() + QUICK_CHECK_SECONDS
    connection.set_progress_handler(lambda: time.monotonic() > give_up_at, 10_000)
    try:
        answer = [problem for (problem,) in connection.execute("PRAGMA quick_check(3)")]
        broken = Counter(table for table, *_ in connection.execute("PRAGMA foreign_key_check"))
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
        return Finding("Integrity", "note", f"Not checked to the end within {QUICK_CHECK_SECONDS:g} seconds.")
    finally:
        connection.set_progress_handler(None, 0)
    if broken:
        tables = ", ".join(f"{name} ({count:,})" for name, count in broken.most_common())
        said = f"{counted(broken.total(), 'row')} refer to rows that do not exist: {tables}."
        return Finding("Integrity", "problem", said, "Run `denizen check` for details, and restore a backup.")
    if answer == ["ok"]:
        return Finding("Integrity", "ok", "The file is sound.")
    return Finding("Integrity", "problem", f"The file is broken: {'; '.join(answer)}.", "Restore it from a backup.")


def _holder(path: Path) -> int | None:
    """Returns a process that has the database open, if this system tells."""
    if sys.platform not in ("linux", "darwin"):
        return None
    import fcntl

    asked = (fcntl.F_WRLCK, os.SEEK_SET, _SQLITE_OPEN_LOCK, 1, 0)
    layout, order = _LOCK_OF_MACOS if sys.platform == "darwin" else _LOCK_OF_LINUX
    question = struct.pack(layout, *(asked[place] for place in order))
    try:
        with Path(f"{path}-shm").open("rb") as file:
            answer = struct.unpack(layout, fcntl.fcntl(file, fcntl.F_GETLK, question))
    except OSError:
        return None
    kind, process = answer[order.index(0)], answer[order.index(4)]
    return None if kind == fcntl.F_UNLCK else process


def _examine_postgresql(conninfo: str, embedder: str) -> Iterator[Finding]:
    import psycopg

    from denizen.storage.postgresql_errors import describe, translate

    try:
        name = describe(conninfo)
    except psycopg.ProgrammingError:
        yield Finding("Database", "problem", "The PostgreSQL URL cannot be read.", "Correct DATABASE_URL.")
        return
    try:
        with closing(psycopg.connect(conninfo, autocommit=True, connect_timeout=ANSWER_SECONDS)) as connection:

            def query(sql: str) -> Any:
                return connection.execute(sql.encode()).fetchone()

            connection.execute("SET default_transaction_read_only = on")
            connection.execute(f"SET statement_timeout = '{ANSWER_SECONDS}s'".encode())
            version, used = query("SELECT current_setting('server_version'), pg_database_size(current_database())")
            yield Finding("Database", "ok", f"PostgreSQL {version.split()[0]}, {name}, {human_size(used)}.")
            versioned = query("SELECT to_regclass('alembic_version')")[0]
            yield from _contents(query, versioned, lambda: int(query(_SERVER_TIME)[0]), embedder)
    except psycopg.Error as error:
        yield Finding("Database", "problem", str(translate(error, name)))


_SERVER_TIME = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"


def _now() -> int:
    return time.time_ns() // 1_000


def _contents(query: Query, versioned: object, now: Callable[[], int], embedder: str) -> Iterator[Finding]:
    """Yields findings about the schema, and about its agents if the schema is known."""
    row = query("SELECT version_num FROM alembic_version") if versioned else None
    if row is None:
        said, advice = "The database is empty.", "Nothing to do: the first `denizen up` fills it."
        yield Finding("Schema", "note", said, advice)
        return
    (revision,) = row
    yield _schema(revision)
    if revision in REVISIONS:
        moment = now()
        yield _instances(query, moment)
        yield from _agents(query, moment)
    if revision == HEAD and embedder != "none":
        yield _embedded(query, embedder)


def _schema(revision: str) -> Finding:
    if revision == HEAD:
        return Finding("Schema", "ok", f"Up to date ({revision}).")
    if revision in REVISIONS:
        said = f"It is {revision}; this Denizen writes {HEAD}."
        return Finding("Schema", "note", said, "Make a backup. The next `denizen up` upgrades it.")
    said = f"It is {revision}, from a newer Denizen; this one knows those up to {HEAD}."
    advice = "Install the newer Denizen, or open a backup from before the upgrade."
    return Finding("Schema", "problem", said, advice)


def _instances(query: Query, now: int) -> Finding:
    (alive,) = query(f"SELECT count(*) FROM instances WHERE seen_at >= {now - LEASE_SECONDS * SECOND}")  # noqa: S608
    return Finding("Instances", "ok", f"{counted(alive, 'process', 'processes')} alive.")


def _agents(query: Query, now: int) -> Iterator[Finding]:
    count = "SELECT count(*) FROM agents WHERE status"
    suspended = query(f"{count} = 'suspended'")[0]
    active = query(f"{count} = 'active'")[0]
    awake = query(
        f"SELECT count(*) FROM leases JOIN agents ON agents.id = leases.agent_id "  # noqa: S608
        f"WHERE agents.status = 'active' AND holder IS NOT NULL AND until >= {now}"
    )[0]
    said = f"{counted(active + suspended, 'agent')}: {awake} awake, {active - awake} asleep, {suspended} suspended."
    yield Finding("Agents", "ok", said)
    # The second condition repeats that of the index of open events, so that finished ones are not read.
    events, agents = query(
        "SELECT count(*), count(DISTINCT agent_id) FROM events WHERE state = 'dead' AND state <> 'done'"
    )
    if events:
        said = f"{counted(events, 'dead event')} of {counted(agents, 'agent')}: each failed again and again."
        yield Finding("Events", "problem", said, "`denizen agents retry HANDLE` has the agent try them again.")


def _embedded(query: Query, embedder: str) -> Finding:
    quoted = embedder.replace("'", "''").replace("%", "%%")
    done, there = query(
        f"SELECT coalesce(sum(CASE WHEN embedder = '{quoted}' THEN embedded ELSE 0 END), 0), "  # noqa: S608
        "coalesce(sum(passages), 0) FROM recalls"
    )
    said = f"By meaning, with {embedder}: {int(done):,} of {counted(int(there), 'passage')}."
    if done < there:
        return Finding("Recall", "note", said, "Nothing to do: while Denizen is up, the rest follows.")
    return Finding("Recall", "ok", said)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
