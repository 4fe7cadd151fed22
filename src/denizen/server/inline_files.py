"""Files inside a JSON request, as data URLs: they are stored as uploads before the message is posted.

An address elsewhere (`https://…`) is refused: this server does not fetch what a caller names, because it may reach
machines that the caller cannot.
"""

from __future__ import annotations

import base64
import binascii
import mimetypes
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote
from uuid import UUID, uuid5

from denizen.app import Runtime
from denizen.errors import InvalidInput
from denizen.files.attaching import MOST_FILES
from denizen.files.storing import CHUNK_BYTES, clean_media_type
from denizen.ids import EntityId, FileId

_KEYS: Final = UUID("5f0b2f8e-9d0c-4c57-8a55-6f1f0f6b7f0d")
"""Under which the id of a message and the position of a file in it become the id of the file."""
_HEAD: Final = re.compile(r"data:(?P<type>[^;,]*)(?P<parameters>(?:;[^;,]*)*)", re.IGNORECASE)
_AT_ONCE: Final = CHUNK_BYTES // 3 * 4
"""How many characters of base64 are decoded at once: the server answers others in between."""


@dataclass(frozen=True, slots=True)
class InlineFile:
    """A file whose bytes are in the request, encoded as base64."""

    name: str
    media_type: str
    encoded: str

    @property
    def size(self) -> int:
        return len(self.encoded) // 4 * 3 - self.encoded[-2:].count("=")


GivenFile = InlineFile | FileId
"""A file in the request, or the id of an upload."""


def file_in(where: str, text: str, name: str | None = None) -> GivenFile:
    """The file that a field of a request names: a data URL, or the id of an upload. `where` is the field."""
    if text[:5].lower() == "data:":
        return from_data_url(where, text, name)
    if "://" in text[:20]:
        raise InvalidInput(
            f"{where}: this server does not fetch addresses. Send the file itself as a data URL "
            "(data:image/png;base64,…), or upload it with POST /api/files and send its id."
        )
    return FileId(text)


def from_data_url(where: str, url: str, name: str | None = None) -> InlineFile:
    """Parses `data:image/png;name=photo.png;base64,…`. Raises `InvalidInput` if it is not encoded as base64."""
    head, comma, encoded = url.partition(",")
    match = _HEAD.fullmatch(head)
    parameters = [each.strip() for each in match["parameters"].split(";") if each] if match else []
    if match is None or not comma or "base64" not in [each.lower() for each in parameters]:
        raise InvalidInput(f"{where}: a data URL begins with its type and `;base64,`, as in data:image/png;base64,…")
    named = next((unquote(each[5:]) for each in parameters if each.lower().startswith("name=")), None)
    return from_base64(where, encoded, clean_media_type(match["type"] or "text/plain"), name or named)


def from_base64(where: str, encoded: str, media_type: str, name: str | None = None) -> InlineFile:
    """A file that is encoded as base64. Its characters are checked when it is decoded."""
    if not encoded or len(encoded) % 4:
        raise InvalidInput(f"{where}: the file is empty, or not encoded as base64.")
    return InlineFile(name or f"file{mimetypes.guess_extension(media_type) or ''}", media_type, encoded)


async def store_all(
    runtime: Runtime, uploader: EntityId, given: Sequence[GivenFile], belonging_to: str
) -> list[FileId]:
    """Stores the files of a request. Returns the ids of all, to be attached to what they belong to.

    The same file for the same message or event is stored once, also if the request is sent again.
    """
    if len(given) > MOST_FILES:
        raise InvalidInput(f"A message may have {MOST_FILES} files, this one has {len(given)}.")
    return [
        each if isinstance(each, str) else await _store(runtime, uploader, each, FileId(_id(belonging_to, position)))
        for position, each in enumerate(given)
    ]


async def _store(runtime: Runtime, uploader: EntityId, file: InlineFile, id: FileId) -> FileId:
    def parts_from(first: int) -> AsyncIterator[bytes]:
        return _decoded(file, first)

    stored = await runtime.files.store(uploader, file.name, file.size, parts_from, file.media_type, id)
    return stored.id


async def _decoded(file: InlineFile, first: int) -> AsyncIterator[bytes]:
    # Uploads continue at a multiple of a chunk, which need not be one of three bytes.
    skipped = first % 3
    for start in range(first // 3 * 4, len(file.encoded), _AT_ONCE):
        try:
            data = base64.b64decode(file.encoded[start : start + _AT_ONCE], validate=True)
        except (binascii.Error, ValueError) as error:
            raise InvalidInput(f"{file.name} is not encoded as base64.") from error
        yield data[skipped:]
        skipped = 0


def _id(belonging_to: str, position: int) -> str:
    return str(uuid5(_KEYS, f"{belonging_to} {position}"))
