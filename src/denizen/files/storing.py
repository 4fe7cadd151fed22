"""Uploads: a file's bytes arrive in chunks, each committed by itself, and are stored once within an organization.

The chunks may be in another database than everything else (`Database.blobs`), so no transaction covers both. Three
rules keep them together, whatever crashes: a row in `contents` is there before its first chunk, it gets its digest only
after its last chunk is durable, and it is deleted after its chunks are. So a finished file has all its bytes, and no
chunk is left without a row.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import bindparam, func, select

from denizen.amounts import human_size
from denizen.clock import SECOND
from denizen.errors import FileTooLarge, InvalidInput, QuotaExceeded, existing
from denizen.files.reading import kind_of
from denizen.ids import AgentId, EntityId, FileId, MessageId, OrganizationId, new_id
from denizen.storage.database import (
    Tx,
    columns,
    delete_where,
    insert_ignore,
    insert_into,
    select_where,
    statement,
    storable,
    update_where,
    value,
    values,
)
from denizen.storage.schema import chunks, contents, file_pages, files, heard_files

CHUNK_BYTES: Final = 256 * 1024
"""A chunk is one write: it holds up others for a few milliseconds."""
FILE_BYTES: Final = 25_000_000
ORGANIZATION_BYTES: Final = 10_000_000_000
ALT_CHARACTERS: Final = 1_000
"""How long the description of a picture may be."""
NAME_CHARACTERS: Final = 255
UNUSED_MICROSECONDS: Final = 24 * 3600 * SECOND
"""After this time, an upload that no message uses is removed."""
UNUSED_FILES: Final = 50
"""How many such uploads one person, agent or service may have. They take up room as soon as they are begun: otherwise
one member could use up the room of the whole organization without sending a byte."""
_REMOVED_AT_ONCE: Final = 100
_CHUNKS_AT_ONCE: Final = 4
"""Deleted in one transaction: deleting is slow."""
TO_READ: Final = "files to read"
"""The topic that announces contents whose text or picture is to be read in the background."""


@dataclass(frozen=True, slots=True)
class FileLimits:
    """How large a file may be, and all files of an organization together, in bytes."""

    file_bytes: int = FILE_BYTES
    organization_bytes: int = ORGANIZATION_BYTES


@dataclass(frozen=True, slots=True)
class File:
    """An uploaded file, or an upload that is not finished."""

    id: FileId
    organization_id: OrganizationId
    uploader_id: EntityId
    content_id: str
    name: str
    media_type: str
    message_id: MessageId | None
    """The message that it is attached to."""
    agent_id: AgentId | None
    """The agent that got it from a tool or a service."""
    created_at: int
    size: int
    digest: str | None
    """SHA-256 of its bytes; None until all of them have arrived."""
    link_key: str = field(repr=False)
    """Signs links to it."""
    alt: str | None = None
    """What it shows, in the words of its uploader."""

    @property
    def is_complete(self) -> bool:
        return self.digest is not None


_file = (
    *columns(files, "id, organization_id, uploader_id, content_id, name, media_type, message_id, agent_id, created_at"),
    contents.c.size,
    contents.c.digest,
    contents.c.link_key,
    files.c.alt,
)
_get = statement(
    select(*_file).join(contents, contents.c.id == files.c.content_id).where(files.c.id == bindparam("id"))
)
_used = statement(
    select(func.coalesce(func.sum(contents.c.size), 0)).where(
        contents.c.organization_id == bindparam("organization_id"), contents.c.dropped_at.is_(None)
    )
)
_unused_of = statement(
    select(func.count()).where(
        files.c.uploader_id == bindparam("uploader_id"), files.c.message_id.is_(None), files.c.agent_id.is_(None)
    )
)
_add_content = insert_into(contents, "id, organization_id, digest, link_key, size, created_at, dropped_at")
_add_file = insert_into(
    files, "id, organization_id, uploader_id, content_id, name, media_type, message_id, alt, created_at"
)
_same_content = select_where(contents, "id", "organization_id, digest")
_finish_content = update_where(contents, "id", set_="digest, reading")
_read_after_all = update_where(contents, "id", contents.c.reading.is_(None), reading="waiting")
_use_content = update_where(files, "id", set_="content_id")
_add_page = insert_into(file_pages, "content_id, page, text")
_pages = select_where(file_pages, "text", "content_id", order_by="page")
_delete_pages = delete_where(file_pages, "content_id")
_drop_content = update_where(contents, "id", set_="dropped_at", digest=None, reading=None)
_drop_heard = delete_where(heard_files, "file_id")
_drop_file = delete_where(files, "id")
_files_of_content = select_where(files, "id", "content_id", limit=1)


def new_file_id() -> FileId:
    return FileId(new_id())


def begin(
    tx: Tx,
    organization_id: OrganizationId,
    uploader_id: EntityId,
    *,
    name: str,
    media_type: str,
    size: int,
    limits: FileLimits,
    id: FileId | None = None,
    alt: str | None = None,
) -> File:
    """Start an upload of `size` bytes. Idempotent with an `id` of the caller's choosing.

    Raises `InvalidInput` if the file is too large, `QuotaExceeded` if the organization has no room for it, or the
    uploader has too many uploads that no message uses.
    """
    if id is not None and tx.one(_get, id=id) is not None:
        return get(tx, id)
    name = clean_name(name)
    if size > limits.file_bytes:
        raise FileTooLarge(name, size, limits.file_bytes)
    if size < 1:
        raise InvalidInput(f"{name} is empty.")
    if value(tx, _unused_of, uploader_id=uploader_id) >= UNUSED_FILES:
        raise QuotaExceeded(
            f"You have {UNUSED_FILES} uploads that no message uses. Attach them to a message, or remove some: "
            "unused uploads are removed after a day."
        )
    used = used_by(tx, organization_id)
    if used + size > limits.organization_bytes:
        raise QuotaExceeded(
            f"The files of your organization take {human_size(used)} of {human_size(limits.organization_bytes)}: "
            f"there is no room for {name} ({human_size(size)}). "
            "Delete messages with files, or ask an operator for more room.",
            size=size,
            used=used,
            limit=limits.organization_bytes,
        )
    file_id, content_id = id or new_file_id(), _begin_content(tx, organization_id, size, dropped_at=None)
    tx.run(
        _add_file,
        id=file_id,
        organization_id=organization_id,
        uploader_id=uploader_id,
        content_id=content_id,
        name=name,
        media_type=clean_media_type(media_type),
        message_id=None,
        alt=clean_alt(alt),
        created_at=tx.now,
    )
    return get(tx, file_id)


_describe = update_where(files, "id", set_="alt")


def describe(tx: Tx, file: File, alt: str | None) -> File:
    """Say what an upload shows, for those who cannot see it. Raises `InvalidInput` once a message has it."""
    if file.message_id is not None or file.agent_id is not None:
        raise InvalidInput(f"{file.name} was sent already. Describe a picture before you send it.")
    tx.run(_describe, id=file.id, alt=clean_alt(alt))
    return get(tx, file.id)


def finish(tx: Tx, file_id: FileId, digest: str, pages: Sequence[str] = ()) -> File:
    """The bytes are all there: the file can be attached. Bytes that the organization has already are dropped.

    `pages` are the texts of its pages if its bytes are text; other files are read later (`extracting`).
    """
    file = get(tx, file_id)
    if file.is_complete:
        return file
    to_read = kind_of(file.name, file.media_type) is not None
    known = value(tx, _same_content, organization_id=file.organization_id, digest=digest)
    if known is None:
        reading = "waiting" if to_read else "done" if pages else None
        tx.run(_finish_content, id=file.content_id, digest=digest, reading=reading)
        put_pages(tx, file.content_id, pages)
    else:
        tx.run(_use_content, id=file_id, content_id=known)
        _drop(tx, file.content_id)
        if to_read:
            # It may have had another name before, under which there was nothing to read.
            tx.run(_read_after_all, id=known)
    if to_read:
        tx.announce(TO_READ, {"content": file.content_id})
    return get(tx, file_id)


def put_pages(tx: Tx, content_id: str, pages: Sequence[str]) -> None:
    """Store the text of a content."""
    numbered = enumerate(pages, start=1)
    tx.many(_add_page, [{"content_id": content_id, "page": page, "text": text} for page, text in numbered])


def used_by(tx: Tx, organization_id: OrganizationId) -> int:
    """How many bytes the files of the organization take; unfinished uploads count whole."""
    return value(tx, _used, organization_id=organization_id)


def get(tx: Tx, file_id: str) -> File:
    return File(*existing(tx.one(_get, id=storable(file_id)), "file", file_id))


def content_with(tx: Tx, organization_id: OrganizationId, digest: str) -> str | None:
    """The id of the organization's content with this digest."""
    return value(tx, _same_content, organization_id=organization_id, digest=digest)


