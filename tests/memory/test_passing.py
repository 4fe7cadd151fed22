"""No message is lost between the summary and the tail, whatever is set and whatever fails."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from denizen.memory import next_messages
from denizen.memory.settings import CompactionProfile

profiles = st.builds(
    CompactionProfile,
    tail_turns=st.integers(0, 30),
    min_turns=st.integers(1, 30),
    max_turns=st.integers(1, 60),
)


@given(profile=profiles, steps=st.lists(st.tuples(st.integers(0, 80), st.booleans()), max_size=30))
def test_every_message_is_summed_up_or_shown(profile: CompactionProfile, steps: list[tuple[int, bool]]) -> None:
    """Messages come, passes are made and fail: what is not in the summary is after the cursor, each once."""
    said, summed, upto = 0, list[int](), 0
    for more, succeeds in steps:
        said += more
        unsummed = list(range(upto + 1, said + 1))[: next_messages.wanted(profile)]
        head = list(next_messages.head(unsummed, profile))
        if not head:
            assert said - upto < profile.tail_turns + profile.min_turns
            continue
        assert head == list(range(upto + 1, upto + 1 + len(head)))
        assert 1 <= len(head) <= profile.max_turns
        assert said - head[-1] >= profile.tail_turns
        if succeeds:
            summed += head
            upto = head[-1]
        assert summed + list(range(upto + 1, said + 1)) == list(range(1, said + 1))


@given(profile=profiles, upto=st.integers(0, 100), more=st.integers(0, 200))
def test_a_pass_is_due_exactly_when_it_is_said_to_be(profile: CompactionProfile, upto: int, more: int) -> None:
    unsummed = list(range(upto + 1, upto + more + 1))[: next_messages.wanted(profile)]
    assert bool(next_messages.head(unsummed, profile)) == (upto + more >= next_messages.due_at(upto, profile))


def test_the_defaults_sum_up_twelve_of_twenty_four_and_keep_twelve() -> None:
    """One message before, nothing; at most 48 at once, however many wait."""
    standard = CompactionProfile()
    assert list(next_messages.head(range(1, 24), standard)) == []
    assert list(next_messages.head(range(1, 25), standard)) == list(range(1, 13))
    waiting = range(1, 201)[: next_messages.wanted(standard)]
    assert len(next_messages.head(waiting, standard)) == 48
