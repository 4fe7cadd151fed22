"""Notes of an agent, its own memories: texts by key, always in its prompt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from sqlalchemy import bindparam, delete, select, update

from denizen.errors import InvalidInput, NotFound
from denizen.ids import AgentId
from denizen.inbox.format import one_line
from denizen.plans import origins, told_changes
from denizen.plans.limits import checked_text
from denizen.storage.database import Tx, insert_into, statement
from denizen.storage.schema import notes

MOST_NOTES: Final = 200
NOTE_CHARACTERS: Final = 500
KEY_CHARACTERS: Final = 80


@dataclass(frozen=True, slots=True)
class Note:
    """One note of an agent."""

    key: str
    text: str
    outside: bool = False
    """Whether the agent wrote it after reading text from outside."""


_of = statement(
    select(notes.c.key, notes.c.text, notes.c.outside)
    .where(notes.c.agent_id == bindparam("agent_id"))
    .order_by(notes.c.key)
)
_add = insert_into(notes, "agent_id", "key", "text", "outside", "created_at", "updated_at")
_change = statement(
    update(notes)
    .where(notes.c.agent_id == bindparam("agent"), notes.c.key == bindparam("note"))
    .values(text=bindparam("new_text"), outside=bindparam("from_outside"), updated_at=bindparam("at"))
)
_remove = statement(delete(notes).where(notes.c.agent_id == bindparam("agent"), notes.c.key == bindparam("note")))


def notes_of(tx: Tx, agent_id: AgentId) -> list[Note]:
    """The agent's notes, by key."""
    found = [Note(key, text, bool(outside)) for key, text, outside in tx.all(_of, agent_id=agent_id)]
    return sorted(found, key=lambda note: note.key)  # databases order letters differently


def set_notes(tx: Tx, agent_id: AgentId, texts: Mapping[str, str], *, outside: bool = False) -> list[Note]:
    """Set these notes by key, in place of the old ones. All of them or, with an error, none."""
    told_changes.zone_of(tx, agent_id)
    told_changes.lock(tx, agent_id)
    wanted = [
        Note(_checked_key(key), checked_text(f"The memory {one_line(key)!r}", text, NOTE_CHARACTERS), outside)
        for key, text in texts.items()
    ]
    there = {note.key for note in notes_of(tx, agent_id)}
    count = len(there | {note.key for note in wanted})
    if count > MOST_NOTES:
        raise InvalidInput(f"That would be {count} memories, but at most {MOST_NOTES} are allowed. Delete some first.")
    mark = int(outside)
    for note in wanted:
        if note.key in there:
            tx.run(_change, agent=agent_id, note=note.key, new_text=note.text, from_outside=mark, at=tx.now)
        else:
            row = {"agent_id": agent_id, "key": note.key, "text": note.text, "outside": mark}
            tx.run(_add, **row, created_at=tx.now, updated_at=tx.now)
            there.add(note.key)
    return wanted


def _checked_key(key: str) -> str:
    return checked_text("The key of a memory", one_line(key), KEY_CHARACTERS)


def remove_notes(tx: Tx, agent_id: AgentId, keys: Iterable[str]) -> list[str]:
    """Remove the notes with these keys. Returns the keys as they were stored."""
    told_changes.lock(tx, agent_id)
    wanted, there = [one_line(key) for key in dict.fromkeys(keys)], {note.key for note in notes_of(tx, agent_id)}
    for key in wanted:
        if key not in there:
            raise NotFound("memory", key)
    for key in wanted:
        tx.run(_remove, agent=agent_id, note=key)
    origins.set_origin(tx, agent_id, [f"note:{key}" for key in wanted])
    return wanted


def fact(note: Note) -> tuple[str, str]:
    """The line about a note for the agent, with its key."""
    return f"note:{note.key}", f"{note.key}: {one_line(note.text)}"
