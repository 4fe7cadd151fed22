"""What the exports of other programs have in common: one agent, its notes, and conversations with one person. Pure,
but for the reading of files, which is bounded: an export may come from anybody.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from lzma import LZMAError
from pathlib import Path
from typing import Any, Final, Literal, cast

from denizen.clock import LATEST, SECOND, Instant
from denizen.errors import InvalidInput
from denizen.storage.database import storable

MOST_BYTES: Final = 256 * 1024 * 1024
"""Of one file, unpacked."""
MOST_FILES: Final = 20_000
MOST_NOTES: Final = 200
NOTE_CHARACTERS: Final = 500

Who = Literal["person", "agent"]


@dataclass(frozen=True, slots=True)
class ForeignMessage:
    """One message of a conversation."""

    id: str
    who: Who
    text: str
    at: Instant


@dataclass(frozen=True, slots=True)
class ForeignConversation:
    """A conversation of the person with the agent, in order."""

    id: str
    title: str
    messages: tuple[ForeignMessage, ...]


@dataclass(frozen=True, slots=True)
class ForeignAgent:
    """An agent of another program, with all that is taken over."""

    source: str
    """The name of the program, for people."""
    name: str
    instructions: str
    notes: tuple[tuple[str, str], ...]
    """Keys and texts, each as long as a note may be."""
    conversations: tuple[ForeignConversation, ...]
    left_out: Mapping[str, int] = field(default_factory=dict[str, int])
    """What is not taken over, in words, and how much of it."""

    @property
    def messages(self) -> int:
        return sum(len(each.messages) for each in self.conversations)

    @property
    def digest(self) -> str:
        """The same for the same export, so that it is imported once."""
        told: list[Any] = [self.source, self.name, self.notes]
        told += [(each.id, [(said.id, said.who, said.text) for said in each.messages]) for each in self.conversations]
        return hashlib.sha256(json.dumps(told).encode("utf-8", "surrogatepass")).hexdigest()


class LeftOut(Counter[str]):
    """Counts what is not taken over, by its words."""


def unreadable(path: Path, why: str) -> InvalidInput:
    return InvalidInput(f"{path.name} cannot be imported: {why}.")


# Files


def read_bytes(path: Path) -> bytes:
    """The contents of a file that is not too large."""
    if path.is_symlink() or not path.is_file():
        raise unreadable(path, "it is not a file")
    if path.stat().st_size > MOST_BYTES:
        raise unreadable(path, f"it is larger than {MOST_BYTES // 1024**2} MB")
    return path.read_bytes()


def read_zip(path: Path, wanted: Any) -> Iterator[tuple[str, bytes]]:
    """The files in the archive whose names match the pattern. Nothing is unpacked to the disk."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [each for each in archive.infolist() if wanted.search(each.filename)]
            if len(archive.infolist()) > MOST_FILES:
                raise unreadable(path, f"it has more than {MOST_FILES:,} files")
            left = MOST_BYTES
            for each in sorted(names, key=lambda info: info.filename):
                with archive.open(each) as file:
                    # What an archive says of its sizes may be wrong.
                    data = file.read(left + 1)
                left -= len(data)
                if left < 0:
                    raise unreadable(path, f"unpacked it is larger than {MOST_BYTES // 1024**2} MB")
                yield each.filename, data
    except (zipfile.BadZipFile, zlib.error, LZMAError, EOFError, OSError, RuntimeError, NotImplementedError) as error:
        raise unreadable(path, "it is not a ZIP archive that can be read") from error


def parse_json(path: Path, data: bytes) -> Any:
    try:
        return json.loads(data)
    except RecursionError as error:
        raise unreadable(path, "it is nested too deep") from error
    except ValueError as error:
        raise unreadable(path, "it is not JSON") from error


# Values, of which nothing is certain


def as_dict(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def as_text(value: object) -> str:
    return storable(value) if isinstance(value, str) else ""


def as_time(value: object) -> Instant | None:
    """The time of a number of seconds or milliseconds since 1970, or of an ISO text; None if it is neither."""
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        elif isinstance(value, int | float) and not isinstance(value, bool):
            seconds = value / 1_000 if value > 10**11 else float(value)
        else:
            return None
        at = int(seconds * SECOND)
    except (ValueError, OverflowError):
        return None
    return Instant(at) if 0 < at <= LATEST else None


def text_of_parts(content: object, left_out: LeftOut) -> str:
    """The text of a message: a text, or parts of which some are texts."""
    if isinstance(content, str):
        return as_text(content).strip()
    texts: list[str] = []
    for part in as_list(content):
        if isinstance(part, str):
            texts.append(as_text(part))
        elif (kind := as_dict(part).get("type")) in ("text", "input_text", "output_text"):
            texts.append(as_text(as_dict(part).get("text")))
        elif kind not in ("thinking", "reasoning", "redacted_reasoning", "toolCall", "tool_call", "tool_use"):
            left_out["pictures and other files"] += 1
    return "\n".join(each for each in texts if each.strip()).strip()


def branch(nodes: Mapping[str, Any], last: object, parent: str) -> list[dict[str, Any]]:
    """The nodes from the first to `last`, by the key of their parent; each once, whatever the file says."""
    found: list[dict[str, Any]] = []
    seen: set[str] = set()
    at = last
    while isinstance(at, str) and at in nodes and at not in seen:
        seen.add(at)
        node = as_dict(nodes[at])
        found.append({"id": at, **node})
        at = node.get(parent)
    return found[::-1]


def dated(messages: Sequence[tuple[str, Who, str, Instant | None]], begun: Instant | None) -> list[ForeignMessage]:
    """The messages with times that never go back; one without a time has that of the message before."""
    at = begun or next((each for *_, each in messages if each is not None), Instant(1))
    found: list[ForeignMessage] = []
    for id, who, text, when in messages:
        at = Instant(max(at, when or at)) if found else (when or at)
        found.append(ForeignMessage(id, who, text, at))
    return found


def as_notes(given: Iterator[tuple[str, str]], left_out: LeftOut) -> tuple[tuple[str, str], ...]:
    """Texts as notes, in pieces as long as a note may be, cut between lines or words."""
    notes: dict[str, str] = {}
    for name, text in given:
        key = " ".join(name.split())[:60] or "note"
        for number, piece in enumerate(_pieces(text.strip())):
            if len(notes) >= MOST_NOTES:
                left_out["parts of notes"] += 1
                continue
            chosen = key if not number else f"{key} ({number + 1})"
            while chosen in notes:
                chosen += "*"
            notes[chosen] = piece
    return tuple(notes.items())


def _pieces(text: str) -> Iterator[str]:
    # By position: cutting the rest off each time would copy a large file thousands of times.
    at = 0
    while at < len(text):
        end = at + NOTE_CHARACTERS
        if end < len(text):
            cut = max(text.rfind("\n", at, end), text.rfind(" ", at, end))
            end = cut if cut > at + NOTE_CHARACTERS // 2 else end
        if piece := text[at:end].strip():
            yield piece
        at = end
