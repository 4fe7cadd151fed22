"""Stores recallable passages in the transaction that ends their cycle, and forgets them.

Only the position is stored then, and the text if no message has it. The terms are made later (`settling`); until then a
search computes them from the text.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from sqlalchemy import LargeBinary, bindparam, delete, select, update
from sqlalchemy.dialects.postgresql import insert

from denizen.clock import SECOND
from denizen.consciousness.recall.postings import block_of, without
from denizen.consciousness.recall.segments import SEGMENT, decode, rewrite
from denizen.consciousness.recall.terms import VERSION, own_words
from denizen.ids import AgentId
from denizen.storage.database import Params, Tx, delete_where, insert_into, select_where, statement, update_where, value
from denizen.storage.schema import fingerprints, passages, postings, recalls, vectors, wordings

RECALLABLE: Final = "recallable"
"""The topic that announces agents with passages whose terms are to be made, or with cycles without passages."""

Kind = Literal["heard", "said", "did", "summary"]

SEALED: Final = "*"
"""The space of text from several private spaces: nobody may see it."""
PASSAGE_CHARACTERS: Final = 2_000
"""A longer text becomes several passages."""
VECTORS_IN_A_ROW: Final = 32
SILENCE_SECONDS: Final = 6 * 3600
"""After this long a silence in a space, a new conversation begins."""
SILENCE: Final = 1_000_000
"""The distance in characters that such a silence counts as."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Something to be remembered: said to an agent or by it, or done."""

    kind: Kind
    text: str
    at: int
    space_id: str = ""
    """The space it belongs to; empty: none; `SEALED`: several private ones."""
    speaker_id: str | None = None
    speaker: str = ""
    """The name of the speaker."""
    message_id: str | None = None
    """The message with this text, so that it is not stored twice."""
    event_id: str | None = None
    file_id: str | None = None
    """The file that this text stands in, and its page there."""
    page: int | None = None


_counted = insert(recalls).values(agent_id=bindparam("agent_id"), passages=bindparam("passages"), terms=VERSION)
_count = statement(
    _counted.on_conflict_do_update(
        index_elements=["agent_id"], set_={"passages": recalls.c.passages + _counted.excluded.passages}
    ).returning(recalls.c.passages, recalls.c.settled)
)
_COLUMNS = (
    "agent_id",
    "number",
    "cycle",
    "kind",
    "space_id",
    "speaker_id",
    "speaker",
    "message_id",
    "event_id",
    "text",
    "file_id",
    "page",
    "start",
    "place",
    "characters",
    "own_words",
    "at",
)
_add = insert_into(passages, *_COLUMNS)
_last_place = select_where(passages, "place, characters, at", "agent_id, space_id", order_by="place desc", limit=1)


_newest_cycle = statement(
    select(passages.c.cycle)
    # The text of files is written beside the cycles: it says nothing of what was written before it.
    .where(passages.c.agent_id == bindparam("agent_id"), passages.c.file_id.is_(None))
    .order_by(passages.c.cycle.desc())
    .limit(1)
)


def prefetch_newest_cycle(tx: Tx, agent_id: AgentId) -> None:
    """Announce `newest_cycle`."""
    tx.prefetch(_newest_cycle, agent_id=agent_id)


def newest_cycle(tx: Tx, agent_id: AgentId) -> int:
    """The number of the newest cycle that can be recalled; 0 if none can."""
    return value(tx, _newest_cycle, agent_id=agent_id) or 0


def remember_next(tx: Tx, agent_id: AgentId, cycle: int, pieces: Sequence[Piece]) -> None:
    """Make the cycle that has just ended recallable; if earlier ones are not yet, it waits for them.

    So passages come in the order of their cycles, also for old cycles (`cycles.catching_up`).
    """
    if newest_cycle(tx, agent_id) >= cycle - 1:
        remember(tx, agent_id, cycle, pieces)
    else:
        tx.announce(RECALLABLE, {"agent": agent_id})


def remember(tx: Tx, agent_id: AgentId, cycle: int, pieces: Sequence[Piece]) -> None:
    """Make these pieces of the cycle recallable. The caller holds the agent's mind."""
    parts = [(piece, start, text) for piece in pieces for start, text in _parts(piece.text)]
    if not parts:
        return
    for space_id in {piece.space_id for piece, *_ in parts}:
        tx.prefetch(_last_place, agent_id=agent_id, space_id=space_id)
    row = tx.one(_count, agent_id=agent_id, passages=len(parts))
    assert row is not None
    newest, settled = row
    tx.many(_add, list(_rows(tx, agent_id, cycle, newest - len(parts) + 1, parts)))
    if newest - settled >= SEGMENT:
        tx.announce(RECALLABLE, {"agent": agent_id})


