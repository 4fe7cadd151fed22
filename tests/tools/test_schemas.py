"""Arguments against a JSON Schema: what fits passes as it is, what does not is told to the model."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from denizen.agents.definition import AgentDefinition
from denizen.errors import InvalidInput
from denizen.tools import schemas
from denizen.tools.schemas import CACHED_CHARACTERS, checker, compile_schema, schema_problem
from denizen.tools.settings import ClientTool
from denizen.tools.tool import explain_arguments

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
        ("", '"city" is a required property'),
        (None, '"city" is a required property'),
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not a JSON object"),
        ("null", "not a JSON object"),
        ('{"city": 3}', 'city: 3 is not of type "string"'),
        ('{"city": "Oslo", "nights": 0}', "nights: 0 is less than the minimum"),
        ('{"city": "Oslo", "stars": 5}', "'stars' was unexpected"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_in_words(written: Any, why: str):
    with pytest.raises(InvalidInput, match="book was not called") as refused:
        checker("book", SCHEMA)(written)
    assert why in str(refused.value)


def test_the_first_five_of_many_problems_are_told():
    many = {"type": "object", "properties": {each: {"type": "integer"} for each in "abcdefg"}}
    with pytest.raises(InvalidInput) as refused:
        checker("book", many)(dict.fromkeys("abcdefg", "x"))
    assert str(refused.value).count("is not of type") == 5


def test_a_long_wrong_value_is_not_told_back_whole():
    with pytest.raises(InvalidInput) as refused:
        checker("book", SCHEMA)({"city": ["x" * 10_000]})
    assert len(str(refused.value)) < 1_000


def test_a_schema_elsewhere_is_not_fetched():
    """A server that describes its tools must not make us call an address of its choice."""
    outside = {"type": "object", "properties": {"city": {"$ref": "http://127.0.0.1:9/city.json"}}}
    assert "References lead to places in the same schema" in (schema_problem(outside) or "")
    with pytest.raises(InvalidInput, match="its schema cannot be used"):
        checker("book", outside)({"city": "Oslo"})


def of(**keywords: Any) -> dict[str, Any]:
    """A schema of arguments with one argument."""
    return {"type": "object", "properties": {"a": keywords}}


def test_a_pattern_is_matched_in_linear_time():
    """In an engine that tries every way, these letters take longer than anyone lives."""
    check = checker("book", of(pattern="^(a+)+$"))
    assert check({"a": "a" * 1_000}) == {"a": "a" * 1_000}
    for wrong in ("a" * 1_000 + "!", "a" * 90_000 + "!"):
        with pytest.raises(InvalidInput, match="book was not called"):
            check({"a": wrong})


@pytest.mark.parametrize("pattern", ["(?=a)b", "(?<!a)b", r"(a)\1", "[", r"(\w{1,500}){1,500}"])
def test_a_pattern_that_cannot_be_matched_in_linear_time_is_refused_and_otherwise_left_out(pattern: str):
    """Whoever defines a tool is told. Of what was stored before, or comes from a vendor, the rest is checked."""
    for schema, place in [
        (of(type="string", pattern=pattern), "properties.a.pattern"),
        (of(type="string") | {"patternProperties": {pattern: {"type": "integer"}}}, f"patternProperties.{pattern}"),
    ]:
        problem = schema_problem(schema) or ""
        assert f"the pattern at {place} cannot be used" in problem
        assert "look-around" in problem
        assert compile_schema(schema).unusable_patterns == (place,)
        check = checker("book", schema)
        assert check({"a": "anything"}) == {"a": "anything"}
        with pytest.raises(InvalidInput, match="is not of type"):
            check({"a": 3})


def test_what_is_too_long_to_be_matched_is_refused_unless_another_checks_it_too():
    """A pattern of some hundred states takes ten microseconds for a character."""
    schema = of(type="string", pattern="^a+$") | {"$defs": {"b": {"pattern": "b"}}}
    with pytest.raises(InvalidInput, match="too large"):
        checker("book", schema)({"a": "a" * 60_000})
    check = checker("book", compile_schema(schema, patterns_are_optional=True))
    assert check({"a": "b" * 60_000})
    with pytest.raises(InvalidInput, match="does not match"):
        check({"a": "b"})


@pytest.mark.parametrize(
    ("limit", "of_arguments"),
    [("MAX_DEPTH", "depth"), ("MAX_CHARACTERS", "characters"), ("MAX_MATCHING", "characters"), ("MAX_WORK", "values")],
)
def test_arguments_may_be_as_large_as_the_limit_and_no_larger(
    monkeypatch: pytest.MonkeyPatch, limit: str, of_arguments: str
) -> None:
    given = {"a": "a" * 9, "b": [{"c": 1}]}
    check = checker("book", of(type="string", pattern="^a+$"))
    visits = compile_schema(of(type="string", pattern="^a+$")).visits if limit == "MAX_WORK" else 1
    size = getattr(schemas._measure(given), of_arguments) * visits
    monkeypatch.setattr(schemas, limit, size)
    assert check(given) == given
    monkeypatch.setattr(schemas, limit, size - 1)
    with pytest.raises(InvalidInput, match=r"too large|nested more than"):
        check(given)


@pytest.mark.parametrize(
    ("limit", "of_schema"),
    [("MAX_DEPTH", "depth"), ("MAX_SCHEMA_CHARACTERS", "characters"), ("MAX_PATTERNS", "patterns")],
)
def test_a_schema_may_be_as_large_as_the_limit_and_no_larger(
    monkeypatch: pytest.MonkeyPatch, limit: str, of_schema: str
) -> None:
    schema = of(type="string", pattern="^a+$")
    size = getattr(schemas._measure(schema), of_schema)
    monkeypatch.setattr(schemas, limit, size)
    assert schema_problem(schema) is None
    monkeypatch.setattr(schemas, limit, size - 1)
    assert schema_problem(schema) is not None


def test_only_patterns_are_left_out():
    """A value that is allowed and looks like a pattern stays as it is."""
    schema = of(enum=[{"pattern": "(?=a)b"}])
    assert schema_problem(schema) is None
    assert checker("book", schema)({"a": {"pattern": "(?=a)b"}})


def test_a_small_schema_is_compiled_once():
    """Tools are made anew whenever their agent wakes. Large schemas are not cached: the cache stays small."""
    assert compile_schema(of(type="string", minLength=1)) is compile_schema(of(type="string", minLength=1))
    assert compile_schema(of(const=1)) is not compile_schema(of(const=1.0))
    optional = compile_schema(of(pattern="a"), patterns_are_optional=True)
    assert optional is not compile_schema(of(pattern="a"))
    large = of(description="x" * CACHED_CHARACTERS)
    assert compile_schema(large) is not compile_schema(large)


def doubling(levels: int) -> dict[str, Any]:
    """Each part refers twice to the one below it."""
    parts: dict[str, Any] = {"d0": {"type": "integer"}}
    for at in range(1, levels + 1):
        parts[f"d{at}"] = {"anyOf": [{"$ref": f"#/$defs/d{at - 1}"}, {"$ref": f"#/$defs/d{at - 1}"}]}
    return of(**{"$ref": f"#/$defs/d{levels}"}) | {"$defs": parts}


def nested(levels: int, **keywords: Any) -> dict[str, Any]:
    schema = dict(keywords)
    for _ in range(levels):
        schema = {"properties": {"a": schema}}
    return {"type": "object", **schema}


TWICE_EACH_LEVEL = {
    "type": "object",
    "anyOf": [{"required": ["b"]}, {"properties": {"a": {"$ref": "#"}}}, {"properties": {"a": {"$ref": "#"}}}],
}
"""For each level of the arguments, twice as much of it applies."""


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (doubling(40), "too complex"),
        (TWICE_EACH_LEVEL, "too complex"),
        (of(**{"$ref": "#/$defs/a"}) | {"$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}}, "refers to itself"),
        (
            of(**{"$ref": "#/$defs/d0"}) | {"$defs": {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(5_000)}},
            "too complex",
        ),
        (nested(40), "too large"),
        (nested(10_000), "too large"),
        (of(description="x" * 300_000), "too large"),
        (of(anyOf=[{"pattern": f"a{n}"} for n in range(51)]), "more than 50 patterns"),
        (of(**{"$ref": "#/$defs/missing"}), "refers to '#/$defs/missing'"),
        (of(**{"$dynamicRef": "#a"}), "uses $dynamicRef"),
        (of(**{"$id": "http://127.0.0.1/a"}), "`$id`"),
        (of(default={1, 2}), "not JSON"),
    ],
)
def test_a_schema_that_would_cost_too_much_is_refused(schema: dict[str, Any], why: str):
    assert why in (schema_problem(schema) or "")
    with pytest.raises(InvalidInput, match="book was not called, because its schema cannot be used"):
        checker("book", schema)({"a": 1})


@pytest.mark.parametrize(
    "schema",
    [
        doubling(5),
        nested(20, type="string"),
        # A tree, and any JSON: they refer to themselves, for values below.
        {
            "type": "object",
            "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "all": {"items": {"$ref": "#"}}},
        },
        of(**{"$ref": "#/$defs/json"})
        | {
            "$defs": {
                "json": {
                    "anyOf": [
                        {"type": ["string", "number", "boolean", "null"]},
                        {"type": "array", "items": {"$ref": "#/$defs/json"}},
                        {"type": "object", "additionalProperties": {"$ref": "#/$defs/json"}},
                    ]
                }
            }
        },
    ],
)
def test_nesting_and_references_as_people_write_them_are_allowed(schema: dict[str, Any]):
    assert schema_problem(schema) is None
    with pytest.raises(InvalidInput, match="nested more than 64 deep"):
        checker("book", schema)("{" + '"a": {' * 64 + "}" * 65)


LONG = {"a": {"text": "x" * 250_000}}


@pytest.mark.parametrize(
    ("schema", "given", "why"),
    [
        (of(), {"a": "x" * 300_000}, "too large, with 300,0"),
        (of(items={"anyOf": [{"type": "string"}] * 300}), {"a": [1] * 30_000}, "too large"),
        # The library copies the arguments for each of these problems: it would take seconds to be told them all.
        (of(required=[f"n{n}" for n in range(3_000)]), LONG, '"n0" is a required property; a: "n1" is'),
        (of(properties={"text": {"anyOf": [{"type": "integer"}] * 900}}), LONG, "a value does not fit the schema"),
        (of(properties={"text": {"maxLength": 9}}), LONG, "a value does not fit the schema"),
        # What is short stays as it is, and is named: a number in place of a text, also in a list.
        (
            of(properties={"n": {"type": "string"}}),
            {"a": {"n": 7, "text": "x" * 5_000}},
            'a.n: 7 is not of type "string"',
        ),
        (of(items={"type": "string"}), {"a": [["x" * 5_000]]}, 'a.0: ["xxx'),
    ],
)
def test_long_arguments_are_refused_without_much_work(schema: dict[str, Any], given: dict[str, Any], why: str):
    assert schema_problem(schema) is None
    with pytest.raises(InvalidInput, match="book was not called") as refused:
        checker("book", schema)(given)
    assert why in str(refused.value)
    assert len(str(refused.value)) < 1_000


def test_a_name_that_is_no_text_is_refused():
    with pytest.raises(InvalidInput, match="cannot be checked"):
        checker("book", SCHEMA)({"\ud800": 1})


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "string"}, "must be the schema of an object"),
        ({}, "must be the schema of an object"),
        (
            {"type": "object", "properties": {"city": {"type": "text"}}},
            "not a valid JSON Schema at properties.city.type",
        ),
    ],
)
def test_a_schema_that_cannot_be_used_is_named(schema: dict[str, Any], why: str):
    assert why in (schema_problem(schema) or "")


def test_a_good_schema_has_no_problem():
    assert schema_problem(SCHEMA) is None


def test_an_agent_that_was_stored_with_such_a_pattern_is_still_an_agent():
    """It was allowed once. The tool goes on without the pattern; whoever edits it is told."""
    tool = {"kind": "client", "name": "ask", "description": "Ask.", "parameters": of(pattern="(?=a)b")}
    stored = json.dumps({"tools": [tool]})
    (loaded,) = AgentDefinition.load(stored).tools
    assert isinstance(loaded, ClientTool)
    assert loaded.parameters == of(pattern="(?=a)b")
    with pytest.raises(ValidationError, match="look-around"):
        AgentDefinition.model_validate_json(stored)


class Journey(BaseModel):
    """With more fields than a model is told of at once."""

    a: int
    b: int
    c: int
    d: int
    e: int
    stops: list[int]


def test_the_first_five_wrong_arguments_are_named_with_their_places() -> None:
    with pytest.raises(ValidationError) as wrong:
        Journey.model_validate({"stops": [1, "far"]})
    told = explain_arguments("travel", wrong.value)
    assert (
        told
        == "travel was not called, because its arguments are wrong: "
        + "; ".join(f"{name}: Field required" for name in "abcde")
        + "."
    )
    with pytest.raises(ValidationError) as wrong:
        Journey.model_validate({**dict.fromkeys("abcde", 1), "stops": [1, "far"]})
    assert "wrong: stops.1: Input should be a valid integer" in explain_arguments("travel", wrong.value)
    with pytest.raises(ValidationError) as wrong:
        Journey.model_validate([])
    assert "wrong: arguments: Input should be a valid dictionary" in explain_arguments("travel", wrong.value)
