"""Reads the requests by which a homeserver pushes events. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from pydantic import JsonValue
from pydantic_core import from_json

MOST_ROOMS: Final = 100
MOST_USERS: Final = 20
"""So many users that type in a room are taken."""
ID_CHARACTERS: Final = 255
_EPHEMERAL: Final = ("ephemeral", "de.sorunome.msc2409.ephemeral")
"""Under which name it comes depends on the registration."""


@dataclass(frozen=True, slots=True)
class Push:
    """A push: only a hint, but for what is stored nowhere."""

    has_news: bool = True
    """Whether something may have been written. A push that cannot be read may say anything."""
    typing: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """The users that type, by the id of the room."""


def parse(body: bytes) -> Push:
    """The push with this body."""
    try:
        found: Any = from_json(body)
    except ValueError:  # Also for one that is nested too deep.
        return Push()
    if not isinstance(found, dict):
        return Push()
    told = cast("dict[str, Any]", found)
    ephemeral = next((told[name] for name in _EPHEMERAL if isinstance(told.get(name), list)), None)
    if ephemeral is None:
        return Push()
    typing = dict(each for event in cast("list[Any]", ephemeral) if (each := _typing(event)) is not None)
    return Push(told.get("events") != [], dict(list(typing.items())[:MOST_ROOMS]))


def _typing(event: Any) -> tuple[str, JsonValue] | None:
    """The room and the users of an event that says who types; None for another, and where nobody does."""
    match event:
        case {"type": "m.typing", "room_id": str(room), "content": {"user_ids": [*users]}}:
            known: list[JsonValue] = [
                each for each in users if isinstance(each, str) and 0 < len(each) <= ID_CHARACTERS
            ]
            return (room, known[:MOST_USERS]) if known and len(room) <= ID_CHARACTERS else None
        case _:
            return None
