"""Index segments: the terms of consecutive passages, as bytes in which a term is found without reading all. Pure.

First the number of terms, then their checksums in order, then the offset of each record; a record is the length of its
term, the term, and its entries as in the postings. A passage belongs to one segment, and a segment to one block.
"""

from __future__ import annotations

import sys
import zlib
from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from denizen.consciousness.recall.postings import BLOCK, little_endian, shape

SEGMENT: Final = 32
"""How many passages form a segment."""
JOINED: Final = 512
"""How many passages a joined segment has."""

_MANY: Final = 100
"""So many terms are looked up at once."""
_FOUR: Final = array("I").itemsize
assert _FOUR == 4  # on every platform that Python 3.11 runs on


def encode(counted: Mapping[int, Mapping[str, int]]) -> bytes:
    """Encode these passages, by number in their order, with the counts of their terms."""
    gathered: defaultdict[str, list[int]] = defaultdict(list)
    for number, counts in counted.items():
        offset, length = number & (BLOCK - 1), sum(counts.values())
        shapes = {count: shape(count, length) for count in set(counts.values())}
        for term, count in counts.items():
            gathered[term] += (offset, shapes[count])
    return _written((term, little_endian(array("H", entries)).tobytes()) for term, entries in gathered.items())


def join(segments: Iterable[bytes]) -> bytes:
    """Join consecutive segments of one block."""
    return _written(gather(segments).items())


def gather(segments: Iterable[bytes]) -> dict[str, bytes]:
    """Each term with its entries in all these consecutive segments of one block."""
    gathered: defaultdict[str, list[bytes]] = defaultdict(list)
    for segment in segments:
        for term, entries in decode(segment):
            gathered[term].append(entries)
    return {term: b"".join(entries) for term, entries in gathered.items()}


def rewrite(records: Iterable[tuple[str, bytes]]) -> bytes:
    """Encode a segment of these terms and entries; terms without entries are left out."""
    return _written((term, entries) for term, entries in records if entries)


def _written(records: Iterable[tuple[str, bytes]]) -> bytes:
    ordered = sorted((zlib.crc32(spelt := term.encode()), spelt, entries) for term, entries in records)
    sums, begins, body = array("I"), array("I"), list[bytes]()
    at = 0
    for checksum, spelt, entries in ordered:
        sums.append(checksum)
        begins.append(at)
        body += (len(spelt).to_bytes(2, "little"), spelt, entries)
        at += 2 + len(spelt) + len(entries)
    begins.append(at)
    head = little_endian(array("I", [len(ordered), *sums, *begins]))
    return b"".join((head.tobytes(), *body))


def decode(segment: bytes) -> Iterator[tuple[str, bytes]]:
    """Every term, with its entries."""
    _, begins, body = _opened(segment)
    for at in range(len(begins) - 1):
        yield _record(segment, body + begins[at], body + begins[at + 1])


def sought(terms: Sequence[str]) -> list[tuple[str, int]]:
    """The terms, prepared for lookup."""
    return [(term, zlib.crc32(term.encode())) for term in terms]


def look_up(segment: bytes, terms: Sequence[tuple[str, int]]) -> Iterator[tuple[str, bytes]]:
    """The terms that occur in the segment, with their entries."""
    sums, begins, body = _opened(segment)
    count = len(sums)
    for (term, checksum), at in zip(terms, _places(sums, terms), strict=True):
        while at < count and sums[at] == checksum:
            found, entries = _record(segment, body + begins[at], body + begins[at + 1])
            if found == term:
                yield term, entries
                break
            at += 1


def _places(sums: Sequence[int], terms: Sequence[tuple[str, int]]) -> Sequence[int]:
    """Where the checksum of each term is, or would be."""
    if len(terms) < _MANY:
        return [bisect_left(sums, checksum) for _, checksum in terms]
    import numpy

    checksums = numpy.array([checksum for _, checksum in terms], numpy.uint32)
    return numpy.searchsorted(numpy.asarray(sums, numpy.uint32), checksums).tolist()


def _opened(segment: bytes) -> tuple[Sequence[int], Sequence[int], int]:
    """The checksums, the offsets of the records and the end of the last, and the base of the offsets."""
    count = int.from_bytes(segment[:_FOUR], "little")
    body = _FOUR * (2 * count + 2)
    if sys.byteorder == "little":
        view = memoryview(segment)[:body].cast("I")
        return view[1 : count + 1], view[count + 1 :], body
    numbers = little_endian(array("I", segment[:body]))
    return numbers[1 : count + 1], numbers[count + 1 :], body


def _record(segment: bytes, begins: int, ends: int) -> tuple[str, bytes]:
    entries = begins + 2 + int.from_bytes(segment[begins : begins + 2], "little")
    return segment[begins + 2 : entries].decode(), segment[entries:ends]
