"""Searches memories by the words they share with a question, ranked as in recall, and by meaning.

The work of a search is bounded, however many memories there are: for the commonest words only the newest items are
read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sqlalchemy import BigInteger, Select, Text, bindparam, literal_column, select, union_all

from denizen.consciousness.recall.postings import rarity, weigh
from denizen.consciousness.recall.terms import count_terms, older_terms
from denizen.memory.items import COLUMNS, COUNTED, MemoryItem, as_remembered
from denizen.storage.database import Row, Statement, Tx, select_where, statement
from denizen.storage.schema import memories, memory_owners, memory_terms

if TYPE_CHECKING:
    from numpy import float64, int8, int64
    from numpy.typing import NDArray

MOST_ASKED: Final = 240
"""The most terms of a question that are looked up to find the rarest."""
MOST_TERMS: Final = 24
MOST_POSTINGS: Final = 2_500
MOST_RANKED: Final = 60
"""The most items that are read and ranked."""
MOST_VECTORS: Final = 1_000
"""The newest items, which can be found by their meaning alone."""
MEANING: Final = 1.3
"""The weight of meaning relative to words, both in units of their spread."""
NEAR: Final = 0.35
"""The least similarity of an item that is found by its meaning alone."""
_AT_ONCE: Final = 20
_TERMS_AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class MemoryQuestion:
    """A question: its words, and its vector if there is an embedder."""

    query: str
    vector: bytes | None = None
    embedder: str = ""


@dataclass(frozen=True, slots=True)
class FoundMemory:
    """A search result with its score."""

    item: MemoryItem
    score: float


_TERMS = [f"t{at}" for at in range(MOST_TERMS)]
_ALL = ""
"""Not a term: the key of the size of the index."""
_counts = statement(
    select(memory_terms.c.term, memory_terms.c.shape, literal_column("0", BigInteger()))
    .where(
        memory_terms.c.owner == bindparam("owner"),
        memory_terms.c.term.in_([bindparam(name, type_=memory_terms.c.term.type) for name in _TERMS]),
        memory_terms.c.number == COUNTED,
    )
    .union_all(
        select(literal_column(f"'{_ALL}'", Text()), memory_owners.c["items"], memory_owners.c.length).where(
            memory_owners.c.owner == bindparam("owner")
        )
    )
)


def _newest_with_term(at: int) -> Select[Any]:
    newest = (
        select(literal_column(str(at), BigInteger()).label("at"), memory_terms.c.number, memory_terms.c.shape)
        .where(
            memory_terms.c.owner == bindparam("owner"),
            memory_terms.c.term == bindparam(f"t{at}", type_=memory_terms.c.term.type),
            memory_terms.c.number > COUNTED,
        )
        .order_by(memory_terms.c.number.desc())
        .limit(bindparam(f"most{at}"))
    )
    return select(newest.subquery(f"of{at}"))


# Several terms at once: over a network, a round trip costs more than the query.
_postings = statement(union_all(*map(_newest_with_term, range(_TERMS_AT_ONCE))))
_NUMBERS = [f"n{at}" for at in range(_AT_ONCE)]
_listed = memories.c.number.in_([bindparam(name, type_=memories.c.number.type) for name in _NUMBERS])
_rows = select_where(memories, COLUMNS, "owner", _listed)
_vectors_of = select_where(memories, "number, vector", "owner, embedder", memories.c.vector.is_not(None), _listed)
_newest_vectors = select_where(
    memories,
    "number, vector",
    "owner, embedder",
    memories.c.vector.is_not(None),
    memories.c.superseded_by.is_(None),
    order_by="number desc",
    limit=MOST_VECTORS,
)


class _Scored(NamedTuple):
    """Items by number, with their scores."""

    numbers: NDArray[int64]
    scores: NDArray[float64]


def search(tx: Tx, owner: str, asked: MemoryQuestion, *, limit: int) -> list[FoundMemory]:
    """Returns this owner's memories that fit the question, best first, without superseded ones."""
    scored = _by_words(tx, owner, asked.query)
    if asked.vector is not None:
        scored = _with_meaning(tx, owner, asked, asked.vector, scored)
    best = _best(scored, min(limit, MOST_RANKED))
    listed = [as_remembered(row) for row in _listed_in(tx, _rows, best, owner=owner)]
    found = {each.number: each for each in listed}
    return [FoundMemory(found[number], score) for number, score in best.items() if number in found]


def _best(scored: _Scored, limit: int) -> dict[int, float]:
    """Returns the best with their scores, best first; of equals, the newest."""
    import numpy

    first = numpy.lexsort((-scored.numbers, -scored.scores))[:limit]
    return dict(zip(scored.numbers[first].tolist(), scored.scores[first].tolist(), strict=True))


