"""The questions of agents to the people in one space, as one of them knows them. Pure: `hear` returns the next state.

Each question is announced once when it appears and once when it is settled, however often events mention it. A question
that its agent no longer waits for stays known: a late answer still reaches the agent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from pydantic import JsonValue

from denizen.cli.chat.wording import SHORT_ANSWERS, in_short
from denizen.client import Call, Space
from denizen.errors import InvalidInput

ANSWERABLE: Final = ("pause", "async")
"""The modes of calls that wait for people. The others only show what an agent does."""
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
    if space is None or call.mode not in ANSWERABLE:
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
    if call.mode not in ANSWERABLE:
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
        return call, words
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
