"""Pictures made smaller: for models that see, and for pages. Each is made once, in the jail, and stored.

A variant is a JPEG, upright and without what a camera wrote into the file. It is stored with the content it was made
of, so that forgetting, backups and organizations cover it, and never changes.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Final
from weakref import WeakValueDictionary

from denizen.files import jail, storing
from denizen.storage.database import Database

THUMBNAIL: Final = 320
"""For pages: the longer edge in pixels."""
SEEN: Final = 1568
"""For models: providers make larger pictures smaller themselves."""
SIZES: Final = (THUMBNAIL, SEEN)
VARIANT_TYPE: Final = "image/jpeg"
PICTURE_TYPES: Final = frozenset({"image/avif", "image/gif", "image/jpeg", "image/png", "image/webp"})


@dataclass(frozen=True, slots=True)
class ScaledPicture:
    """A picture made smaller."""

    width: int
    height: int
    data: bytes
    media_type: str = VARIANT_TYPE


@dataclass(frozen=True, slots=True)
class DrawnPage:
    """A page of a PDF."""

    data: bytes
    pages: int
    """How many pages the file has."""
    media_type: str = VARIANT_TYPE


@dataclass(frozen=True, slots=True)
class BrokenPicture:
    """A picture that cannot be shown."""

    trouble: str
    """Why: `it is damaged`."""


def is_picture(media_type: str) -> bool:
    """Whether files of this type can be made smaller."""
    return media_type in PICTURE_TYPES


async def variant(db: Database, content_id: str, size: int) -> ScaledPicture | BrokenPicture:
    """The picture at one of `SIZES`; made now if it was not made before.

    The content is one whose bytes are all there. Two processes may make it at the same time; both get the one that was
    stored first.
    """
    assert size in SIZES
    stored = await db.blobs.read(storing.read_variant, content_id, size)
    if stored is not None:
        return _decoded(stored)
    # Everyone who opens a space asks for its pictures at once: the first of them makes it, the others wait.
    async with _making.setdefault((content_id, size), asyncio.Lock()):
        return await _make(db, content_id, size)


async def draw_page(db: Database, content_id: str, number: int) -> DrawnPage | BrokenPicture:
    """A page of a PDF, drawn now: pages are not stored, because all those of a file may be larger than the file."""
    made = await jail.run("page", str(number), lambda: db.blobs.read(storing.all_bytes, content_id))
    return BrokenPicture(made.trouble) if made.trouble is not None else DrawnPage(made.payload, made.told["pages"])


_making: WeakValueDictionary[tuple[str, int], asyncio.Lock] = WeakValueDictionary()


async def _make(db: Database, content_id: str, size: int) -> ScaledPicture | BrokenPicture:
    stored = await db.blobs.read(storing.read_variant, content_id, size)
    if stored is None:
        made = await jail.run("picture", str(size), lambda: db.blobs.read(storing.all_bytes, content_id))
        encoded = json.dumps(made.told).encode() + b"\n" + made.payload
        await db.blobs.write(storing.put_variant, content_id, size, encoded)
        stored = await db.blobs.read(storing.read_variant, content_id, size)
    return _decoded(stored or b'{"trouble": "it was removed"}\n')


def _decoded(stored: bytes) -> ScaledPicture | BrokenPicture:
    line, _, data = stored.partition(b"\n")
    told = json.loads(line)
    return BrokenPicture(told["trouble"]) if "trouble" in told else ScaledPicture(told["width"], told["height"], data)
