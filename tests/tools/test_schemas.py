"""Arguments against a JSON Schema: what fits passes as it is, what does not is told to the model."""

from __future__ import annotations

from typing import Any

import pytest

from denizen.errors import InvalidInput
from denizen.tools.schemas import checker, schema_problem

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "nights": {"type": "integer", "minimum": 1}},
    "required": ["city"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("written", "checked"),
    [
        ('{"city": "Oslo"}', {"city": "Oslo"}),
        ({"city": "Oslo", "nights": 2}, {"city": "Oslo", "nights": 2}),
    ],
)
def test_arguments_that_fit_pass_as_they_are(written: Any, checked: dict[str, Any]):
    assert checker("book", SCHEMA)(written) == checked


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("", "'city' is a required property"),
        (None, "'city' is a required property"),
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not a JSON object"),
        ("null", "not a JSON object"),
        ('{"city": 3}', "city: 3 is not of type 'string'"),
        ('{"city": "Oslo", "nights": 0}', "nights: 0 is less than the minimum"),
        ('{"city": "Oslo", "stars": 5}', "'stars' was unexpected"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_in_words(written: Any, why: str):
    with pytest.raises(InvalidInput, match="book was not called") as refused:
        checker("book", SCHEMA)(written)
    assert why in str(refused.value)


def test_a_long_wrong_value_is_not_told_back_whole():
    with pytest.raises(InvalidInput) as refused:
        checker("book", SCHEMA)({"city": ["x" * 10_000]})
    assert len(str(refused.value)) < 1_000


def test_a_schema_elsewhere_is_not_fetched():
    """A server that describes its tools must not make us call an address of its choice."""
    outside = {"type": "object", "properties": {"city": {"$ref": "http://127.0.0.1:9/city.json"}}}
    with pytest.raises(InvalidInput, match="schema of its arguments cannot be used"):
        checker("book", outside)({"city": "Oslo"})


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "string"}, "must be the schema of an object"),
        ({}, "must be the schema of an object"),
        ({"type": "object", "properties": {"city": {"type": "text"}}}, "no valid JSON Schema at properties.city.type"),
    ],
)
def test_a_schema_that_cannot_be_used_is_named(schema: dict[str, Any], why: str):
    assert why in (schema_problem(schema) or "")


def test_a_good_schema_has_no_problem():
    assert schema_problem(SCHEMA) is None