def _parts(text: str) -> Iterator[tuple[int, str]]:
    """The text in short enough parts, each with its offset; cut between words if possible."""
    start = 0
    while len(text) - start > PASSAGE_CHARACTERS:
        end = start + PASSAGE_CHARACTERS
        cut = max(text.rfind(" ", start, end), text.rfind("\n", start, end)) + 1
        end = cut if cut > start + PASSAGE_CHARACTERS // 2 else end
        yield start, text[start:end]
        start = end
    if text[start:].strip():
        yield start, text[start:]


def _rows(
    tx: Tx, agent_id: AgentId, cycle: int, first: int, parts: Sequence[tuple[Piece, int, str]]
) -> Iterator[dict[str, Params]]:
    ends: dict[str, tuple[int, int]] = {}
    for number, (piece, start, text) in enumerate(parts, start=first):
        end, last_at = ends.get(piece.space_id) or _end_of_space(tx, agent_id, piece.space_id)
        place = end + (SILENCE if abs(piece.at - last_at) > SILENCE_SECONDS * SECOND else 0)
        # Actions and summaries are about what was said, and take no room between messages.
        ends[piece.space_id] = (place + (len(text) if piece.kind in ("heard", "said") else 0), piece.at)
        yield {
            "agent_id": agent_id,
            "number": number,
            "cycle": cycle,
            "kind": piece.kind,
            "space_id": piece.space_id,
            "speaker_id": piece.speaker_id,
            "speaker": None if piece.speaker_id else piece.speaker or None,
            "message_id": piece.message_id,
            "event_id": piece.event_id,
            "text": None if piece.message_id else text,
            "file_id": piece.file_id,
            "page": piece.page,
            "start": start,
            "place": place,
            "characters": len(text),
            "own_words": own_words(text),
            "at": piece.at,
        }


def _end_of_space(tx: Tx, agent_id: AgentId, space_id: str) -> tuple[int, int]:
    row = tx.one(_last_place, agent_id=agent_id, space_id=space_id)
    if row is None:
        return 0, 0
    place, characters, at = row
    return place + characters, at


_of_cycle = select_where(passages, "number", "agent_id, cycle")
_of_message = select_where(passages, "agent_id, number", "message_id", passages.c.message_id.is_not(None))
_of_file = select_where(passages, "agent_id, number", "file_id", passages.c.file_id.is_not(None))


def forget_cycles(tx: Tx, agent_id: AgentId, cycles: Iterable[int]) -> int:
    """Remove these cycles from recall, with all of their words. Returns the number of passages."""
    numbers = [number for cycle in cycles for (number,) in tx.all(_of_cycle, agent_id=agent_id, cycle=cycle)]
    return forget(tx, agent_id, numbers)


def forget_messages(tx: Tx, message_ids: Iterable[str]) -> int:
    """Remove these messages from every agent's recall. Returns the number of passages.

    What agents did or summarized because of them stays: to forget that, name their cycles.
    """
    return _forget_rows(tx, [row for each in message_ids for row in tx.all(_of_message, message_id=each)])


def forget_files(tx: Tx, file_ids: Iterable[str]) -> int:
    """Remove the text of these files from every agent's recall. Returns the number of passages."""
    return _forget_rows(tx, [row for each in file_ids for row in tx.all(_of_file, file_id=each)])


def _forget_rows(tx: Tx, rows: Iterable[tuple[Any, ...]]) -> int:
    by_agent: defaultdict[str, list[int]] = defaultdict(list)
    for agent_id, number in rows:
        by_agent[agent_id].append(number)
    return sum(forget(tx, AgentId(agent_id), numbers) for agent_id, numbers in by_agent.items())


