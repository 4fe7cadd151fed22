"""What is left of a stored value when words in it are forgotten. Pure.

Much of what is stored is text in JSON in text: a call's arguments are JSON inside an entry of the log, which is JSON
itself. Each text is looked at as it was said, and put back the way it was kept; what carries nothing stays to the byte.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from denizen.inbox.outside import parsed
from denizen.spaces.quotes import FORGOTTEN, Quotes

_PARTS: Final = ("content", "args")
"""Where in an entry of the log something is said."""
_SEALED: Final = ("signature", "provider_details")
"""What a provider has sealed together with the content: without it, it is worth nothing."""


@dataclass(frozen=True)
class Redactor:
    """Takes words out of stored values."""

    quotes: Quotes
    exactly: tuple[tuple[str, str], ...] = ()
    """Pieces of text, as we wrote them, and what stands there instead."""
    whole: frozenset[str] = field(default_factory=frozenset[str])
    """Texts that go where they are all that is said."""

    @property
    def takes_anything(self) -> bool:
        return bool(self.quotes or self.exactly or self.whole)

    def text(self, stored: str) -> str:
        """A text, which may be JSON."""
        found = _container(stored)
        if found is None:
            return self._said(stored)
        left = self.value(found)
        return stored if left == found else _dump(left, like=stored)

    def value(self, value: Any) -> Any:
        """A value of JSON; its keys too, because what is kept under names has them there."""
        match value:
            case str():
                return self.text(value)
            case list():
                return [self.value(each) for each in value]  # pyright: ignore[reportUnknownVariableType]
            case dict():
                return {self._said(str(key)): self.value(each) for key, each in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
            case _:
                return value

    def _said(self, text: str) -> str:
        if text in self.whole:
            return FORGOTTEN
        for old, new in self.exactly:
            text = text.replace(old, new)
        return self.quotes.redacted(text)

    def entry(self, stored: str) -> str:
        """A message in the log."""
        return _entry(stored, self.value)

    def request(self, stored: str) -> str:
        """What a request was made of: only its glance at the inbox says anything, and that in pieces.

        Of what came to mind it is the numbers of the passages, which say nothing.
        """
        made_of = json.loads(stored)
        preview = made_of.get("preview") if isinstance(made_of, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        if preview is None or self.value(preview) == preview:
            return stored
        return _dump({**made_of, "preview": FORGOTTEN}, like=stored)


def blank(stored: str) -> str:
    """Nothing of what was said is left, only the shape of it: JSON stays JSON, and what is counted stays."""
    found = _container(stored)
    return FORGOTTEN if found is None else _dump(_blank(found), like=stored)


def blank_entry(stored: str) -> str:
    """The same of a message in the log."""
    return _entry(stored, _blank)


def blank_request(stored: str) -> str:
    """The same of what a request was made of."""
    made_of = json.loads(stored)
    return _dump({**made_of, "preview": FORGOTTEN}, like=stored) if "preview" in made_of else stored


def _blank(value: Any) -> Any:
    match value:
        case str() if _is_id(value):
            return value
        case str():
            return blank(value)
        case list():
            return [_blank(each) for each in value]  # pyright: ignore[reportUnknownVariableType]
        case dict():
            return {key: _blank(each) for key, each in value.items()}  # pyright: ignore[reportUnknownVariableType]
        case _:
            return value


def _is_id(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


def _entry(stored: str, change: Callable[[Any], Any]) -> str:
    message = json.loads(stored)
    parts = [_part(part, change) for part in message["parts"]]
    return stored if parts == message["parts"] else _dump({**message, "parts": parts}, like=stored)


def _part(part: Mapping[str, Any], change: Callable[[Any], Any]) -> Mapping[str, Any]:
    left = {key: change(value) if key in _PARTS else value for key, value in part.items()}
    return part if left == part else {key: value for key, value in left.items() if key not in _SEALED}


def _container(stored: str) -> Any:
    """The object or list that the text is, if it is JSON."""
    if stored.lstrip()[:1] not in ("{", "["):
        return None
    found = parsed(stored)
    return found if isinstance(found, dict | list) else None


def _dump(value: Any, *, like: str) -> str:
    compact = '": ' not in like
    return json.dumps(value, ensure_ascii=False, separators=(",", ":") if compact else None)


def renamed(definition: str, handle: str, new_handle: str, change: Callable[[Any], Any]) -> str:
    """An agent's definition, or its rule of what is urgent, in which whoever had that handle has another."""
    before = json.loads(definition)
    left: dict[str, Any] = {}
    for key, value in before.items():
        if key in ("people", "works_for"):
            left[key] = [new_handle if each == handle else each for each in value]
        elif key == "urgent":
            left[key] = json.loads(renamed(json.dumps(value), handle, new_handle, change))
        elif key == "pays":
            left[key] = f"@{new_handle}" if value == f"@{handle}" else value
        else:
            left[key] = change(value) if key in ("instructions", "heartbeat") else value
    return definition if left == before else _dump(left, like=definition)


def each_once(texts: Iterable[str | None]) -> list[str]:
    """The texts that say something, each once."""
    return [text for text in dict.fromkeys(texts) if text]
