"""Formats text for the demo model: short quotations, lists, counts. Pure."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Final

from denizen.shortening import short_line

NOTHING_PENDING: Final = "Nothing is pending."


def quoted(text: str, limit: int = 80) -> str:
    """Quotes the beginning of `text` on one line. Handles are written so that they mention nobody."""
    line = short_line(text, limit).replace("@", "").replace('"', "'").strip()
    return f'"{line.removesuffix(".")}"'


def listed(things: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, (", ".join(things[:-1]), *things[-1:])))


def counted(number: int, thing: str) -> str:
    """`1 message`, `2 messages`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def one_of(choices: Sequence[str], by: str) -> str:
    """Picks one of `choices`, always the same for the same text."""
    return choices[zlib.crc32(by.encode("utf-8", "replace")) % len(choices)]
