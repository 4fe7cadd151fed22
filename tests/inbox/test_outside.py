"""Data and text from outside: what can be stored, how deep it may be nested, and where it came from."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import JsonValue

from denizen.errors import InvalidInput
from denizen.inbox import sources
from denizen.inbox.events import Event, EventType
from denizen.inbox.outside import MAX_NESTING, NESTING, check_data, is_deep, parsed, storable_data
from denizen.inbox.sources import Source, source_of_author, source_of_event, sources_of_events


def nested(levels: int) -> JsonValue:
    """Lists and objects in turn; the innermost is empty."""
    data: JsonValue = []
    for level in range(levels):
        data = [1, data] if level % 2 else {"a": 1, "b": data}
    return data


def test_what_no_database_can_hold_is_replaced_everywhere() -> None:
    data: JsonValue = {"a\0": ["b\0", {"c": "\ud800"}], "n": [1, 2.5, None, True]}
    assert storable_data(data) == {"a\ufffd": ["b\ufffd", {"c": "\ufffd"}], "n": [1, 2.5, None, True]}


@pytest.mark.parametrize("levels", [1, 5, NESTING])
def test_data_may_be_nested_so_deep_and_no_deeper(levels: int) -> None:
    assert not is_deep(nested(levels), levels)
    assert is_deep(nested(levels + 1), levels)
    assert not is_deep("text", 0)


def test_data_may_be_as_large_as_the_limit_and_no_larger() -> None:
    check_data({"a": "é"}, 9)
    with pytest.raises(InvalidInput, match="may have 8 characters, these have 9"):
        check_data({"a": "é"}, 8)
    check_data(nested(NESTING), 10_000)
    with pytest.raises(InvalidInput, match="nested deeper"):
        check_data(nested(NESTING + 1), 10_000)
    with pytest.raises(InvalidInput, match="no NaN"):
        check_data({"a": float("nan")}, 100)


def test_text_is_parsed_if_it_is_json_that_is_not_too_deep() -> None:
    assert parsed('{"a": [1]}') == {"a": [1]}
    assert parsed("no JSON") is None
    assert parsed("[" * 100_000 + "]" * 100_000) is None
    assert parsed("[" * (MAX_NESTING + 1) + "]" * (MAX_NESTING + 1)) is not None
    assert parsed("[" * (MAX_NESTING + 2) + "1" + "]" * (MAX_NESTING + 2)) is None


@pytest.mark.parametrize(
    ("kind", "more", "source"),
    [
        ("space_message", {"sender_kind": "person", "sender_id": "p1"}, Source("guest", "p1")),
        ("mention", {"sender_kind": "agent", "sender_id": "a1"}, Source("agent", "a1")),
        ("space_message", {"sender_kind": "service", "sender_id": "s1"}, Source("service", "s1")),
        ("space_message", {}, Source("guest", "")),
        ("service_trigger", {"payload": {"service": "Mail"}}, Source("service", "Mail")),
        ("service_trigger", {"payload": {"service": 3}}, Source("service", "")),
        ("tool_result", {"payload": {"tool": "look_up"}}, Source("tool", "look_up")),
        ("plan_trigger", {"payload": {"plan_name": "Tea"}}, Source("plan", "Tea")),
        ("timer", {}, Source("plan", "timer")),
        ("notice", {}, Source("service", "notice")),
    ],
)
def test_each_event_from_outside_has_a_source(kind: EventType, more: dict[str, Any], source: Source) -> None:
    event = Event(1, "e", kind, "normal", 0, True, 0, 0, "", **{"outside": True, **more})
    assert source_of_event(event) == source
    inside = Event(1, "e", kind, "normal", 0, True, 0, 0, "", **{**more, "outside": False})
    assert source_of_event(inside) is None
    assert sources_of_events([event, inside, event]) == (source,)


def test_sources_are_stored_and_loaded_again() -> None:
    found = (source_of_author("agent", "a1"), Source("tool", "Tür"))
    stored = sources.dump(found)
    assert stored == '[{"agent": "a1"}, {"tool": "Tür"}]'
    assert sources.load(stored) == found
    sources.checked(stored)
    assert sources.dump(None) is sources.load(None) is None
    sources.checked(None)
    assert sources.load('[{"forgotten": "x"}]') == (Source("service", "x"),)


@pytest.mark.parametrize("stored", ['[{"forgotten": "x"}]', '[{"tool": 3}]'])
def test_sources_that_cannot_be_loaded_are_refused(stored: str) -> None:
    with pytest.raises(ValueError, match="is not a kind of source"):
        sources.checked(stored)
