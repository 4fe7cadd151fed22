"""The log: one row for each message that an agent saw or wrote, in order. Append-only.

Rows of an open cycle are provisional; a rollback removes them, and the next cycle takes their numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Text, bindparam, cast, func, select

from denizen.ids import AgentId, CycleId
from denizen.inbox import sources
from denizen.inbox.sources import Source
from denizen.models import codec
from denizen.models.tokens import estimate_message
from denizen.shapes.vocabulary import EntryKind
from denizen.storage import chains
from denizen.storage.database import Tx, columns, delete_where, insert_into, select_where, statement, value, values
from denizen.storage.schema import cycles, effects, log, overflow

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage


@dataclass(frozen=True, slots=True)
class Entry:
    """One message in an agent's log."""

    seq: int
    cycle_id: CycleId
    kind: EntryKind
    message: ModelMessage
    tokens: int
    encoded: str
    """The stored form; encoded once, outside any transaction."""
    request: str | None = None
    """For a response: what its request was made of. For recalled or remembered text: the numbers of the passages, or
    the ids of the memories. As JSON."""
    outside: tuple[Source, ...] | None = None
    """The sources of text from outside in it; () for a response whose request held such text. None: nothing in it is
    from outside."""
    salt: bytes | None = None
    digest: bytes | None = None
    """Of its stored form; None in entries of older versions."""


def entry(
    seq: int,
    cycle_id: CycleId,
    kind: EntryKind,
    message: ModelMessage,
    *,
    request: str | None = None,
    outside: tuple[Source, ...] | None = None,
) -> Entry:
    """A new entry, not yet written."""
    encoded, salt = codec.dump(message), chains.new_salt()
    digest = chains.entry_digest(salt, cycle_id, seq, kind, encoded, request, sources.dump(outside))
    return Entry(seq, cycle_id, kind, message, estimate_message(message), encoded, request, outside, salt, digest)


_append = insert_into(log, "agent_id, seq, cycle_id, kind, message, tokens, request, outside, created_at, salt, digest")
_columns = columns(log, "seq, cycle_id, kind, message, tokens, request, outside, salt, digest")
_from = select_where(
    log, _columns, "agent_id", log.c.seq >= bindparam("first"), log.c.seq < bindparam("end"), order_by="seq"
)
_remove_from = delete_where(log, "agent_id", log.c.seq >= bindparam("first"))
_remove_effects = delete_where(effects, "cycle_id")
_keep_long = insert_into(overflow, "id, agent_id, cycle_id, text, created_at")
_long = statement(
    select(overflow.c.text, overflow.c.cycle_id).where(
        # The fork's copy has the same id with that of the fork before it.
        overflow.c.id.in_([bindparam("id"), cast(bindparam("agent_id"), Text) + ":" + cast(bindparam("id"), Text)]),
        overflow.c.agent_id == bindparam("agent_id"),
    )
)
_remove_long = delete_where(overflow, "cycle_id")
_END = 2**62
_follower = cycles.alias("follower")
_count = statement(
    select(func.count())
    .select_from(
        cycles.outerjoin(
            _follower, (_follower.c.agent_id == cycles.c.agent_id) & (_follower.c.number == cycles.c.number + 1)
        ).join(
            log,
            (log.c.agent_id == cycles.c.agent_id)
            & (log.c.seq >= cycles.c.first_seq)
            & (log.c.seq < func.coalesce(_follower.c.first_seq, _END))
            & (log.c.cycle_id == cycles.c.id),
        )
    )
    .where(cycles.c.agent_id == bindparam("agent_id"), cycles.c.number == bindparam("number"))
)


_digests = select_where(log, "digest", "agent_id", log.c.seq >= bindparam("first"), order_by="seq")


def prefetch_digests(tx: Tx, agent_id: AgentId, first_seq: int) -> None:
    """Announce `digests_from`."""
    tx.prefetch(_digests, agent_id=agent_id, first=first_seq)


def digests_from(tx: Tx, agent_id: AgentId, first_seq: int) -> list[bytes | None]:
    """The digests of the entries from this number on; None for those of older versions."""
    return values(tx, _digests, agent_id=agent_id, first=first_seq)


