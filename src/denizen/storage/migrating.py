"""Migrates a database to this version's schema.

Migrations only add: what an older Denizen reads and writes stays, so that old and new instances can share one database.
A current database, the usual case, is recognized by a query; an empty one gets the tables of schema.py at once. Only a
database of an older version needs its missing migrations, and Alembic.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Column, Connection, MetaData, PrimaryKeyConstraint, String, Table, select

from denizen.errors import DatabaseNewer
from denizen.storage.database import Tx, statement
from denizen.telemetry.logs import get_logger

log_line = get_logger(__name__)

REVISIONS = tuple(f"{number:04}" for number in range(1, 42))
"""All migrations, the first one first."""
HEAD = REVISIONS[-1]

_versions = Table(
    "alembic_version",  # As Alembic makes it.
    MetaData(),
    Column("version_num", String(32)),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
_version = statement(select(_versions.c.version_num))
_STEPS = Path(__file__).parent / "migrations"
_SQLITE_TABLE = "SELECT name FROM sqlite_master WHERE name = 'alembic_version'"
_POSTGRESQL_TABLE = "SELECT to_regclass('alembic_version')"
_NO_TABLE = (None, (None,))
"""The results of these queries in a database without any migration."""
# A second process waits here, and then finds nothing left to do.
_SQLITE_LOCK = "BEGIN IMMEDIATE"
# A migration may take any time; only a process that has stopped between two of them is not waited for for ever.
_POSTGRESQL_LOCK = (
    "SET LOCAL idle_in_transaction_session_timeout = '60s';"
    f"SELECT pg_advisory_xact_lock({int.from_bytes(b'denizen', 'big')})"
)


def migrate_sqlite(path: Path, to: str = HEAD) -> None:
    """Migrates the database in the file, created if missing, to `to` or later."""
    from denizen.storage.sqlite import connect

    if not path.exists():
        with suppress(OSError):  # If it cannot be created, SQLite says why.
            # For its owner only. SQLite gives the files that it creates beside this one the same mode.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    with closing(connect(path)) as connection:
        revision = _revision(connection, _SQLITE_TABLE)
    if not _is_current(revision, str(path)):
        _note_upgrade(revision, to)
        _upgrade("sqlite", lambda: connect(path), _SQLITE_LOCK, _SQLITE_TABLE, to)


def migrate_postgresql(conninfo: str, to: str = HEAD) -> None:
    """Migrates the database, which has to exist, to `to` or later."""
    import psycopg

    from denizen.storage.postgresql import connect, with_network_settings
    from denizen.storage.postgresql_errors import describe

    with closing(connect(conninfo)) as connection:
        revision = _revision(connection, _POSTGRESQL_TABLE)
    if not _is_current(revision, describe(conninfo)):
        _note_upgrade(revision, to)
        own = with_network_settings(conninfo)
        _upgrade("postgresql+psycopg", lambda: psycopg.connect(own), _POSTGRESQL_LOCK, _POSTGRESQL_TABLE, to)


def revision_of_sqlite(path: Path) -> str | None:
    """Returns the last migration of the database in the file; None if it has none, or does not exist. Never
    creates it.
    """
    from denizen.storage.sqlite import connect

    if not path.exists():
        return None
    with closing(connect(path)) as connection:
        return _revision(connection, _SQLITE_TABLE)


def revision_of_postgresql(conninfo: str) -> str | None:
    """Returns the last migration of the database; None if it has none."""
    from denizen.storage.postgresql import connect

    with closing(connect(conninfo)) as connection:
        return _revision(connection, _POSTGRESQL_TABLE)


def titles() -> dict[str, str]:
    """Returns the title of each migration, from its file."""
    found = {path.name[:4]: path.read_text() for path in sorted((_STEPS / "versions").glob("[0-9]*.py"))}
    return {step: (ast.get_docstring(ast.parse(found[step])) or "").partition("\n")[0] for step in REVISIONS}


def is_current(tx: Tx) -> bool:
    """Whether the database has every migration of this version. Those of a newer version only add, so they do
    no harm.
    """
    row = tx.one(_version)
    return row is not None and row[0] not in REVISIONS[:-1]


def _revision(connection: Any, table: str) -> str | None:
    if connection.execute(table).fetchone() in _NO_TABLE:
        return None
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return row[0] if row else None


def _is_current(revision: str | None, name: str) -> bool:
    if revision is not None and revision not in REVISIONS:
        raise DatabaseNewer(
            f"The database {name} was written by a newer version of Denizen: its schema is {revision}, and this "
            f"version knows those up to {HEAD}. Install the newer version, or open a backup from before the upgrade."
        )
    return revision == HEAD


def _note_upgrade(revision: str | None, to: str) -> None:
    if revision is not None:
        log_line.info("database is being upgraded", was=revision, will_be=to)


def _upgrade(dialect: str, connect: Callable[[], Any], lock: str, table: str, to: str) -> None:
    """Creates all tables if there are none, or runs the missing migrations up to `to`; in one transaction."""
    from sqlalchemy import NullPool, create_engine
    from sqlalchemy.exc import DBAPIError

    engine = create_engine(f"{dialect}://", creator=connect, poolclass=NullPool)
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql(lock)
            # Checked under the lock: another process may have created them meanwhile.
            if to == HEAD and connection.exec_driver_sql(table).fetchone() in _NO_TABLE:
                _create(connection)
            else:
                _run_steps(connection, to)
            connection.commit()
    except DBAPIError as error:
        raise error.orig or error from error  # Our callers know the driver's errors.


def _create(connection: Connection) -> None:
    from denizen.storage.schema import blobs, metadata

    metadata.create_all(connection, checkfirst=False)
    if connection.dialect.name == "postgresql":
        blobs.create_all(connection, checkfirst=False)
    _versions.create(connection)
    connection.execute(_versions.insert().values(version_num=HEAD))


def _run_steps(connection: Connection, to: str) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_STEPS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, to)
