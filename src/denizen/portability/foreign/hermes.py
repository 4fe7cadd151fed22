"""Agents of Hermes: its folder (`~/.hermes`) with the database of its sessions and the Markdown files of its memory."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from denizen.clock import Instant
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
    text_of_parts,
    unreadable,
)
from denizen.portability.foreign.openclaw import read_markdown

SOURCE: Final = "Hermes"
_LARGEST: Final = 40_000
# All columns: later versions have more, which say that a row was not said.
_SESSIONS: Final = "SELECT * FROM sessions ORDER BY started_at, id"
_MESSAGES: Final = "SELECT * FROM messages WHERE session_id = ? ORDER BY timestamp, id"
_OWN: Final = ("subagent", "tool")
"""The sources of sessions in which Hermes talked to itself."""
_PARTS: Final = ("\x00json:", "\x01json:")
"""Before the content of a message that is not only text."""


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
            database.row_factory = sqlite3.Row
            for session in map(dict[str, Any], database.execute(_SESSIONS)):
                if session.get("source") in _OWN:
                    left_out["sessions of helpers of its own"] += 1
                    continue
                rows = map(dict[str, Any], database.execute(_MESSAGES, (session["id"],)))
                if messages := list(_messages(rows, left_out)):
                    named = as_text(session["title"]).strip() or "Session"
                    begun = as_time(session["started_at"])
                    yield ForeignConversation(str(session["id"]), named, tuple(dated(messages, begun)))
    except (sqlite3.Error, KeyError) as error:
        raise unreadable(path, "it is not a database of Hermes") from error


def _messages(rows: Iterator[dict[str, Any]], left_out: LeftOut) -> Iterator[tuple[str, Who, str, Instant | None]]:
    shown: set[object] = set()
    for row in rows:
        # Compaction keeps a message and writes it again, with the same place.
        place = row.get("display_order")
        if place is not None and place in shown:
            continue
        shown.add(place)
        if not row.get("active", 1) and not row.get("compacted"):
            left_out["messages that were taken back"] += 1
        elif row.get("_compressed_summary"):
            left_out["summaries of earlier messages"] += 1
        elif row["role"] not in ("user", "assistant") or row.get("display_kind") == "hidden":
            left_out["results of tools" if row["role"] == "tool" else "system messages"] += 1
        elif text := _text(row["content"], left_out):
            yield str(row["id"]), "person" if row["role"] == "user" else "agent", text, as_time(row["timestamp"])


def _text(content: object, left_out: LeftOut) -> str:
    if not isinstance(content, str) or not content.startswith(_PARTS):
        return as_text(content).strip()
    try:
        return text_of_parts(json.loads(content[len(_PARTS[0]) :]), left_out)
    except (ValueError, RecursionError):
        left_out["messages that are not JSON"] += 1
        return ""
