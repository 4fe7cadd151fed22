"""A small file beside an SQLite database that says how far it had come: the newest heads of its chains.

SQLite opens a database whose write-ahead log was lost or cut off as an older state, without a word. The file is written
after each commit and before its callers are told, and not flushed: it outlives the process, however that ends. After a
power failure it may be behind the database, never ahead of it, so that a loss of the last moments goes unnoticed then.
It holds the newest heads only, however many chains there are.
"""

from __future__ import annotations

import os
import sqlite3
import struct
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from denizen.telemetry.logs import get_logger

log = get_logger(__name__)

SLOTS: Final = 512
_SLOT: Final = struct.Struct("<B40sq16s")
_SLOT_BYTES: Final = 72
_ID_BYTES: Final = 40
_KINDS: Final = ("", "space", "agent", "amendment")


@dataclass(frozen=True, slots=True)
class Head:
    """A chain had come this far."""

    kind: str
    """space, agent; amendment: a change of something in the chain"""
    id: str
    """Of the space or agent."""
    position: int
    """The number of the message or cycle."""
    digest: bytes


def heads_path(database: Path) -> Path:
    return database.with_name(f"{database.name}-heads")


def missing_path(database: Path) -> Path:
    """The file that says what was found missing, until somebody deletes it."""
    return database.with_name(f"{database.name}-missing")


class HeadsFile:
    """The file, open for writing by one thread. Its errors never fail a commit."""

    def __init__(self, database: Path) -> None:
        self._slots: dict[tuple[str, str], int] = {
            (head.kind, head.id): slot for slot, head in read_heads(heads_path(database))
        }
        self._next = len(self._slots) % SLOTS
        self._path = heads_path(database)
        self._file: int | None = None
        """Opened with the first head; -1 when it cannot be written."""

    def keep(self, heads: Iterable[Head]) -> None:
        """Writes these heads, the newest of each chain last."""
        newest = {(each.kind, each.id): each for each in heads}
        if not newest or self._file == -1:
            return
        try:
            if self._file is None:
                self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            for head in newest.values():
                id = head.id.encode()
                if len(id) <= _ID_BYTES:
                    data = _SLOT.pack(_KINDS.index(head.kind), id, head.position, head.digest)
                    os.pwrite(self._file, _padded(data), self._slot_of(head) * _SLOT_BYTES)
        except OSError as error:
            log.warning("heads of chains cannot be kept", error=str(error))
            self.close()

    def _slot_of(self, head: Head) -> int:
        key = (head.kind, head.id)
        if key not in self._slots:
            if len(self._slots) >= SLOTS:
                self._slots.pop(next(iter(self._slots)))
            self._slots[key] = self._next
            self._next = (self._next + 1) % SLOTS
        return self._slots[key]

    def close(self) -> None:
        if self._file is not None and self._file >= 0:
            os.close(self._file)
        self._file = -1


def _padded(data: bytes) -> bytes:
    return (data + zlib.crc32(data).to_bytes(4, "little")).ljust(_SLOT_BYTES, b"\0")


def read_heads(path: Path) -> Iterator[tuple[int, Head]]:
    """Yields the heads in the file, each with its slot; a slot that was cut off in the middle is left out."""
    try:
        data = path.read_bytes()
    except OSError:
        return
    for slot in range(min(len(data) // _SLOT_BYTES, SLOTS)):
        at = slot * _SLOT_BYTES
        packed, crc = data[at : at + _SLOT.size], data[at + _SLOT.size : at + _SLOT.size + 4]
        if zlib.crc32(packed).to_bytes(4, "little") == crc:
            kind: int
            id: bytes
            kind, id, position, digest = _SLOT.unpack(packed)
            if 0 < kind < len(_KINDS):
                yield slot, Head(_KINDS[kind], id.rstrip(b"\0").decode("utf-8", "replace"), position, digest)


def find_missing(database: Path) -> str | None:
    """Returns what the database at this path has lost since it was last used, as a sentence; None if nothing.

    A loss is written to the file `missing_path`, which is reported until somebody deletes it, and the heads begin anew.
    """
    # Read before the database: another process may write both meanwhile, the database first.
    heads = [head for _, head in read_heads(heads_path(database))]
    said = _sentence(database, heads) if heads else None
    try:
        if said is not None:
            _write_whole(missing_path(database), f"{said}\n")
            heads_path(database).unlink(missing_ok=True)
            return said
        return missing_path(database).read_text().strip() or None
    except OSError:
        return said


def _write_whole(path: Path, text: str) -> None:
    """Writes the file beside it and moves it there: who opens the database at the same time never reads half of it."""
    file, beside = tempfile.mkstemp(prefix=f"{path.name}.", dir=path.parent)
    try:
        with os.fdopen(file, "w") as writing:
            writing.write(text)
        Path(beside).replace(path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise


def forget_heads(database: Path) -> None:
    """Deletes both files: the database is another one from now on."""
    heads_path(database).unlink(missing_ok=True)
    missing_path(database).unlink(missing_ok=True)


_OWNERS: Final = {
    "space": ("SELECT last_seq FROM spaces WHERE id = ?", "SELECT digest FROM messages WHERE space_id = ? AND seq = ?"),
    "agent": (
        "SELECT cycle_count FROM minds WHERE agent_id = ?",
        "SELECT digest FROM cycles WHERE agent_id = ? AND number = ?",
    ),
}
_AMENDED: Final = "SELECT 1 FROM amendments WHERE chain_id = ? AND digest = ?"


def _sentence(database: Path, heads: Iterable[Head]) -> str | None:
    lost: dict[str, list[int]] = {"space": [], "agent": [], "amendment": []}
    with closing(sqlite3.connect(database, timeout=5.0, isolation_level=None)) as connection:
        for head in heads:
            if (count := _count_missing(connection, head)) > 0:
                lost[head.kind].append(count)
    parts = [
        _counted(lost["space"], "message", "space"),
        _counted(lost["agent"], "cycle", "agent"),
        _counted(lost["amendment"], "change", "chain"),
    ]
    if not any(parts):
        return None
    return (
        f"The database {database} is older than it was: {' and '.join(part for part in parts if part)} had been stored "
        "and are missing. Its -wal file was lost or cut off, or an older file was put in its place. Stop Denizen and "
        f"put the newer files back, or restore a backup. To keep the older state, delete {missing_path(database)}."
    )


def _count_missing(connection: sqlite3.Connection, head: Head) -> int:
    if head.kind == "amendment":
        return int(connection.execute(_AMENDED, (head.id, head.digest)).fetchone() is None)
    reached, digest = _OWNERS[head.kind]
    row = connection.execute(reached, (head.id,)).fetchone()
    there = 0 if row is None else row[0]
    if there < head.position:
        return head.position - there
    stored = connection.execute(digest, (head.id, head.position)).fetchone()
    # The number was given again, to another one.
    return int(stored is not None and stored[0] is not None and stored[0] != head.digest)


def _counted(lost: list[int], what: str, where: str) -> str:
    if not lost:
        return ""
    count, owners = sum(lost), len(lost)
    return f"{count:,} {what}{'' if count == 1 else 's'} in {owners:,} {where}{'' if owners == 1 else 's'}"
