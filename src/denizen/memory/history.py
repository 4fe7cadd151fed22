"""The history of a memory: its versions with what changed it and why, and how they differ.

A corrected or outdated memory is linked to the one that replaced it. All that are linked are one history, the oldest
first. What was forgotten is in no history: its text and its changes are deleted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from denizen.memory import changes, items
from denizen.memory.changes import MemoryChange
from denizen.memory.items import MemoryItem
from denizen.shapes.vocabulary import DifferenceKind
from denizen.storage.database import Tx

MOST_LINKED: Final = 500
"""The most memories of one history that are read."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text that is compared with another."""

    kind: DifferenceKind
    text: str


@dataclass(frozen=True, slots=True)
class MemoryVersion:
    """A memory at one time."""

    id: str
    number: int
    """From 1, the oldest first. It may change if an earlier version is forgotten; the id does not."""
    memory: MemoryItem
    """The memory as it is now."""
    change: MemoryChange
    before: str
    """The text that it replaced; empty if it replaced none."""
    current: bool
    """Whether it is the text that holds now."""

    @property
    def text(self) -> str:
        return self.change.text


def read(tx: Tx, memory: MemoryItem) -> list[MemoryVersion]:
    """Returns the versions of this memory and of those that it is linked to, the oldest first."""
    return versions({each: changes.of_memory(tx, each.number) for each in _linked(tx, memory)})


def _linked(tx: Tx, memory: MemoryItem) -> list[MemoryItem]:
    latest, seen = memory, {memory.id}
    while latest.superseded_by is not None and latest.superseded_by not in seen:
        seen.add(latest.superseded_by)
        found = items.of_ids(tx, [latest.superseded_by])
        if not found:
            break
        [latest] = found
    linked, waiting = {latest.id: latest}, [latest]
    while waiting and len(linked) < MOST_LINKED:
        for each in items.replaced_by(tx, waiting.pop().id):
            if each.id not in linked:
                linked[each.id] = each
                waiting.append(each)
    return list(linked.values())


def versions(known: Mapping[MemoryItem, Iterable[MemoryChange]]) -> list[MemoryVersion]:
    """Returns the versions of linked memories, each with its recorded changes. Pure."""
    made: list[tuple[MemoryItem, MemoryChange]] = []
    for memory, recorded in known.items():
        of_it = list(recorded)
        if not of_it or of_it[0].created_at > memory.created_at:
            # It is from before changes were recorded.
            text = of_it[0].text if of_it else memory.text
            of_it.insert(0, MemoryChange("learned", text, sources=memory.sources, created_at=memory.created_at))
        made += [(memory, each) for each in of_it]
    made.sort(key=lambda one: (one[1].created_at, one[1].number, one[0].number))
    latest = {memory.id: at for at, (memory, _) in enumerate(made)}
    texts: dict[str, str] = {}
    found: list[MemoryVersion] = []
    for at, (memory, change) in enumerate(made):
        replaced = next((texts[id] for id in change.replaced if id in texts), None)
        before = texts.get(memory.id, "") if replaced is None else replaced
        current = memory.superseded_by is None and latest[memory.id] == at
        version = f"{memory.number}.{change.number}"
        found.append(MemoryVersion(version, at + 1, memory, change, before, current))
        texts[memory.id] = change.text
    return found


_WORD: Final = re.compile(r"\s+|\S+")


def difference(before: str, after: str) -> list[Piece]:
    """Returns how the texts differ, word by word; words that follow each other are one piece. Pure."""
    old, new = _WORD.findall(before), _WORD.findall(after)
    found: list[Piece] = []
    gone = came = ""
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    for at, (how, old_from, old_to, new_from, new_to) in enumerate(codes):
        was, now = "".join(old[old_from:old_to]), "".join(new[new_from:new_to])
        # A space between two changed words is not what stayed.
        if how == "equal" and not (now.isspace() and 0 < at < len(codes) - 1):
            found += [Piece("removed", gone), Piece("added", came), Piece("same", now)]
            gone = came = ""
        else:
            gone, came = gone + was, came + now
    found += [Piece("removed", gone), Piece("added", came)]
    return [each for each in found if each.text]
