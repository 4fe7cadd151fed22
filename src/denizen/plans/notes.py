"""Notes of an agent, its own memories: texts by key, always in its prompt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from denizen.errors import InvalidInput, NotFound
from denizen.ids import AgentId
from denizen.inbox.format import one_line
from denizen.plans import origins, told_changes
from denizen.plans.limits import checked_text
from denizen.storage.database import Tx, delete_where, insert_into, select_where, update_where
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


_of = select_where(notes, "key, text, outside", "agent_id", order_by="key")
_add = insert_into(notes, "agent_id, key, text, outside, created_at, updated_at")
_change = update_where(notes, "agent_id, key", set_="text, outside, updated_at")
_remove = delete_where(notes, "agent_id, key")


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
            tx.run(_change, agent_id=agent_id, key=note.key, text=note.text, outside=mark, updated_at=tx.now)
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
        tx.run(_remove, agent_id=agent_id, key=key)
    origins.set_origin(tx, agent_id, [f"note:{key}" for key in wanted])
    return wanted


def fact(note: Note) -> tuple[str, str]:
    """The line about a note for the agent, with its key."""
    return f"note:{note.key}", f"{note.key}: {one_line(note.text)}"
