"""Arguments are shown while they are written, and what is shown is what is meant."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.models.partial_json import PartialArguments

TEXT = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from('"\\/\n\u2028😀é{}[],:'))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


def cut(text: str, places: list[int]) -> list[str]:
    marks = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    return [text[start:end] for start, end in pairwise(marks)]


@given(
    st.dictionaries(TEXT, VALUES, max_size=4),
    st.lists(st.integers(0, 10_000), max_size=30),
    st.booleans(),
    st.booleans(),
)
def test_any_object_cut_anywhere_is_known_in_the_end_and_never_wrongly_before(
    arguments: dict[str, Any], places: list[int], ascii_only: bool, spaced: bool
):
    written = json.dumps(arguments, ensure_ascii=ascii_only, indent=1 if spaced else None)
    partial = PartialArguments()
    heard: dict[str, str] = {}
    for piece in cut(written, places):
        for key, text in partial.feed(piece):
            heard[key] = heard.get(key, "") + text
        known = partial.known
        assert all(known[key] == arguments[key] for key in partial.complete)
        for key, text in heard.items():
            assert known[key] == text
            assert arguments[key].startswith(text)
    assert partial.known == arguments
    assert partial.complete == arguments.keys()
    assert partial.finished
    assert not partial.broken
    assert heard == {key: value for key, value in arguments.items() if isinstance(value, str) and value}


def test_one_character_at_a_time_gives_every_character_once():
    partial = PartialArguments()
    heard = [piece for char in '{"to": "all", "text": "a\\n\\ud83d\\ude00\\\\\\"é"}' for piece in partial.feed(char)]
    assert "".join(text for key, text in heard if key == "text") == 'a\n😀\\"é'
    assert all("\ud83d" not in text for _, text in heard)


@given(
    st.dictionaries(TEXT, TEXT | st.lists(TEXT, max_size=2), max_size=3), st.lists(st.integers(0, 10_000), max_size=30)
)
def test_characters_that_come_in_halves_are_whole(arguments: dict[str, Any], places: list[int]):
    """Cut between any two units of UTF-16, as by a provider that counts so."""
    units = json.dumps(arguments, ensure_ascii=False).encode("utf-16-le")
    written = "".join(units[at : at + 2].decode("utf-16-le", "surrogatepass") for at in range(0, len(units), 2))
    partial = PartialArguments()
    heard: dict[str, str] = {}
    for piece in cut(written, places):
        for key, text in partial.feed(piece):
            heard[key] = heard.get(key, "") + text
        for key, text in heard.items():
            assert arguments[key].startswith(text)
    assert partial.known == arguments
    assert partial.finished


def test_a_target_is_certain_before_the_text_begins():
    partial = PartialArguments()
    partial.feed('{"space": "kit')
    assert partial.known == {"space": "kit"}
    assert partial.complete == set()
    partial.feed('chen", "text": "He')
    assert partial.known == {"space": "kitchen", "text": "He"}
    assert partial.complete == {"space"}
    assert not partial.finished


def test_a_nested_value_is_shown_as_far_as_it_has_come():
    partial = PartialArguments()
    partial.feed('{"plan": {"steps": ["wake", "ma')
    assert partial.known == {"plan": {"steps": ["wake", "ma"]}}
    assert partial.complete == set()


def test_half_a_surrogate_pair_is_replaced():
    partial = PartialArguments()
    heard = "".join(text for piece in ('{"a": "x\\ud83', "d", 'y\\ude00"}') for _, text in partial.feed(piece))
    assert heard == "x\ufffdy\ufffd"


@pytest.mark.parametrize(
    "written",
    [
        '["a"]',
        '{"a" "b"}',
        '{"a": "b" "c": 1}',
        "text",
        '{"a": 1} {',
        '{"a": tru, "b": 1}',
        '{"a": "\\x"}',
        "{1: 2}",
        '{"a": "b"]',
    ],
)
def test_what_is_no_object_is_broken_not_an_error(written: str):
    partial = PartialArguments()
    for char in written:
        partial.feed(char)
    assert partial.broken
