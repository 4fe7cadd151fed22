"""Votes, checks and suggestions: what is made of a model's answer, whatever it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.tools import ToolDefinition

from denizen.errors import InvalidInput, ModelRejected
from denizen.panel import assertions, suggesting, voting
from denizen.panel.context import OtherReply
from denizen.panel.voting import Camp, tally


def called(tool: str, args: Any) -> ModelResponse:
    return ModelResponse(parts=[ToolCallPart(tool, args, "call_0")])


def wrote(text: str) -> ModelResponse:
    return ModelResponse(parts=[TextPart(text)])


VOTE = {"position": "yes", "confidence": 0.8, "reason": "It pays."}


def test_what_is_checked_is_listed_from_one_on_each_on_a_line() -> None:
    """The verdicts come back in the order of the list."""
    *_, asked = assertions.lines(OtherReply("r", "v", "Seth", "Sell."), ("Is\nshort.", "Asks."))
    assert asked.text == "The expectations:\n1. Is short.\n2. Asks.\n\nReport now."


@pytest.mark.parametrize(
    ("response", "vote"),
    [
        (called("vote", VOTE), VOTE),
        (wrote('I vote:\n```json\n{"position": " yes ", "confidence": "80", "reason": "It\\npays."}\n```'), VOTE),
        (wrote('{"position": "yes", "confidence": 80, "reason": "It pays."}'), VOTE),
        (called("vote", {"position": "wait"}), {"position": "wait", "confidence": 0.5, "reason": ""}),
        (called("vote", {"position": "no", "confidence": "NaN"}), {"position": "no", "confidence": 0.5, "reason": ""}),
        (called("vote", {"position": "no", "confidence": -3}), {"position": "no", "confidence": 0.0, "reason": ""}),
        (called("vote", {"position": "  "}), None),
        (called("vote", "{broken"), None),
        (wrote("Yes, surely."), None),
        (wrote('{"position": ' * 9_000 + "}"), None),
    ],
    ids=[
        "called",
        "fenced",
        "percent",
        "bare",
        "not a number",
        "less than nothing",
        "empty",
        "broken",
        "prose",
        "deep",
    ],
)
def test_a_vote_is_read(response: ModelResponse, vote: dict[str, Any] | None) -> None:
    assert voting.read(response) == vote


@pytest.mark.parametrize(
    ("question", "options"),
    [
        ("Open it? Options: open it | wait", ("open it", "wait")),
        ("Open it?\n\nOptions: open it | wait | open it |", ("open it", "wait")),
        ("Which options: none named here", ()),
        ("Options: one |", ()),
        ("", ()),
        (None, ()),
    ],
)
def test_options_are_named_at_the_end_of_the_question(question: str | None, options: tuple[str, ...]) -> None:
    assert voting.options_in(question) == options
    position = voting.tool_for(question).parameters_json_schema["properties"]["position"]
    assert tuple(position.get("enum", ())) == options


@pytest.mark.parametrize(
    ("position", "option"),
    [("open it", "open it"), ("Yes, open it.", "open it"), ("WAIT", "wait"), ("sell it", None), ("", None)],
)
def test_a_vote_is_for_one_of_the_options(position: str, option: str | None) -> None:
    tool = voting.tool_for("Open it? Options: open it | wait")
    vote = voting.read(called("vote", {"position": position, "confidence": 1, "reason": "Why not?"}), tool)
    assert (None if vote is None else vote["position"]) == option


def test_a_tally_has_camps_and_says_who_stands_apart() -> None:
    votes = {
        "a": {"position": "Yes.", "confidence": 0.9},
        "b": {"position": "no", "confidence": 0.5},
        "c": {"position": "yes", "confidence": 0.3},
    }
    told = tally(votes)
    assert told.camps == (Camp("Yes.", ("a", "c"), 0.6, 1.2), Camp("no", ("b",), 0.5, 0.5))
    assert told.leading == "Yes."
    assert told.dissent == {
        "a": {"a": 0.0, "b": 0.7, "c": 0.0},
        "b": {"a": 0.7, "b": 0.0, "c": 0.4},
        "c": {"a": 0.0, "b": 0.4, "c": 0.0},
    }
    even = tally({"a": {"position": "x", "confidence": 0.5}, "b": {"position": "y", "confidence": 0.5}})
    assert (even.leading, tally({}).leading) == (None, None)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Open it", "Yes, open it."),
        ("Wait", "I would wait!"),
        ("don't sign", "Do not sign the"),
        ("Yes", "yes."),
    ],
)
def test_positions_that_say_the_same_are_one_camp(one: str, other: str) -> None:
    votes = {"a": {"position": one, "confidence": 0.5}, "b": {"position": other, "confidence": 0.5}}
    assert [camp.voices for camp in tally(votes).camps] == [("a", "b")]


@pytest.mark.parametrize(
    ("one", "other"), [("Open it", "No, open it not"), ("Open it", "Do not open it"), ("yes", "no"), ("👍", "👎")]
)
def test_positions_that_contradict_each_other_are_two_camps(one: str, other: str) -> None:
    votes = {"a": {"position": one, "confidence": 0.5}, "b": {"position": other, "confidence": 0.5}}
    assert len(tally(votes).camps) == 2


@pytest.mark.parametrize(
    ("question", "positions", "grouped"),
    [
        ("Open it?", ["Yes", "yes.", "Next year"], ("Yes", "Next year")),
        ("Open it?", ["Yes", "yes."], ()),
        ("Open it?", [], ()),
        ("Open it? Options: yes | no", ["yes", "no"], ()),
    ],
)
def test_positions_are_grouped_only_if_they_differ(
    question: str, positions: list[str], grouped: tuple[str, ...]
) -> None:
    """A model would be paid for nothing where all say the same, or have chosen among options."""
    assert voting.positions_to_group(question, [{"position": each} for each in positions]) == grouped


@pytest.mark.parametrize("tool", [assertions.tool(), voting.tool()], ids=lambda tool: tool.name)
def test_what_a_model_reports_has_no_fields_of_its_own_making(tool: ToolDefinition) -> None:
    """Providers that keep a model to the schema refuse one that allows other fields anywhere."""

    def objects(schema: Any) -> Iterator[dict[str, Any]]:
        if isinstance(schema, dict):
            yield from [schema] if schema.get("type") == "object" else []
            for each in schema.values():
                yield from objects(each)

    found = list(objects(tool.parameters_json_schema))
    assert found
    assert [each.get("additionalProperties") for each in found] == [False] * len(found)


def test_verdicts_stand_beside_what_was_expected() -> None:
    given = {"verdicts": [{"passed": True, "why": "It  does."}, {"passed": False, "why": ""}]}
    assert assertions.read(called("report", given), ["Asks.", "Is brief."]) == {
        "verdicts": [
            {"expected": "Asks.", "passed": True, "why": "It does."},
            {"expected": "Is brief.", "passed": False, "why": ""},
        ],
        "passed": False,
    }


@pytest.mark.parametrize(
    "given", [{"verdicts": []}, {"verdicts": [{"passed": "perhaps"}]}, {"verdicts": "all"}, {}, "broken"]
)
def test_verdicts_that_do_not_fit_are_none(given: Any) -> None:
    assert assertions.read(called("report", given), ["Asks."]) is None


def test_suggestions_are_read_each_once() -> None:
    given = [
        {"name": "Hannah  Arendt", "kind": "figure", "description": "You ask.", "reason": "Knows."},
        {"name": "hannah arendt", "kind": "figure", "description": "Again.", "reason": ""},
        {"name": "Seth Godin", "kind": "figure", "description": "", "reason": ""},
        {"name": "", "kind": "role"},
        {"kind": "role"},
        "An accountant",
        {"name": "A nurse", "kind": "healer"},
    ]
    found = suggesting.read(called("suggest", {"advisors": given}), ["Seth Godin"])
    assert [(each.name, each.kind) for each in found] == [("Hannah Arendt", "figure"), ("A nurse", "role")]
    with pytest.raises(ModelRejected):
        suggesting.read(wrote("I would rather not."), [])


def test_a_topic_is_needed() -> None:
    with pytest.raises(InvalidInput, match="topic"):
        suggesting.lines("  ", [])
    with pytest.raises(InvalidInput, match="count"):
        suggesting.lines("Bread", [], 99)
    assert "There are already: Ada." in suggesting.lines("Bread", ["Ada"])[1].text