def append(tx: Tx, agent_id: AgentId, entries: Sequence[Entry]) -> None:
    """Append these entries to the agent's log."""
    tx.many(
        _append,
        [
            {
                "agent_id": agent_id,
                "seq": each.seq,
                "cycle_id": each.cycle_id,
                "kind": each.kind,
                "message": each.encoded,
                "tokens": each.tokens,
                "request": each.request,
                "outside": sources.dump(each.outside),
                "created_at": tx.now,
                "salt": each.salt,
                "digest": each.digest,
            }
            for each in entries
        ],
    )


def entries(tx: Tx, agent_id: AgentId, first: int = 1, end: int = _END) -> list[Entry]:
    """The entries from `first` to before `end`."""
    return [_entry(row) for row in tx.all(_from, agent_id=agent_id, first=first, end=end)]


@dataclass(frozen=True, slots=True)
class DatedEntry:
    """An entry with its time and cycle."""

    entry: Entry
    at: int
    cycle: int | None
    """The number of its cycle; None while that is open."""


_dated = (
    select(*_columns, log.c.created_at, cycles.c.number)
    .select_from(log.outerjoin(cycles, cycles.c.id == log.c.cycle_id))
    .where(log.c.agent_id == bindparam("agent_id"))
    .limit(bindparam("limit"))
)
_after = statement(_dated.where(log.c.seq > bindparam("after")).order_by(log.c.seq))
_before = statement(_dated.where(log.c.seq < bindparam("before")).order_by(log.c.seq.desc()))


def entries_after(tx: Tx, agent_id: AgentId, after: int, *, limit: int) -> list[DatedEntry]:
    """The first entries after number `after`."""
    return [_with_date(row) for row in tx.all(_after, agent_id=agent_id, after=after, limit=limit)]


def entries_before(tx: Tx, agent_id: AgentId, before: int, *, limit: int) -> list[DatedEntry]:
    """The last entries before number `before`, in order."""
    rows = tx.all(_before, agent_id=agent_id, before=before, limit=limit)
    return [_with_date(row) for row in reversed(rows)]


def _with_date(row: tuple[Any, ...]) -> DatedEntry:
    *columns, at, cycle = row
    return DatedEntry(_entry(columns), at, cycle)


def _entry(row: Sequence[Any]) -> Entry:
    seq, cycle_id, kind, encoded, tokens, request, outside, salt, digest = row
    message = codec.load(encoded)
    return Entry(seq, cycle_id, kind, message, tokens, encoded, request, sources.load(outside), salt, digest)


def text_of(entry: Entry) -> str:
    """The text of an entry that is not a response."""
    return "\n".join(str(getattr(part, "content", "")) for part in entry.message.parts)


def result_text(tx: Tx, agent_id: AgentId, seq: int, position: int) -> tuple[str | None, str]:
    """The text of a tool result in the log, None if there is no such result; and the id of its cycle."""
    found = entries(tx, agent_id, seq, seq + 1)
    parts = found[0].message.parts if found else ()
    part = parts[position] if position < len(parts) else None
    return str(part.content) if part is not None and part.part_kind == "tool-return" else None, found[
        0
    ].cycle_id if found else ""


def count_of_cycle(tx: Tx, agent_id: AgentId, number: int) -> int:
    """How many entries the ended cycle of that number has."""
    return value(tx, _count, agent_id=agent_id, number=number) or 0


def roll_back(tx: Tx, agent_id: AgentId, cycle_id: CycleId, first_seq: int) -> None:
    """Remove all entries of this open cycle from the log."""
    tx.run(_remove_from, agent_id=agent_id, first=first_seq)
    tx.run(_remove_effects, cycle_id=cycle_id)
    tx.run(_remove_long, cycle_id=cycle_id)


def keep_long_text(tx: Tx, agent_id: AgentId, cycle_id: CycleId, id: str, text: str) -> None:
    """Store a text that is too long for the window, for `read_entry`."""
    tx.run(_keep_long, id=id, agent_id=agent_id, cycle_id=cycle_id, text=text, created_at=tx.now)


def long_text(tx: Tx, agent_id: AgentId, id: str) -> tuple[str | None, str]:
    """A text that was too long for the window, None if there is none with that id; and the id of its cycle."""
    row = tx.one(_long, id=id, agent_id=agent_id)
    if row is None:
        return None, ""
    text, cycle_id = row
    return text, cycle_id
