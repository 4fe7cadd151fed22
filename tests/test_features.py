"""The page of features is made from the tests that show them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.features.page import PAGE, read_features, render


def test_the_page_of_features_is_current() -> None:
    assert PAGE.read_text() == render(), "Run `make features`."


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("def test_it(): ...", "has no docstring"),
        ('"""Cycles."""\ndef test_it(): ...', "test_it needs a docstring with its statement"),
        ('"""Cycles."""\ndef test_it():\n    """It works."""', "test_it needs a docstring with its statement"),
    ],
)
def test_a_feature_without_a_statement_or_a_page_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "test_cycles.py"
    path.write_text(text)
    with pytest.raises(ValueError, match=problem):
        read_features(path)
