"""Agents of OpenClaw: the folder of an agent, with its sessions (`*.jsonl`) and the Markdown files of its memory."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from denizen.portability.foreign.conversations import (
    MOST_FILES,
    ForeignAgent,
    ForeignConversation,
    LeftOut,
    Who,
    as_dict,
    as_notes,
    as_text,
    as_time,
    dated,
    read_bytes,
    text_of_parts,
    unreadable,
)

SOURCE: Final = "OpenClaw"
_SELF: Final = ("IDENTITY.md", "SOUL.md")
_MEMORIES: Final = ("USER.md", "MEMORY.md")
_LARGEST: Final = 40_000
_SKIPPED: Final = (".git", "node_modules")
_HEARTBEAT: Final = "Read HEARTBEAT.md if it exists"
"""The beginning of what OpenClaw says to its agent every half an hour, in the person's place."""
_NOT_SENT: Final = ("HEARTBEAT_OK", "NO_REPLY")
_ENVELOPE: Final = re.compile(
    r"(?:[^\n]{1,80} \(untrusted[^\n]{0,60}\):\n```json\n.*?\n```\s*)*"
    r"(?:\[[A-Z][a-z]{2} \d{4}-\d{2}-\d{2} \d{2}:\d{2}[^\]\n]{0,20}\] )?",
    re.DOTALL,
)
"""What a channel puts before the words of a person: who they are, and the time."""
_REPLY_TAG: Final = re.compile(r"(?:\[\[reply_to[^\]\n]{0,80}\]\]\s*)?")


def read(path: Path) -> ForeignAgent:
    """Reads a folder such as `~/.openclaw`, or one session."""
    left_out = LeftOut()
    files = list(files_below(path, {".jsonl", ".md"}))
    sessions = [each for each in files if each.suffix == ".jsonl"]
    found = [each for one in sessions if (each := _conversation(one, left_out)) is not None and each.messages]
    notes = as_notes(
        ((each.stem, read_markdown(each)) for each in files if _is_memory(each)),
        left_out,
    )
    if not found and not notes:
        raise unreadable(path, "there are no sessions and no memory of OpenClaw in it")
    about = "\n\n".join(read_markdown(each) for name in _SELF for each in files if each.name == name)
    return ForeignAgent(SOURCE, SOURCE, about[:_LARGEST], notes, tuple(found), +left_out)


def files_below(path: Path, suffixes: set[str]) -> Iterator[Path]:
    """The files below a folder, without following links; or the file itself."""
    if path.is_file():
        yield path
        return
    count = 0
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(each for each in folders if each not in _SKIPPED)
        for name in sorted(names):
            file = Path(folder) / name
            if file.suffix in suffixes and not file.is_symlink():
                count += 1
                if count > MOST_FILES:
                    raise unreadable(path, f"it has more than {MOST_FILES:,} files")
                yield file


def read_markdown(path: Path) -> str:
    return read_bytes(path).decode("utf-8", "replace").strip()


def _is_memory(path: Path) -> bool:
    return path.name in _MEMORIES or (path.suffix == ".md" and path.parent.name == "memory")


def _conversation(path: Path, left_out: LeftOut) -> ForeignConversation | None:
    begun, title, id = None, "", path.stem
    messages: list[tuple[str, Who, str, Any]] = []
    for number, line in enumerate(read_bytes(path).splitlines()):
        try:
            entry = as_dict(json.loads(line))
        except (ValueError, RecursionError):
            left_out["lines that are not JSON"] += 1
            continue
        if number == 0 and entry.get("type") != "session":
            return None
        match entry.get("type"):
            case "session":
                begun, id = as_time(entry.get("timestamp")), as_text(entry.get("id")) or id
            case "session_info":
                title = as_text(entry.get("name"))
            case "message":
                said = _message(number, entry, left_out)
                messages += [] if said is None else [said]
            case _:
                pass
    return ForeignConversation(id, title or "Session", tuple(dated(messages, begun)))


def _message(number: int, entry: dict[str, Any], left_out: LeftOut) -> tuple[str, Who, str, Any] | None:
    message = as_dict(entry.get("message"))
    role = message.get("role")
    if role not in ("user", "assistant"):
        left_out["results of tools"] += 1
        return None
    text = text_of_parts(message.get("content"), left_out)
    if text.startswith(_HEARTBEAT) or text in _NOT_SENT:
        left_out["heartbeats, and answers that were not sent"] += 1
        return None
    who: Who = "person" if role == "user" else "agent"
    before = (_ENVELOPE if who == "person" else _REPLY_TAG).match(text)
    text = text[before.end() :] if before else text
    at = as_time(entry.get("timestamp")) or as_time(message.get("timestamp"))
    return (as_text(entry.get("id")) or str(number), who, text, at) if text else None
