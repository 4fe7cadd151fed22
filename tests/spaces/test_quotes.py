"""Words as they are compared."""

from __future__ import annotations

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from denizen.folding import fold
from denizen.spaces.quotes import Quotes, said, words
from tests.disguises import DISGUISES, ORDINARY, TEXT

texts = st.text() | st.text(st.characters(max_codepoint=127)) | st.text("aB_'9 ’é中\n-")


@given(texts)
@example("Don't — DON’T: it's 4 o'clock_sharp, 'quoted' and x''y")
@example("Straße, STRASSE, ﬁne, 今日は")
def test_the_short_way_to_the_words_gives_the_same_words(text: str):
    """What is written in plain letters is read by a faster pattern; nobody may be able to tell."""
    assert said(text) == [word.said for word in words(text)]


@pytest.mark.parametrize("how", DISGUISES)
def test_a_quotation_in_disguise_is_found_and_taken_out(how: str):
    """Whatever is invisible, looks alike or is spaced otherwise: a reader reads the same words."""
    quotes = Quotes()
    quotes.add(TEXT)
    disguised = f"She wrote: {DISGUISES[how]} And no more."
    assert quotes.occur_in(disguised)
    left = quotes.redacted(disguised)
    assert quotes.redacted(left) == left
    assert (left.startswith("She wrote: "), left.endswith(" And no more.")) == (True, True)
    assert len(left) < 60


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_sentences_of_any_language_quote_only_themselves(text: str):
    quotes = Quotes()
    quotes.add(text)
    assert [each for each in ORDINARY if quotes.occur_in(each)] == [text]
    assert quotes.occur_in(text.upper())
    assert quotes.occur_in(unicodedata.normalize("NFD", text))


@pytest.mark.parametrize(
    ("one", "other"),
    [("Noor", "N\u200boor"), ("Noor", "Νооr"), ("Noor", "ＮＯＯＲ"), ("Zoë", "ZOE\u0308"), ("Straße", "STRASSE")],
)
def test_names_that_look_alike_are_folded_to_one(one: str, other: str):
    assert fold(one) == fold(other)


@pytest.mark.parametrize(("one", "other"), [("Al", "AI"), ("Ann", "Anna"), ("Leo", "Lea"), ("Иван", "Ivan")])
def test_names_that_look_different_stay_different(one: str, other: str):
    assert fold(one) != fold(other)


@given(texts)
def test_what_was_folded_stays_as_it_is(text: str):
    assert fold(fold(text)) == fold(text)


@given(texts)
def test_every_word_is_found_where_it_stands(text: str):
    """The places of words are places of the text, in order, whatever was left out between them."""
    found = words(text)
    assert all(word.said in said(text[word.start : word.end]) for word in found)
    # Two words may stand in one character: ¼ is 1 and 4.
    assert all((before.start, before.end) <= (after.start, after.end) for before, after in pairwise(found))


def test_a_text_of_invisible_characters_takes_no_longer_than_its_length():
    """A hundred thousand of them, between two words, are passed over once."""
    hidden = "\u200b" * 100_000
    assert said(f"sp{hidden}are k{hidden}ey") == ["spare", "key"]
