"""Summarizes a conversation for the demo model, by quoting it: enough to see memory at work."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, cast

from pydantic_ai.messages import ModelMessage, SystemPromptPart, UserPromptPart

from denizen.models.demo.marks import COMPACTOR_MARK
from denizen.models.scripted import Say
from denizen.shortening import short_line

_SAID = re.compile(r'^\[(\d+)\] (.+?) \((human|agent|service)(?:, @[a-z0-9-]+)?\), [\d: -]+: "(.*)"$')
_HEADED = re.compile(r"^\[(\d+)\] (.+?) \((human|agent|service)(?:, @[a-z0-9-]+)?\), [\d: -]+:$")
_MOST_LINES = 40
_MOST_ITEMS = 12
_KINDS: Final = (
    ("preferences", re.compile(r"\b(?:I|we) (?:like|love|prefer|hate|want|dislike)\b|\bfavou?rite\b", re.IGNORECASE)),
    ("decisions", re.compile(r"\b(?:decided|let's|agreed|we will|we'll)\b", re.IGNORECASE)),
    ("todos", re.compile(r"\b(?:please|remind|need to|have to|must|todo)\b", re.IGNORECASE)),
    ("open_loops", re.compile(r"\?\s*$")),
    ("facts", re.compile(r"\b(?:is|are|was|were|my|our|has|have)\b", re.IGNORECASE)),
)


class _Line(NamedTuple):
    number: int
    who: str
    kind: str
    text: str


def is_asked(messages: Sequence[ModelMessage]) -> bool:
    """Whether this is a request for a summary."""
    first = messages[0].parts[0] if messages and messages[0].parts else None
    return isinstance(first, SystemPromptPart) and first.content.startswith(COMPACTOR_MARK)


def compact(messages: Sequence[ModelMessage]) -> Say:
    """Returns the summary and the memory after these messages, as JSON."""
    told = next((str(part.content) for part in messages[1].parts if isinstance(part, UserPromptPart)), "")
    before = _known(told)
    lines = list(_lines(told))
    said = [f"- {each.who}: {short_line(each.text, 120)}" for each in lines]
    kept = [each for each in before.get("summary", "").splitlines() if each.startswith("- ")]
    summary = "\n".join(["The conversation so far, in quotations:", *[*kept, *said][-_MOST_LINES:]])
    memory = before.get("memory", {})
    for each in lines:
        category = next((name for name, pattern in _KINDS if pattern.search(each.text)), None)
        if category is not None and each.kind == "human":
            item = {"text": f"{each.who}: {short_line(each.text, 160)}", "confidence": 0.5, "sources": [each.number]}
            memory[category] = [*memory.get(category, []), item][-_MOST_ITEMS:]
    people = dict.fromkeys(each.who for each in lines if each.kind == "human")
    known = {str(each.get("text")) for each in memory.get("people", [])}
    new = [{"text": who, "confidence": 1, "sources": [_first(lines, who)]} for who in people if who not in known]
    memory["people"] = [*memory.get("people", []), *new]
    return Say(json.dumps({"summary_markdown": summary, "memory_json": memory}, ensure_ascii=False))


def _first(lines: Sequence[_Line], who: str) -> int:
    return next(each.number for each in lines if each.who == who)


def _known(told: str) -> dict[str, Any]:
    """Returns the earlier summary, as it was quoted, and the earlier memory."""
    found: dict[str, Any] = {}
    head = told.partition("\n[MESSAGES ")[0]
    for line in head.splitlines():
        if line.startswith("memory_json: "):
            found["memory"] = cast("dict[str, Any]", json.loads(line.removeprefix("memory_json: ")))
    quoted = [line.lstrip()[1:].strip() for line in head.splitlines() if line.lstrip().startswith("|")]
    found["summary"] = "\n".join(quoted)
    return found


def _lines(told: str) -> Iterator[_Line]:
    section = told.partition("[MESSAGES ")[2].splitlines()[1:]
    headed: re.Match[str] | None = None
    for line in section:
        match = _SAID.match(line)
        if match:
            headed = None
            yield _Line(int(match[1]), match[2], match[3], match[4])
        elif _HEADED.match(line):
            headed = _HEADED.match(line)
        elif headed is not None and line.lstrip().startswith("|"):
            yield _Line(int(headed[1]), headed[2], headed[3], line.lstrip()[1:].strip())
            headed = None
