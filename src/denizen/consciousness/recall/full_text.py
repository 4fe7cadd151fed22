"""Full-text scores of passages for a question: BM25 over postings, segments, and the newest texts.

However long the history is and however common the words, the number of postings read is bounded: all of the rarest
terms first, of the commonest only the newest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, NamedTuple

from sqlalchemy import ColumnElement, and_, bindparam, func, select

from denizen.consciousness.recall import segments, settling, spelling
from denizen.consciousness.recall.cues import Period
from denizen.consciousness.recall.postings import ENTRY_BYTES, block_of, columns, pack, rarity, shape, weigh
from denizen.consciousness.recall.settling import Extent
from denizen.consciousness.recall.spelling import compounds, one_letter_off
from denizen.consciousness.recall.terms import count_terms, older_terms, term_of, words_by_term
from denizen.ids import AgentId
from denizen.storage.database import Tx, select_where, statement, value
from denizen.storage.schema import passages, postings

if TYPE_CHECKING:
    from numpy import float64, int64
    from numpy.typing import NDArray

MOST_TERMS: Final = 24
"""How many terms of a longer question are used: the rarest."""
MOST_POSTINGS: Final = 10_000
MOST_RESPELLED: Final = 3
"""How many words that occur nowhere are looked for in other spellings."""
_BLOCKS_RESPELLED: Final = 4
"""In how many full blocks, the newest."""
_LONGEST_QUESTION: Final = 240
"""How many terms are looked up to find the rarest."""


class Occurs(NamedTuple):
    """The occurrences of a term, and their weights."""

    term: str
    numbers: NDArray[int64]
    """Of passages, ascending."""
    weights: NDArray[float64]


@dataclass(frozen=True, slots=True)
class Scored:
    """The scores of a question's terms."""

    numbers: NDArray[int64]
    """The passages that have one of the terms, ascending."""
    scores: NDArray[float64]
    """Of these passages: the sum of the weights of their terms."""
    terms: Sequence[Occurs]
    """Each term by itself, the rarest first."""
    rarity: Mapping[str, float]
    """Of each term that was looked up."""
    mean: float
    """The mean number of terms of a passage."""


class PostingList(NamedTuple):
    """The occurrences of a term in consecutive passages."""

    block: int
    term: str
    size: int
    """How many of the passages have it."""
    entries: bytes | None
    """None: not read yet, because it is a row of the postings."""


def score(tx: Tx, agent_id: AgentId, life: Extent, query: str, period: Period | None = None) -> Scored:
    """The score of each passage. With a `period`, passages far from it in time may be left out."""
    older = older_terms(query) if life.terms == 0 else ()
    terms = list(dict.fromkeys((*count_terms(query), *older)))[:_LONGEST_QUESTION]
    recent = settling.unsettled(tx, agent_id, life)
    lengths = {number: sum(counts.values()) for number, counts in recent}
    mean = max((life.length + sum(lengths.values())) / max(life.passages, 1), 1.0)
    listed = list(lists(tx, agent_id, life, terms)) if terms else []
    occurs_in = _occurrences(terms, listed, recent)
    if not all(occurs_in.values()):
        missing = [term for term in terms if not occurs_in[term]]
        others = _respelled(tx, agent_id, life, recent, query, missing)
        new = [term for some in others.values() for term in some if term not in occurs_in]
        found = list(lists(tx, agent_id, life, new)) if new else []
        listed += found
        occurs_in |= _occurrences(new, found, recent)
        terms = [term for term in occurs_in if term not in others]
    wanted = sorted(terms, key=lambda term: (occurs_in[term], term))[:MOST_TERMS]
    rare = {term: rarity(occurs_in[term], life.there) for term in wanted}
    parts: dict[str, list[tuple[int, bytes]]] = {term: _newest(term, recent, lengths) for term in wanted}
    for each, entries in _read(tx, agent_id, _within_bounds(wanted, _near(tx, agent_id, listed, period))):
        parts[each.term].append((each.block, entries))
    return _weighed({term: some[::-1] for term, some in parts.items() if some}, rare, mean)