def pages_of_content(tx: Tx, content_id: str) -> list[str]:
    """The texts of the pages of a content."""
    return values(tx, _pages, content_id=content_id)


_adopt = update_where(contents, "id", set_="digest, reading", dropped_at=None)


def begin_content(tx: Tx, organization_id: OrganizationId, size: int) -> str:
    """A content without a file, for an import: it is deleted after a day unless it is adopted before."""
    return _begin_content(tx, organization_id, size, dropped_at=tx.now + UNUSED_MICROSECONDS)


def _begin_content(tx: Tx, organization_id: OrganizationId, size: int, *, dropped_at: int | None) -> str:
    content_id = new_id()
    tx.run(
        _add_content,
        id=content_id,
        organization_id=organization_id,
        digest=None,
        link_key=secrets.token_hex(16),
        size=size,
        created_at=tx.now,
        dropped_at=dropped_at,
    )
    return content_id


def adopt_content(tx: Tx, content_id: str, digest: str, name: str, media_type: str, pages: Sequence[str]) -> None:
    """A file of this name and type has the content, whose bytes are all there. As `finish`."""
    to_read = kind_of(name, media_type) is not None
    tx.run(_adopt, id=content_id, digest=digest, reading="waiting" if to_read else "done" if pages else None)
    if to_read:
        tx.announce(TO_READ, {"content": content_id})
    else:
        put_pages(tx, content_id, pages)


