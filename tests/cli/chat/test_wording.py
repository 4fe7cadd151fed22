"""How calls read."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pydantic import JsonValue

from denizen.cli.chat import wording
from denizen.client import Call
from tests.made import made


def call(arguments: JsonValue, *, tool: str = "look_up", state: str = "answered", result: str | None = None) -> Call:
    at = datetime(2026, 1, 5, 9, tzinfo=UTC)
    return made(Call,
        id="c", agent_id="ada", space_id="ops", tool=tool, mode="pause", state=state, arguments=arguments,
        result=result, created_at=at,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ({"question": "Deploy?"}, ["Deploy?"]),
        ({"where": "barn", "message": "Deploy?", "tries": 3}, ["Deploy?", "where: barn", "tries: 3"]),
        ({"text": "a", "question": "b"}, ["b", "text: a"]),
        ({"question": ["a"]}, ["look up", 'question: ["a"]']),
        ({}, ["look up"]),
        ("no JSON", ["no JSON"]),
        ([1, 2], ["look up", "[1, 2]"]),
        (None, ["look up"]),
    ],
)
def test_what_is_asked_is_a_sentence_and_what_belongs_to_it(arguments: JsonValue, lines: list[str]) -> None:
    assert wording.whole(call(arguments)).split("\n") == lines


@pytest.mark.parametrize(
    ("state", "result", "sentence"),
    [
        ("answered", '{"confirmed":true}', "Noor answered “Deploy?”: yes"),
        ("answered", '{"confirmed": false}', "Noor answered “Deploy?”: no"),
        ("answered", "on\n\nMonday", "Noor answered “Deploy?”: on Monday"),
        ("late", "x" * 500, "Noor answered “Deploy?” late: " + "x" * 119 + "…"),
        ("expired", None, "Nobody answered “Deploy?” in time. A late answer still reaches the agent."),
        ("cancelled", None, "“Deploy?” needs no answer any more."),
        (
            "interrupted",
            None,
            "Nobody waits for “Deploy?” any more: something urgent came. A late answer still reaches the agent.",
        ),
    ],
)
def test_what_became_of_a_question_is_one_line(state: str, result: str | None, sentence: str) -> None:
    asked = call({"question": "Deploy?"}, state=state, result=result)
    assert wording.ended(asked, None, "Noor") == sentence
    assert "2 “Deploy?”" in wording.ended(asked, 2, "Noor")


@pytest.mark.parametrize(
    ("arguments", "state", "result", "line"),
    [
        ({"word": "hall"}, "answered", "A place", "Ada used look_up(word: hall) → A place"),
        ({"word": "hall", "deep": True}, "answered", "", "Ada used look_up(word: hall, deep: true) → nothing"),
        ({}, "expired", None, "Ada used look_up() → no result in time"),
        ("hall", "cancelled", "why", "Ada used look_up(hall) → not finished"),
    ],
)
def test_what_an_agent_did_is_one_line(arguments: JsonValue, state: str, result: str | None, line: str) -> None:
    assert wording.used(call(arguments, state=state, result=result), "Ada") == line


def test_what_an_agent_did_is_cut_where_it_is_long() -> None:
    line = wording.used(call({"words": "a b " * 500}, result="line\n" * 500), "Ada")
    assert len(line) < wording.ARGUMENT_CHARACTERS + wording.ANSWER_CHARACTERS + 30
    assert "\n" not in line
