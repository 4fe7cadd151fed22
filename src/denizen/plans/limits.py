"""Length limits of the texts that an agent keeps for itself."""

from __future__ import annotations

from denizen.errors import InvalidInput
from denizen.storage.database import storable


def checked_text(what: str, text: str, most: int) -> str:
    """The text without white space around it; raises if it is empty or too long."""
    text = storable(text).strip()
    if not text:
        raise InvalidInput(f"{what} is empty.")
    if len(text) > most:
        raise InvalidInput(f"{what} has {len(text):,} characters, but at most {most:,} are allowed. Shorten it.")
    return text