def newest_with(tx: Tx, agent_id: AgentId, life: Extent, terms: Sequence[str], most: int) -> NDArray[int64]:
    """The passages with one of these terms, ascending: the newest, some `most` of them."""
    import numpy

    found = [number for number, counts in settling.unsettled(tx, agent_id, life) if not counts.keys().isdisjoint(terms)]
    chosen: list[PostingList] = []
    room = most - len(found)
    for each in lists(tx, agent_id, life, terms):
        if each.size > room:
            break
        chosen.append(each)
        room -= each.size
    parts = [(each.block, entries) for each, entries in _read(tx, agent_id, chosen)]
    settled = columns(parts)[0] if parts else numpy.empty(0, numpy.int64)
    return numpy.union1d(settled, numpy.array(found, numpy.int64))


def _occurrences(
    terms: Sequence[str], listed: Iterable[PostingList], recent: Sequence[tuple[int, Mapping[str, int]]]
) -> dict[str, int]:
    """In how many passages each term occurs."""
    occurs_in = {term: sum(term in counts for _, counts in recent) for term in terms}
    for each in listed:
        occurs_in[each.term] += each.size
    return occurs_in


def _respelled(
    tx: Tx,
    agent_id: AgentId,
    life: Extent,
    recent: Sequence[tuple[int, Mapping[str, int]]],
    query: str,
    missing: Sequence[str],
) -> dict[str, tuple[str, ...]]:
    """The terms to look for in place of those that occur nowhere: the parts of a compound, or one letter off."""
    words = words_by_term(query)
    asked = [(term, words[term]) for term in missing if len(words.get(term, "")) >= spelling.FEWEST_LETTERS]
    parts = {term: [(term_of(a), term_of(b)) for a, b in compounds(word)] for term, word in asked[:MOST_RESPELLED]}
    near = {term: {term_of(other) for other in one_letter_off(word)} for term, word in asked[:MOST_RESPELLED]}
    wanted = sorted({*chain.from_iterable(near.values()), *chain(*chain(*parts.values()))} - {""})
    if not wanted:
        return {}
    sizes = _occurrences(wanted, lists(tx, agent_id, life, wanted, most_blocks=_BLOCKS_RESPELLED), recent)
    found: dict[str, tuple[str, ...]] = {}
    for term, _ in asked[:MOST_RESPELLED]:
        whole = [way for way in parts[term] if all(sizes[part] for part in way)]
        like = max(near[term], key=lambda other: (sizes.get(other, 0), other), default="")
        if whole:
            found[term] = max(whole, key=lambda way: len(way[0]))
        elif like and sizes[like]:
            found[term] = (like,)
    return found


def _newest(
    term: str, recent: Sequence[tuple[int, Mapping[str, int]]], lengths: Mapping[int, int]
) -> list[tuple[int, bytes]]:
    """The occurrences of the term in passages that are not settled, in the settled form: the last block first."""
    blocks: dict[int, list[tuple[int, int]]] = {}
    for number, counts in recent:
        if term in counts:
            blocks.setdefault(block_of(number), []).append((number, shape(counts[term], lengths[number])))
    return [(block, pack(blocks[block])) for block in sorted(blocks, reverse=True)]