def _by_words(tx: Tx, owner: str, query: str) -> _Scored:
    import numpy

    terms = dict.fromkeys((*count_terms(query), *older_terms(query)))
    size, counts = _occurring(tx, owner, list(terms)[:MOST_ASKED])
    rarest = sorted(counts, key=lambda each: (counts[each], each))[:MOST_TERMS]
    read = _read(tx, owner, [(term, counts[term]) for term in rarest])
    if not read:
        return _Scored(numpy.zeros(0, numpy.int64), numpy.zeros(0))
    columns = numpy.fromiter(chain.from_iterable(read), numpy.int64, 3 * len(read)).reshape(-1, 3)
    tells = numpy.array([rarity(counts[term], size.items) for term in rarest])
    weights = tells[columns[:, 0]] * weigh(columns[:, 2].astype(numpy.uint16), size.length / size.items)
    numbers, at = numpy.unique(columns[:, 1], return_inverse=True)
    return _Scored(numbers, numpy.bincount(at, weights).astype(numpy.float64))


class _Size(NamedTuple):
    """The size of an owner's memory."""

    items: int
    length: int
    """The terms of all items together."""


def _occurring(tx: Tx, owner: str, terms: Sequence[str]) -> tuple[_Size, dict[str, int]]:
    """Returns the size of the memory, and for each term that occurs the number of items with it."""
    size, found = _Size(0, 0), dict[str, int]()
    for at in range(0, len(terms), MOST_TERMS):
        some = terms[at : at + MOST_TERMS]
        asked = {name: some[at] if at < len(some) else None for at, name in enumerate(_TERMS)}
        for term, count, length in tx.all(_counts, owner=owner, **asked):
            if term == _ALL:
                size = _Size(count, length)
            elif count > 0:
                found[term] = count
    return size, found if size.items > 0 else {}


def _read(tx: Tx, owner: str, counts: Sequence[tuple[str, int]]) -> list[tuple[int, int, int]]:
    """Reads the newest postings of these terms, the first terms first: term, item, and the item's shape there."""
    read: list[tuple[int, int, int]] = []
    for first in range(0, len(counts), _TERMS_AT_ONCE):
        asked: dict[str, str | int | None] = {"owner": owner}
        left = MOST_POSTINGS - len(read)
        for at in range(_TERMS_AT_ONCE):
            term, count = counts[first + at] if first + at < len(counts) else (None, 0)
            asked[f"t{at}"], asked[f"most{at}"] = term, min(count, left)
            left -= min(count, left)
        read += [(first + at, number, shape) for at, number, shape in tx.all(_postings, **asked)]
        if left <= 0:
            break
    return read


def _with_meaning(tx: Tx, owner: str, asked: MemoryQuestion, vector: bytes, words: _Scored) -> _Scored:
    """Combines words and meaning: the best by words, and of the newest those near in meaning."""
    import numpy

    whose = {"owner": owner, "embedder": asked.embedder}
    known = dict(_listed_in(tx, _vectors_of, _best(words, MOST_RANKED), **whose))
    known |= dict(tx.all(_newest_vectors, **whose))
    question = numpy.frombuffer(vector, numpy.int8)
    alike = {number: each for number, each in known.items() if len(each) == len(question)}
    if not alike:
        return words
    there = numpy.array(list(alike), numpy.int64)
    near = _nearness(question, numpy.frombuffer(b"".join(alike.values()), numpy.int8).reshape(len(there), -1))
    means = MEANING * numpy.maximum(near, 0.0) / max(float(near.std()) or 1.0, 0.1)
    unit = (float(words.scores.std()) if len(words.numbers) > 1 else 1.0) or 1.0
    counts = numpy.isin(there, words.numbers) | (near >= NEAR)
    numbers, at = numpy.unique(numpy.concatenate((words.numbers, there[counts])), return_inverse=True)
    scores = numpy.bincount(at, numpy.concatenate((words.scores / unit, means[counts])))
    return _Scored(numbers, scores.astype(numpy.float64))


def _nearness(question: NDArray[int8], vectors: NDArray[int8]) -> NDArray[float64]:
    import numpy

    asked, rows = question.astype(numpy.float64), vectors.astype(numpy.float64)
    lengths = numpy.linalg.norm(rows, axis=1) * float(numpy.linalg.norm(asked))
    return rows @ asked / numpy.maximum(lengths, 1e-9)


def _listed_in(tx: Tx, rows: Statement, numbers: Iterable[int], **asked: str) -> Iterator[Row]:
    """Yields the rows of the statement for these numbers."""
    wanted = list(numbers)
    for first in range(0, len(wanted), _AT_ONCE):
        some = wanted[first : first + _AT_ONCE]
        spelled = {name: some[at] if at < len(some) else None for at, name in enumerate(_NUMBERS)}
        yield from tx.all(rows, **asked, **spelled)
