"""An answer that only grows: nothing is held as said that was not, and nothing twice that was said once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from denizen.server.growing_text import BETWEEN, GrowingText, taken_back


def test_texts_are_passed_on_as_they_are_written_and_not_again_when_they_are_said() -> None:
    telling = GrowingText()
    assert telling.write("1", "Good ") == "Good "
    assert telling.write("1", "morning.") == "morning."
    assert telling.say("1", "Good morning.") == ""
    assert telling.write("2", "Bye.") == f"{BETWEEN}Bye."
    assert telling.write("1", "late") == ""
    assert telling.end() == ""


def test_what_was_not_written_before_it_was_said_comes_whole() -> None:
    telling = GrowingText()
    assert telling.say("1", "Good morning.") == "Good morning."
    assert telling.say("1", "Good morning.") == ""
    assert telling.say("2", "Bye.") == f"{BETWEEN}Bye."


def test_who_begins_anew_with_the_same_words_is_not_noticed() -> None:
    telling = GrowingText()
    assert telling.write("1", "Good mor") == "Good mor"
    assert telling.break_off("1") == ""
    assert telling.write("2", "Good ") == ""
    assert telling.write("2", "morning.") == "ning."
    assert telling.say("2", "Good morning.") == ""
    assert telling.end() == ""


def test_who_begins_anew_otherwise_takes_the_first_text_back() -> None:
    telling = GrowingText()
    telling.write("1", "Good mor")
    telling.break_off("1")
    assert telling.write("2", "Goo") == ""
    back = f"{BETWEEN}{taken_back('Good mor')}{BETWEEN}"
    assert telling.write("2", "gle it.") == f"{back}Google it."


def test_a_shorter_text_takes_the_longer_one_back() -> None:
    telling = GrowingText()
    telling.write("1", "Good morning")
    telling.break_off("1")
    assert telling.write("2", "Good") == ""
    assert telling.say("2", "Good") == f"{BETWEEN}{taken_back('Good morning')}{BETWEEN}Good"


def test_who_does_not_begin_anew_takes_it_back_at_the_end() -> None:
    telling = GrowingText()
    telling.write("1", "Good mor")
    telling.break_off("1")
    assert telling.end("It waits.") == f"{BETWEEN}{taken_back('Good mor')}{BETWEEN}It waits."


def test_of_two_texts_the_first_can_be_taken_back() -> None:
    telling = GrowingText()
    telling.write("1", "One.")
    telling.write("2", "Two.")
    assert telling.break_off("1") == f"{BETWEEN}{taken_back('One.')}"
    assert telling.say("2", "Two.") == ""


def test_what_is_taken_back_is_quoted_in_short() -> None:
    assert taken_back("a\n b " * 50) == f"[Taken back, not said: “{' '.join(['a b'] * 15)}…”]"


@given(st.lists(st.tuples(st.text("ab", min_size=1, max_size=6), st.integers(0, 6), st.booleans()), max_size=6))
def test_what_is_held_is_what_was_said_and_what_was_taken_back(texts: list[tuple[str, int, bool]]) -> None:
    """Without what was taken back, and its words before that, exactly what was said is left."""
    telling, held, said = GrowingText(), "", []
    for number, (text, cut, finished) in enumerate(texts):
        held += telling.write(str(number), text[:cut])
        if finished:
            held += telling.say(str(number), text)
            said.append(text)
        else:
            held += telling.break_off(str(number))
    held += telling.end()
    left: list[str] = []
    for part in held.split(BETWEEN) if held else []:
        if part.startswith("[Taken back"):
            assert part == taken_back(left.pop())
        else:
            left.append(part)
    assert left == said
