"""Removes text from stored values. Pure.

Much of what is stored is text in JSON in text: a call's arguments are JSON inside an entry of the log, which is JSON
itself. Each text is decoded, redacted, and encoded as it was; a value without the text stays the same to the byte.
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
"""The fields of a log entry's parts that hold text."""
_SEALED: Final = ("signature", "provider_details")
"""Signatures of a provider over the content: removed when the content changes."""


@dataclass(frozen=True)
class Redactor:
    """Removes texts from stored values."""

    quotes: Quotes
    exactly: tuple[tuple[str, str], ...] = ()
    """Exact pieces of text, as we wrote them, and their replacements."""
    whole: frozenset[str] = field(default_factory=frozenset[str])
    """Texts that are removed only if they are the whole value."""

    @property
    def takes_anything(self) -> bool:
        return bool(self.quotes or self.exactly or self.whole)

    def text(self, stored: str) -> str:
        """Redacts a text, which may be JSON."""
        found = _container(stored)
        if found is None:
            return self._said(stored)
        left = self.value(found)
        return stored if left == found else _dump(left, like=stored)

    def value(self, value: Any) -> Any:
        """Redacts a JSON value, its keys included: some texts are stored as keys."""
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
        """Redacts an entry of the log."""
        return _entry(stored, self.value)

    def request(self, stored: str) -> str:
        """Redacts the parts of a request: only its preview of the inbox holds text, in pieces.

        Recalled passages are only stored by number.
        """
        made_of = json.loads(stored)
        preview = made_of.get("preview") if isinstance(made_of, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        if preview is None or self.value(preview) == preview:
            return stored
        return _dump({**made_of, "preview": FORGOTTEN}, like=stored)


def blank(stored: str) -> str:
    """Removes all text but keeps the structure: JSON stays JSON, and numbers stay."""
    found = _container(stored)
    return FORGOTTEN if found is None else _dump(_blank(found), like=stored)


def blank_entry(stored: str) -> str:
    """The same for an entry of the log."""
    return _entry(stored, _blank)


def blank_request(stored: str) -> str:
    """The same for the parts of a request."""
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
    """Parses the text if it is a JSON object or list."""
    if stored.lstrip()[:1] not in ("{", "["):
        return None
    found = parsed(stored)
    return found if isinstance(found, dict | list) else None


def _dump(value: Any, *, like: str) -> str:
    compact = '": ' not in like
    return json.dumps(value, ensure_ascii=False, separators=(",", ":") if compact else None)


def renamed(definition: str, handle: str, new_handle: str, change: Callable[[Any], Any]) -> str:
    """Replaces a handle in an agent's definition, or in its urgency rule."""
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
    """Returns the non-empty texts, each once."""
    return [text for text in dict.fromkeys(texts) if text]
