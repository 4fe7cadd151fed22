"""Message search: whole words, all of them, in the spaces that the reader is in, newest first.

The words are compared here and not by the database, so that both databases find the same. The work of a search is
bounded; its cursor says where it stopped, for each space that it has been in: numbers of messages are in order of
commit, and times are not.
"""

from __future__ import annotations

import binascii
import hashlib
import heapq
import re
import unicodedata
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Self

from sqlalchemy import bindparam, func, select

from denizen.errors import InvalidInput
from denizen.ids import EntityId, MessageId, SpaceId
from denizen.spaces import posting
from denizen.spaces.posting import Message
from denizen.storage.database import Tx, columns, select_where, statement, value
from denizen.storage.schema import memberships, messages, spaces

MESSAGES_LOOKED_AT: Final = 5_000
CHARACTERS_LOOKED_AT: Final = 4_000_000
"""The most that one search reads, whichever comes first; the next one continues from there."""
SPACES_SEARCHED: Final = 1_000
"""For a reader in more spaces, those with the latest messages."""
QUERY_CHARACTERS: Final = 200
_FIRST_PIECE: Final = 8
_LONGEST_PIECE: Final = 128

_WORD = re.compile(r"[^\W_]+")
# Scripts that put no space between words: Han, Kana, and those of South-East Asia.
_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f]"
)


class SearchedWords:
    """The words to search for, without regard to case and Unicode form."""

    def __init__(self, query: str) -> None:
        self.words = tuple(dict.fromkeys(_WORD.findall(_folded(query))))
        if not self.words:
            raise InvalidInput("Give at least one word to search for.")
        self._whole = [
            re.compile(rf"(?<![^\W_]){re.escape(word)}(?![^\W_])") for word in self.words if not _UNSPACED.search(word)
        ]

    def occur_in(self, text: str) -> bool:
        """Whether the text has all of them."""
        folded = _folded(text)
        # Most texts fail the first test, which takes a fraction of the second's time.
        return all(word in folded for word in self.words) and all(word.search(folded) for word in self._whole)


def _folded(text: str) -> str:
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()


@dataclass(frozen=True, slots=True)
class MessageQuery:
    """A search query."""

    words: SearchedWords
    space_id: SpaceId | None = None
    """None: all spaces that the reader is in."""
    author_id: EntityId | None = None


@dataclass(frozen=True, slots=True)
class SearchResults:
    """Messages, newest first."""

    messages: list[Message]
    next: str | None
    """Where to continue; None: there is nothing more."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a search stopped."""

    time: int
    """No newer message was left out."""
    positions: Mapping[bytes, int]
    """The number of the next message to read, for each space that was searched."""

    @classmethod
    def read(cls, text: str) -> Self:
        """Raises `InvalidInput` if it does not come from a search."""
        try:
            raw = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
        except (binascii.Error, ValueError) as error:
            raise _no_cursor() from error
        if len(raw) % _ENTRY != _TIME:
            raise _no_cursor()
        entries = (raw[at : at + _ENTRY] for at in range(_TIME, len(raw), _ENTRY))
        return cls(
            min(int.from_bytes(raw[:_TIME]), _LARGEST), {each[:_NAME]: int.from_bytes(each[_NAME:]) for each in entries}
        )

    def __str__(self) -> str:
        entries = (name + at.to_bytes(_NUMBER) for name, at in sorted(self.positions.items()))
        return urlsafe_b64encode(self.time.to_bytes(_TIME) + b"".join(entries)).decode().rstrip("=")


_TIME: Final = 8
_NAME: Final = 6
_NUMBER: Final = 5
_ENTRY: Final = _NAME + _NUMBER
_LARGEST: Final = 2**62


def _no_cursor() -> InvalidInput:
    return InvalidInput("before: no search has stopped there. Give what `next` said.")


def _name(space_id: SpaceId) -> bytes:
    return hashlib.blake2s(space_id.encode(), digest_size=_NAME).digest()


_newest = messages.alias("newest")
_head = (
    select(spaces.c.id, spaces.c.last_seq, _newest.c.created_at)
    .join(memberships, memberships.c.space_id == spaces.c.id)
    .join(_newest, (_newest.c.space_id == spaces.c.id) & (_newest.c.seq == spaces.c.last_seq))
    .where(memberships.c.entity_id == bindparam("reader"))
)
_heads = statement(_head.order_by(_newest.c.created_at.desc(), spaces.c.id).limit(SPACES_SEARCHED))
_head_of = statement(_head.where(spaces.c.id == bindparam("space_id")))
_time_of = select_where(messages, "created_at", "space_id, seq")
_piece = statement(
    select(
        *columns(messages, "id, seq, created_at, author_id, deleted_at"),
        func.coalesce(messages.c.plain, messages.c.text),
    )
    .where(
        messages.c.space_id == bindparam("space_id"),
        messages.c.seq <= bindparam("at"),
        messages.c.seq > bindparam("down_to"),
    )
    .order_by(messages.c.seq.desc())
)