_blank = statement(
    update(passages)
    .where(passages.c.agent_id == bindparam("agent"), passages.c.number == bindparam("nth"))
    .values(
        kind="forgotten",
        text="",
        message_id=None,
        event_id=None,
        file_id=None,
        page=None,
        speaker_id=None,
        speaker=None,
        own_words=0,
    )
)
_is_there = select_where(passages, "number", "agent_id, number", passages.c.kind != "forgotten")
_segment_of = select_where(
    postings,
    "block, entries",
    "agent_id",
    postings.c.block >= -bindparam("number", type_=postings.c.block.type),
    postings.c.block < 0,
    order_by="block",
    limit=1,
)
_block = select_where(postings, "term, entries", "agent_id, block")
_key = (
    postings.c.agent_id == bindparam("agent"),
    postings.c.block == bindparam("of_block"),
    postings.c.term == bindparam("of_term"),
)
_rewrite = statement(update(postings).where(*_key).values(entries=bindparam("left", type_=LargeBinary())))
_drop_term = statement(delete(postings).where(*_key))
_count_forgotten = update_where(recalls, "agent_id", forgotten=recalls.c.forgotten + bindparam("more"))
_vectors = select_where(
    vectors,
    "embedder, first, dimensions, codes",
    "agent_id",
    vectors.c.first <= bindparam("number"),
    vectors.c.first > bindparam("number") - VECTORS_IN_A_ROW,
)
_rewrite_vectors = update_where(vectors, "agent_id, embedder, first", codes=bindparam("left", type_=LargeBinary()))
_drop_words = delete_where(wordings, "agent_id, number")
_FORGOTTEN_AT_ONCE: Final = 100
_continues = select_where(passages, "number", "agent_id, number", passages.c.start > 0, passages.c.kind != "forgotten")
_index_again = update_where(
    recalls, "agent_id", recalls.c.fingerprinted > bindparam("last"), fingerprinted=bindparam("last")
)
_drop_fingerprints = delete_where(
    fingerprints,
    "agent_id",
    fingerprints.c.number.in_(
        [bindparam(f"n{at}", type_=fingerprints.c.number.type) for at in range(_FORGOTTEN_AT_ONCE)]
    ),
)


def forget(tx: Tx, agent_id: AgentId, numbers: Iterable[int]) -> int:
    """Remove these passages from recall; an empty one stays in the place of each, so that numbers do not change."""
    gone = [number for number in numbers if tx.one(_is_there, agent_id=agent_id, number=number) is not None]
    if not gone:
        return 0
    rows: list[dict[str, Any]] = [{"agent": agent_id, "nth": number} for number in gone]
    # First, because it locks the row: whoever makes terms of these passages meanwhile notices, and starts again.
    tx.run(_count_forgotten, agent_id=agent_id, more=len(gone))
    tx.many(_blank, rows)
    for block in sorted({block_of(number) for number in gone}):
        _clear_block(tx, agent_id, block, frozenset(gone))
    for number in gone:
        _clear_segment(tx, agent_id, number)
        _clear_vector(tx, agent_id, number)
        tx.run(_drop_words, agent_id=agent_id, number=number)
    _clear_fingerprints(tx, agent_id, gone)
    return len(gone)


def _clear_fingerprints(tx: Tx, agent_id: AgentId, gone: Sequence[int]) -> None:
    # A run of words that crosses the end of a passage belongs to the next one: that is indexed again.
    after = [number + 1 for number in gone if tx.one(_continues, agent_id=agent_id, number=number + 1) is not None]
    if after:
        tx.run(_index_again, agent_id=agent_id, last=min(after) - 1)
    numbers = [*gone, *after]
    for at in range(0, len(numbers), _FORGOTTEN_AT_ONCE):
        some = {f"n{nth}": number for nth, number in enumerate(numbers[at : at + _FORGOTTEN_AT_ONCE])}
        tx.run(_drop_fingerprints, agent_id=agent_id, **{f"n{nth}": None for nth in range(_FORGOTTEN_AT_ONCE)} | some)


def _clear_block(tx: Tx, agent_id: AgentId, block: int, numbers: frozenset[int]) -> None:
    # By every term of the block, not by the text: all postings are removed even if the text has changed.
    for term, entries in tx.all(_block, agent_id=agent_id, block=block):
        left = without(block, entries, numbers)
        if not left:
            tx.run(_drop_term, agent=agent_id, of_block=block, of_term=term)
        elif len(left) < len(entries):
            tx.run(_rewrite, agent=agent_id, of_block=block, of_term=term, left=left)


def _clear_segment(tx: Tx, agent_id: AgentId, number: int) -> None:
    row = tx.one(_segment_of, agent_id=agent_id, number=number)
    if row is None:
        return
    block, encoded = row
    if block_of(-block) != block_of(number):
        return
    gone = frozenset((number,))
    left = rewrite((term, without(block_of(number), entries, gone)) for term, entries in decode(encoded))
    if len(left) < len(encoded):
        tx.run(_rewrite, agent=agent_id, of_block=block, of_term="", left=left)


def _clear_vector(tx: Tx, agent_id: AgentId, number: int) -> None:
    for embedder, first, dimensions, codes in tx.all(_vectors, agent_id=agent_id, number=number):
        at = (number - first) * dimensions
        if at < len(codes):
            left = codes[:at] + bytes(dimensions) + codes[at + dimensions :]
            tx.run(_rewrite_vectors, agent_id=agent_id, embedder=embedder, first=first, left=left)
