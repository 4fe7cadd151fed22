"""Bringing a database to this version's schema.

Steps only add: what an older Denizen reads and writes stays, so that old and new instances can run on one database.
A database that is up to date, the usual case, is recognised by a query; an empty one gets the tables of schema.py at
once. Only a database of an older version needs its missing steps, and Alembic.
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

REVISIONS = tuple(f"{number:04}" for number in range(1, 21))
"""Every step there is, the first one first."""
HEAD = REVISIONS[-1]

_versions = Table(
    "alembic_version",  # as Alembic makes it
    MetaData(),
    Column("version_num", String(32)),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
_version = statement(select(_versions.c.version_num))
_STEPS = Path(__file__).parent / "migrations"
_SQLITE_TABLE = "SELECT name FROM sqlite_master WHERE name = 'alembic_version'"
_POSTGRESQL_TABLE = "SELECT to_regclass('alembic_version')"
_NO_TABLE = (None, (None,))
"""What these queries give where no step was ever taken."""
# Whoever comes second waits here, and then finds that there is nothing left to do.
_SQLITE_LOCK = "BEGIN IMMEDIATE"
# A step may take as long as it takes; only a process that has stopped between two of them is not waited for for ever.
_POSTGRESQL_LOCK = (
    "SET LOCAL idle_in_transaction_session_timeout = '60s';"
    f"SELECT pg_advisory_xact_lock({int.from_bytes(b'denizen', 'big')})"
)


def migrate_sqlite(path: Path, to: str = HEAD) -> None:
    """The database in the file, made where it is missing, has the schema of `to` or of a later step."""
    from denizen.storage.sqlite import connect

    if not path.exists():
        with suppress(OSError):  # where it cannot be made, SQLite says why
            # For its owner only. SQLite gives the files that it makes beside this one the same mode.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    with closing(connect(path)) as connection:
        revision = _revision(connection, _SQLITE_TABLE)
    if not _is_current(revision, str(path)):
        _upgrade("sqlite", lambda: connect(path), _SQLITE_LOCK, _SQLITE_TABLE, to)


def migrate_postgresql(conninfo: str, to: str = HEAD) -> None:
    """The database, which is there already, has the schema of `to` or of a later step."""
    import psycopg

    from denizen.storage.postgresql import connect, with_network_settings
    from denizen.storage.postgresql_errors import describe

    with closing(connect(conninfo)) as connection:
        revision = _revision(connection, _POSTGRESQL_TABLE)
    if not _is_current(revision, describe(conninfo)):
        own = with_network_settings(conninfo)
        _upgrade("postgresql+psycopg", lambda: psycopg.connect(own), _POSTGRESQL_LOCK, _POSTGRESQL_TABLE, to)


def revision_of_sqlite(path: Path) -> str | None:
    """The last step that the database in the file has; None where it has none, or is not there. It is not made."""
    from denizen.storage.sqlite import connect

    if not path.exists():
        return None
    with closing(connect(path)) as connection:
        return _revision(connection, _SQLITE_TABLE)


def revision_of_postgresql(conninfo: str) -> str | None:
    """The last step that the database has; None where it has none."""
    from denizen.storage.postgresql import connect

    with closing(connect(conninfo)) as connection:
        return _revision(connection, _POSTGRESQL_TABLE)


def titles() -> dict[str, str]:
    """What each step brings, in the words of its file."""
    found = {path.name[:4]: path.read_text() for path in sorted((_STEPS / "versions").glob("[0-9]*.py"))}
    return {step: (ast.get_docstring(ast.parse(found[step])) or "").partition("\n")[0] for step in REVISIONS}


def is_current(tx: Tx) -> bool:
    """Whether every step this version needs was taken. Those of a newer version only add, so they are no hindrance."""
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


def _upgrade(dialect: str, connect: Callable[[], Any], lock: str, table: str, to: str) -> None:
    """Create all tables where there are none, or run the steps that are missing, up to `to`; in one transaction."""
    from sqlalchemy import NullPool, create_engine
    from sqlalchemy.exc import DBAPIError

    engine = create_engine(f"{dialect}://", creator=connect, poolclass=NullPool)
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql(lock)
            # Asked under the lock: another process may have created them meanwhile.
            if to == HEAD and connection.exec_driver_sql(table).fetchone() in _NO_TABLE:
                _create(connection)
            else:
                _run_steps(connection, to)
            connection.commit()
    except DBAPIError as error:
        raise error.orig or error from error  # our callers know the driver's errors


def _create(connection: Connection) -> None:
    from denizen.storage.schema import metadata

    metadata.create_all(connection, checkfirst=False)
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
