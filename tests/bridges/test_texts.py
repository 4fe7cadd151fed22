"""Texts as chat services take them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from denizen.bridges.texts import bytes_in, parts_of, utf16_units


@pytest.mark.parametrize("text", ["", "x" * 9_000, "line\n" * 3_000, "👍" * 5_000])
@pytest.mark.parametrize("size", [len, bytes_in, utf16_units])
def test_a_long_text_is_sent_in_parts(text: str, size: Callable[[str], int]) -> None:
    parts = parts_of(text, 4_000, size)
    assert "".join(parts) == text
    assert all(size(each) <= 4_000 for each in parts)


def test_parts_end_at_the_ends_of_lines() -> None:
    assert parts_of("one\ntwo\nthree\n", 9) == ["one\ntwo\n", "three\n"]
