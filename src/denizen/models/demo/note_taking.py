"""Writes a chapter of an agent's history for the demo model, by quoting it: enough to see the strategy at work."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from pydantic_ai.messages import ModelMessage, SystemPromptPart, UserPromptPart

from denizen.models.demo.marks import CHAPTER_MARK
from denizen.models.scripted import Say
from denizen.shortening import short_line

_CYCLE: Final = re.compile(r"^\[CYCLE (\d+) — ")
_WORDS: Final = re.compile(r'^its words: "(.*)"$')


def is_asked_for_chapter(messages: Sequence[ModelMessage]) -> bool:
    """Whether this is a request for a chapter."""
    first = messages[0].parts[0] if messages and messages[0].parts else None
    return isinstance(first, SystemPromptPart) and first.content.startswith(CHAPTER_MARK)


def write_chapter(messages: Sequence[ModelMessage]) -> Say:
    """Returns what the agent said at the end of each cycle, as JSON."""
    told = next((str(part.content) for part in messages[1].parts if isinstance(part, UserPromptPart)), "")
    return Say(json.dumps({"notes": list(_notes(told))}, ensure_ascii=False))


def _notes(told: str) -> Iterator[dict[str, Any]]:
    number, said = 0, ""
    for line in [*told.splitlines(), "[CYCLE 0 — "]:
        if cycle := _CYCLE.match(line):
            if said:
                yield {"cycle": number, "kind": "done", "text": short_line(said, 160)}
            number, said = int(cycle[1]), ""
        elif words := _WORDS.match(line):
            said = words[1]