class _Row(NamedTuple):
    id: MessageId
    seq: int
    created_at: int
    author_id: EntityId
    deleted_at: int | None
    plain: str


@dataclass(slots=True)
class _Walk:
    """The walk back through one space."""

    space_id: SpaceId
    at: int
    """The number of the next message to read."""
    time: int
    """When it was posted."""
    until: int | None
    """Newer messages were posted after the search had begun, and are skipped."""
    begun: bool
    rows: deque[_Row] = field(default_factory=deque[_Row])
    piece: int = _FIRST_PIECE


@dataclass(slots=True)
class _Effort:
    """How much may still be read."""

    messages: int
    characters: int = CHARACTERS_LOOKED_AT

    @property
    def is_over(self) -> bool:
        return self.messages <= 0 or self.characters <= 0


def search(
    tx: Tx,
    reader_id: EntityId,
    wanted: MessageQuery,
    *,
    before: Cursor | None = None,
    limit: int = 20,
    look_at: int = MESSAGES_LOOKED_AT,
) -> SearchResults:
    """Messages of the reader's spaces that have all the words; never one that was deleted or forgotten.

    If it ends before everything was read, `next` continues, whether or not anything was found so far.
    """
    walks = list(_walks(tx, reader_id, wanted.space_id, before))
    found: list[Message] = []
    time = _LARGEST if before is None else before.time
    for row in _newest_first(tx, walks, _Effort(look_at)):
        time = min(time, row.created_at)
        if _is_wanted(row, wanted):
            found.append(posting.get_message(tx, row.id))
            if len(found) == limit:
                break
    positions = {_name(each.space_id): each.at for each in walks if each.begun}
    is_more = any(each.at > 0 for each in walks)
    return SearchResults(found, str(Cursor(time, positions)) if is_more else None)


def _walks(tx: Tx, reader_id: EntityId, space_id: SpaceId | None, before: Cursor | None) -> Iterator[_Walk]:
    only = {} if space_id is None else {"space_id": space_id}
    for each, last_seq, newest_at in tx.all(_head_of if only else _heads, reader=reader_id, **only):
        at = None if before is None else before.positions.get(_name(each))
        if at is None:
            yield _Walk(each, last_seq, newest_at, None if before is None else before.time, begun=False)
        else:
            created_at = value(tx, _time_of, space_id=each, seq=at)
            yield _Walk(
                each, 0 if created_at is None else at, 0 if created_at is None else created_at, None, begun=True
            )


def _newest_first(tx: Tx, walks: list[_Walk], effort: _Effort) -> Iterator[_Row]:
    """The messages of all walks. A walk moves past a message as soon as it is yielded."""
    heap = [(-walk.time, walk.space_id, walk) for walk in walks if walk.at > 0]
    heapq.heapify(heap)
    while heap:
        _, _, walk = heapq.heappop(heap)
        if not walk.rows:
            if effort.is_over:
                return
            _read_on(tx, walk, effort)
            if walk.rows[0].created_at < walk.time:
                walk.time = walk.rows[0].created_at
                heapq.heappush(heap, (-walk.time, walk.space_id, walk))
                continue
        row = walk.rows.popleft()
        walk.begun, walk.at = True, row.seq - 1
        if walk.at > 0:
            # At the end of a batch, the time of the next message is not known yet: we assume that it is not later.
            walk.time = walk.rows[0].created_at if walk.rows else row.created_at
            heapq.heappush(heap, (-walk.time, walk.space_id, walk))
        if walk.until is None or row.created_at <= walk.until:
            yield row


def _read_on(tx: Tx, walk: _Walk, effort: _Effort) -> None:
    size = min(walk.piece, walk.at, max(effort.messages, 1))
    rows = tx.all(_piece, space_id=walk.space_id, at=walk.at, down_to=walk.at - size)
    walk.rows.extend(_Row(*row) for row in rows)
    walk.piece = min(walk.piece * 2, _LONGEST_PIECE)
    effort.messages -= size
    effort.characters -= sum(len(each.plain) for each in walk.rows)


def _is_wanted(row: _Row, wanted: MessageQuery) -> bool:
    if row.deleted_at is not None or wanted.author_id not in (None, row.author_id):
        return False
    return wanted.words.occur_in(row.plain)
