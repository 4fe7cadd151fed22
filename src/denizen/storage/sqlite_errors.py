"""Translates SQLite's errors into ours, with what the operator should do."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from denizen.errors import (
    DatabaseDamaged,
    DatabaseLocked,
    DatabaseReadOnly,
    DatabaseUnavailable,
    DiskFull,
    StorageError,
)
from denizen.storage.database import Conflict

_PRIMARY = 0xFF
"""SQLite's extended codes keep the primary code in their low byte."""


def translate(error: sqlite3.Error, path: Path) -> StorageError:
    """Returns our error for one of SQLite's, with it as the cause."""
    ours = _ours(error, path)
    ours.__cause__ = error
    return ours


def _ours(error: sqlite3.Error, path: Path) -> StorageError:
    match getattr(error, "sqlite_errorcode", 0) & _PRIMARY:
        case sqlite3.SQLITE_CONSTRAINT:
            return Conflict(str(error).removeprefix("UNIQUE constraint failed: "))
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return DatabaseLocked(
                f"Another program holds the database {path} and did not let go. "
                "Close whatever else has it open, or wait until it has finished, and try again."
            )
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            return read_only(path)
        case sqlite3.SQLITE_FULL:
            return DiskFull(f"The disk of {path} is full; nothing was written. Free some room and try again.")
        case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CORRUPT:
            return DatabaseDamaged(
                f"{path} is not a database, or it is broken ({error}). Restore it from a backup, or name another file."
            )
        # SQLite does not say why the system refused: a missing right, or a missing folder or failing disk.
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_IOERR if _is_forbidden(path):
            return read_only(path)
        case sqlite3.SQLITE_CANTOPEN:
            return DatabaseUnavailable(
                f"The database {path} cannot be opened. Check that its folder is there and that this user may use it."
            )
        case sqlite3.SQLITE_IOERR:
            return DatabaseUnavailable(f"The disk of {path} failed ({error}); nothing was written. Check the disk.")
        case _:
            return StorageError(f"The database {path} refuses this: {error}.")


def _is_forbidden(path: Path) -> bool:
    """Whether this user may not use the file, those beside it, or its folder."""
    files = (path, *(path.with_name(f"{path.name}{suffix}") for suffix in ("-wal", "-shm")))
    try:
        needed = [(each, os.R_OK | os.W_OK) for each in files if each.exists()]
    except PermissionError:
        return True
    folder = [(path.parent, os.W_OK | os.X_OK)] if path.parent.exists() else []
    by_effective_ids = os.access in os.supports_effective_ids
    return not all(os.access(each, mode, effective_ids=by_effective_ids) for each, mode in (*needed, *folder))


def read_only(path: Path) -> DatabaseReadOnly:
    """The error for a file, or its folder, that may not be used, with what to do about it."""
    return DatabaseReadOnly(
        f"The database {path} may not be written to. "
        "Give this user the right to write the file and the folder that it is in."
    )
