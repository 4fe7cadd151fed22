"""How much of the database each organization uses, and how fast that grows. Estimated, once a day.

The size of the database is known exactly, and so is that of files. The rest is divided among the organizations by how
many messages and cycles they have, which is counted already, and by how long the newest of these are. So nothing is
counted on the way of a message, and no text is read but that of a small sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import bindparam, delete, func, select, text

from denizen.clock import SECOND
from denizen.ids import OrganizationId
from denizen.spaces import directory
from denizen.storage.database import (
    Database,
    Statement,
    Tx,
    insert_ignore,
    long_running,
    select_where,
    statement,
    value,
)
from denizen.storage.schema import agents, contents, log, messages, minds, organizations, sizes, spaces

DAY: Final = 86_400 * SECOND
KEPT_DAYS: Final = 366
GROWTH_DAYS: Final = 30
"""The growth per day is the average of at most so many days."""
SAMPLE: Final = 1_000
"""How many of the newest messages and log entries are measured."""


@dataclass(frozen=True, slots=True)
class Size:
    """What one organization used on one day."""

    organization_id: OrganizationId
    day: int
    """In days since 1970, UTC."""
    bytes: int
    """Its share of the database, files included."""
    file_bytes: int
    messages: int
    cycles: int


@dataclass(frozen=True, slots=True)
class Growth:
    """An organization's size now, and how it grew."""

    name: str
    now: Size
    per_day: int | None
    """Bytes a day; None: it was measured on one day only."""
    days: Sequence[Size]
    """Oldest first."""


_messages_of = statement(
    select(spaces.c.organization_id, func.sum(spaces.c.last_seq)).group_by(spaces.c.organization_id)
)
_cycles_of = statement(
    select(agents.c.organization_id, func.sum(minds.c.cycle_count))
    .join(minds, minds.c.agent_id == agents.c.id)
    .group_by(agents.c.organization_id)
)
_files_of = statement(
    select(contents.c.organization_id, func.sum(contents.c.size))
    .where(contents.c.dropped_at.is_(None))
    .group_by(contents.c.organization_id)
)
_all = statement(select(organizations.c.id))
_newest_messages = select(func.length(messages.c.text).label("length")).order_by(messages.c.id.desc()).limit(SAMPLE)
_message_length = statement(select(func.avg(_newest_messages.subquery().c.length)))
_newest_entries = select(log.c.cycle_id, func.length(log.c.message).label("length")).order_by(log.c.number.desc())
_sampled = _newest_entries.limit(SAMPLE).subquery()
_cycle_length = statement(select(func.sum(_sampled.c.length), func.count(_sampled.c.cycle_id.distinct())))
_database_bytes = Statement(
    text("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"),
    text("SELECT pg_database_size(current_database())"),
)
_ROW_BYTES: Final = 300
"""What a row takes besides its text: ids, indexes."""

_columns = (sizes.c.organization_id, sizes.c.day, sizes.c.bytes, sizes.c.file_bytes, sizes.c.messages, sizes.c.cycles)
_keep = insert_ignore(sizes)
_is_kept = select_where(sizes, "day", "day", limit=1)
_drop_old = statement(delete(sizes).where(sizes.c.day < bindparam("first")))
_days_of = select_where(sizes, _columns, "organization_id", sizes.c.day >= bindparam("first"), order_by="day")
_names = statement(select(organizations.c.id, organizations.c.name).order_by(organizations.c.created_at))


def database_bytes(tx: Tx) -> int:
    """The size of the database; on SQLite without the second file, which holds the bytes of files."""
    return int(value(tx, _database_bytes))


@long_running
def measure(tx: Tx) -> list[Size]:
    """Estimates the size of every organization. Reads a row of each space and agent, and no text but a sample's."""
    counted = {name: dict(_counts(tx, each)) for name, each in _COUNTED.items()}
    lengths = _lengths(tx)
    files = counted["files"]
    # On PostgreSQL the bytes of files are part of the database.
    rest = database_bytes(tx) - (sum(files.values()) if tx.dialect == "postgresql" else 0)
    weights = {
        id: counted["messages"].get(id, 0) * lengths[0] + counted["cycles"].get(id, 0) * lengths[1]
        for (id,) in tx.all(_all)
    }
    shares = divided(max(rest, 0), weights)
    return [
        Size(
            OrganizationId(id),
            tx.now // DAY,
            share + files.get(id, 0),
            files.get(id, 0),
            counted["messages"].get(id, 0),
            counted["cycles"].get(id, 0),
        )
        for id, share in shares.items()
    ]


_COUNTED: Final[Mapping[str, Statement]] = {"messages": _messages_of, "cycles": _cycles_of, "files": _files_of}


def _counts(tx: Tx, query: Statement) -> list[tuple[str, int]]:
    return [(id, int(number or 0)) for id, number in tx.all(query)]


def _lengths(tx: Tx) -> tuple[float, float]:
    """How many bytes a message and a cycle take, on average of the newest."""
    message = float(value(tx, _message_length) or 0)
    length, number = tx.one(_cycle_length) or (0, 0)
    return message + _ROW_BYTES, (int(length or 0) / number if number else 0) + _ROW_BYTES


def divided(whole: int, weights: Mapping[str, float]) -> dict[str, int]:
    """Divides a number by these weights. The parts never exceed it; without any weight, all of them are zero."""
    total = sum(weights.values())
    return {id: int(whole * (weight / total)) if total else 0 for id, weight in weights.items()}


@long_running
def keep_today(tx: Tx) -> None:
    """Stores what every organization uses today, unless that is stored already."""
    today = tx.now // DAY
    if tx.one(_is_kept, day=today) is not None:
        return
    tx.run(_drop_old, first=today - KEPT_DAYS)
    for each in measure(tx):
        tx.run(
            _keep,
            organization_id=each.organization_id,
            day=each.day,
            bytes=each.bytes,
            file_bytes=each.file_bytes,
            messages=each.messages,
            cycles=each.cycles,
        )


def _is_due(tx: Tx) -> bool:
    return tx.one(_is_kept, day=tx.now // DAY) is None


async def keep_daily(db: Database) -> None:
    """What organizations use today is stored. Cheap if it is; safe to repeat and to run in several processes."""
    if await db.read(_is_due):
        await db.write(keep_today)


def of_organization(tx: Tx, organization_id: OrganizationId) -> Growth | None:
    """The size of this organization on the last days on which it was measured; None: on none of them."""
    return next(iter(growths(tx, [organization_id])), None)


def nothing_yet(tx: Tx, organization_id: OrganizationId) -> Growth:
    """An organization that was not measured yet."""
    return Growth(
        directory.get_organization(tx, organization_id).name, Size(organization_id, tx.now // DAY, 0, 0, 0, 0), None, ()
    )


def growths(tx: Tx, only: Sequence[OrganizationId] | None = None) -> list[Growth]:
    """The sizes of these organizations, or of all, the largest first."""
    found: list[Growth] = []
    for id, name in tx.all(_names):
        if only is not None and id not in only:
            continue
        rows = [Size(*row) for row in tx.all(_days_of, organization_id=id, first=tx.now // DAY - GROWTH_DAYS)]
        if rows:
            found.append(Growth(name, rows[-1], per_day(rows), rows))
    return sorted(found, key=lambda each: -each.now.bytes)


def per_day(days: Sequence[Size]) -> int | None:
    """The growth per day between the first and the last of these days."""
    if len(days) < 2:
        return None
    first, last = days[0], days[-1]
    return round((last.bytes - first.bytes) / (last.day - first.day))
