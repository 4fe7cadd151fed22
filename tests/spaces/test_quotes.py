"""Words as they are compared."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from denizen.spaces.quotes import said, words

texts = st.text() | st.text(st.characters(max_codepoint=127)) | st.text("aB_'9 ’é中\n-")


@given(texts)
@example("Don't — DON’T: it's 4 o'clock_sharp, 'quoted' and x''y")
@example("Straße, STRASSE, ﬁne, 今日は")
def test_the_short_way_to_the_words_gives_the_same_words(text: str):
    """What is written in plain letters is read by a faster pattern; nobody may be able to tell."""
    assert said(text) == [word.said for word in words(text)]
