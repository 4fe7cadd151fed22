"""What SQLite still has of forgotten words beside its tables: the write-ahead log."""

from __future__ import annotations

import asyncio
from pathlib import Path

import structlog

log_line = structlog.get_logger(__name__)


async def empty_write_ahead_log(database_url: str) -> None:
    """Everything written is in the database file, and the log beside it is empty, unless someone reads just now.

    Then it is emptied later, as always. Other databases, and files that are gone with the process, need no such thing.
    """
    scheme, _, rest = database_url.partition("://")
    name = rest.removeprefix("/")
    if scheme.partition("+")[0] == "sqlite" and name not in ("", ":memory:"):
        await asyncio.to_thread(_checkpoint, Path(name))


def _checkpoint(path: Path) -> None:
    import sqlite3

    from denizen.storage.sqlite import connect

    try:
        connection = connect(path)
        try:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            connection.close()
    except sqlite3.Error as error:
        # What was to be forgotten is: only its old pages stay a while longer.
        log_line.warning("write-ahead log not emptied", error=repr(error))
