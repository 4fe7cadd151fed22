"""A passage has of each thing that is looked for its own share, or its best neighbour's."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.consciousness.recall.ranking import (
    REACH,
    PassagePosition,
    best_first,
    may_be_wish,
    with_cues,
    with_neighbours,
)

PLACES = st.lists(
    st.tuples(st.sampled_from(["hall", "attic"]), st.integers(0, 3_000), st.integers(0, 300)), min_size=1, max_size=12
).map(lambda given: _in_order(given))


def _in_order(stand: Sequence[tuple[str, int, int]]) -> list[PassagePosition]:
    return [
        PassagePosition(at, space, place, size, "", 0, 0)
        for at, (space, place, size) in enumerate(sorted(stand), start=1)
    ]


@given(places=PLACES, own=st.sampled_from(["", "ada"]), data=st.data())
def test_the_best_neighbours_share_is_what_it_is_by_definition(
    places: list[PassagePosition], own: str, data: st.DataObject
) -> None:
    """Compared with every pair there is; a neighbour of a neighbour is not one by that."""
    rows = data.draw(
        st.lists(st.lists(st.floats(0, 9), min_size=len(places), max_size=len(places)), min_size=1, max_size=3)
    )
    places = [each._replace(speaker=data.draw(st.sampled_from(["ada", "noor"]))) for each in places]
    expected = [[max(_reaching(row, places, at, own)) for at in range(len(places))] for row in rows]
    assert with_neighbours(numpy.array(rows), places, own) == pytest.approx(numpy.array(expected))


def _reaching(row: Sequence[float], places: Sequence[PassagePosition], at: int, own: str) -> list[float]:
    reaching = [row[at]]
    for other, place in enumerate(places):
        first, second = (place, places[at]) if other < at else (places[at], place)
        between = max(second.place - first.place - first.characters, 0)
        if other != at and place.space_id == places[at].space_id and between <= REACH:
            share = 0.4 if own and place.speaker == own and place.characters else 0.8
            reaching.append(row[other] * share * math.exp(-between / 400))
    return reaching


def test_a_message_gets_less_from_the_agents_answer_than_the_answer_gets_from_it() -> None:
    """An answer is about much that nobody asked; but what the agent did, and did not say, counts as ever."""
    asked, answered, did = (PassagePosition(at, "hall", at, int(at < 2), "", 0, 0) for at in range(3))
    places = [asked._replace(speaker="noor"), answered._replace(speaker="ada"), did._replace(speaker="ada")]
    from_answer = with_neighbours(numpy.array([[0.0, 1.0, 0.0]]), places, "ada")
    from_question = with_neighbours(numpy.array([[1.0, 0.0, 0.0]]), places, "ada")
    from_action = with_neighbours(numpy.array([[0.0, 0.0, 1.0]]), places, "ada")
    assert from_answer[0, 0] == pytest.approx(0.4)
    assert from_question[0, 1] == pytest.approx(0.8)
    assert from_action[0, 1] == pytest.approx(0.8)


def test_each_word_comes_from_where_there_is_most_of_it() -> None:
    """What neighbours repeat does not add up; what they add does."""
    places = _in_order([("hall", 0, 10), ("hall", 10, 10), ("hall", 20, 10)])
    repeated = with_neighbours(numpy.array([[1.0, 1.0, 1.0]]), places).sum(axis=0)
    shared_out = with_neighbours(numpy.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), places).sum(axis=0)
    assert repeated.tolist() == [1.0, 1.0, 1.0]
    assert shared_out[1] == pytest.approx(1.6)


@given(scores=st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), max_size=30), limit=st.integers(1, 40))
def test_the_best_come_first_and_of_equals_the_newest(scores: list[float], limit: int) -> None:
    numbers = numpy.arange(1, len(scores) + 1)
    expected = sorted(numbers.tolist(), key=lambda number: (-scores[number - 1], -number))[:limit]
    assert best_first(numbers, numpy.array(scores, float), limit).tolist() == expected


def _ranked(places: Sequence[PassagePosition], here: str = "", own: str = "") -> list[int]:
    ranked = with_cues([5.0] * len(places), places, frozenset(), None, frozenset((here,)), own)
    return sorted(ranked, key=lambda number: -ranked[number])


def test_what_was_said_here_comes_first() -> None:
    places = [PassagePosition(1, "hall", 0, 50, "noor", 0, 0), PassagePosition(2, "attic", 0, 50, "noor", 0, 0)]
    assert _ranked(places, here="attic") == [2, 1]
    assert _ranked(places, here="hall") == [1, 2]


def test_what_takes_much_room_must_be_worth_it() -> None:
    long, short = (PassagePosition(at, "hall", 0, size, "noor", 0, 0) for at, size in ((1, 2_000), (2, 300)))
    assert _ranked([long, short]) == [2, 1]


def test_what_the_agent_answered_comes_after_what_it_was_told() -> None:
    """Not what it did or summarized, which takes no room between messages."""
    said, heard, did = (
        PassagePosition(at, "hall", 0, size, who, 0, 0)
        for at, size, who in ((1, 50, "ada"), (2, 50, "noor"), (3, 0, "ada"))
    )
    assert _ranked([said, heard, did], own="ada") == [2, 3, 1]


def test_the_length_of_a_long_answer_of_its_own_counts_twice() -> None:
    """A short answer takes little room, and may be what is asked for."""
    places = [
        PassagePosition(at, "hall", 0, size, who, 0, 0)
        for at, size, who in ((1, 1_600, "ada"), (2, 1_600, "noor"), (3, 300, "ada"), (4, 300, "noor"))
    ]
    ranked = with_cues([9.0] * 4, places, frozenset(), None, own="ada")
    short, long = ranked[4] - ranked[3], ranked[2] - ranked[1]
    assert (short, long) == (2.0, 6.0)


def test_what_somebody_wishes_is_a_short_message_to_the_agent() -> None:
    """Not what the agent said or did, and not a long text that has such a word somewhere."""
    wish, said, did, long = (
        PassagePosition(at, "hall", 0, size, who, 0, 0)
        for at, size, who in ((1, 50, "noor"), (2, 50, "ada"), (3, 0, "noor"), (4, 2_000, "noor"))
    )
    assert [may_be_wish(each, "ada") for each in (wish, said, did, long)] == [True, False, False, False]