def remove(tx: Tx, file: File) -> None:
    """Delete the file's row, and drop its content if no other file has it."""
    tx.run(_drop_heard, file_id=file.id)
    tx.run(_drop_file, id=file.id)
    if tx.one(_files_of_content, content_id=file.content_id) is None:
        _drop(tx, file.content_id)


def _drop(tx: Tx, content_id: str) -> None:
    """No file has this content any longer. Its text is deleted now, its bytes and its row a little later."""
    tx.run(_delete_pages, content_id=content_id)
    tx.run(_drop_content, id=content_id, dropped_at=tx.now)


def pages_of(tx: Tx, file: File) -> list[str]:
    """The texts of the pages of a file; none if it has no text, or could not be read."""
    return values(tx, _pages, content_id=file.content_id)


def text_of(tx: Tx, file: File) -> str | None:
    """The text of a file, all pages; None if it has none, or it could not be read."""
    return "".join(pages_of(tx, file)) or None


@dataclass(frozen=True, slots=True)
class FileReading:
    """What is known of the inside of a file."""

    state: str | None
    """waiting, done, unreadable; None: there is nothing to read in it"""
    trouble: str | None
    """Why it is unreadable: `it needs a password`."""
    width: int | None
    """Of the picture as models see it."""
    height: int | None


_reading = select_where(contents, "reading, trouble, width, height", "id")


def reading_of(tx: Tx, file: File) -> FileReading:
    """How far the file has been read."""
    row = tx.one(_reading, id=file.content_id)
    return FileReading(None, None, None, None) if row is None else FileReading(*row)


_unused = statement(
    select(*_file)
    .join(contents, contents.c.id == files.c.content_id)
    .where(files.c.message_id.is_(None), files.c.agent_id.is_(None), files.c.created_at < bindparam("before"))
    .order_by(files.c.created_at)
    .limit(bindparam("limit"))
)


def has_unused(tx: Tx) -> bool:
    """Whether `remove_unused` would remove something."""
    return tx.one(_unused, before=tx.now - UNUSED_MICROSECONDS, limit=1) is not None


def remove_unused(tx: Tx) -> int:
    """Remove uploads that no message has used for a day. Returns how many."""
    rows = tx.all(_unused, before=tx.now - UNUSED_MICROSECONDS, limit=_REMOVED_AT_ONCE)
    for row in rows:
        remove(tx, File(*row))
    return len(rows)


_dropped = statement(
    select(contents.c.id)
    .where(contents.c.dropped_at.is_not(None), contents.c.dropped_at <= bindparam("before"))
    .order_by(contents.c.dropped_at)
    .limit(bindparam("limit"))
)
_delete_content = delete_where(contents, "id")


