"""Texts that are too long end with a mark, and nothing is longer than it may be."""

from __future__ import annotations

import pytest

from denizen.shortening import short_line, shortened


@pytest.mark.parametrize(("text", "shown"), [("four", "four"), ("fives", "fiv…"), ("to be", "to…"), ("", "")])
def test_only_what_is_longer_is_shortened(text: str, shown: str) -> None:
    assert shortened(text, 4) == shown


def test_a_line_has_no_line_breaks() -> None:
    assert short_line(" To  be\n\nor not\tto be. ", 12) == "To be or no…"
    assert short_line("To be\n", 12) == "To be"
