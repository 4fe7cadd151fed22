"""Postings as bytes, and what each weighs (BM25). Pure.

An entry is two numbers of sixteen bits: which passage of its block, and how often the term occurs there (four bits)
beside how many terms the passage has (twelve bits). So a query reads nothing else to score it.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Iterable, Mapping
from typing import Final

BLOCK_BITS: Final = 12
BLOCK: Final = 1 << BLOCK_BITS
"""Passages whose postings of a term are one row."""
ENTRY_BYTES: Final = 4
MOST_OFTEN: Final = 15
LONGEST: Final = 4095

_K1 = 0.9
_B = 0.4


def block_of(number: int) -> int:
    return number >> BLOCK_BITS


def shape(count: int, length: int) -> int:
    """How often a term occurs in a passage of this length, as one number."""
    return min(count, MOST_OFTEN) << 12 | min(length, LONGEST)


def pack(entries: Iterable[tuple[int, int]]) -> bytes:
    """Numbers of passages with the shape that a term has there, as they are stored."""
    packed = array("H")
    for number, shaped in entries:
        packed.extend((number & (BLOCK - 1), shaped))
    return little_endian(packed).tobytes()


def unpack(block: int, entries: bytes) -> Iterable[tuple[int, int]]:
    """The numbers of passages, with shapes."""
    offsets, shapes = _columns(entries)
    first = block << BLOCK_BITS
    return ((first + offset, shaped) for offset, shaped in zip(offsets, shapes, strict=True))


def _columns(entries: bytes) -> tuple[array[int], array[int]]:
    packed = little_endian(array("H", entries))
    return packed[::2], packed[1::2]


def little_endian(packed: array[int]) -> array[int]:
    """The numbers as they are stored, or back again; the same array."""
    if sys.byteorder == "big":
        packed.byteswap()
    return packed


def without(block: int, entries: bytes, numbers: frozenset[int]) -> bytes:
    """The entries that are not of these passages."""
    return pack((number, shaped) for number, shaped in unpack(block, entries) if number not in numbers)


def rarity(occurs_in: int, passages: int) -> float:
    """What a term tells that occurs in so many of the passages there are."""
    return math.log(1 + (max(passages - occurs_in, 0) + 0.5) / (occurs_in + 0.5))


class Weights(dict[int, float]):
    """What a shape weighs, before the rarity of the term; reckoned once for each."""

    def __init__(self, mean_length: float) -> None:
        super().__init__()
        self._mean = max(mean_length, 1.0)

    def __missing__(self, shaped: int) -> float:
        count, length = shaped >> 12, shaped & LONGEST
        weight = count * (_K1 + 1) / (count + _K1 * (1 - _B + _B * length / self._mean))
        self[shaped] = weight
        return weight


def add_scores(scores: list[float], entries: bytes, weights: Mapping[int, float], times: float) -> None:
    """Each passage of the block, whose scores these are, has scored as much more as the term weighs there."""
    offsets, shapes = _columns(entries)
    for offset, weight in zip(offsets, map(weights.__getitem__, shapes), strict=True):
        scores[offset] += times * weight
