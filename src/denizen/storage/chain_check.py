"""Verifies the chains of digests. It reads, and changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Select, bindparam, exists, func, or_, select

from denizen.storage.chains import BEGINNING, cycle_digest, entry_digest, message_digest
from denizen.storage.database import Statement, Tx, columns, select_where, statement
from denizen.storage.schema import amendments, cycles, events, log, messages, minds, spaces

_PAGE: Final = 1_000
"""Rows that are in memory at once."""


@dataclass(frozen=True, slots=True)
class BrokenChain:
    """A place where a chain does not match its rows."""

    of: str
    """space or agent"""
    sentence: str
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Amendment:
    row_id: str
    position: int
    salt: bytes | None
    digest: bytes
    follows: bytes = BEGINNING
    """The head of the chain before it."""


# The ends of all chains


def _last(column: Any) -> Any:
    """The digest of the last amendment in the chain of the space or agent in `column`."""
    own = select(amendments.c.digest).where(amendments.c.chain_id == column)
    return own.order_by(amendments.c.number.desc()).limit(1).scalar_subquery()


def _end_of(row: Any, owner: Any, head: Any, where: Sequence[Any]) -> Any:
    """Selects the owners of chains that do not end as their newest row, or amendment, says."""
    there = exists().where(*where, or_(row.c.digest == head, row.c.digest.is_(None)))
    last = _last(owner)
    return statement(select(owner).where(head.is_not(None), ~there, or_(last.is_(None), last != head)).order_by(owner))


_space_ends = _end_of(
    messages, spaces.c.id, spaces.c.head, (messages.c.space_id == spaces.c.id, messages.c.seq == spaces.c.last_seq)
)
_agent_ends = _end_of(
    cycles,
    minds.c.agent_id,
    minds.c.head,
    (
        cycles.c.agent_id == minds.c.agent_id,
        cycles.c.number == minds.c.cycle_count,
        cycles.c.number.is_not(None),
    ),
)
_ENDS_OTHERWISE: Final = {
    "space": "The newest messages of a space are missing or replaced: its chain of digests ends otherwise.",
    "agent": "The newest cycles of an agent are missing or replaced: its chain of digests ends otherwise.",
}


def broken_ends(tx: Tx) -> Iterator[BrokenChain]:
    """Yields the chains whose newest row is missing or another one. Quick: it reads one row of each chain."""
    for of, query in (("space", _space_ends), ("agent", _agent_ends)):
        for (id,) in tx.all(query):
            yield BrokenChain(of, _ENDS_OTHERWISE[of], (id,))


# Every row

_amendments = select_where(amendments, "row_id, position, salt, digest", "chain_id", order_by="number")
_spaces = statement(select(spaces.c.id, spaces.c.head).order_by(spaces.c.id))
_minds = statement(select(minds.c.agent_id, minds.c.head).order_by(minds.c.agent_id))


def _pages(query: Select[*tuple[Any, ...]], owner: Any, seq: Any) -> Statement:
    ordered = query.where(owner == bindparam("id"), seq > bindparam("after")).order_by(seq)
    return statement(ordered.limit(_PAGE))


_messages = _pages(
    select(
        messages.c.seq,
        messages.c.salt,
        messages.c.digest,
        func.coalesce(messages.c.edited_at, messages.c.deleted_at),
        *columns(messages, "space_id, seq, id, author_id, text, reply_to, cycle_id, created_at"),
    ),
    messages.c.space_id,
    messages.c.seq,
)
_entries = _pages(
    select(*columns(log, "seq, salt, digest, cycle_id, seq, kind, message, request, outside")),
    log.c.agent_id,
    log.c.seq,
)
_cycles = select_where(cycles, "id, number, digest", "agent_id", cycles.c.number.is_not(None), order_by="number")
_events = select_where(events, "cycle_id, id", "agent_id", events.c.state == "done")


def broken(tx: Tx) -> Iterator[BrokenChain]:
    """Yields every message, entry, cycle and chain that is not as it was stored."""
    for space_id, head in tx.all(_spaces):
        yield from _check_space(tx, space_id, head or BEGINNING)
    for agent_id, head in tx.all(_minds):
        yield from _check_agent(tx, agent_id, head or BEGINNING)


def _rows(tx: Tx, query: Statement, id: str) -> Iterator[tuple[Any, ...]]:
    after = 0
    while page := tx.all(query, id=id, after=after):
        yield from page
        after = page[-1][0]


class _Walk:
    """Follows a chain: the rows as they come, and the amendments between them."""

    def __init__(self, tx: Tx, chain_id: str) -> None:
        self.head = BEGINNING
        self._waiting = [_Amendment(*row) for row in reversed(tx.all(_amendments, chain_id=chain_id))]
        self.newest: dict[str, _Amendment] = {each.row_id: each for each in reversed(self._waiting)}
        """The newest amendment of each row that has any."""

    def pass_amendments(self, before: int | None = None) -> None:
        """Follows the amendments that were made before the row of that number was; without one, the rest."""
        while self._waiting and (before is None or self._waiting[-1].position < before):
            each = self._waiting.pop()
            self.newest[each.row_id] = _Amendment(each.row_id, each.position, each.salt, each.digest, self.head)
            self.head = each.digest

    def follow(self, digest: bytes) -> bytes:
        """Takes the row of this digest as the head; returns the head before it."""
        before, self.head = self.head, digest
        return before


def _check_space(tx: Tx, space_id: str, head: bytes) -> Iterator[BrokenChain]:
    walk = _Walk(tx, space_id)
    amended: dict[str, tuple[Any, ...]] = {}
    for seq, salt, digest, changed_at, *parts in _rows(tx, _messages, space_id):
        if digest is None:
            continue
        walk.pass_amendments(before=seq)
        before = walk.follow(digest)
        message_id = parts[2]
        if message_id in walk.newest:
            # Its own digest is of an earlier text. The chain holds it, and the amendment is of the present one.
            amended[message_id] = tuple(parts)
        # A version without chains that runs beside this one changes a message without an amendment.
        elif changed_at is None and (salt is None or message_digest(salt, before, *parts) != digest):
            sentence = "A message is not as it was posted, or the one before it is missing or replaced."
            yield BrokenChain("space", sentence, (space_id, message_id))
    walk.pass_amendments()
    for message_id, parts in amended.items():
        each = walk.newest[message_id]
        if each.salt is None or message_digest(each.salt, each.follows, *parts) != each.digest:
            yield BrokenChain("space", "A message is not as it was last changed.", (space_id, message_id))
    if walk.head != head:
        yield BrokenChain("space", _ENDS_OTHERWISE["space"], (space_id,))


def _check_agent(tx: Tx, agent_id: str, head: bytes) -> Iterator[BrokenChain]:
    walk = _Walk(tx, agent_id)
    digests: dict[str, list[bytes | None]] = {}
    amended: list[list[Any]] = []
    for seq, salt, digest, *parts in _rows(tx, _entries, agent_id):
        cycle_id = parts[0]
        digests.setdefault(cycle_id, []).append(digest)
        if digest is None:
            continue
        if str(seq) in walk.newest:
            amended.append(parts)
        elif salt is None or entry_digest(salt, *parts) != digest:
            sentence = "An entry of a log is not as it was written."
            yield BrokenChain("agent", sentence, (agent_id, cycle_id, str(seq)))
    yield from _check_cycles(tx, agent_id, walk, digests, _by_cycle(tx.all(_events, agent_id=agent_id)))
    for parts in amended:
        cycle_id, seq, *_ = parts
        each = walk.newest[str(seq)]
        if each.salt is None or entry_digest(each.salt, *parts, head=each.follows) != each.digest:
            yield BrokenChain(
                "agent", "An entry of a log is not as it was last redacted.", (agent_id, cycle_id, str(seq))
            )
    if walk.head != head:
        yield BrokenChain("agent", _ENDS_OTHERWISE["agent"], (agent_id,))


def _check_cycles(
    tx: Tx,
    agent_id: str,
    walk: _Walk,
    digests: Mapping[str, Sequence[bytes | None]],
    event_ids: Mapping[str, Sequence[str]],
) -> Iterator[BrokenChain]:
    for cycle_id, number, digest in tx.all(_cycles, agent_id=agent_id):
        if digest is None:
            continue
        walk.pass_amendments(before=number)
        before = walk.follow(digest)
        own = cycle_digest(before, cycle_id, number, event_ids.get(cycle_id, ()), digests.get(cycle_id, ()))
        if own != digest:
            sentence = "A cycle is not as it ended: an entry or event of it was replaced, moved or removed."
            yield BrokenChain("agent", sentence, (agent_id, cycle_id))
    walk.pass_amendments()


def _by_cycle(rows: Iterable[tuple[Any, ...]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for cycle_id, event_id in rows:
        found.setdefault(cycle_id, []).append(event_id)
    return found
