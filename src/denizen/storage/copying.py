"""Backup of a whole database to one file, and restore. A backup is a consistent snapshot, made while agents run.

SQLite is copied by `VACUUM INTO`, PostgreSQL by its own programs, `pg_dump` and `pg_restore`. Leases in a restored
database are void, so that the next process continues at once. Everything here blocks.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from denizen.errors import DatabaseDamaged, DatabaseNewer, InvalidInput, StorageError
from denizen.masking import masked
from denizen.storage.heads import forget_heads
from denizen.storage.migrating import HEAD, REVISIONS
from denizen.storage.sqlite import blobs_path, chunks_sql, prepare_blobs

SQLITE: Final = b"SQLite format 3\0"
POSTGRESQL: Final = b"PGDMP"
"""The first bytes of the files."""

_VOID: Final = (
    "UPDATE leases SET holder = NULL, until = 0, epoch = epoch + 1",
    "DELETE FROM instances",
)
_TABLES: Final = """
    SELECT count(*) FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = current_schema()::regnamespace
"""
_PROGRAMS: Final = "Install PostgreSQL's client programs, of the server's version or a newer one."


def back_up(url: str, file: Path) -> None:
    """Writes a consistent snapshot of the database at `url` to the new file `file`.

    Only its owner may read it. If anything fails, there is no such file.
    """
    with _to_be_made(file) as partial:
        name = _sqlite_name(url)
        if name is None:
            _dump(_conninfo(url), partial)
        else:
            _vacuum(Path(name), partial)
        _sync(partial)


def restore(url: str, file: Path) -> None:
    """Restores `file` into the empty database at `url`, and voids all leases in it.

    If anything fails, it is still empty. Raises `InvalidInput` if it was not empty, or if the file is not a backup for
    it.
    """
    kind, name = _kind(file), _sqlite_name(url)
    if (kind == SQLITE) != (name is not None):
        here, there = ("SQLite", "PostgreSQL") if kind == SQLITE else ("PostgreSQL", "SQLite")
        raise InvalidInput(f"{file} is a backup of {here}, but the database is {there}. Use a backup of the same kind.")
    if name is None:
        _undump(_conninfo(url), file)
        return
    target = Path(name)
    blobs = blobs_path(target)
    if any(Path(f"{path}{suffix}").exists() for path in (target, blobs) for suffix in ("", "-wal", "-shm")):
        raise InvalidInput(f"There is already a database at {target}. Move it away, or restore to another place.")
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _to_be_made(target) as partial:
        shutil.copyfile(file, partial)
        _settle_sqlite(partial, file)
        if _has_blobs(partial):
            with _to_be_made(blobs) as partial_blobs:
                _split_blobs(partial, partial_blobs)
                _sync(partial_blobs)
        _sync(partial)
    forget_heads(target)


# SQLite


def _vacuum(source: Path, partial: Path) -> None:
    from denizen.storage.sqlite_errors import translate

    if not source.exists():
        raise InvalidInput(f"There is no database at {source}, so there is nothing to back up.")
    try:
        with closing(sqlite3.connect(f"file:{quote(str(source))}?mode=rw", uri=True, isolation_level=None)) as database:
            partial.unlink()  # It insists on creating the file itself.
            database.execute("VACUUM INTO ?", (str(partial),))
        _add_blobs(blobs_path(source), partial)
    except sqlite3.Error as error:
        raise translate(error, source) from error
    partial.chmod(0o600)


def _add_blobs(source: Path, partial: Path) -> None:
    """Copies the contents of files into the backup. After the rest: whatever a message has is there then."""
    if not source.exists():
        return
    with closing(sqlite3.connect(partial, uri=True, isolation_level=None)) as backup:
        backup.execute("ATTACH ? AS blobs", (f"file:{quote(str(source))}?mode=rw",))
        backup.execute("BEGIN")
        backup.execute(chunks_sql())
        backup.execute(
            "INSERT INTO main.chunks SELECT * FROM blobs.chunks WHERE content_id IN (SELECT id FROM main.contents)"
        )
        backup.execute("COMMIT")


def _has_blobs(copy: Path) -> bool:
    with closing(sqlite3.connect(copy, isolation_level=None)) as database:
        return database.execute("SELECT 1 FROM sqlite_master WHERE name = 'chunks'").fetchone() is not None


def _split_blobs(copy: Path, blobs: Path) -> None:
    """Moves the contents of files from a restored backup to their own database."""
    prepare_blobs(blobs)
    with closing(sqlite3.connect(copy, isolation_level=None)) as database:
        database.execute("ATTACH ? AS blobs", (str(blobs),))
        database.execute("BEGIN")
        database.execute("INSERT INTO blobs.chunks SELECT * FROM main.chunks")
        database.execute("COMMIT")
        database.execute("DROP TABLE main.chunks")
        database.execute("DETACH blobs")
        database.execute("VACUUM")


def _settle_sqlite(copy: Path, file: Path) -> None:
    from denizen.storage.sqlite_errors import translate

    try:
        with closing(sqlite3.connect(copy, isolation_level=None)) as database:
            if database.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
                raise DatabaseDamaged(f"The backup {file} is broken. Restore another one.")
            _settle(database, file)
    except sqlite3.Error as error:
        raise translate(error, file) from error


def _settle(database: Any, file: Path) -> None:
    """Checks that this version can open the database, and voids its leases."""
    try:
        row = database.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.OperationalError as error:
        raise InvalidInput(f"{file} is a database, but not one of Denizen.") from error
    _check_revision(row[0], file)
    database.execute("BEGIN")
    for statement in _VOID:
        database.execute(statement)
    database.execute("COMMIT")


def _check_revision(revision: str, file: Path) -> None:
    if revision not in REVISIONS:
        raise DatabaseNewer(
            f"The backup {file} was made by a newer version of Denizen: its schema is {revision}, and this version "
            f"knows those up to {HEAD}. Install the newer version."
        )


# PostgreSQL


def _dump(conninfo: str, partial: Path) -> None:
    _run("pg_dump", conninfo, "--format=custom", "--no-owner", "--no-acl", f"--file={partial}")


def _undump(conninfo: str, file: Path) -> None:
    import psycopg

    from denizen.storage.postgresql_errors import describe, translate

    name = describe(conninfo)
    try:
        with psycopg.connect(conninfo) as connection:
            if connection.execute(_TABLES).fetchone() != (0,):
                raise InvalidInput(f"The database {name} is not empty. Create another one (createdb), and name that.")
        options = ("--no-owner", "--no-acl", "--exit-on-error", "--single-transaction")
        _run("pg_restore", conninfo, *options, str(file))
        with psycopg.connect(conninfo) as connection:
            row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
            _check_revision(row[0] if row else "unknown", file)
            for statement in _VOID:
                connection.execute(statement.encode())
    except psycopg.Error as error:
        raise translate(error, name) from error


def _run(program: str, conninfo: str, *arguments: str) -> None:
    """Runs one of PostgreSQL's programs. The password is passed in its environment, where others cannot see it."""
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    found = shutil.which(program)
    if found is None:
        raise InvalidInput(f"The program {program} is not on the path. {_PROGRAMS}")
    parts = conninfo_to_dict(conninfo)
    password = parts.pop("password", None)
    environment = dict(os.environ) if password is None else {**os.environ, "PGPASSWORD": str(password)}
    where = f"--dbname={make_conninfo('', **parts)}"
    done = subprocess.run(  # noqa: S603  the program of that name, without a shell
        [found, where, "--no-password", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        said = masked(" ".join(done.stderr.split())) or f"it ended with status {done.returncode}"
        advice = f" {_PROGRAMS}" if "version mismatch" in said or "unsupported version" in said else ""
        raise StorageError(f"{program} failed: {said.rstrip('.')}.{advice}")


# Files


def _kind(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            beginning = opened.read(len(SQLITE))
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read ({error.strerror}).") from error
    for kind in (SQLITE, POSTGRESQL):
        if beginning.startswith(kind):
            return kind
    raise InvalidInput(f"{file} is not a backup. Create one with `denizen backup`.")


@contextmanager
def _to_be_made(file: Path) -> Generator[Path]:
    """Provides a temporary file next to `file`, which becomes `file` after the block. On an error, both are gone."""
    partial = file.with_name(f".{file.name}.{os.getpid()}.partial")
    try:
        if file.exists():
            raise InvalidInput(f"{file} already exists and is not overwritten. Choose another file.")
        os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        yield partial
        os.link(partial, file)  # Unlike a rename, this does not replace a file that was created meanwhile.
    except OSError as error:
        raise InvalidInput(f"{file} cannot be made ({error.strerror or error}).") from error
    finally:
        partial.unlink(missing_ok=True)


def _sync(file: Path) -> None:
    """Makes the file durable against a loss of power."""
    for place in (file, file.parent):
        handle = os.open(place, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _sqlite_name(url: str) -> str | None:
    """Returns the path in an SQLite URL; None for another database."""
    scheme, _, rest = url.partition("://")
    if scheme.partition("+")[0] != "sqlite":
        return None
    name = rest.removeprefix("/")
    if name in ("", ":memory:"):
        raise InvalidInput("A temporary database is gone when it is closed. Set DATABASE_URL=sqlite:///path.")
    return name


def _conninfo(url: str) -> str:
    return f"postgresql://{url.partition('://')[2]}"
