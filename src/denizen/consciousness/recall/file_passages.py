"""The text of files that agents have heard of becomes passages: in the background, some pages at a time.

Which files wait is stored in the transaction that ends the cycle; how far they are, in the one that writes passages.
So none is lost and none is written twice, whatever crashes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from sqlalchemy import bindparam, delete, func, or_, select, update

from denizen.consciousness.recall.passages import PASSAGE_CHARACTERS, Piece, remember
from denizen.files.attaching import attachments_in
from denizen.files.storing import TO_READ
from denizen.ids import AgentId
from denizen.inbox.events import FILES, Event
from denizen.storage.database import Database, Tx, columns, insert_ignore, select_where, statement, value
from denizen.storage.schema import contents, cycles, events, file_pages, files, heard_files, messages, minds, passages

MOST_CHARACTERS: Final = 1_000_000
"""Of a longer file, the rest is not recalled; `read_entry` shows it."""
_CHARACTERS_AT_ONCE: Final = 30 * PASSAGE_CHARACTERS

_hear = insert_ignore(heard_files, "agent_id, file_id, cycle")
_hear_from = insert_ignore(heard_files)
_is_there = select_where(files, "id", "id")
_next = statement(
    select(
        *columns(heard_files, "agent_id, file_id, cycle, next_page"),
        files.c.name,
        files.c.content_id,
        func.coalesce(messages.c.space_id, ""),
        func.coalesce(messages.c.created_at, files.c.created_at),
    )
    .join(files, files.c.id == heard_files.c.file_id)
    .join(contents, contents.c.id == files.c.content_id)
    # One that came from a service or a tool is in no space.
    .outerjoin(messages, messages.c.id == files.c.message_id)
    .where(or_(contents.c.reading.is_(None), contents.c.reading != "waiting"))
    .order_by(heard_files.c.agent_id, heard_files.c.file_id)
    .limit(1)
)
_hold_mind = select_where(minds, "agent_id", "agent_id", for_update=True)
_still = select_where(heard_files, "next_page", "agent_id, file_id")
_pages = select_where(file_pages, "page, text", "content_id", order_by="page")
_WHICH = heard_files.c.agent_id == bindparam("agent"), heard_files.c.file_id == bindparam("file")
_go_on = statement(update(heard_files).where(*_WHICH).values(next_page=bindparam("next")))
_done = statement(delete(heard_files).where(*_WHICH))


def hear_files(tx: Tx, agent_id: AgentId, cycle: int, events: Iterable[Event]) -> None:
    """The agent has heard of the files of these events in this cycle: their text is to become recallable."""
    # One whose message was deleted meanwhile is gone.
    named = [file.id for event in events for file in event.files]
    heard = [file_id for file_id in named if tx.one(_is_there, id=file_id) is not None]
    for file_id in heard:
        tx.run(_hear, agent_id=agent_id, file_id=file_id, cycle=cycle)
    if heard:
        tx.announce(TO_READ, {"agent": agent_id})


_heard = statement(
    select(files.c.id, files.c.content_id, func.min(cycles.c.number))
    .join(events, events.c.message_id == files.c.message_id)
    .join(cycles, cycles.c.id == events.c.cycle_id)
    .where(events.c.agent_id == bindparam("agent_id"), cycles.c.number.is_not(None))
    .group_by(files.c.id, files.c.content_id)
)
_given = statement(
    select(events.c.payload, cycles.c.number)
    .join(cycles, cycles.c.id == events.c.cycle_id)
    .where(
        events.c.agent_id == bindparam("agent_id"),
        cycles.c.number.is_not(None),
        events.c.payload.like(f'%"{FILES}"%'),
    )
    .order_by(cycles.c.number)
)
_content_of = select_where(files, "content_id", "id")
_last_recalled = statement(
    select(func.coalesce(func.max(passages.c.page), 0)).where(
        passages.c.file_id == bindparam("file_id"), passages.c.agent_id == bindparam("agent_id")
    )
)
_last_page = statement(
    select(func.coalesce(func.max(file_pages.c.page), 0)).where(file_pages.c.content_id == bindparam("content_id"))
)
_is_read = select_where(contents, "id", "id", or_(contents.c.reading.is_(None), contents.c.reading != "waiting"))


def hear_missing(tx: Tx, agent_id: AgentId) -> int:
    """The text of files that the agent has heard of and cannot recall is to become recallable. Returns how many files.

    For lives that were imported or whose passages are written later. Repeated, it changes nothing.
    """
    heard: dict[str, tuple[str, int]] = {
        file_id: (content_id, cycle) for file_id, content_id, cycle in tx.all(_heard, agent_id=agent_id)
    }
    for payload, cycle in tx.all(_given, agent_id=agent_id):
        for file in attachments_in(json.loads(payload).get(FILES) or ()):
            content_id = value(tx, _content_of, id=file.id)
            if content_id is not None:
                heard.setdefault(file.id, (content_id, cycle))
    missing = 0
    for file_id, (content_id, cycle) in heard.items():
        known = value(tx, _last_recalled, file_id=file_id, agent_id=agent_id)
        if value(tx, _is_read, id=content_id) and known >= value(tx, _last_page, content_id=content_id):
            continue
        missing += tx.run(_hear_from, agent_id=agent_id, file_id=file_id, cycle=cycle, next_page=known + 1)
    if missing:
        tx.announce(TO_READ, {"agent": agent_id})
    return missing


def remember_some(tx: Tx) -> None:
    """Make some pages of a file recallable whose text is there, if there is one."""
    row = tx.one(_next)
    if row is None:
        return
    agent_id, file_id, cycle, first, name, content_id, space_id, at = row
    # Its cycles number their passages, too. Another process may have been faster.
    tx.one(_hold_mind, agent_id=agent_id)
    if tx.one(_still, agent_id=agent_id, file_id=file_id) != (first,):
        return
    pieces: list[Piece] = []
    before = room = 0
    pages = tx.all(_pages, content_id=content_id)
    for page, text in pages:
        before += len(text) if page < first else 0
        if page < first:
            continue
        if room >= _CHARACTERS_AT_ONCE or before + room >= MOST_CHARACTERS:
            break
        room += len(text)
        where = f"{name}, page {page}" if len(pages) > 1 else name
        pieces.append(Piece("heard", text, at, space_id, None, where, file_id=file_id, page=page))
    remember(tx, AgentId(agent_id), cycle, pieces)
    last = pieces[-1].page if pieces else None
    if last is None or last == pages[-1][0] or before + room >= MOST_CHARACTERS:
        tx.run(_done, agent=agent_id, file=file_id)
    else:
        tx.run(_go_on, agent=agent_id, file=file_id, next=last + 1)


async def remember_files(db: Database) -> None:
    """Make every file recallable that agents have heard of and whose text is there."""
    while await db.read(_waits):
        await db.write(remember_some)


def _waits(tx: Tx) -> bool:
    return tx.one(_next) is not None
