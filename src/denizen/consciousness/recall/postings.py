"""Postings as bytes, and their weights (BM25). Pure.

An entry is two 16-bit numbers: the passage within its block; and how often the term occurs there (four bits) with the
number of terms of the passage (twelve bits). So a query needs nothing else to score it.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from numpy import float64, int64, uint16
    from numpy.typing import NDArray

BLOCK_BITS: Final = 12
BLOCK: Final = 1 << BLOCK_BITS
"""How many passages share a row of postings for a term."""
ENTRY_BYTES: Final = 4
MOST_OFTEN: Final = 15
LONGEST: Final = 4095

_K1 = 0.9
_B = 0.4


def block_of(number: int) -> int:
    return number >> BLOCK_BITS


def shape(count: int, length: int) -> int:
    """The count of a term in a passage and the length of the passage, as one number."""
    return min(count, MOST_OFTEN) << 12 | min(length, LONGEST)


def pack(entries: Iterable[tuple[int, int]]) -> bytes:
    """Encode the numbers of passages with the shape of a term there."""
    packed = array("H")
    for number, shaped in entries:
        packed.extend((number & (BLOCK - 1), shaped))
    return little_endian(packed).tobytes()


def unpack(block: int, entries: bytes) -> Iterable[tuple[int, int]]:
    """Decode the numbers of passages, with shapes."""
    offsets, shapes = _columns(entries)
    first = block << BLOCK_BITS
    return ((first + offset, shaped) for offset, shaped in zip(offsets, shapes, strict=True))


def _columns(entries: bytes) -> tuple[array[int], array[int]]:
    packed = little_endian(array("H", entries))
    return packed[::2], packed[1::2]


def little_endian(packed: array[int]) -> array[int]:
    """Convert the numbers to the stored byte order, or back; the same array."""
    if sys.byteorder == "big":
        packed.byteswap()
    return packed


def without(block: int, entries: bytes, numbers: frozenset[int]) -> bytes:
    """The entries without those of these passages."""
    return pack((number, shaped) for number, shaped in unpack(block, entries) if number not in numbers)


def rarity(occurs_in: int, passages: int) -> float:
    """The weight of a term that occurs in this many of all passages."""
    return math.log(1 + (max(passages - occurs_in, 0) + 0.5) / (occurs_in + 0.5))


def columns(parts: Sequence[tuple[int, bytes]]) -> tuple[NDArray[int64], NDArray[uint16]]:
    """The numbers of passages and the shapes, of consecutive blocks with entries."""
    import numpy

    packed = numpy.frombuffer(b"".join(entries for _, entries in parts), "<u2").reshape(-1, 2)
    firsts = numpy.array([block << BLOCK_BITS for block, _ in parts], numpy.int64)
    sizes = [len(entries) // ENTRY_BYTES for _, entries in parts]
    return packed[:, 0] + numpy.repeat(firsts, sizes), packed[:, 1]


def weigh(shapes: NDArray[uint16], mean_length: float) -> NDArray[float64]:
    """The weight of each shape, without the rarity of the term, for this mean number of terms of a passage."""
    import numpy

    counts = (shapes >> 12).astype(numpy.float64)
    lengths = (shapes & LONGEST).astype(numpy.float64)
    return counts * (_K1 + 1) / (counts + _K1 * (1 - _B + _B * lengths / max(mean_length, 1.0)))
