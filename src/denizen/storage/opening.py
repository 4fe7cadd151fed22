"""Opens the database that a URL names."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from denizen.clock import Clock
from denizen.errors import DatabaseUnavailable, InvalidInput
from denizen.storage.database import Announce, Database
from denizen.telemetry.logs import get_logger

if TYPE_CHECKING:
    from denizen.storage.heads import HeadsFile

log = get_logger(__name__)


async def open_database(url: str, *, clock: Clock, announce: Announce) -> Database:
    """Opens the database at `url`, migrated to this version's schema; creates a missing file, and its folder.

    `sqlite:///relative/path`, `sqlite:////absolute/path`, `sqlite://` (a temporary file, deleted when it is closed) or
    `postgresql://user@host/name`. `announce` is called on this event loop, after each commit.
    """
    scheme, rest = _parts(url)
    if scheme == "sqlite":
        return await _open_sqlite(rest.removeprefix("/"), clock, announce)
    return await _open_postgresql(f"postgresql://{rest}", clock, announce)


async def migrate(url: str) -> None:
    """Migrates the database at `url` to this version's schema, as `open_database` does."""
    scheme, rest = _parts(url)
    if scheme == "sqlite":
        await asyncio.to_thread(_prepare_sqlite, Path(rest.removeprefix("/")))
    else:
        await asyncio.to_thread(_prepare_postgresql, f"postgresql://{rest}")


async def revision(url: str) -> str | None:
    """Returns the last migration of the database at `url`; None if it has none, or does not exist."""
    scheme, rest = _parts(url)
    if scheme == "sqlite":
        return await asyncio.to_thread(_revision_of_sqlite, Path(rest.removeprefix("/")))
    return await asyncio.to_thread(_revision_of_postgresql, f"postgresql://{rest}")


def _parts(url: str) -> tuple[str, str]:
    scheme, _, rest = url.partition("://")
    match scheme.partition("+")[0]:
        case "sqlite":
            return "sqlite", rest
        case "postgresql" | "postgres":
            return "postgresql", rest
        case _:
            raise InvalidInput(f"Unknown database {scheme!r}. Use sqlite:///path or postgresql://host/name.")


def _revision_of_sqlite(path: Path) -> str | None:
    import sqlite3

    from denizen.storage.migrating import revision_of_sqlite
    from denizen.storage.sqlite_errors import translate

    try:
        return revision_of_sqlite(path)
    except sqlite3.Error as error:
        raise translate(error, path) from error


def _revision_of_postgresql(conninfo: str) -> str | None:
    import psycopg

    from denizen.storage.migrating import revision_of_postgresql
    from denizen.storage.postgresql_errors import describe, translate

    try:
        return revision_of_postgresql(conninfo)
    except psycopg.Error as error:
        raise translate(error, describe(conninfo)) from error


# The adapters are imported when needed: a user of SQLite does not wait for psycopg to load.


async def _open_sqlite(name: str, clock: Clock, announce: Announce) -> Database:
    from denizen.storage.sqlite import SqliteDatabase

    temporary = tempfile.TemporaryDirectory(prefix="denizen-") if name in ("", ":memory:") else None
    path = Path(temporary.name, "denizen.db") if temporary else Path(name)
    if temporary:
        await asyncio.to_thread(_make_temporary_sqlite, path)
        return SqliteDatabase(path, clock=clock, announce=announce, on_close=temporary.cleanup)
    missing, heads = await asyncio.to_thread(_prepare_and_compare, path)
    return SqliteDatabase(path, clock=clock, announce=announce, heads=heads, missing=missing)


def _prepare_and_compare(path: Path) -> tuple[str | None, HeadsFile]:
    """Prepares the database; returns what it has lost since it was last used, and the file that says how far it is."""
    from denizen.storage.heads import HeadsFile, find_missing

    _prepare_sqlite(path)
    missing = find_missing(path)
    if missing is not None:
        log.error("database is older than it was", missing=missing)
    return missing, HeadsFile(path)


_empty_sqlite: list[bytes] = []
"""An empty database with this version's schema, once this process has made one."""


def _make_temporary_sqlite(path: Path) -> None:
    """Creates a database. The first is migrated, the others are copies of it: a test suite may open hundreds."""
    if _empty_sqlite:
        path.write_bytes(_empty_sqlite[0])
        return
    _prepare_sqlite(path)
    _empty_sqlite.append(path.read_bytes())


def _prepare_sqlite(path: Path) -> None:
    import sqlite3

    from denizen.storage.migrating import migrate_sqlite
    from denizen.storage.sqlite_errors import read_only, translate

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Checked now, or an up-to-date database would open and fail at its first write.
        if not all(_is_writable(place) for place in (path, path.parent) if place.exists()):
            raise read_only(path)
        migrate_sqlite(path)
    except OSError as error:
        raise DatabaseUnavailable(
            f"The folder {path.parent} cannot be created ({error.strerror}). Choose another one, or create it yourself."
        ) from error
    except sqlite3.Error as error:
        raise translate(error, path) from error


def _is_writable(place: Path) -> bool:
    return os.access(place, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


async def _open_postgresql(conninfo: str, clock: Clock, announce: Announce) -> Database:
    from denizen.storage.postgresql import PostgresqlDatabase

    await asyncio.to_thread(_prepare_postgresql, conninfo)
    return PostgresqlDatabase(conninfo, clock=clock, announce=announce)


def _prepare_postgresql(conninfo: str) -> None:
    import psycopg

    from denizen.storage.migrating import migrate_postgresql
    from denizen.storage.postgresql import check_server
    from denizen.storage.postgresql_errors import describe, translate

    try:
        check_server(conninfo)
        migrate_postgresql(conninfo)
    except psycopg.ProgrammingError as error:
        if error.sqlstate is None:
            raise InvalidInput(f"The PostgreSQL URL cannot be read: {error}") from error
        raise translate(error, describe(conninfo)) from error
    except psycopg.Error as error:
        raise translate(error, describe(conninfo)) from error
