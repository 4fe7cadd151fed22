"""Finds the known names that are nearest to a mistyped one. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

LONGEST_NAME: Final = 100
"""A longer name is not compared: that takes time in proportion to its length, and it is no typing mistake."""


def nearest(name: str, known: Iterable[str], *, most: int = 1, cutoff: float = 0.6) -> list[str]:
    """The known names that are nearest to this one, the nearest first; none if none is near."""
    return [] if len(name) > LONGEST_NAME else get_close_matches(name, list(known), n=most, cutoff=cutoff)