def dropped_contents(tx: Tx, before: int) -> list[str]:
    """Contents that no file has any longer."""
    return values(tx, _dropped, before=before, limit=_REMOVED_AT_ONCE)


def delete_content(tx: Tx, content_id: str) -> None:
    """Delete the row of a dropped content whose chunks are gone."""
    tx.run(_delete_content, id=content_id)


# Below: functions of `Database.blobs`.

_put = insert_ignore(chunks)
_arrived = statement(
    select(func.count(), func.coalesce(func.sum(func.length(chunks.c.data)), 0)).where(
        chunks.c.content_id == bindparam("content_id"), chunks.c.n >= 0
    )
)
_chunk = select_where(chunks, "data", "content_id, n")
_delete_chunks = delete_where(chunks, "content_id", chunks.c.n.between(bindparam("lo"), bindparam("hi")))
_last_chunks = select_where(chunks, "n", "content_id", order_by="n desc", limit="limit")


def put_chunk(tx: Tx, content_id: str, n: int, data: bytes) -> None:
    """Store a chunk. Storing the same one again changes nothing."""
    tx.run(_put, content_id=content_id, n=n, data=data)


def arrived(tx: Tx, content_id: str) -> int:
    """How many bytes have arrived."""
    _, size = tx.one(_arrived, content_id=content_id) or (0, 0)
    return size


def read_chunk(tx: Tx, content_id: str, n: int) -> bytes | None:
    return value(tx, _chunk, content_id=content_id, n=n)


def digest_of(tx: Tx, content_id: str) -> str:
    """SHA-256 of the bytes that have arrived."""
    digest = hashlib.sha256()
    for data in _chunks_of(tx, content_id):
        digest.update(data)
    return digest.hexdigest()


def all_bytes(tx: Tx, content_id: str) -> bytes:
    """The bytes that have arrived."""
    return b"".join(_chunks_of(tx, content_id))


def _chunks_of(tx: Tx, content_id: str) -> Iterator[bytes]:
    n = 0
    while (data := read_chunk(tx, content_id, n)) is not None:
        yield data
        n += 1


def delete_chunks(tx: Tx, content_id: str) -> bool:
    """Delete the last chunks of a content, a few at a time. Returns whether any are left."""
    last: list[int] = values(tx, _last_chunks, content_id=content_id, limit=_CHUNKS_AT_ONCE)
    if last:
        tx.run(_delete_chunks, content_id=content_id, lo=last[-1], hi=last[0])
    return len(last) == _CHUNKS_AT_ONCE


def put_variant(tx: Tx, content_id: str, size: int, data: bytes) -> None:
    """Store a smaller picture that was made of a content: among its chunks, so that it is deleted with them.

    Another one of the same size that is there already stays: what a model has been shown never changes.
    """
    put_chunk(tx, content_id, -size, data)


def read_variant(tx: Tx, content_id: str, size: int) -> bytes | None:
    return read_chunk(tx, content_id, -size)


# Names and types that callers give.


def clean_name(name: str) -> str:
    """The last part of a path, without characters that a file's name cannot have."""
    last = storable(name).replace("\\", "/").rpartition("/")[2]
    shown = "".join(each for each in last if each.isprintable()).strip(" .")
    if len(shown) > NAME_CHARACTERS:
        stem, dot, suffix = shown.rpartition(".")
        suffix = f"{dot}{suffix}" if stem and len(suffix) <= 10 else ""
        shown = shown[: NAME_CHARACTERS - len(suffix)] + suffix
    return shown or "file"


def clean_alt(alt: str | None) -> str | None:
    """The description of a picture as one line; None if it is empty."""
    line = " ".join("".join(each if each.isprintable() else " " for each in storable(alt or "")).split())
    if len(line) > ALT_CHARACTERS:
        raise InvalidInput(f"A description may have {ALT_CHARACTERS:,} characters, this one has {len(line):,}.")
    return line or None


UNKNOWN_TYPE: Final = "application/octet-stream"
_TYPE_CHARACTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789.+-_/")


def clean_media_type(media_type: str) -> str:
    """A media type without parameters; `application/octet-stream` if it is none."""
    plain = media_type.partition(";")[0].strip().lower()
    if plain.count("/") != 1 or len(plain) > 100 or not _TYPE_CHARACTERS.issuperset(plain):
        return UNKNOWN_TYPE
    return plain
