"""Word vectors of passages in context, and how near they are to the words of a question.

For each word of the question the nearest word of a passage counts, weighted by rarity. Of a passage's word vectors only
the signs of each dimension are stored, a bit each, and no stop words: 48 bytes for a piece of a word. As good as the
full numbers, as far as could be measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sqlalchemy import bindparam

from denizen.consciousness.recall.terms import count_terms
from denizen.ids import AgentId
from denizen.models.embedders import TextVectors
from denizen.storage.database import Tx, select_where
from denizen.storage.schema import wordings

if TYPE_CHECKING:
    from numpy import float32, float64, int64
    from numpy.typing import NDArray

MOST_WORDS: Final = 20_000
"""How many words of passages are compared with those of a question."""
_AT_ONCE: Final = 50
_ROWS: Final = 64


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a question, without stop words."""

    terms: tuple[str, ...]
    """The term of each word."""
    states: NDArray[float32]
    """The vector of each word: a row of length 1."""


def code(reading: TextVectors) -> bytes:
    """The stored form of a passage's words."""
    import numpy

    states = numpy.frombuffer(reading.states, numpy.int8).reshape(len(reading.words), -1)
    kept = [at for at, word in enumerate(reading.words) if count_terms(word)]
    return numpy.packbits(states[kept] > 0, axis=1).tobytes()


def words_of(reading: TextVectors) -> Words:
    import numpy

    terms = [next(iter(count_terms(word)), "") for word in reading.words]
    kept = [at for at, term in enumerate(terms) if term]
    states = numpy.frombuffer(reading.states, numpy.int8).reshape(len(terms), -1)[kept].astype(numpy.float32)
    lengths = numpy.sqrt(numpy.einsum("ij,ij->i", states, states))
    return Words(tuple(terms[at] for at in kept), states / numpy.maximum(lengths, 1e-9)[:, None])


_NUMBERS = [f"n{at}" for at in range(_AT_ONCE)]
_codes = select_where(
    wordings,
    "number, codes",
    "agent_id, embedder",
    wordings.c.number.in_([bindparam(name, type_=wordings.c.number.type) for name in _NUMBERS]),
)


def _read(tx: Tx, agent_id: AgentId, embedder: str, numbers: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    for first in range(0, len(numbers), _AT_ONCE):
        some = numbers[first : first + _AT_ONCE]
        spelled = {name: some[at] if at < len(some) else None for at, name in enumerate(_NUMBERS)}
        yield from tx.all(_codes, agent_id=agent_id, embedder=embedder, **spelled)


def compare(
    tx: Tx, agent_id: AgentId, embedder: str, words: Words, numbers: Sequence[int]
) -> tuple[NDArray[int64], NDArray[float64]]:
    """The passages with known words, ascending; and how near they are: a row for each of `words`.

    `numbers` begin with the best: if all of them have too many words together, the last are left out.
    """
    import numpy

    size = words.states.shape[1] // 8
    known: dict[int, bytes] = {}
    room = MOST_WORDS * size
    rows = dict(_read(tx, agent_id, embedder, numbers)) if words.terms else {}
    for number in numbers:
        codes = rows.get(number, b"")
        if codes and len(codes) % size == 0 and len(codes) <= room:
            known[number] = codes
            room -= len(codes)
    if not known:
        return numpy.empty(0, numpy.int64), numpy.empty((len(words.terms), 0))
    there = sorted(known)
    near = _nearness(b"".join(known[number] for number in there), words.states)
    begins = numpy.cumsum([0] + [len(known[number]) // size for number in there[:-1]])
    nearest = numpy.maximum.reduceat(near, begins, axis=0).T
    return numpy.array(there, numpy.int64), numpy.maximum(nearest, 0.0).astype(numpy.float64)


def _nearness(codes: bytes, states: NDArray[float32]) -> NDArray[float32]:
    """The nearness of each coded word, a row each, to each of the states."""
    import numpy

    count, size = 8 * len(codes) // states.shape[1], states.shape[1]
    # In pieces so small that no library uses several threads for them: those would compete with everything else.
    whole = -(-count // _ROWS) * _ROWS
    bits = numpy.zeros((whole, size), numpy.float32)
    bits[:count] = numpy.unpackbits(numpy.frombuffer(codes, numpy.uint8).reshape(count, -1), axis=1)
    sums = numpy.matmul(bits.reshape(-1, _ROWS, size), states.T).reshape(whole, -1)[:count]
    # A set bit means 1, others -1; and all words have the same length.
    return (2 * sums - states.sum(axis=1)) / numpy.sqrt(numpy.float32(size))


def weights_of(words: Words, rarity: Mapping[str, float]) -> NDArray[float64]:
    """The weight of each word of the question; 1 in total, or nothing."""
    import numpy

    weights = numpy.array([rarity.get(term, 0.0) for term in words.terms], numpy.float64)
    return weights / (weights.sum() or 1.0)
