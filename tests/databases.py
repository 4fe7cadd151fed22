"""New SQLite databases for whoever does not want to wait for their making."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from denizen.storage.migrating import migrate_sqlite


def with_tables(path: Path) -> str:
    """The URL of the database at `path`, which has all its tables; one that is there already is left as it is."""
    if not path.exists():
        path.write_bytes(_new())
    return f"sqlite:///{path}"


@cache
def _new() -> bytes:
    # Once for each process: it takes longer than most tests.
    with TemporaryDirectory() as folder:
        path = Path(folder) / "denizen.db"
        migrate_sqlite(path)
        return path.read_bytes()
