"""Checks of the arguments of a program, whose types nobody has checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from denizen.errors import InvalidInput

LARGEST_NUMBER: Final = 2**63 - 1
"""The largest number that a database takes."""


def number_of(value: Any, name: str, least: int = 0, most: int = LARGEST_NUMBER) -> int:
    """Returns the value. Raises `InvalidInput` if it is not a whole number from `least` to `most`."""
    number = whole_number_of(value, name)
    if not least <= number <= most:
        wrong, right = ("small", f"at least {least:,}") if number < least else ("large", f"at most {most:,}")
        raise InvalidInput(f"`{name}` is too {wrong}. Give {right}.")
    return number


def whole_number_of(value: Any, name: str) -> int:
    """The same of any size, for what is checked where it is used."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidInput(f"`{name}` is {_kind_of(value)}. Give a whole number.")
    return value


def optional_number_of(value: Any, name: str, least: int = 0) -> int | None:
    """The same, if the value may be None."""
    return None if value is None else number_of(value, name, least)


def text_of(value: Any, name: str) -> str:
    """Returns the value. Raises `InvalidInput` if it is no text."""
    if not isinstance(value, str):
        raise InvalidInput(f"`{name}` is {_kind_of(value)}. Give a string.")
    return value


def flag_of(value: Any, name: str) -> bool:
    """Returns the value. Raises `InvalidInput` if it is neither True nor False: "no" would count as True."""
    if not isinstance(value, bool):
        raise InvalidInput(f"`{name}` is {_kind_of(value)}. Give True or False.")
    return value


def mapping_of(value: Any, name: str) -> Mapping[str, Any]:
    """Returns the value. Raises `InvalidInput` if it is not a mapping."""
    if not isinstance(value, Mapping):
        raise InvalidInput(f"`{name}` is {_kind_of(value)}. Give a dictionary.")
    return cast("Mapping[str, Any]", value)


def listed(things: Any, name: str) -> list[Any]:
    """Returns the things as a list. Raises `InvalidInput` if it is one thing, or a text, which would be its letters."""
    if isinstance(things, str | bytes) or not isinstance(things, Iterable):
        raise InvalidInput(f"`{name}` is {_kind_of(things)}. Give a list, also for a single one.")
    return [*things]


def _kind_of(value: object) -> str:
    return "None" if value is None else f"of the type {type(value).__name__}"
