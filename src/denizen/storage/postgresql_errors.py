"""Translates PostgreSQL's errors into ours, with what the operator should do."""

from __future__ import annotations

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from denizen.errors import (
    DatabaseDamaged,
    DatabaseLocked,
    DatabaseReadOnly,
    DatabaseUnavailable,
    DiskFull,
    StorageError,
)
from denizen.storage.database import Conflict


def translate(error: psycopg.Error, name: str) -> StorageError:
    """Returns our error for one of PostgreSQL's, with it as the cause. `name` says which database."""
    ours = _ours(error, name)
    ours.__cause__ = error
    return ours


def describe(conninfo: str) -> str:
    """Returns the database's name and host, without the password."""
    parts = conninfo_to_dict(conninfo)
    name, host, port = parts.get("dbname"), parts.get("host"), parts.get("port")
    return f"{name or 'of this user'} on {host or 'this machine'}" + (f":{port}" if port else "")


def is_lost(error: psycopg.Error) -> bool:
    """Whether the connection is lost after this error."""
    if is_rolled_back(error):
        return True
    if not isinstance(error, errors.OperationalError):
        return False
    # 08 is a connection error, 57P a server that shuts down; without a code, no server answered at all.
    return error.sqlstate is None or error.sqlstate.startswith(("08", "57P"))


def is_rolled_back(error: psycopg.Error) -> bool:
    """Whether the server ended the connection because this side was silent, and rolled the transaction back."""
    return isinstance(error, errors.IdleInTransactionSessionTimeout)


def is_lasting(error: psycopg.Error) -> bool:
    """Whether connecting again would fail again."""
    reason = str(error)
    return "does not exist" in reason or "authentication failed" in reason or "no password supplied" in reason


def may_pass(error: psycopg.Error) -> bool:
    """Whether the same transaction may succeed when it is run again, because it conflicted with others."""
    return isinstance(error, errors.SerializationFailure | errors.DeadlockDetected)


def _ours(error: psycopg.Error, name: str) -> StorageError:
    match error:
        case errors.IntegrityError():
            return Conflict(error.diag.constraint_name or error.diag.column_name or str(error))
        case errors.DiskFull():
            return DiskFull(f"The disk of the database {name} is full; nothing was written. Free some and try again.")
        case errors.ReadOnlySqlTransaction():
            return DatabaseReadOnly(f"The database {name} takes no writes. Connect to the primary, not to a replica.")
        case errors.LockNotAvailable():
            return DatabaseLocked(f"Another program holds what is needed in the database {name}. Try again later.")
        case errors.DataCorrupted() | errors.IndexCorrupted():
            return DatabaseDamaged(f"The database {name} is broken ({_line(error)}). Restore it from a backup.")
        case errors.SerializationFailure() | errors.DeadlockDetected():
            return DatabaseLocked(f"Too many others write to the same rows of the database {name}. Try again later.")
        case errors.InsufficientPrivilege():
            return DatabaseReadOnly(f"This user may not do that in the database {name}: {_line(error)}.")
        case errors.QueryCanceled():
            return DatabaseUnavailable(
                f"The database {name} took too long for one statement; nothing was written. Try again when it has less "
                "to do."
            )
        case errors.IdleInTransactionSessionTimeout():
            return DatabaseUnavailable(
                f"The database {name} ended a transaction because this process was silent for too long; nothing was "
                "written. Try again."
            )
        case errors.OperationalError():
            return DatabaseUnavailable(_unreachable(_line(error), name))
        case _:
            return StorageError(f"The database {name} refuses this: {_line(error)}.")


def _unreachable(reason: str, name: str) -> str:
    # The server refuses a connection in words only; the driver has no code for it.
    if "authentication failed" in reason or "no password supplied" in reason:
        return f"The database {name} does not accept this user and password. Correct them in DATABASE_URL."
    if "database" in reason and "does not exist" in reason:
        return f"There is no database {name}. Create it (createdb), or correct DATABASE_URL."
    if "role" in reason and "does not exist" in reason:
        return f"The server of {name} does not know this user. Create it (createuser), or correct DATABASE_URL."
    return f"The database {name} cannot be reached ({reason}); nothing was written. Check that its server is running."


def _line(error: psycopg.Error) -> str:
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__
