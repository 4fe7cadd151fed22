"""Checks and cleans data from outside before they become part of an event. Pure."""

from __future__ import annotations

import json
from typing import Final

from pydantic import JsonValue

from denizen.errors import InvalidInput
from denizen.storage.database import storable

NESTING: Final = 100
"""How deep data may be nested. Deeper data could be read but not written again."""
MAX_NESTING: Final = 2 * NESTING
"""How deep stored data may be nested: such data, and the structure around them."""


def check_data(data: JsonValue, most_characters: int) -> None:
    """Raises `InvalidInput` unless the data can be stored: within that size, and not nested too deep."""
    if is_deep(data):
        raise InvalidInput(f"data: nested deeper than {NESTING} levels. Flatten them, or send them as text.")
    try:
        size = len(json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")))
    except ValueError as error:
        raise InvalidInput("data: JSON has no NaN and no Infinity.") from error
    if size > most_characters:
        raise InvalidInput(
            f"data: as JSON they may have {most_characters:,} characters, these have {size:,}. "
            "Send what matters, and where the rest is found."
        )


def storable_data(data: JsonValue) -> JsonValue:
    """The data with characters that a database cannot store replaced by U+FFFD, in keys and values."""
    match data:
        case str():
            return storable(data)
        case list():
            return [storable_data(each) for each in data]
        case dict():
            return {storable(name): storable_data(each) for name, each in data.items()}
        case _:
            return data


def parsed(text: str) -> JsonValue:
    """The text parsed as JSON; None if it is not JSON, or nested too deep."""
    try:
        data: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return None if is_deep(data, MAX_NESTING) else data


def is_deep(data: JsonValue, levels: int = NESTING) -> bool:
    """Whether the data are nested deeper than this many levels."""
    containers: list[JsonValue] = [data]
    for _ in range(levels + 1):
        level: list[JsonValue] = []
        for each in containers:
            if isinstance(each, dict):
                level.extend(each.values())
            elif isinstance(each, list):
                level.extend(each)
        if not level:
            return False
        containers = [each for each in level if isinstance(each, list | dict)]
    return True
