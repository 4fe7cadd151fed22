"""The cursor of a person's stream: the position in each space, as one opaque text that any instance understands. Pure.

It holds the end of each space's id and the number of the last message there, so the server stores nothing about
readers: a reader that comes back sends its cursor.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from functools import lru_cache
from typing import Final
from uuid import UUID

from denizen.errors import InvalidInput
from denizen.ids import SpaceId

_VERSION: Final = 1
_END_BYTES: Final = 6
"""Bytes of a space's id: the chance that two spaces of a person end alike is one in many millions."""

Ending = bytes
"""The last bytes of the id of a space."""


@lru_cache(maxsize=10_000)
def ending(space_id: SpaceId) -> Ending:
    return UUID(space_id).bytes[-_END_BYTES:]


def encode(positions: Mapping[SpaceId, int]) -> str:
    """Encodes the cursor of a reader that has every message up to these numbers."""
    parts = [bytes([_VERSION])]
    for space_id in sorted(positions):
        parts += [ending(space_id), _encode_number(positions[space_id])]
    return base64.urlsafe_b64encode(b"".join(parts)).decode().rstrip("=")


def decode(text: str) -> dict[Ending, int]:
    """Decodes a cursor. Raises `InvalidInput` if it is not one of ours."""
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        return _decode(data)
    except (binascii.Error, ValueError, IndexError) as error:
        raise InvalidInput("Last-Event-ID: this is not an event id of this stream. Leave it out.") from error


def _decode(data: bytes) -> dict[Ending, int]:
    if not data or data[0] != _VERSION:
        raise ValueError("another version")
    found: dict[Ending, int] = {}
    at = 1
    while at < len(data):
        end, at = data[at : at + _END_BYTES], at + _END_BYTES
        found[end], at = _decode_number(data, at)
    return found


def _encode_number(number: int) -> bytes:
    """Seven bits a byte, lowest first; the last byte is below 128."""
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    return bytes([*encoded, number])


def _decode_number(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        number |= (data[at] & 127) << shift
        if data[at] < 128:
            return number, at + 1
        at, shift = at + 1, shift + 7
