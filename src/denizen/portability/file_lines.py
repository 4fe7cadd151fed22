"""The files of an exported space or agent: their lines, and how their contents are imported.

An import stores the contents before its transaction, in chunks as an upload does. Until a file of the import has such a
content, it is due to be deleted within a day: an import that fails leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from denizen.amounts import human_size
from denizen.errors import InvalidInput, QuotaExceeded
from denizen.files import storing
from denizen.files.attaching import Attachment
from denizen.files.storing import CHUNK_BYTES, FileLimits
from denizen.ids import EntityId, FileId, OrganizationId
from denizen.portability.lines import ChunkLine, FileLine, FilePageLine, OfFile
from denizen.portability.reading import ExportFile, Fault, LineChecks
from denizen.storage.database import Database, Params, Tx, insert_into, select_where, update_where
from denizen.storage.schema import files, messages

# Exporting


async def with_contents(
    db: Database, home: OrganizationId, lines: AsyncGenerator[FileLine], written: set[str]
) -> AsyncGenerator[OfFile]:
    """Yields the lines of files, each content with its text once, after the first file that has it."""
    async for line in lines:
        content_id = await db.read(storing.content_with, home, line.digest)
        if content_id is None:
            continue  # Deleted since its line was read.
        yield line
        if line.digest in written:
            continue
        written.add(line.digest)
        for page, text in enumerate(await db.read(storing.pages_of_content, content_id), start=1):
            yield FilePageLine(digest=line.digest, page=page, text=text)
        for n in range(-(-line.size // CHUNK_BYTES)):
            data = await db.blobs.read(storing.read_chunk, content_id, n)
            if data is None:
                raise InvalidInput(f"{line.name} was deleted during the export. Export again.")
            yield ChunkLine(digest=line.digest, n=n, data=base64.b64encode(data).decode())


# Checking


class FilesInSource:
    """The files read from an export so far: later lines must not contradict them."""

    def __init__(self, fault: Fault) -> None:
        self._checks = LineChecks(fault)
        self.ids: set[str] = set()
        self._sizes: dict[str, int] = {}
        self._arrived: defaultdict[str, int] = defaultdict(int)
        self._sums: defaultdict[str, Any] = defaultdict(hashlib.sha256)
        self._pages: defaultdict[str, int] = defaultdict(int)
        self._lines: dict[str, int] = {}

    def check(self, number: int, line: OfFile) -> None:
        match line:
            case FileLine():
                self._checks.require(number, line.id not in self.ids, "there was a file of this id before")
                self.ids.add(line.id)
                known = self._sizes.setdefault(line.digest, line.size)
                self._checks.require(number, known == line.size, "the same content has another size before")
                self._lines.setdefault(line.digest, number)
            case FilePageLine():
                self._pages[line.digest] += 1
                follows = line.digest in self._sizes and line.page == self._pages[line.digest]
                self._checks.require(number, follows, "it does not follow the page before it")
            case ChunkLine():
                self._checks.require(number, line.digest in self._sizes, "no file has this content")
                data = _bytes_of(self._checks.fault, number, line)
                at = self._arrived[line.digest]
                whole = len(data) == min(CHUNK_BYTES, self._sizes[line.digest] - at)
                self._checks.require(number, line.n * CHUNK_BYTES == at and whole, "a part is missing before it")
                self._arrived[line.digest] += len(data)
                self._sums[line.digest].update(data)

    def end(self) -> None:
        for digest, size in self._sizes.items():
            complete = self._arrived[digest] == size and self._sums[digest].hexdigest() == digest
            self._checks.require(self._lines[digest], complete, "its bytes are missing or damaged")


def _bytes_of(fault: Fault, number: int, line: ChunkLine) -> bytes:
    try:
        return base64.b64decode(line.data, validate=True)
    except ValueError as error:
        raise fault(number, "its bytes cannot be read") from error


# Importing

Contents = Mapping[str, str]
"""The ids of stored contents by digest."""


async def store_contents(
    db: Database, organization_id: OrganizationId, source: ExportFile, limits: FileLimits
) -> dict[str, str]:
    """Stores the contents of a checked file that the organization does not have. Raises `QuotaExceeded`."""
    sizes = await asyncio.to_thread(_sizes, source)
    stored = await db.write(_begin, organization_id, sizes, limits) if sizes else {}
    parts = _chunks(source) if stored else iter(())
    while (line := await asyncio.to_thread(next, parts, None)) is not None:
        if line.digest in stored:
            data = base64.b64decode(line.data)
            await db.blobs.write(storing.put_chunk, stored[line.digest], line.n, data)
    return stored


def _sizes(source: ExportFile) -> dict[str, int]:
    return {line.digest: line.size for _, line in source.lines() if isinstance(line, FileLine)}


def _chunks(source: ExportFile) -> Iterator[ChunkLine]:
    return (line for _, line in source.lines() if isinstance(line, ChunkLine))


def _begin(tx: Tx, home: OrganizationId, sizes: Mapping[str, int], limits: FileLimits) -> dict[str, str]:
    new = {digest: size for digest, size in sizes.items() if storing.content_with(tx, home, digest) is None}
    used, needed = storing.used_by(tx, home), sum(new.values())
    if used + needed > limits.organization_bytes:
        raise QuotaExceeded(
            f"The files of this import have {human_size(needed)}, and those of your organization take "
            f"{human_size(used)} of {human_size(limits.organization_bytes)}. "
            "Delete messages with files, or ask an operator for more room.",
            size=needed,
            used=used,
            limit=limits.organization_bytes,
        )
    return {digest: storing.begin_content(tx, home, size) for digest, size in new.items()}


_add = insert_into(
    files,
    "id",
    "organization_id",
    "uploader_id",
    "content_id",
    "name",
    "media_type",
    "message_id",
    "agent_id",
    "alt",
    "created_at",
)
_taken = select_where(files, "id", "id")
_author = select_where(messages, "author_id", "id")
_set_files = update_where(messages, "id", set_="files")


def is_taken(tx: Tx, file_id: str) -> bool:
    return tx.one(_taken, id=file_id) is not None


class Attaching:
    """Writes the files of an import. Messages are written before `finish`."""

    def __init__(self, tx: Tx, home: OrganizationId, stored: Contents) -> None:
        self._tx = tx
        self._home = home
        self._stored = stored
        self._used: dict[str, str] = {}
        self._pages: defaultdict[str, list[str]] = defaultdict(list)
        self._waiting: list[tuple[FileLine, str, str | None, str | None]] = []

    def add(
        self, line: OfFile, file_id: str = "", *, message_id: str | None = None, agent_id: str | None = None
    ) -> None:
        """`file_id` is the id of the file here, `message_id` or `agent_id` what has it."""
        match line:
            case FileLine():
                self._waiting.append((line, file_id, message_id, agent_id))
            case FilePageLine():
                self._pages[line.digest].append(line.text)
            case ChunkLine():
                pass  # It was stored before.

    def finish(self) -> None:
        attached: defaultdict[str, list[Attachment]] = defaultdict(list)
        for line, file_id, message_id, agent_id in self._waiting:
            self._tx.run(_add, **self._row(line, file_id, message_id, agent_id))
            if message_id is not None:
                attached[message_id].append(
                    Attachment(FileId(file_id), line.name, line.media_type, line.size, line.digest, line.alt)
                )
        for message_id, found in attached.items():
            self._tx.run(_set_files, id=message_id, files=json.dumps([asdict(each) for each in found]))

    def _row(self, line: FileLine, file_id: str, message_id: str | None, agent_id: str | None) -> dict[str, Params]:
        author = None if message_id is None else self._tx.one(_author, id=message_id)
        return {
            "id": file_id,
            "organization_id": self._home,
            "uploader_id": EntityId(agent_id or "") if author is None else author[0],
            "content_id": self._content(line),
            "name": storing.clean_name(line.name),
            "media_type": storing.clean_media_type(line.media_type),
            "message_id": message_id,
            "agent_id": agent_id,
            "alt": line.alt,
            "created_at": line.created_at,
        }

    def _content(self, line: FileLine) -> str:
        if line.digest not in self._used:
            known = storing.content_with(self._tx, self._home, line.digest)
            if known is None:
                known = self._stored[line.digest]
                storing.adopt_content(
                    self._tx, known, line.digest, line.name, line.media_type, self._pages[line.digest]
                )
            self._used[line.digest] = known
        return self._used[line.digest]
