"""Detects contradictions between similar memories. Pure."""

from __future__ import annotations

import re

_NEGATIONS = re.compile(r"\b(?:not|no|never|none|nobody|nothing|without|n't|no longer)\b|n't\b", re.IGNORECASE)
_NUMBERS = re.compile(r"\d+(?:[.,:]\d+)*")


def contradiction(one: str, other: str) -> str | None:
    """Returns why two memories with mostly the same words cannot both be true; None if they can."""
    if bool(_NEGATIONS.search(one)) != bool(_NEGATIONS.search(other)):
        return "one says that it is not so"
    numbers = set(_NUMBERS.findall(one)), set(_NUMBERS.findall(other))
    return "their numbers differ" if all(numbers) and numbers[0] != numbers[1] else None
