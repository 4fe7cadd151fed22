"""Parses the arguments of a tool call while the model still writes them. Each character is read once.

Invalid JSON is never an error here: it is `broken`, and nothing more becomes known. Whether a finished call is
acceptable is decided where tools validate their arguments.
"""

from __future__ import annotations

import json
import re
from typing import Any

from pydantic_core import from_json

from denizen.models.surrogates import WholeCharacters

_STOP_IN_STRING = re.compile(r'["\\]')
_STOP_OUTSIDE = re.compile(r'["{}\[\],:]')
_HEX = "[0-9a-fA-F]"
_HIGH = rf"\\u[dD][89abAB]{_HEX}{{2}}"
_LOW = rf"\\u[dD][c-fC-F]{_HEX}{{2}}"
# What surely does not begin the second half of a surrogate pair: any character, any other escape, or a whole \u that is
# not one.
_NOT_LOW = rf"[^\\]|\\[^u]|\\u(?!{_HEX}{{0,3}}\Z)(?!{_LOW})"
_ONE = rf"[^\\]+|\\[^u]|\\u(?![dD][89abAB]){_HEX}{{4}}|{_HIGH}(?:{_LOW}|(?={_NOT_LOW}))"
_WHOLE = re.compile(rf"(?:{_ONE})*", re.DOTALL)
"""As much as can be decoded without splitting an escape, or a pair of escapes that is one character."""
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class PartialArguments:
    """A JSON object that arrives in pieces."""

    def __init__(self) -> None:
        self.broken = False
        """Whether the text so far cannot be a JSON object."""
        self._characters = WholeCharacters()
        self._done: dict[str, Any] = {}
        self._finished = False
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._key: str | None = None
        self._raw: list[str] = []
        """The raw text of the open key or value so far."""
        self._undecoded = ""
        self._text: list[str] | None = None
        """The decoded text of an open string value so far."""

    @property
    def complete(self) -> frozenset[str]:
        """The keys whose values are complete."""
        return frozenset(self._done)

    @property
    def finished(self) -> bool:
        """Whether the object is complete."""
        return self._finished

    @property
    def known(self) -> dict[str, Any]:
        """What is known so far: complete values, and the open one as far as it has come."""
        if self._key is None or self.broken:
            return dict(self._done)
        if self._text is not None:
            return {**self._done, self._key: "".join(self._text)}
        if self._depth > 1:
            return {**self._done, self._key: from_json("".join(self._raw), allow_partial="trailing-strings")}
        return dict(self._done)

    def feed(self, delta: str) -> list[tuple[str, str]]:
        """Takes the next piece of JSON. Returns what it added to top-level strings, as (key, text).

        All texts returned for a key, joined, are its value.
        """
        delta = self._characters.take(delta)
        added: list[tuple[str, str]] = []
        at = 0
        try:
            while at < len(delta) and not self.broken:
                at = self._read_string(delta, at, added) if self._in_string else self._read_structure(delta, at)
            self._decode(added)
        except ValueError:
            self.broken = True
        return added

    def _read_string(self, delta: str, at: int, added: list[tuple[str, str]]) -> int:
        if self._escaped:
            self._escaped = False
            self._take(delta[at])
            return at + 1
        stop = _STOP_IN_STRING.search(delta, at)
        if stop is None:
            self._take(delta[at:])
            return len(delta)
        self._take(delta[at : stop.start()])
        if stop.group() == "\\":
            self._escaped = True
            self._take("\\")
        else:
            self._end_string(added)
        return stop.end()

    def _take(self, raw: str) -> None:
        if self._text is None:
            self._raw.append(raw)
        else:
            self._undecoded += raw

    def _end_string(self, added: list[tuple[str, str]]) -> None:
        self._in_string = False
        if self._text is not None and self._key is not None:
            self._decode(added, everything=True)
            self._done[self._key] = "".join(self._text)
            self._text = None
            self._raw = []
            # Only a comma or the end may follow: the key is closed now, so that anything else counts as broken.
            self._key = None
            self._raw.append('""')
        else:
            self._raw.append('"')

    def _read_structure(self, delta: str, at: int) -> int:
        stop = _STOP_OUTSIDE.search(delta, at)
        end = len(delta) if stop is None else stop.start()
        if self._depth:
            self._raw.append(delta[at:end])
        elif delta[at:end].strip():
            self.broken = True
        if stop is None:
            return end
        self._meet(stop.group())
        return stop.end()

    def _meet(self, mark: str) -> None:
        if self._finished or (self._depth == 0 and mark != "{"):
            self.broken = True
        elif mark == '"':
            self._begin_string()
        elif mark in "{[":
            self._depth += 1
            if self._depth > 1:
                self._raw.append(mark)
        elif mark in "}]":
            self._close(mark)
        elif self._depth == 1 and mark == ",":
            self._end_member()
        elif self._depth == 1 and self._key is None and mark == ":":
            self._key = _text(json.loads("".join(self._raw)))
            self._raw = []
        else:
            self._raw.append(mark)

    def _begin_string(self) -> None:
        self._in_string = True
        if self._depth == 1 and self._key is not None:
            if "".join(self._raw).strip():
                self.broken = True
            self._text = []
            self._undecoded = ""
        else:
            self._raw.append('"')

    def _close(self, mark: str) -> None:
        self._depth -= 1
        if self._depth:
            self._raw.append(mark)
            return
        if mark == "]":
            self.broken = True
            return
        self._end_member()
        self._finished = True

    def _end_member(self) -> None:
        raw = "".join(self._raw).strip()
        if self._key is not None:
            self._done[self._key] = from_json(raw)
        elif raw not in ("", '""'):
            self.broken = True
        self._key = None
        self._raw = []

    def _decode(self, added: list[tuple[str, str]], *, everything: bool = False) -> None:
        if self._text is None or self._key is None or not self._undecoded:
            return
        if "\\" in self._undecoded:
            whole = _WHOLE.match(self._undecoded)
            end = len(self._undecoded) if everything or whole is None else whole.end()
            piece = _text(json.loads(f'"{self._undecoded[:end]}"', strict=False))
            self._undecoded = self._undecoded[end:]
        else:
            piece, self._undecoded = _text(self._undecoded), ""
        if piece:
            self._text.append(piece)
            added.append((self._key, piece))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("a key must be a string")
    return value if value.isascii() else _LONE_SURROGATE.sub("\ufffd", value)
