"""Shortens texts for labels, lists and prompts. Pure."""

from __future__ import annotations


def shortened(text: str, limit: int) -> str:
    """Returns the text with at most `limit` characters. If some are left out, it ends with `…`."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def short_line(text: str, limit: int) -> str:
    """Returns the text on one line of at most `limit` characters."""
    return shortened(" ".join(text.split()), limit)
