"""Describes tool calls in words: what an agent asks, what it did, the answer. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue

from denizen.client import Call, SpaceStatus
from denizen.shortening import short_line

SHORT_ANSWERS: Final[Mapping[str, JsonValue]] = {"/yes": {"confirmed": True}, "/no": {"confirmed": False}}
"""The commands that are answers by themselves."""
QUESTION_CHARACTERS: Final = 60
ARGUMENT_CHARACTERS: Final = 80
ANSWER_CHARACTERS: Final = 120
_LATE: Final = "A late answer still reaches the agent."
SENTENCES: Final = ("question", "message", "text")
"""The arguments that are read as a sentence; the first that exists is used."""


def status_line(status: SpaceStatus) -> str:
    """Returns why an agent has not answered, and when it retries."""
    if status.retry_at is None:
        return status.text
    return f"{status.text} Next try: {status.retry_at.astimezone():%H:%M}."


def status_note(status: SpaceStatus) -> str:
    """The same in a conversation, with the command that helps."""
    commands = [command for action, command in (("try_again", "/retry"), ("ask", "/ask")) if action in status.actions]
    return f"{status_line(status)} {' '.join(commands)}".rstrip()


def in_words(call: Call) -> str:
    """The name of the tool in words."""
    return " ".join(call.tool.replace("_", " ").replace("-", " ").split())


def sentence(call: Call) -> str:
    """Returns the question, if it is a sentence; otherwise empty."""
    return _sentence(call)[1]


def details(call: Call) -> list[str]:
    """Returns the other arguments, each as `name: value`."""
    key, _ = _sentence(call)
    if isinstance(call.arguments, dict):
        return [f"{name}: {_value(value)}" for name, value in call.arguments.items() if name != key]
    return [] if isinstance(call.arguments, str) or call.arguments is None else [_value(call.arguments)]


def _sentence(call: Call) -> tuple[str | None, str]:
    if call.why is not None:
        return None, f"May I use {call.tool}? {call.why}"
    if isinstance(call.arguments, str):
        return None, call.arguments
    if isinstance(call.arguments, dict):
        for key in SENTENCES:
            if isinstance(value := call.arguments.get(key), str) and value.strip():
                return key, value
    return None, ""


def whole(call: Call) -> str:
    """Returns the whole question, line by line."""
    return "\n".join([sentence(call) or in_words(call), *details(call)])


def in_short(call: Call) -> str:
    """Returns the question in a few words."""
    return short_line(sentence(call) or in_words(call), QUESTION_CHARACTERS)


def answer_in_words(call: Call) -> str:
    """Returns the answer in words."""
    for command, result in SHORT_ANSWERS.items():
        if _data(call.result) == result:
            return command.removeprefix("/")
    return call.result or ""


def _value(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _data(result: str | None) -> JsonValue:
    try:
        return json.loads(result or "")
    except ValueError:
        return None


def ended(call: Call, number: int | None, by: str) -> str:
    """Returns what happened to a question, in one line; `by` is who answered it."""
    asked = f"“{in_short(call)}”" if number is None else f"{number} “{in_short(call)}”"
    match call.state:
        case "answered" | "late":
            late = " late" if call.state == "late" else ""
            return f"{by} answered {asked}{late}: {short_line(answer_in_words(call), ANSWER_CHARACTERS)}"
        case "interrupted":
            return f"Nobody waits for {asked} any more: something urgent came. {_LATE}"
        case "expired":
            return f"Nobody answered {asked} in time. {_LATE}"
        case _:
            return f"{asked} needs no answer any more."


def used(call: Call, name: str) -> str:
    """Returns what an agent did with a tool, in one line."""
    given = ", ".join(_pair(key, value) for key, value in _arguments(call))
    return f"{name} used {call.tool}({short_line(given, ARGUMENT_CHARACTERS)}) → {_outcome(call)}"


def _arguments(call: Call) -> list[tuple[str, JsonValue]]:
    if isinstance(call.arguments, dict):
        return list(call.arguments.items())
    return [] if call.arguments is None else [("", call.arguments)]


def _pair(key: str, value: JsonValue) -> str:
    return f"{key}: {_value(value)}" if key else _value(value)


def _outcome(call: Call) -> str:
    if call.state in ("answered", "late"):
        return short_line(call.result or "", ANSWER_CHARACTERS) or "nothing"
    return "no result in time" if call.state == "expired" else "not finished"
