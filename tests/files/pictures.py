"""Pictures and documents for tests, made when they are needed."""

from __future__ import annotations

import io

from PIL import Image


def png(width: int = 64, height: int = 48, color: str = "teal") -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (width, height), color).save(out, "PNG")
    return out.getvalue()


def photo(width: int = 400, height: int = 200, *, orientation: int = 6) -> bytes:
    """A JPEG as cameras write it: lying on its side, with a place in its EXIF data."""
    image = Image.new("RGB", (width, height), "white")
    image.paste("red", (0, 0, width // 2, height))
    exif = Image.Exif()
    exif[0x0112] = orientation
    exif[0x010E] = "Secret place"
    out = io.BytesIO()
    image.save(out, "JPEG", exif=exif)
    return out.getvalue()


def clear_png() -> bytes:
    out = io.BytesIO()
    Image.new("RGBA", (10, 10), (0, 0, 0, 0)).save(out, "PNG")
    return out.getvalue()


def pixel_bomb() -> bytes:
    """A small file with more pixels than anybody should unpack."""
    out = io.BytesIO()
    Image.new("1", (9_000, 9_000)).save(out, "PNG")
    return out.getvalue()
