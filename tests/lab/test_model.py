"""The model of the laboratory follows its history: a process that was killed and one that was not are told the same."""

from __future__ import annotations

import json
from typing import Any

from lab.model import Call, decide

SPACE = "11111111-1111-1111-1111-111111111111"


def inbox(*tasks: str) -> dict[str, Any]:
    lines = [f"{at}. @ines #{at} for ines in {SPACE}: {kind}" for at, kind in enumerate(tasks, 1)]
    return {"role": "user", "content": "\n".join([f"[INBOX - {len(tasks)} new events]", *lines])}


def done(calls: list[Call] | str, result: str = "sent") -> list[dict[str, Any]]:
    """What the history holds when these calls were made, and each had this result."""
    assert isinstance(calls, list)
    made = [
        {"id": f"c{at}", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for at, (name, arguments) in enumerate(calls)
    ]
    results = [{"role": "tool", "tool_call_id": each["id"], "content": result} for each in made]
    return [{"role": "assistant", "tool_calls": made}, *results]


def test_it_acts_then_answers_each_question_then_ends() -> None:
    history = [inbox("note", "plain")]
    first = decide(history, "ines")
    assert first == [("note", {"number": 1})]
    history += done(first, "did 1.")
    second = decide(history, "ines")
    answers = [{"space_id": SPACE, "text": text} for text in ("re #1: done", "re #2: plain")]
    assert second == [("send_message", answer) for answer in answers]
    assert decide([*history, *done(second)], "ines") == "Answered 1, 2."


def test_an_outcome_that_is_not_known_is_told_as_such() -> None:
    history = [inbox("note"), *done([("note", {"number": 1})], "The outcome is unknown.")]
    assert decide(history, "ines") == [("send_message", {"space_id": SPACE, "text": "re #1: unknown"})]


def test_it_leaves_alone_what_is_for_others_and_what_is_past() -> None:
    past = [inbox("plain"), *done([("send_message", {"space_id": SPACE, "text": "re #1: plain"})])]
    new = {"role": "user", "content": f"[INBOX - 1 new event]\n@juri #2 for juri in {SPACE}: plain"}
    assert decide([*past, new], "ines") == [("skip", {"reason": "not for me"})]
