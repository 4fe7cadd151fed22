"""The questions of agents to the people in one space, as one of them knows them. Pure: `hear` returns the next state.

Each question is announced once when it appears and once when it is settled, however often events mention it. A question
that its agent no longer waits for stays known: a late answer still reaches the agent.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from pydantic import JsonValue

from denizen.cli.chat.wording import SHORT_ANSWERS, in_short
from denizen.client import Call, Space
from denizen.errors import InvalidInput
from denizen.shapes.vocabulary import ASKED

SET_ASIDE: Final = ("interrupted", "expired")
REMEMBERED_CALLS: Final = 500

_NONE: Final[Mapping[Any, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Questions:
    """The questions in a space."""

    known: Mapping[int, Call] = field(default_factory=lambda: _NONE)
    """Those that wait for an answer or may still be answered, by number, in the order of asking."""
    given: int = 0
    """The highest number assigned. Numbers are not reused: an answer meant for one question must not go to another."""
    numbered: bool = False
    """Whether several were open at once: since then numbers are shown."""
    told: Mapping[str, int] = field(default_factory=lambda: _NONE)
    """The stage last announced of each call, by id."""

    @property
    def waiting(self) -> Mapping[int, Call]:
        return {number: call for number, call in self.known.items() if call.state == "waiting"}


@dataclass(frozen=True, slots=True)
class PendingQuestion:
    """An agent waits for an answer."""

    call: Call
    number: int | None
    """None if it is the only one."""
    others: Mapping[int, Call]
    """The other open questions."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A question was answered, or its agent no longer waits."""

    call: Call
    number: int | None


@dataclass(frozen=True, slots=True)
class Used:
    """An agent used a tool, and people may see it."""

    call: Call


News: TypeAlias = PendingQuestion | Ended | Used


def concerns(call: Call, space: Space | None) -> bool:
    """Whether it concerns people in this space: asked in it, or asked in none by an agent that is in it."""
    if space is None or call.mode not in ASKED:
        return False
    if call.space_id is not None:
        return call.space_id == space.id
    # Calls of mode `async` may be for a service to answer: those that are not shown to people are.
    return call.mode == "pause" and any(member.id == call.agent_id for member in space.members)


def hear(state: Questions, call: Call) -> tuple[Questions, News | None]:
    """Returns the state after this call, and what is new about it."""
    stage = _stage(call)
    if stage <= state.told.get(call.id, -1):
        return state, None
    told = {**state.told, call.id: stage}
    state = replace(state, told=dict(list(told.items())[-REMEMBERED_CALLS:]))
    if call.mode not in ASKED:
        return state, None if stage == 0 else Used(call)
    return _asked(state, call) if stage == 0 else _ended(state, call)


def _stage(call: Call) -> int:
    """Calls only move forward: an event of an earlier stage is outdated."""
    return {"waiting": 0, "late": 2}.get(call.state, 1)


def _asked(state: Questions, call: Call) -> tuple[Questions, PendingQuestion]:
    number, others = state.given + 1, state.waiting
    known = {**state.known, number: call}
    after = replace(state, known=known, given=number, numbered=len(known) > 1 or state.numbered)
    return after, PendingQuestion(call, number if after.numbered else None, others)


def _ended(state: Questions, call: Call) -> tuple[Questions, Ended]:
    number = next((number for number, each in state.known.items() if each.id == call.id), None)
    shown = number if state.numbered else None
    if number is None:
        return state, Ended(call, None)
    if call.state in SET_ASIDE:
        return replace(state, known={**state.known, number: call}), Ended(call, shown)
    known = {each: value for each, value in state.known.items() if each != number}
    return replace(state, known=known), Ended(call, shown)


def read_answer(state: Questions, command: str, typed: str) -> tuple[Call, JsonValue]:
    """Returns the call that a command of `SHORT_ANSWERS` or `/answer` answers, and the answer.

    Raises `InvalidInput` if that is ambiguous or unknown.
    """
    short = command in SHORT_ANSWERS
    call, words = _meant(state, command, typed.strip(), numbered=state.numbered or short)
    if not short:
        if not words:
            raise InvalidInput("The answer is empty: write it after /answer.")
        return call, _accepted(call, words) if call.mode == "elicitation" else words
    if words:
        raise InvalidInput(f"{command} stands for itself. To say more, write /answer and your own words.")
    return call, SHORT_ANSWERS[command]


def _meant(state: Questions, command: str, typed: str, *, numbered: bool) -> tuple[Call, str]:
    candidates = state.waiting or state.known
    if not candidates:
        raise InvalidInput("Nobody waits for an answer here.")
    word, _, rest = typed.partition(" ")
    number = int(word) if numbered and word.isdecimal() and len(word) < 5 else None
    if number is not None and number in state.known:
        return state.known[number], rest.strip()
    if number is not None and 0 < number <= state.given:
        raise InvalidInput(f"Question {number} no longer waits for an answer. Waiting: {_numbers(candidates)}.")
    if len(candidates) > 1:
        first = next(iter(candidates))
        raise InvalidInput(f"Which one? Write its number first, as in {command} {first}: {_numbers(candidates)}.")
    return next(iter(candidates.values())), typed


def _numbers(calls: Mapping[int, Call]) -> str:
    return ", ".join(f"{number} ({in_short(call)})" for number, call in calls.items())


def _accepted(call: Call, words: str) -> JsonValue:
    """The values for the form of an MCP server that asks: written as `name=value`, or as the only value of the form.

    Raises `InvalidInput` for a value of a field that the form does not have.
    """
    fields = form_fields(call)
    alone = [(name, words) for name in fields] if len(fields) == 1 else []
    pairs = [(name, text) for name, _, text in map(_halves, _split(words))] if "=" in words else alone
    if not pairs or any(name not in fields for name, _ in pairs):
        raise InvalidInput(f"The MCP server asks for values. Write {how_to_accept(call)}, or /no.")
    return {"action": "accept", "content": {name: _typed(fields[name], text) for name, text in pairs}}


def how_to_accept(call: Call, number: str = "") -> str:
    """The command that accepts the question of an MCP server."""
    fields = form_fields(call)
    return f"/answer{number} {' '.join(f'{name}=…' for name in fields)}" if fields else f"/yes{number}"


def form_fields(call: Call) -> Mapping[str, JsonValue]:
    """The fields of the form with which an MCP server asks, by name."""
    form = call.arguments.get("form") if isinstance(call.arguments, dict) else None
    fields = form.get("properties") if isinstance(form, dict) else None
    return fields if isinstance(fields, dict) else {}


def _split(words: str) -> list[str]:
    try:
        return shlex.split(words)
    except ValueError as error:
        raise InvalidInput(f"This cannot be read: {error}. Put a value with spaces into quotation marks.") from error


def _halves(pair: str) -> tuple[str, str, str]:
    return pair.partition("=")


def _typed(field: JsonValue, text: str) -> JsonValue:
    """The text as the type that the form wants; as it is, if it is none."""
    kind = field.get("type") if isinstance(field, dict) else None
    if kind == "boolean":
        return {"yes": True, "true": True, "no": False, "false": False}.get(text.lower(), text)
    try:
        return int(text) if kind == "integer" else float(text) if kind == "number" else text
    except ValueError:
        return text
