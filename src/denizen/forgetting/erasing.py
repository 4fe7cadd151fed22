"""Empties SQLite's write-ahead log, which may still hold forgotten text."""

from __future__ import annotations

import asyncio
from pathlib import Path

from denizen.telemetry.logs import get_logger

log_line = get_logger(__name__)


async def empty_write_ahead_log(database_url: str) -> None:
    """Moves everything into the database file and empties the log, unless someone is reading.

    Then it is emptied later, as usual. Other databases, and in-memory ones, do not need it.
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
        # The text is forgotten: only its old pages stay a while longer.
        log_line.warning("write-ahead log not emptied", error=repr(error))
