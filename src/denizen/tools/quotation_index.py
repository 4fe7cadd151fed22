"""The index by which quotations of an agent's past are found: as quickly after a hundred thousand cycles as after ten.

Of every `length` words in a row of a passage, one hash of about half as many words is stored: the least of those in the
run, so that the same run has the same hash wherever it stands (winnowing). So a text that repeats `length` words shares
a hash with the passage. Hashes only name candidates; their texts are compared.

Only what was said in private spaces is indexed, a batch at a time and outside the writer, up to where the words of the
agent's recall are indexed (`consciousness.recall.settling`). What is newer is compared word for word. When a space
becomes private, the index is made again (`spaces.directory.change_space`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final
from zlib import crc32

from sqlalchemy import bindparam, select

from denizen.consciousness.recall import settling
from denizen.consciousness.recall.fetching import said as text_of_passage
from denizen.ids import AgentId
from denizen.spaces.quotes import said
from denizen.storage.database import Tx, delete_where, insert_ignore, select_where, statement, update_where
from denizen.storage.schema import fingerprints, messages, passages, recalls, spaces

MOST_FOUND: Final = 2_000
"""How many passages are considered that have one hash, the newest."""
_VERSION: Final = 1
"""Raised whenever `spaces.quotes.said` or the hashes of a text change: then the index is made again."""
_PASSAGES_AT_ONCE: Final = 128
_HASHES_AT_ONCE: Final = 64
_HASHES: Final = [f"h{at}" for at in range(_HASHES_AT_ONCE)]


def hashes_of(words: Sequence[str], length: int) -> set[int]:
    """Of each run of `length` words, the least hash of the shorter runs in it."""
    size = (length + 1) // 2
    hashes = [
        crc32(" ".join(words[at : at + size]).encode("utf-8", "surrogatepass")) for at in range(len(words) - size + 1)
    ]
    window = length - size + 1
    return {min(hashes[at : at + window]) for at in range(len(hashes) - window + 1)}


# Which part of a life is indexed

_progress = select_where(recalls, "settled, forgotten, fingerprinted, fingerprint_form", "agent_id")


def _form(length: int) -> int:
    return _VERSION * 100 + length


def indexed(tx: Tx, agent_id: AgentId, length: int) -> int:
    """The newest passage that is indexed for runs of this length; 0 if none is."""
    row = tx.one(_progress, agent_id=agent_id)
    if row is None:
        return 0
    *_, done, form = row
    return max(done, 0) if form == _form(length) else 0


@dataclass(frozen=True, slots=True)
class MissingHashes:
    """Hashes of consecutive passages that are not stored yet."""

    form: int
    before: tuple[int, int, int]
    """How many passages of the agent were forgotten, how many were indexed, and for which form, when it was made."""
    first: int
    last: int
    rows: tuple[tuple[int, int], ...]
    """Each hash with the number of its passage, in the order of the table."""


_texts = statement(
    select(passages.c.number, passages.c.start, text_of_passage)
    .select_from(
        passages.join(spaces, spaces.c.id == passages.c.space_id).outerjoin(
            messages, messages.c.id == passages.c.message_id
        )
    )
    .where(
        spaces.c.private == 1,
        passages.c.kind.in_(("heard", "said")),
        passages.c.agent_id == bindparam("agent_id"),
        passages.c.number >= bindparam("first"),
        passages.c.number <= bindparam("last"),
    )
    .order_by(passages.c.number)
)


def make_batch(tx: Tx, agent_id: AgentId, length: int) -> MissingHashes | None:
    """The next passages of which the hashes are missing; None if there are none."""
    row = tx.one(_progress, agent_id=agent_id)
    if row is None:
        return None
    settled, forgotten, done, form = row
    after = max(done, 0) if form == _form(length) else 0
    if settled <= after:
        return None
    first, last = after + 1, min(settled, after + _PASSAGES_AT_ONCE)
    found: list[tuple[int, int]] = []
    before: list[str] = []
    # One more at the beginning: a run of words may cross the end of a passage, and belongs to the second one.
    for number, start, text in tx.all(_texts, agent_id=agent_id, first=first - 1, last=last):
        words = said(text or "")
        if number >= first:
            run = [*before[1 - length :], *words] if start else words
            found += [(each, number) for each in hashes_of(run, length)]
        before = words
    return MissingHashes(_form(length), (forgotten, done, form), first, last, tuple(sorted(found)))


_add = insert_ignore(fingerprints, "agent_id, hash, number")
_drop_all = delete_where(fingerprints, "agent_id")
_done = update_where(recalls, "agent_id", set_="fingerprinted, fingerprint_form")


def keep_batch(tx: Tx, agent_id: AgentId, batch: MissingHashes) -> None:
    """Store these hashes, unless someone else was faster, or something was forgotten or became private."""
    settling.hold(tx, agent_id)
    row = tx.one(_progress, agent_id=agent_id)
    assert row is not None  # `hold` makes it
    if row[1:] != batch.before:
        return
    if batch.first == 1:
        tx.run(_drop_all, agent_id=agent_id)
    tx.many(_add, [{"agent_id": agent_id, "hash": each, "number": number} for each, number in batch.rows])
    tx.run(_done, agent_id=agent_id, fingerprinted=batch.last, fingerprint_form=batch.form)


# Searching

_listed = fingerprints.c.hash.in_([bindparam(name, type_=fingerprints.c.hash.type) for name in _HASHES])
_found = select_where(fingerprints, "number", "agent_id", _listed, limit="limit")
_newest_with = select_where(fingerprints, "number", "agent_id, hash", order_by="number desc", limit=MOST_FOUND)


def look_up(tx: Tx, agent_id: AgentId, hashes: Iterable[int]) -> Counter[int]:
    """The passages that have some of these hashes, and how many of them."""
    found: Counter[int] = Counter()
    rest = iter(hashes)
    while some := list(islice(rest, _HASHES_AT_ONCE)):
        found.update(_with_any(tx, agent_id, some))
    return found


def _with_any(tx: Tx, agent_id: AgentId, hashes: Sequence[int]) -> Iterator[int]:
    named: dict[str, Any] = dict(zip(_HASHES, [*hashes, *[hashes[-1]] * (_HASHES_AT_ONCE - len(hashes))], strict=True))
    rows = tx.all(_found, agent_id=agent_id, limit=MOST_FOUND, **named)
    if len(rows) == MOST_FOUND:
        # Words that are said all the time must not hide the others.
        rows = [row for each in hashes for row in tx.all(_newest_with, agent_id=agent_id, hash=each)]
    yield from (number for (number,) in rows)
