"""`denizen.files`: uploads, and the files of messages."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import mimetypes
from collections.abc import AsyncIterable, AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Final

from denizen.access.requesters import Requester
from denizen.api.arguments import listed
from denizen.api.subject import EntityRef, OrganizationRef, Subject, id_of
from denizen.api.wiring import Wiring
from denizen.clock import SECOND
from denizen.errors import InvalidInput, NotFound, UploadConflict
from denizen.files import attaching, pictures, storing
from denizen.files.pictures import BrokenPicture, DrawnPage, ScaledPicture
from denizen.files.reading import MOST_BYTES, is_text, text_pages
from denizen.files.storing import CHUNK_BYTES, UNKNOWN_TYPE, File
from denizen.ids import EntityId, FileId, OrganizationId
from denizen.spaces import directory
from denizen.storage.database import Tx

FileRef = File | FileId
"""A file, or its id."""
LINK_SECONDS: Final = 3600
"""How long a link to a file is valid."""


class Files(Subject):
    """Uploads, and the files of messages.

    ```python
    menu = await denizen.files.upload(noor, b"Soup, then pie.", name="menu.txt")
    await denizen.spaces.post(kitchen, noor, "What do you think?", files=[menu])
    assert await denizen.files.read(menu) == b"Soup, then pie."
    ```
    """

    async def upload(
        self,
        uploader: EntityRef,
        source: Path | bytes,
        *,
        name: str | None = None,
        media_type: str | None = None,
        id: FileId | None = None,
        alt: str | None = None,
    ) -> File:
        """Upload a file, to attach it to a message. If no message uses it within a day, it is removed.

        Its type is guessed from its name unless given. `alt` says what a picture shows, for models and people that do
        not see it. An `id` makes it safe to upload it again. Raises `InvalidInput`
        if it is too large, and `QuotaExceeded` if the organization has no room for it.

        ```python
        menu = await denizen.files.upload(noor, b"Soup", name="menu.txt")
        assert (menu.media_type, menu.size) == ("text/plain", 4)
        ```
        """
        data = source if isinstance(source, bytes) else await asyncio.to_thread(source.read_bytes)
        named = name or (source.name if isinstance(source, Path) else "file")
        return await self.store(uploader, named, len(data), lambda first: _parts(data, first), media_type, id, alt)

    async def store(
        self,
        uploader: EntityRef,
        name: str,
        size: int,
        parts_from: Callable[[int], AsyncIterable[bytes]],
        media_type: str | None = None,
        id: FileId | None = None,
        alt: str | None = None,
    ) -> File:
        """Upload a file whose bytes are made as they are needed, from a given one on."""
        begun = await self.begin(uploader, name=name, size=size, media_type=media_type, id=id, alt=alt)
        if begun.is_complete:
            return begun
        arrived = await self.arrived(begun)
        return await self.append(begun, arrived, parts_from(arrived))

    async def begin(
        self,
        uploader: EntityRef,
        *,
        name: str,
        size: int,
        media_type: str | None = None,
        id: FileId | None = None,
        alt: str | None = None,
    ) -> File:
        """Start an upload of `size` bytes, to be sent with `append`. An `id` makes it safe to start it again."""
        guessed = media_type or mimetypes.guess_type(storing.clean_name(name))[0] or UNKNOWN_TYPE
        who: EntityId = id_of(uploader)
        return await self._runtime.db.write(
            _begin, who, name=name, media_type=guessed, size=size, limits=self._runtime.file_limits, id=id, alt=alt
        )

    async def describe(self, file: FileRef, alt: str | None, *, by: EntityRef) -> File:
        """Say what an upload shows, for models and people that do not see it; None removes the description.

        Raises `NotFound` unless they have uploaded it, and `InvalidInput` once a message has it.
        """
        return await self._runtime.db.write(_describe, id_of(file), id_of(by), alt)

    async def append(self, file: FileRef, offset: int, parts: AsyncIterable[bytes]) -> File:
        """Add bytes to an upload. Whole chunks are durable as they arrive; when all bytes are there, it is complete.

        An upload that broke off continues at `arrived`. Raises `UploadConflict` for another offset.
        """
        db = self._runtime.db
        upload = await db.read(storing.get, id_of(file))
        arrived = upload.size if upload.is_complete else await db.blobs.read(storing.arrived, upload.content_id)
        if offset != arrived:
            raise UploadConflict(f"{arrived:,} bytes of {upload.name} have arrived: continue at offset {arrived}.")
        if upload.is_complete:
            return upload
        buffer = bytearray()
        async for part in parts:
            buffer += part
            if arrived + len(buffer) > upload.size:
                raise InvalidInput(
                    f"More bytes were sent than {upload.name} has: it was announced with {upload.size:,}."
                )
            while len(buffer) >= CHUNK_BYTES:
                arrived = await self._put(upload, arrived, bytes(buffer[:CHUNK_BYTES]))
                del buffer[:CHUNK_BYTES]
        # A part of a chunk is stored only at the end of the file.
        if buffer and arrived + len(buffer) == upload.size:
            arrived = await self._put(upload, arrived, bytes(buffer))
        if arrived < upload.size:
            return upload
        digest = await db.blobs.read(storing.digest_of, upload.content_id)
        pages = await db.blobs.read(_pages_of, upload)
        return await db.write(storing.finish, upload.id, digest, pages)

    async def _put(self, upload: File, arrived: int, data: bytes) -> int:
        """Store one chunk. Returns how many bytes have arrived then."""
        db = self._runtime.db
        await db.read(storing.get, upload.id)  # It may have been removed meanwhile.
        await db.blobs.write(storing.put_chunk, upload.content_id, arrived // CHUNK_BYTES, data)
        return arrived + len(data)

    async def arrived(self, file: FileRef) -> int:
        """How many bytes of an upload are stored: where it continues."""
        upload = await self._runtime.db.read(storing.get, id_of(file))
        return (
            upload.size if upload.is_complete else await self._runtime.db.blobs.read(storing.arrived, upload.content_id)
        )

    async def get(self, file: FileRef, *, reader: EntityRef | None = None) -> File:
        """The file. With a `reader`, raises `NotFound` unless they are in the space of its message, or uploaded it."""
        if reader is None:
            return await self._runtime.db.read(storing.get, id_of(file))
        return await self._runtime.db.read(attaching.readable, id_of(file), id_of(reader))

    async def read(self, file: FileRef) -> bytes:
        """All bytes of the file."""
        return b"".join([part async for part in self.parts(file)])

    async def parts(self, file: FileRef, *, first: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """The bytes of the file from `first` up to `end`, chunk by chunk."""
        found = await self._runtime.db.read(storing.get, id_of(file))
        if not found.is_complete:
            raise InvalidInput(f"The upload of {found.name} is not finished.")
        last = found.size if end is None else min(end, found.size)
        for n in range(first // CHUNK_BYTES, -(-last // CHUNK_BYTES)):
            data = await self._runtime.db.blobs.read(storing.read_chunk, found.content_id, n)
            if data is None:  # It was deleted while it was read.
                raise NotFound("file", found.id)
            start = n * CHUNK_BYTES
            yield data[max(first - start, 0) : last - start]

    async def variant(self, file: FileRef, size: int = pictures.THUMBNAIL) -> ScaledPicture | None:
        """The picture made smaller (`denizen.files.pictures.SIZES`): upright, and without what a camera wrote into it.

        None if it is no picture, or one that cannot be shown.
        """
        if size not in pictures.SIZES:
            raise InvalidInput(f"Pictures are made {' or '.join(map(str, pictures.SIZES))} pixels wide, not {size}.")
        found = await self._runtime.db.read(storing.get, id_of(file))
        if not found.is_complete or not pictures.is_picture(found.media_type):
            return None
        made = await pictures.variant(self._runtime.db, found.content_id, size)
        return None if isinstance(made, BrokenPicture) else made

    async def page(self, file: FileRef, number: int) -> DrawnPage | None:
        """A page of a PDF as a picture; the first one is 1. None if it has no such page, or cannot be shown."""
        found = await self._runtime.db.read(storing.get, id_of(file))
        if not found.is_complete or found.media_type != "application/pdf":
            return None
        drawn = await pictures.draw_page(self._runtime.db, found.content_id, number)
        return None if isinstance(drawn, BrokenPicture) else drawn

    async def used(self, organization: OrganizationRef | None = None) -> int:
        """How many bytes the files of the organization take. The limit is `files.organization_bytes`."""
        return await self._runtime.db.read(storing.used_by, await self._runtime.organization_id(organization))

    async def remove(self, file: FileRef, *, by: EntityRef) -> None:
        """Remove an upload that is not attached to a message."""
        await self._runtime.db.write(_remove, id_of(file), id_of(by))

    def sign(self, file: File) -> str:
        """A text that lets anyone who has it read this file for an hour: for addresses that a browser opens."""
        until = self._runtime.clock.now() // SECOND + LINK_SECONDS
        return f"{until}-{_signature(file, until)}"

    def is_signed(self, file: File, signed: str) -> bool:
        """Whether the text was made by `sign` for this file, within the hour."""
        until, _, signature = signed.partition("-")
        if not until.isdecimal() or len(until) > 12 or int(until) * SECOND < self._runtime.clock.now():
            return False
        return hmac.compare_digest(_signature(file, int(until)).encode(), signature.encode("utf-8", "surrogatepass"))


def _signature(file: File, until: int) -> str:
    return hmac.new(file.link_key.encode(), f"{file.id} {until}".encode(), hashlib.sha256).hexdigest()


def _pages_of(tx: Tx, upload: File) -> Sequence[str]:
    if not is_text(upload.name, upload.media_type) or upload.size > MOST_BYTES:
        return ()
    return text_pages(storing.all_bytes(tx, upload.content_id))


def _begin(
    tx: Tx,
    uploader: EntityId,
    *,
    name: str,
    media_type: str,
    size: int,
    limits: storing.FileLimits,
    id: FileId | None,
    alt: str | None,
) -> File:
    home: OrganizationId = directory.get_entity(tx, uploader).organization_id
    return storing.begin(tx, home, uploader, name=name, media_type=media_type, size=size, limits=limits, id=id, alt=alt)


def _describe(tx: Tx, file_id: FileId, by: EntityId, alt: str | None) -> File:
    return storing.describe(tx, attaching.readable(tx, file_id, by), alt)


def _remove(tx: Tx, file_id: FileId, by: EntityId) -> None:
    file = attaching.readable(tx, file_id, by)
    if file.message_id is not None:
        raise InvalidInput(f"{file.name} is attached to a message. Delete the message instead.")
    storing.remove(tx, file)


async def uploaded(runtime: Wiring, by: EntityRef | Requester, files: Sequence[Path | FileRef]) -> list[FileId]:
    """The ids of these files; paths are uploaded first."""
    if not files:
        return []
    uploader = by.entity_id if isinstance(by, Requester) else id_of(by)
    subject = Files(runtime)
    given = listed(files, "files")
    return [id_of(await subject.upload(uploader, each) if isinstance(each, Path) else each) for each in given]


async def _parts(data: bytes, first: int) -> AsyncIterator[bytes]:
    for start in range(first, len(data), CHUNK_BYTES):
        yield data[start : start + CHUNK_BYTES]