def _weighed(parts: Mapping[str, Sequence[tuple[int, bytes]]], rare: Mapping[str, float], mean: float) -> Scored:
    """The scores of passages from these entries of terms, in the order of the passages."""
    import numpy

    if not parts:
        return Scored(numpy.empty(0, numpy.int64), numpy.empty(0), (), rare, mean)
    numbers, shapes = columns([part for some in parts.values() for part in some])
    sizes = [sum(len(entries) for _, entries in some) // ENTRY_BYTES for some in parts.values()]
    weights = numpy.repeat([rare[term] for term in parts], sizes) * weigh(shapes, mean)
    ends = numpy.cumsum(sizes)[:-1]
    there, at = numpy.unique(numbers, return_inverse=True)
    # Added in the order of the terms, whatever is settled: sums of the same numbers must be the same to the last digit.
    scores = numpy.bincount(at, weights).astype(numpy.float64)
    terms = [Occurs(*each) for each in zip(parts, numpy.split(numbers, ends), numpy.split(weights, ends), strict=True)]
    return Scored(there, scores, terms, rare, mean)


def lists(
    tx: Tx, agent_id: AgentId, life: Extent, terms: Sequence[str], most_blocks: int | None = None
) -> Iterator[PostingList]:
    """The occurrences of these terms in all settled passages, newest first; short lists of entries are read already.

    With `most_blocks`, only in the newest blocks.
    """
    unmerged = settling.all_segments(tx, agent_id)
    sought = segments.sought(terms)
    for first, segment in reversed(unmerged):
        for term, entries in segments.look_up(segment, sought):
            yield PostingList(block_of(first), term, len(entries) // ENTRY_BYTES, entries)
    # A block that still has segments is not completely written to rows.
    whole = block_of(unmerged[0][0]) if unmerged else block_of(life.settled + 1)
    for block in range(whole - 1, -1 if most_blocks is None else max(whole - 1 - most_blocks, -1), -1):
        for term, size in _block_sizes(tx, agent_id, block, terms):
            yield PostingList(block, term, size, None)


def _read(tx: Tx, agent_id: AgentId, chosen: Sequence[PostingList]) -> Iterator[tuple[PostingList, bytes]]:
    """The entries of each; the remaining rows of a block are read at once."""
    rows: dict[int, dict[str, bytes]] = {}
    for each in chosen:
        if each.entries is not None:
            yield each, each.entries
            continue
        if each.block not in rows:
            wanted = (other.term for other in chosen if other.block == each.block and other.entries is None)
            rows[each.block] = {}
            while some := list(islice(wanted, MOST_TERMS)):
                rows[each.block] |= tx.all(_entries, agent_id=agent_id, block=each.block, **_spelled(some))
        yield each, rows[each.block][each.term]


_TERMS = [f"t{at}" for at in range(MOST_TERMS)]
_MANY_TERMS = [f"t{at}" for at in range(10 * MOST_TERMS)]


def _of_block(names: Sequence[str]) -> ColumnElement[bool]:
    listed = postings.c.term.in_([bindparam(name, type_=postings.c.term.type) for name in names])
    return and_(postings.c.agent_id == bindparam("agent_id"), postings.c.block == bindparam("block"), listed)


_sizes = statement(select(postings.c.term, func.length(postings.c.entries)).where(_of_block(_TERMS)))
_many_sizes = statement(select(postings.c.term, func.length(postings.c.entries)).where(_of_block(_MANY_TERMS)))
_entries = statement(select(postings.c.term, postings.c.entries).where(_of_block(_TERMS)))


def _spelled(terms: Sequence[str], names: Sequence[str] = _TERMS) -> dict[str, str | None]:
    return {name: terms[at] if at < len(terms) else None for at, name in enumerate(names)}


def _block_sizes(tx: Tx, agent_id: AgentId, block: int, terms: Sequence[str]) -> Iterator[tuple[str, int]]:
    sizes, names = (_sizes, _TERMS) if len(terms) <= 2 * MOST_TERMS else (_many_sizes, _MANY_TERMS)
    rest = iter(terms)
    while some := list(islice(rest, len(names))):
        for term, size in tx.all(sizes, agent_id=agent_id, block=block, **_spelled(some, names)):
            yield term, size // ENTRY_BYTES


def _within_bounds(terms: Sequence[str], listed: Iterable[PostingList]) -> list[PostingList]:
    """What to read: the rarest terms first, and of each the newest."""
    by_term: dict[str, list[PostingList]] = {term: [] for term in terms}
    for each in listed:
        if each.term in by_term:
            by_term[each.term].append(each)
    chosen: list[PostingList] = []
    room = MOST_POSTINGS
    for term in terms:
        for each in by_term[term]:
            if each.size <= room:
                chosen.append(each)
                room -= each.size
    return chosen


_first_since = select_where(passages, "number", "agent_id", passages.c.at >= bindparam("first"), order_by="at", limit=1)
_last_until = select_where(
    passages, "number", "agent_id", passages.c.at < bindparam("end"), order_by="at desc", limit=1
)


def _near(tx: Tx, agent_id: AgentId, listed: Sequence[PostingList], period: Period | None) -> Sequence[PostingList]:
    """The lists that may have passages of the period."""
    if period is None:
        return listed
    first = value(tx, _first_since, agent_id=agent_id, first=period.first)
    last = value(tx, _last_until, agent_id=agent_id, end=period.end)
    if first is None or last is None:
        return ()
    # Events that waited in the inbox were said earlier than their number suggests, but hardly by a whole block.
    blocks = range(block_of(first) - 1, block_of(last) + 2)
    return [each for each in listed if each.block in blocks]
