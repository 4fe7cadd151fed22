"""In which passages of an agent terms occur: all of them, without weights. For whoever must not miss one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from sqlalchemy import ColumnElement, and_, bindparam, func, select

from denizen.consciousness.recall import segments, settling
from denizen.consciousness.recall.postings import BLOCK, ENTRY_BYTES, block_of, columns
from denizen.consciousness.recall.settling import Extent
from denizen.ids import AgentId
from denizen.storage.database import Row, Statement, Tx, statement
from denizen.storage.schema import postings

if TYPE_CHECKING:
    from numpy import int64
    from numpy.typing import NDArray

_AT_ONCE: Final = 64
"""How many terms are looked up with one statement."""
_TERMS: Final = [f"t{at}" for at in range(_AT_ONCE)]


def _of_block() -> ColumnElement[bool]:
    listed = postings.c.term.in_([bindparam(name, type_=postings.c.term.type) for name in _TERMS])
    return and_(postings.c.agent_id == bindparam("agent_id"), postings.c.block == bindparam("block"), listed)


_sizes = statement(select(postings.c.term, func.length(postings.c.entries)).where(_of_block()))
_entries = statement(select(postings.c.term, postings.c.entries).where(_of_block()))


class SettledTerms:
    """The terms of the settled passages of an agent, as of one transaction."""

    def __init__(self, tx: Tx, agent_id: AgentId, life: Extent) -> None:
        self._tx = tx
        self._agent_id = agent_id
        self._settled = life.settled
        self._segments = settling.all_segments(tx, agent_id)
        # A block that still has segments is not completely written to rows.
        self._blocks = block_of(self._segments[0][0] if self._segments else life.settled + 1)

    def estimate(self, terms: Sequence[str]) -> dict[str, int]:
        """About how many passages have each term: judged by the newest full block, or by the longest segment."""
        if self._blocks:
            counts = {term: size // ENTRY_BYTES for term, size in self._rows(_sizes, self._blocks - 1, terms)}
            sample = BLOCK
        else:
            longest = max((segment for _, segment in self._segments), key=len, default=None)
            found = segments.look_up(longest, segments.sought(terms)) if longest is not None else ()
            counts = {term: len(entries) // ENTRY_BYTES for term, entries in found}
            sample = max(self._settled // max(len(self._segments), 1), 1)
        return {term: counts.get(term, 0) * max(self._settled // sample, 1) for term in terms}

    def passages(self, terms: Sequence[str]) -> dict[str, NDArray[int64]]:
        """The numbers of the passages that have each term, ascending."""
        import numpy

        parts: dict[str, list[tuple[int, bytes]]] = {term: [] for term in terms}
        for block in range(self._blocks):
            for term, entries in self._rows(_entries, block, terms):
                parts[term].append((block, entries))
        sought = segments.sought(terms)
        for first, segment in self._segments:
            for term, entries in segments.look_up(segment, sought):
                parts[term].append((block_of(first), entries))
        every = [part for some in parts.values() for part in some]
        if not every:
            return {term: numpy.empty(0, numpy.int64) for term in terms}
        sizes = [sum(len(entries) for _, entries in some) // ENTRY_BYTES for some in parts.values()]
        return dict(zip(parts, numpy.split(columns(every)[0], numpy.cumsum(sizes)[:-1]), strict=True))

    def _rows(self, what: Statement, block: int, terms: Iterable[str]) -> Iterator[Row]:
        rest = iter(terms)
        while some := list(islice(rest, _AT_ONCE)):
            some += [some[-1]] * (_AT_ONCE - len(some))
            yield from self._tx.all(what, agent_id=self._agent_id, block=block, **dict(zip(_TERMS, some, strict=True)))
