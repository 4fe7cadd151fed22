"""Builds short prompts for a model of 135 million parameters. Pure.

It is shown who it is, the last messages of the window, and the new events; it can answer only with an action that the
schema allows. Once it has acted, it is asked for a sentence, which ends the cycle.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic_ai.messages import ModelMessage, SystemPromptPart, UserPromptPart
from pydantic_ai.tools import ToolDefinition

from denizen.models.demo.reading import Cycle, DemoEvent, Scene, read
from denizen.shortening import short_line

SEND, SKIP = "send_message", "skip"
CHARACTERS: Final = 400
"""The most characters of each text that it is shown."""
ANSWER_CHARACTERS: Final = 300
PAST_CYCLES: Final = 2
EVENTS: Final = 5


@dataclass(frozen=True, slots=True)
class Question:
    """A prompt, and the schema of the answer; without one the answer is free text, and ends the cycle."""

    system: str
    turns: tuple[tuple[str, str], ...]
    """`user` or `assistant`, and their text; the last one is the user's."""
    schema: dict[str, Any] | None


def question(messages: Sequence[ModelMessage], tools: Container[str]) -> Question:
    """Returns the next prompt, given the window and the tools."""
    scene = read(messages)
    system = f"You are {scene.name or 'an assistant'}. {_cut(scene.role)}".strip()
    if scene.present.steps:
        done = "; ".join(_cut(each.text) for each in scene.present.said) or "nothing"
        return Question(system, (("user", f"You said: {done}\nSay in one short sentence what you did."),), None)
    turns = (*_past(scene), ("user", _told(scene.present.events)))
    return Question(system, turns, _actions(scene.present, tools))


def forced(messages: Sequence[ModelMessage], tools: Sequence[ToolDefinition]) -> Question:
    """Returns the prompt for a call of one of these tools: for a vote, a feeling, a decision."""
    parts = [part for message in messages for part in message.parts]
    system = "\n".join(str(part.content) for part in parts if isinstance(part, SystemPromptPart))
    said = [str(part.content) for part in parts if isinstance(part, UserPromptPart)]
    options = [_call_of(tool) for tool in tools]
    schema = {"anyOf": options} if len(options) > 1 else options[0]
    return Question(_cut(system), (("user", _cut(said[-1]) if said else "Go on."),), schema)


def _call_of(tool: ToolDefinition) -> dict[str, Any]:
    """The schema of a call of the tool, in the form of an action."""
    parameters = tool.parameters_json_schema
    made = _action(tool.name, **parameters.get("properties", {}))
    return {**made, "required": ["action", *parameters.get("required", [])]}


def _past(scene: Scene) -> Iterator[tuple[str, str]]:
    for cycle in scene.past[-PAST_CYCLES:]:
        said = " ".join(_cut(each.text) for each in cycle.said)
        if said:
            yield "user", _told(cycle.events)
            yield "assistant", said


def _told(events: Sequence[DemoEvent]) -> str:
    lines = [f"{each.sender}: {_cut(each.text)}" if each.sender else _cut(each.text) for each in events[-EVENTS:]]
    return "\n".join(lines) or "Nothing has happened."


def _actions(present: Cycle, tools: Container[str]) -> dict[str, Any] | None:
    """It may speak where it was spoken to; it may stay silent only if no person is waiting."""
    spaces = list(dict.fromkeys(each.space_id for each in present.events if each.space_id))
    options: list[dict[str, Any]] = []
    if spaces and SEND in tools:
        where = {"space_id": {"enum": spaces}} if len(spaces) > 1 else {}
        options.append(_action(SEND, **where, text={"type": "string", "minLength": 1, "maxLength": ANSWER_CHARACTERS}))
    if SKIP in tools and not (options and any(each.kind == "human" for each in present.events)):
        options.append(_action(SKIP, reason={"type": "string", "maxLength": 80}))
    return {"anyOf": options} if len(options) > 1 else options[0] if options else None


def _action(name: str, **arguments: Any) -> dict[str, Any]:
    properties = {"action": {"const": name}, **arguments}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _cut(text: str) -> str:
    return short_line(text, CHARACTERS)
