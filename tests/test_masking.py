"""Secrets that are known are hidden in every spelling in which they may come back."""

from __future__ import annotations

import json
from urllib.parse import quote

from hypothesis import given
from hypothesis import strategies as st

from denizen.masking import MASK, without


@given(st.text(min_size=4).filter(lambda secret: MASK not in secret))
def test_a_known_secret_is_hidden_as_it_is_and_as_json_or_a_url_spells_it(secret: str):
    for spelled in (secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], quote(secret)):
        assert without(f"<{spelled}>", [secret]) == f"<{MASK}>"


def test_the_longer_secret_is_hidden_whole_where_one_is_part_of_the_other():
    assert without("token-and-more", ["token", "token-and-more"]) == MASK


def test_what_is_too_short_to_be_a_secret_does_not_riddle_the_text():
    assert without("a cat", ["a", ""]) == "a cat"
