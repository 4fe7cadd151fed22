"""Builds the word index of passages after their cycle.

The terms of a few dozen passages become a segment; the segments of some hundred become one; and when a block of
passages is full, each of its terms gets a row. Passages that are not settled yet are searched by their text. Each step
reads and computes outside the writer and ends in a small transaction that changes nothing if something was forgotten
meanwhile; so the work can stop at any time and continues where it was, and search results are the same before and
after.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from sqlalchemy import bindparam, delete, select

from denizen.consciousness.recall import segments
from denizen.consciousness.recall.fetching import said
from denizen.consciousness.recall.postings import BLOCK, BLOCK_BITS, block_of
from denizen.consciousness.recall.segments import JOINED, SEGMENT
from denizen.consciousness.recall.terms import VERSION, count_terms
from denizen.ids import AgentId
from denizen.storage.database import (
    Database,
    Tx,
    delete_where,
    insert_ignore,
    insert_or_update,
    select_where,
    statement,
    update_where,
    values,
)
from denizen.storage.schema import entities, messages, passages, postings, recalls

MOST_UNSETTLED: Final = 2_000
"""How many unsettled passages a search reads: the newest."""
_AT_ONCE: Final = 128
_ROWS_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True)
class Extent:
    """The searchable passages of an agent."""

    passages: int = 0
    """The number of the newest."""
    forgotten: int = 0
    length: int = 0
    """The total length of all settled passages, in terms."""
    settled: int = 0
    """The newest passage whose terms are in a segment or among the postings."""
    terms: int = VERSION
    """The oldest version of these terms."""

    @property
    def there(self) -> int:
        return max(self.passages - self.forgotten, 0)


_columns = (recalls.c.passages, recalls.c.forgotten, recalls.c.length, recalls.c.settled, recalls.c.terms)
_extent = select_where(recalls, _columns, "agent_id")
_begin = insert_ignore(recalls, "agent_id, terms")
_held_extent = select_where(recalls, _columns, "agent_id", for_update=True)


def extent(tx: Tx, agent_id: AgentId) -> Extent:
    row = tx.one(_extent, agent_id=agent_id)
    return Extent() if row is None else Extent(*row)


def hold(tx: Tx, agent_id: AgentId) -> Extent:
    """The extent, locked until this transaction ends."""
    # A missing row cannot be locked: two transactions would write the same passages.
    tx.run(_begin, agent_id=agent_id, terms=VERSION)
    row = tx.one(_held_extent, agent_id=agent_id)
    return Extent() if row is None else Extent(*row)


_texts = statement(
    select(passages.c.number, passages.c.kind, entities.c.name, passages.c.speaker, said)
    .select_from(
        passages.outerjoin(messages, messages.c.id == passages.c.message_id).outerjoin(
            entities, entities.c.id == passages.c.speaker_id
        )
    )
    .where(
        passages.c.agent_id == bindparam("agent_id"),
        passages.c.number >= bindparam("first"),
        passages.c.number <= bindparam("last"),
    )
    .order_by(passages.c.number)
)


def counted(tx: Tx, agent_id: AgentId, first: int, last: int) -> Iterator[tuple[int, dict[str, int]]]:
    """These passages, each with the counts of its terms, computed from the texts."""
    for number, kind, name, speaker, text in tx.all(_texts, agent_id=agent_id, first=first, last=last):
        # What an agent said itself is not found by its name.
        who = name or speaker or "" if kind == "heard" else ""
        yield number, {} if kind == "forgotten" else count_terms(f"{who} {text or ''}")


def unsettled(tx: Tx, agent_id: AgentId, life: Extent) -> list[tuple[int, dict[str, int]]]:
    """The newest passages, each with the counts of its terms."""
    first = max(life.settled + 1, life.passages - MOST_UNSETTLED + 1)
    return list(counted(tx, agent_id, first, life.passages)) if first <= life.passages else []


# A segment


@dataclass(frozen=True, slots=True)
class Made:
    """A segment that is not stored yet."""

    first: int
    last: int
    length: int
    """The total length of its passages, in terms."""
    forgotten: int
    """How many passages of the agent were forgotten when it was made."""
    entries: bytes


_put = insert_or_update(postings, "agent_id, block, term, entries")
_settle = update_where(recalls, "agent_id", set_="settled", length=recalls.c.length + bindparam("more"))


def make_segment(tx: Tx, agent_id: AgentId, fewest: int) -> Made | None:
    """The next segment, if at least `fewest` passages are not settled."""
    life = extent(tx, agent_id)
    if life.passages - life.settled < fewest or life.passages == life.settled:
        return None
    first = life.settled + 1
    last = min(life.passages, life.settled + _AT_ONCE, (first // JOINED + 1) * JOINED - 1)
    counts = dict(counted(tx, agent_id, first, last))
    length = sum(sum(each.values()) for each in counts.values())
    return Made(first, last, length, life.forgotten, segments.encode(counts))


def keep_segment(tx: Tx, agent_id: AgentId, made: Made) -> bool:
    """Store the segment, unless someone else was faster or something was forgotten."""
    life = hold(tx, agent_id)
    if life.settled != made.first - 1 or life.forgotten != made.forgotten:
        return False
    tx.run(_put, agent_id=agent_id, block=-made.first, term="", entries=made.entries)
    tx.run(_settle, agent_id=agent_id, settled=made.last, more=made.length)
    return True


# Joining segments, and turning a full block into postings

_firsts = select_where(postings, "block", "agent_id", postings.c.block < 0, order_by="block desc")
_segments = select_where(
    postings,
    "block, entries",
    "agent_id",
    postings.c.block <= -bindparam("first", type_=postings.c.block.type),
    postings.c.block >= -bindparam("last", type_=postings.c.block.type),
    order_by="block desc",
)
_drop = delete_where(postings, "agent_id, block")


@dataclass(frozen=True, slots=True)
class Joint:
    """Consecutive segments that become something larger."""

    firsts: tuple[int, ...]
    forgotten: int
    block: int | None
    """The block that they fill; None: they become one segment."""
    rows: tuple[tuple[str, bytes], ...]
    """Terms and entries; for a segment, one with no term."""


def all_segments(tx: Tx, agent_id: AgentId) -> list[tuple[int, bytes]]:
    """Every segment, in order, with the number of its first passage."""
    return of_passages(tx, agent_id, 1, BLOCK << BLOCK_BITS << BLOCK_BITS)


def of_passages(tx: Tx, agent_id: AgentId, first: int, last: int) -> list[tuple[int, bytes]]:
    """The segments that begin with one of these passages, in order, with the number of that passage."""
    return [(-block, entries) for block, entries in tx.all(_segments, agent_id=agent_id, first=first, last=last)]


def make_joint(tx: Tx, agent_id: AgentId) -> Joint | None:
    """The next segments that can be joined."""
    life = extent(tx, agent_id)
    firsts = [-each for each in values(tx, _firsts, agent_id=agent_id)]
    for size in (BLOCK, JOINED):
        for at in sorted({first // size for first in firsts}):
            some = tuple(first for first in firsts if first // size == at)
            if life.settled >= (at + 1) * size - 1 and (size == BLOCK or len(some) > 1):
                given = [entries for _, entries in of_passages(tx, agent_id, some[0], some[-1])]
                if size == BLOCK:
                    return Joint(some, life.forgotten, at, tuple(sorted(segments.gather(given).items())))
                return Joint(some, life.forgotten, None, (("", segments.join(given)),))
    return None


def keep_rows(tx: Tx, agent_id: AgentId, joint: Joint, rows: Sequence[tuple[str, bytes]], *, last: bool) -> bool:
    """Store these rows; with the last of them the segments are deleted, and only then the rows count."""
    life = hold(tx, agent_id)
    there = {-each for each in values(tx, _firsts, agent_id=agent_id)}
    if life.forgotten != joint.forgotten or not there.issuperset(joint.firsts):
        return False
    if last:
        for first in joint.firsts:
            tx.run(_drop, agent_id=agent_id, block=-first)
    block = -joint.firsts[0] if joint.block is None else joint.block
    written: list[dict[str, Any]] = [
        {"agent_id": agent_id, "block": block, "term": term, "entries": entries} for term, entries in rows
    ]
    tx.many(_put, written)
    return True


# Making the terms again, after an upgrade that makes others of the same text


@dataclass(frozen=True, slots=True)
class RenewedTerms:
    """New terms for passages that are settled: of a segment, or of a block."""

    first: int
    last: int
    forgotten: int
    is_block: bool
    rows: tuple[tuple[str, bytes], ...]


def make_again(tx: Tx, agent_id: AgentId, first: int) -> RenewedTerms | None:
    """The terms of the segment or block that begins with this passage; None if it is not settled."""
    life = extent(tx, agent_id)
    if first > life.settled:
        return None
    firsts = [-each for each in values(tx, _firsts, agent_id=agent_id)]
    is_block = not firsts or first < firsts[0]
    after = [each for each in firsts if each > first]
    last = (block_of(first) + 1) * BLOCK - 1 if is_block else (after[0] - 1 if after else life.settled)
    made = segments.encode(dict(counted(tx, agent_id, first, last)))
    rows = tuple(sorted(segments.gather([made]).items())) if is_block else (("", made),)
    return RenewedTerms(first, last, life.forgotten, is_block, rows)


_terms_of_block = select_where(postings, "term", "agent_id, block")
_drop_term = statement(
    delete(postings).where(
        postings.c.agent_id == bindparam("agent"),
        postings.c.block == bindparam("of_block"),
        postings.c.term == bindparam("of_term"),
    )
)
_are_new = update_where(recalls, "agent_id", set_="terms")


def keep_again(tx: Tx, agent_id: AgentId, made: RenewedTerms, rows: Sequence[tuple[str, bytes]], *, last: bool) -> bool:
    """Store these rows in the place of the old ones, unless something was forgotten or joined meanwhile."""
    life = hold(tx, agent_id)
    block = block_of(made.first) if made.is_block else -made.first
    if life.forgotten != made.forgotten:
        return False
    if not made.is_block and made.first not in {-each for each in values(tx, _firsts, agent_id=agent_id)}:
        return False
    tx.many(_put, [{"agent_id": agent_id, "block": block, "term": term, "entries": e} for term, e in rows])
    if last and made.is_block:
        new = {term for term, _ in made.rows}
        gone = [term for term in values(tx, _terms_of_block, agent_id=agent_id, block=block) if term not in new]
        tx.many(_drop_term, [{"agent": agent_id, "of_block": block, "of_term": term} for term in gone])
    return True


def keep_version(tx: Tx, agent_id: AgentId) -> None:
    tx.run(_are_new, agent_id=agent_id, terms=VERSION)


async def renew(db: Database, agent_id: AgentId) -> bool:
    """Make the terms of all settled passages again, in their order. The old ones are found until then.

    False if it was interrupted: another call begins again.
    """
    first = 1
    while (made := await db.read(make_again, agent_id, first)) is not None:
        for at in range(0, max(len(made.rows), 1), _ROWS_AT_ONCE):
            rows = made.rows[at : at + _ROWS_AT_ONCE]
            if not await db.write(keep_again, agent_id, made, rows, last=at + _ROWS_AT_ONCE >= len(made.rows)):
                return False
        first = made.last + 1
    await db.write(keep_version, agent_id)
    return True


Work = Made | Joint | Literal["renew"]
"""The next thing to do for the word index of an agent; `renew`: its terms are of an older version."""


def next_work(tx: Tx, agent_id: AgentId, fewest: int = SEGMENT) -> Work | None:
    """Whatever is to be done next; None if fewer than `fewest` passages are left and nothing can be joined."""
    if extent(tx, agent_id).terms < VERSION:
        return "renew"
    return make_segment(tx, agent_id, fewest) or make_joint(tx, agent_id)


async def work(db: Database, agent_id: AgentId, due: Work) -> None:
    """Do it, unless someone else was faster or something was forgotten meanwhile."""
    match due:
        case "renew":
            await renew(db, agent_id)
        case Made():
            await db.write(keep_segment, agent_id, due)
        case Joint():
            await _join(db, agent_id, due)


async def _join(db: Database, agent_id: AgentId, joint: Joint) -> None:
    for at in range(0, max(len(joint.rows), 1), _ROWS_AT_ONCE):
        rows = joint.rows[at : at + _ROWS_AT_ONCE]
        if not await db.write(keep_rows, agent_id, joint, rows, last=at + _ROWS_AT_ONCE >= len(joint.rows)):
            return


async def settle(db: Database, agent_id: AgentId, *, fewest: int = SEGMENT) -> None:
    """Settle passages until fewer than `fewest` are left, and join what can be joined."""
    while (due := await db.read(next_work, agent_id, fewest)) is not None:
        await work(db, agent_id, due)


_behind = statement(
    select(recalls.c.agent_id)
    .where(recalls.c.passages - recalls.c.settled >= SEGMENT)
    .order_by(recalls.c.agent_id)
    .limit(1_000)
)


_outdated = statement(
    select(recalls.c.agent_id).where(recalls.c.terms < VERSION).order_by(recalls.c.terms).limit(1_000)
)


def behind(tx: Tx) -> list[AgentId]:
    """Agents with passages to be settled, or with terms of an older version; if they are very many, some of them."""
    return [*values(tx, _behind), *values(tx, _outdated)]
