"""Finding what is remembered: by the words it shares with a question, weighed as recall weighs them, and by meaning.

The work of a search is bounded, however much is remembered: of the commonest words only the newest items are read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sqlalchemy import bindparam, select

from denizen.consciousness.recall.postings import rarity, weigh
from denizen.consciousness.recall.terms import count_terms
from denizen.memory.items import COLUMNS, COUNTED, Remembered, as_remembered
from denizen.storage.database import Tx, statement
from denizen.storage.schema import memories, memory_owners, memory_terms

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

MOST_TERMS: Final = 24
MOST_POSTINGS: Final = 2_500
MOST_RANKED: Final = 60
"""Items that are read to choose from."""
MOST_VECTORS: Final = 1_000
"""The newest, which are found by their meaning alone."""
MEANING: Final = 1.3
"""What meaning weighs against words, both in units of how much they differ."""
NEAR: Final = 0.35
"""So near an item has to be to be found by its meaning alone."""
_AT_ONCE: Final = 60


@dataclass(frozen=True, slots=True)
class Asked:
    """A question: its words, and what it means where an embedder says so."""

    query: str
    vector: bytes | None = None
    embedder: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """Something that was found, and how well it fits."""

    item: Remembered
    score: float


_size = statement(
    select(memory_owners.c["items"], memory_owners.c.length).where(memory_owners.c.owner == bindparam("owner"))
)
_TERMS = [f"t{at}" for at in range(MOST_TERMS)]
_counts = statement(
    select(memory_terms.c.term, memory_terms.c.shape).where(
        memory_terms.c.owner == bindparam("owner"),
        memory_terms.c.term.in_([bindparam(name, type_=memory_terms.c.term.type) for name in _TERMS]),
        memory_terms.c.number == COUNTED,
    )
)
_postings = statement(
    select(memory_terms.c.number, memory_terms.c.shape)
    .where(
        memory_terms.c.owner == bindparam("owner"),
        memory_terms.c.term == bindparam("term"),
        memory_terms.c.number > COUNTED,
    )
    .order_by(memory_terms.c.number.desc())
    .limit(bindparam("limit"))
)
_NUMBERS = [f"n{at}" for at in range(_AT_ONCE)]
_listed = memories.c.number.in_([bindparam(name, type_=memories.c.number.type) for name in _NUMBERS])
_rows = statement(select(*COLUMNS).where(memories.c.owner == bindparam("owner"), _listed))
_vectors_of = statement(
    select(memories.c.number, memories.c.vector).where(
        memories.c.owner == bindparam("owner"),
        memories.c.embedder == bindparam("embedder"),
        memories.c.vector.is_not(None),
        _listed,
    )
)
_newest_vectors = statement(
    select(memories.c.number, memories.c.vector)
    .where(
        memories.c.owner == bindparam("owner"),
        memories.c.embedder == bindparam("embedder"),
        memories.c.vector.is_not(None),
        memories.c.superseded_by.is_(None),
    )
    .order_by(memories.c.number.desc())
    .limit(MOST_VECTORS)
)


def search(tx: Tx, owner: str, asked: Asked, *, limit: int) -> list[Found]:
    """What this owner's memory holds on the question, the best first; nothing that is superseded."""
    scores = _by_words(tx, owner, asked.query)
    if asked.vector is not None:
        scores = _with_meaning(tx, owner, asked, scores)
    best = sorted(scores, key=lambda number: (-scores[number], -number))[: min(limit, MOST_RANKED)]
    found = {row[0]: as_remembered(row) for row in tx.all(_rows, owner=owner, **_spelled(best))} if best else {}
    return [Found(found[number], scores[number]) for number in best if number in found]


def _by_words(tx: Tx, owner: str, query: str) -> dict[int, float]:
    size = tx.one(_size, owner=owner)
    terms = list(count_terms(query))[:240]
    if size is None or size[0] <= 0 or not terms:
        return {}
    items, mean = size[0], size[1] / size[0]
    counts = _occurring(tx, owner, terms)
    scores: defaultdict[int, float] = defaultdict(float)
    left = MOST_POSTINGS
    for term in sorted(counts, key=lambda each: (counts[each], each))[:MOST_TERMS]:
        if left <= 0:
            break
        rows = tx.all(_postings, owner=owner, term=term, limit=left)
        left -= len(rows)
        tells = rarity(counts[term], items)
        for number, weight in zip([row[0] for row in rows], _weights(rows, mean), strict=True):
            scores[number] += tells * weight
    return scores


def _weights(rows: Sequence[tuple[int, int]], mean: float) -> list[float]:
    import numpy

    return weigh(numpy.array([row[1] for row in rows], numpy.uint16), mean).tolist()


def _occurring(tx: Tx, owner: str, terms: Sequence[str]) -> dict[str, int]:
    """In how many items each of the terms occurs that occur at all."""
    found: dict[str, int] = {}
    for at in range(0, len(terms), MOST_TERMS):
        some = terms[at : at + MOST_TERMS]
        asked = {name: some[at] if at < len(some) else None for at, name in enumerate(_TERMS)}
        found |= {term: count for term, count in tx.all(_counts, owner=owner, **asked) if count > 0}
    return found


def _with_meaning(tx: Tx, owner: str, asked: Asked, by_words: Mapping[int, float]) -> dict[int, float]:
    """Words and meaning together: of the best by words, and of the newest that are near in meaning."""
    import numpy

    assert asked.vector is not None
    best = sorted(by_words, key=lambda number: (-by_words[number], -number))[:_AT_ONCE]
    known = dict(tx.all(_vectors_of, owner=owner, embedder=asked.embedder, **_spelled(best))) if best else {}
    known |= dict(tx.all(_newest_vectors, owner=owner, embedder=asked.embedder))
    question = numpy.frombuffer(asked.vector, numpy.int8).astype(numpy.float32)
    alike = {number: each for number, each in known.items() if len(each) == len(question)}
    if not alike:
        return dict(by_words)
    numbers = list(alike)
    near = _nearness(question, numpy.frombuffer(b"".join(alike.values()), numpy.int8).reshape(len(numbers), -1))
    unit = float(numpy.std(list(by_words.values()))) if len(by_words) > 1 else 1.0
    scores = {number: score / (unit or 1.0) for number, score in by_words.items()}
    spread = float(near.std()) or 1.0
    for number, each in zip(numbers, near.tolist(), strict=True):
        if number in scores or each >= NEAR:
            scores[number] = scores.get(number, 0.0) + MEANING * max(each, 0.0) / max(spread, 0.1)
    return scores


def _nearness(question: NDArray[float64] | object, vectors: object) -> NDArray[float64]:
    import numpy

    asked, rows = numpy.asarray(question, numpy.float64), numpy.asarray(vectors, numpy.float64)
    lengths = numpy.linalg.norm(rows, axis=1) * float(numpy.linalg.norm(asked))
    return rows @ asked / numpy.maximum(lengths, 1e-9)


def _spelled(numbers: Sequence[int]) -> dict[str, int | None]:
    return {name: numbers[at] if at < len(numbers) else None for at, name in enumerate(_NUMBERS)}
