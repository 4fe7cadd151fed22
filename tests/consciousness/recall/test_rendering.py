"""How what is recalled is chosen and shown."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from denizen.consciousness.recall.fetching import RecalledPassage
from denizen.consciousness.recall.rendering import pack, render
from tests.consciousness.recall.lives import MINUTE, START


def passage(
    number: int, text: str = "Hello.", *, minute: int = 0, kind: str = "heard", space: str = "Home"
) -> RecalledPassage:
    who = "Noor" if kind == "heard" else ""
    return RecalledPassage(
        number, number, START + minute * MINUTE, kind, space, space, who, text, "", 1.0 / (number + 1)
    )


FOUND = st.lists(
    st.builds(
        passage,
        st.integers(1, 99),
        st.text(max_size=300),
        minute=st.integers(0, 5_000),
        kind=st.sampled_from(["heard", "said", "did", "summary"]),
        space=st.sampled_from(["Home", "Work", ""]),
    ),
    max_size=20,
    unique_by=lambda each: each.number,
)


@given(FOUND, st.integers(0, 600))
def test_what_is_shown_fits(found: list[RecalledPassage], tokens: int) -> None:
    """Headers and names included; and what is shown is of what was found, in order of time."""
    chosen = pack(found, tokens=tokens)
    assert len(render(chosen)) <= 4 * tokens
    assert all(each in found for each in chosen)
    assert [each.at for each in chosen] == sorted(each.at for each in chosen)


def test_the_best_come_first_and_short_ones_fill_the_rest() -> None:
    """A long one that does not fit does not end the choice."""
    found = [passage(1, "a" * 200), passage(2, "b" * 900), passage(3, "c" * 100)]
    assert [each.number for each in pack(found, tokens=150)] == [1, 3]


def test_lines_that_are_shorter_below_their_like_leave_room_for_more() -> None:
    """Of one speaker at one time: each was reckoned with a name and a time that it is shown without."""
    found = [passage(number, f"Word {number}.") for number in range(1, 41)]
    room = len(render(found)) + 60
    assert pack(found, tokens=-(-room // 4)) == found


def test_spaces_and_days_have_headers() -> None:
    shown = [
        passage(1, "Good morning.", minute=0),
        passage(2, "At work.", minute=5, space="Work"),
        passage(3, "Good night.", minute=600),
        passage(4, "Said\nin two lines.", minute=2_000, kind="said"),
        passage(5, "fetch_page {}", minute=2_001, kind="did", space=""),
    ]
    assert render(shown).split("\n") == [
        '["Home" | Monday 2026-01-05 | cycles 1–3]',
        '09:00 Noor: "Good morning."',
        '19:00 Noor: "Good night."',
        "",
        '["Work" | Monday 2026-01-05 | cycle 2]',
        '09:05 Noor: "At work."',
        "",
        '["Home" | Tuesday 2026-01-06 | cycle 4]',
        "18:20 You:",
        "   | Said",
        "   | in two lines.",
        "",
        "[Tuesday 2026-01-06 | cycle 5]",
        '18:21 You did: "fetch_page {}"',
    ]


def test_notes_are_told_apart_from_what_happened_on_a_day() -> None:
    shown = [passage(1, "Noor likes tea.", kind="note", space=""), passage(2, "Hello.")]
    assert render(shown).split("\n\n")[0].split("\n")[0] == "[Your notes | cycle 1]"


def test_times_are_those_of_the_zone() -> None:
    assert render([passage(1)], zone="Asia/Tokyo").split("\n")[1] == '18:00 Noor: "Hello."'


def test_what_stands_above_a_line_is_not_repeated_in_it() -> None:
    """Short messages of one speaker in ten minutes are one line; another speaker in this time has no time."""
    shown = [
        passage(1, "Hello.", minute=0),
        passage(2, "Are you there?", minute=1),
        passage(3, "I am.", minute=2, kind="said"),
        passage(4, "Said\nin two lines.", minute=8, kind="said"),
        passage(5, "Good.", minute=9),
        passage(6, "And you?", minute=10),
    ]
    assert render(shown).split("\n")[1:] == [
        '09:00 Noor: "Hello." "Are you there?"',
        'You: "I am."',
        "You:",
        "   | Said",
        "   | in two lines.",
        'Noor: "Good."',
        '09:10 Noor: "And you?"',
    ]
