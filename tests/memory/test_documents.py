"""What a utility model writes is believed only if it is whole, and every item says where it comes from."""

from __future__ import annotations

import json

import pytest

from denizen.memory import documents
from denizen.memory.documents import Memory, Unusable


def text(**memory: object) -> str:
    return json.dumps({"summary_markdown": "They talked.", "memory_json": memory})


def test_both_a_summary_and_a_memory_are_written() -> None:
    found = documents.read(text(facts=[{"text": "It rains.", "confidence": 0.5, "sources": [1]}], tags=["rain"]), [1])
    assert found.summary_markdown == "They talked."
    assert [(each.text, each.confidence, each.sources) for each in found.memory_json.facts] == [
        ("It rains.", 0.5, (1,))
    ]
    assert found.memory_json.tags == ("rain",)


def test_a_fenced_answer_is_an_answer() -> None:
    assert documents.read(f"```json\n{text()}\n```", []).memory_json == Memory()


def test_an_item_without_a_source_that_is_known_is_left_out() -> None:
    items = [{"text": "A.", "sources": [1, 99]}, {"text": "B.", "sources": [99]}, "C.", {"text": " "}]
    assert [(each.text, each.sources) for each in documents.read(text(facts=items), [1, 2]).memory_json.facts] == [
        ("A.", (1,))
    ]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (text()[:-5], "no JSON"),
        ("They talked.", "no JSON"),
        (json.dumps({"memory_json": {}}), "summary_markdown"),
        (json.dumps({"summary_markdown": " ", "memory_json": {}}), "says nothing"),
        (text(facts=[{"text": "A.", "confidence": 7, "sources": [1]}]), "confidence"),
        ("[" * 60_000 + "]" * 60_000, "nested too deep"),
    ],
    ids=["cut off", "no JSON", "no summary", "empty summary", "too sure", "deep"],
)
def test_what_is_not_whole_is_unusable_and_says_why(written: str, said: str) -> None:
    with pytest.raises(Unusable, match=said):
        documents.read(written, [1])


def test_a_memory_round_trips_through_storage() -> None:
    memory = documents.read(
        text(todos=[{"text": "Buy tea.", "sources": [1], "replaces": "Buy milk."}]), [1]
    ).memory_json
    assert documents.load(documents.dump(memory)) == memory
