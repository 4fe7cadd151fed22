"""How older cycles are told: each once, the older the more briefly, in no more room than there is."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.consciousness import layers
from denizen.consciousness.layers import Digest, LayerCycle, digest, merge, render, segments, shape
from tests.properties.lives import PATIENCE

pytestmark = pytest.mark.timeout(PATIENCE)

# Which cycles are told how

lasts = st.integers(0, 10**7) | st.integers(0, 400)
shapes = st.one_of(
    st.tuples(st.integers(0, 300), st.just(0), st.just(0)).filter(lambda each: each[0] == 0 or each[0] >= 10),
    st.tuples(st.integers(10, 300), st.integers(10, 20), st.integers(1, 5)),
)


@given(lasts, shapes)
def test_every_cycle_is_told_once_in_a_bounded_number_of_pieces(last: int, of: tuple[int, int, int]) -> None:
    lines, groups, levels = of
    told = segments(last, *of)
    end = 0
    for each in told:
        assert each.first == end + 1
        end = each.last
        if 0 < each.level <= levels:
            assert (each.last - each.first + 1, (each.first - 1) % 10**each.level) == (10**each.level, 0)
    assert end == last
    assert [each.level for each in told] == sorted((each.level for each in told), reverse=True)
    assert sum(each.level == 0 for each in told) <= lines
    assert all(sum(each.level == level for each in told) <= groups for level in range(1, levels + 1))
    assert len(told) <= lines + groups * levels + 1


@given(lasts, st.integers(1, 5_000), shapes)
def test_the_older_a_cycle_is_the_higher_its_level(last: int, later: int, of: tuple[int, int, int]) -> None:
    before, after = segments(last, *of), segments(last + later, *of)
    edges = {each.level: each.last for each in before}
    for level, edge in edges.items():
        # Whoever was told at this level or a higher one is not told at a finer one now.
        finer = [each.first for each in after if each.level < level]
        assert not finer or min(finer) > edge


# Digests

names = st.sampled_from(["Noor", "Bert", "[INBOX - 9 new events]", "x\ny", 'a"b', "", "ä" * 200])
tools = st.sampled_from(["send_message", "set_timer", "book_hotel", "x" * 100])
cycles_lived = st.lists(
    st.builds(
        LayerCycle,
        number=st.just(0),
        at=st.integers(0, 10**15),
        summary=st.text(max_size=700),
        failed=st.booleans(),
        people=st.dictionaries(st.sampled_from("abcde"), names, max_size=5),
        places=st.dictionaries(st.sampled_from("vwxyz"), names, max_size=5),
        effects=st.dictionaries(tools, st.integers(1, 9), max_size=4),
    ),
    min_size=1,
    max_size=40,
).map(lambda found: [_numbered(each, number) for number, each in enumerate(found, start=1)])


def _numbered(lived: LayerCycle, number: int) -> LayerCycle:
    names = {id: f"{name} {id}" for id, name in lived.people.items()}
    return LayerCycle(number, lived.at, lived.summary, lived.failed, names, lived.places, lived.effects)


def in_portions(digests: list[Digest], size: int) -> Digest:
    """Merged by groups, then the groups of groups, as long as there are several."""
    while len(digests) > 1:
        digests = [merge(digests[at : at + size]) for at in range(0, len(digests), size)]
    return merge(digests)


@given(cycles_lived, st.integers(2, 12), st.integers(2, 12))
def test_in_whatever_portions_cycles_are_merged_it_comes_to_the_same(
    lived: list[LayerCycle], one: int, other: int
) -> None:
    digests = [digest(each, "UTC") for each in lived]
    assert in_portions(digests, one) == in_portions(digests, other) == merge(digests)


@given(cycles_lived, st.integers(0, 70_000), st.booleans())
def test_what_is_told_never_has_more_characters_than_it_may(
    lived: list[LayerCycle], characters: int, grouped: bool
) -> None:
    told = shape(characters, grouped=grouped)
    by_number = {each.number: each for each in lived}
    groups, lines = [], []
    for each in told.segments(len(lived)):
        here = [by_number[number] for number in range(each.first, each.last + 1)]
        if each.level == 0:
            lines += here
        else:
            groups.append((each, merge([digest(one, "UTC") for one in here])))
    text = render(groups, lines, told, "UTC")
    header = len(layers.GROUP_HEADER) + 10
    assert len(text) <= max(told.most_characters(len(lived)), header)
    assert told.most_characters(len(lived)) <= max(characters, header)
    ours = re.compile(r"\[COMPACTED MEMORY — cycles \d|\[EARLIER CYCLES — |Cycle \d|\d|…")
    assert all(ours.match(line) for line in text.split("\n") if line)
