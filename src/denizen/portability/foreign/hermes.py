"""Agents of Hermes: its folder (`~/.hermes`) with the database of its sessions and the Markdown files of its memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from denizen.portability.foreign.conversations import (
    MOST_BYTES,
    ForeignAgent,
    ForeignConversation,
    LeftOut,
    Who,
    as_notes,
    as_text,
    as_time,
    dated,
    unreadable,
)
from denizen.portability.foreign.openclaw import read_markdown

SOURCE: Final = "Hermes"
_LARGEST: Final = 40_000
_MESSAGES: Final = (
    "SELECT s.id, s.title, s.started_at, m.id, m.role, m.content, m.timestamp "
    "FROM sessions s JOIN messages m ON m.session_id = s.id ORDER BY s.started_at, s.id, m.timestamp, m.id"
)


def read(path: Path) -> ForeignAgent:
    """Reads the folder, or only the database."""
    database = path / "state.db" if path.is_dir() else path
    left_out = LeftOut()
    found = tuple(_conversations(database, left_out)) if database.is_file() else ()
    notes = as_notes(_memories(path), left_out)
    if not found and not notes:
        raise unreadable(path, "there are no sessions and no memory of Hermes in it")
    soul = path / "SOUL.md"
    about = read_markdown(soul)[:_LARGEST] if soul.is_file() else ""
    return ForeignAgent(SOURCE, SOURCE, about, notes, found, +left_out)


def _memories(path: Path) -> Iterator[tuple[str, str]]:
    for name in ("USER.md", "MEMORY.md"):
        file = path / "memories" / name
        if file.is_file():
            # Each memory stands behind a section sign.
            for each in read_markdown(file).split("\n§\n"):
                yield file.stem, each


def _conversations(path: Path, left_out: LeftOut) -> Iterator[ForeignConversation]:
    if path.stat().st_size > MOST_BYTES:
        raise unreadable(path, f"it is larger than {MOST_BYTES // 1024**2} MB")
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True)) as database:
            rows = database.execute(_MESSAGES)
            for (id, title, begun), told in groupby(rows, key=lambda row: row[:3]):
                messages = [said for row in told if (said := _message(row[3:], left_out)) is not None]
                if messages:
                    named = as_text(title).strip() or "Session"
                    yield ForeignConversation(str(id), named, tuple(dated(messages, as_time(begun))))
    except sqlite3.Error as error:
        raise unreadable(path, "it is not a database of Hermes") from error


def _message(row: tuple[Any, ...], left_out: LeftOut) -> tuple[str, Who, str, Any] | None:
    id, role, content, at = row
    text = as_text(content).strip()
    if role not in ("user", "assistant"):
        left_out["results of tools" if role == "tool" else "system messages"] += 1
        return None
    who: Who = "person" if role == "user" else "agent"
    return (str(id), who, text, as_time(at)) if text else None
