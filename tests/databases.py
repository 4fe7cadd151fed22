"""New SQLite databases for whoever does not want to wait for their making."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from denizen.storage.migrating import migrate_sqlite
from tests.servers import exclusive_lock

made_in: Path | None = None
"""Where the processes of a test run make one for all; other processes make one each."""


def with_tables(path: Path) -> str:
    """The URL of the database at `path`, which has all its tables; one that is there already is left as it is."""
    if not path.exists():
        path.write_bytes(_new())
    return f"sqlite:///{path}"


@cache
def _new() -> bytes:
    # Once for each process or run: it takes longer than most tests.
    if made_in is None:
        with TemporaryDirectory() as folder:
            return _migrated(Path(folder) / "denizen.db")
    path = made_in / "tables.db"
    with exclusive_lock(path.with_suffix(".lock")):
        if not path.exists():
            unfinished = path.with_suffix(".unfinished")
            _migrated(unfinished)
            unfinished.rename(path)
    return path.read_bytes()


def _migrated(path: Path) -> bytes:
    migrate_sqlite(path)
    return path.read_bytes()
