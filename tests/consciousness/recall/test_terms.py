"""By which terms texts are found."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.consciousness.recall.searching import _names_of
from denizen.consciousness.recall.terms import (
    TERM_CHARACTERS,
    asking_terms,
    asks_what_was_answered,
    count_terms,
    is_wish,
    own_words,
)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("The dogs were running", {"dog": 1, "run": 1}),
        ("Noor's run, noor RUNS", {"noor": 2, "run": 2}),
        ("don't you?", {}),
        ("CAFÉ café cafe\u0301 cafe", {"cafe": 4}),
        ("Jürgens Straße, Łódź, smørrebrød", {"jurgen": 1, "strass": 1, "lodz": 1, "smorrebrod": 1}),
        (
            "getUserName, parseHTTPDate",
            {"getusernam": 1, "parsehttpd": 1, "get": 1, "user": 1, "name": 1, "pars": 1, "http": 1, "date": 1},
        ),
        ("Wi-Fi, e\u2011mails", {"wi": 1, "fi": 1, "wifi": 1, "e": 1, "mail": 1, "email": 1}),
        ("2026-03-05 a-name-that-is-as-long-as-a-file", {"2026": 1, "03": 1, "05": 1, "name": 1, "long": 1, "file": 1}),
        ("والكتاب الكتاب كتاب كِتَاب", {"كتاب": 4}),
        ("一昨日", {"一昨": 1, "昨日": 1}),
        ("がんばれ 각각", {"がん": 1, "んば": 1, "ばれ": 1, "각각": 1}),
        ("snake_case 42", {"snake": 1, "case": 1, "42": 1}),
        ("東京タワー", {"東京": 1, "京タ": 1, "タワ": 1, "ワー": 1}),
        ("猫", {"猫": 1}),
        ("iPhone的價格", {"iphone": 1, "的價": 1, "價格": 1, "phone": 1}),
        ("Привет, Мир", {"привет": 1, "мир": 1}),
        ("", {}),
    ],
)
def test_words_are_folded_and_stemmed(text: str, terms: dict[str, int]) -> None:
    """Inflections, case and compatible spellings of a word are one term; scripts without spaces are pairs."""
    assert count_terms(text) == terms


@given(st.text(max_size=200))
def test_terms_can_be_kept_in_a_line(text: str) -> None:
    """No term has white space in it or is very long, whatever the text."""
    for term, count in count_terms(text).items():
        assert term
        assert term.split() == [term]
        assert len(term) <= TERM_CHARACTERS
        assert count > 0


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "Z"]), max_size=80))
def test_a_word_is_the_same_in_the_question_and_in_the_text(text: str) -> None:
    """What is said once more, among other words, has the same terms."""
    there = count_terms(f"before {text} after")
    assert all(there.get(term, 0) >= count for term, count in count_terms(text).items())


@pytest.mark.parametrize(("text", "count"), [("It rains", 0), ("I lost my keys", 2), ("I, me, my, mine, we", 3)])
def test_people_who_speak_of_themselves(text: str, count: int) -> None:
    assert own_words(text) == count


@given(st.text(st.characters(max_codepoint=127) | st.sampled_from(" iI'_my\n"), max_size=80))
def test_plain_letters_have_the_same_terms_beside_others(text: str) -> None:
    """A text in plain letters is split, any other is matched: a dash beside it changes nothing."""
    assert count_terms(text) == count_terms(f"{text} —")
    assert own_words(text) == own_words(f"{text} —")


def test_a_person_is_not_named_by_an_initial() -> None:
    """Or "a" and "I" in a question would name half of all people."""
    assert _names_of("J. R. Smith Jr @jrs_9") == {"smith", "jr", "jrs"}


@pytest.mark.parametrize(
    ("question", "own"),
    [
        ("What did you recommend for the trip?", True),
        ("Which hotel was it that you told me about?", True),
        ("my advice to Noor", True),
        ("Was hast du mir geraten?", True),
        ("What did I say about the trip?", False),
        ("Can you recommend a hotel?", False),
        ("What would you say?", False),
        ("my trip", False),
    ],
)
def test_a_question_about_what_the_agent_said_is_recognized(question: str, own: bool) -> None:
    """What people say of themselves is not the agent's, and a request for something new asks for nothing old."""
    assert asks_what_was_answered(question) is own


@pytest.mark.parametrize(
    ("text", "wish"),
    [
        ("Always show prices in euros.", True),
        ("It worked. Please always round up.", True),
        ("I'd prefer the train.", True),
        ("Zeig mir Preise immer in Euro.", True),
        ("Utilise toujours le train.", True),
        ("I have always loved the sea.", False),
        ("Does that always help?", False),
        ("My preferences are in the file.", False),
    ],
)
def test_a_wish_is_told_from_other_uses_of_its_words(text: str, wish: bool) -> None:
    """It asks for something from then on; nobody only speaks of habits."""
    assert is_wish(text) is wish


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        ("How many cupcakes did I mention?", {"mani", "mention"}),
        ("What snacks do you recommend?", {"recommend"}),
        ("How long is the ferry?", {"long"}),
        ("Who recommended the ferry?", set[str]()),
        ("How many?", set[str]()),
        ("What did I say?", set[str]()),
    ],
)
def test_words_with_which_a_question_only_asks_are_known(question: str, terms: set[str]) -> None:
    """Unless it has no others: then they are all there is to look for."""
    assert asking_terms(question) == terms
