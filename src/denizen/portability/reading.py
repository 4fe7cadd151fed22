"""Reads an export file line by line, each validated before it is used. Errors name the line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from denizen.errors import DenizenError, ImportInvalid
from denizen.portability.lines import FORMAT, VERSION, AgentLine, EndLine, Header, Kind, Line, SpaceLine, adapter

First = TypeVar("First", AgentLine, SpaceLine)

LONGEST_LINE: Final = 64 * 1024 * 1024
"""In bytes. None of our lines is as long: a longer one is an attempt to fill the memory."""


Fault = Callable[[int, str], ImportInvalid]
"""Builds the error for a line of a file, by its number."""


class LineChecks:
    """Checks of the lines of one file. Each raises the error of the line, which `fault` makes."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        self._keys: set[tuple[Any, ...]] = set()

    def require(self, number: int, is_so: bool, otherwise: str) -> None:
        """Raises if the condition does not hold."""
        if not is_so:
            raise self.fault(number, otherwise)

    def require_valid(self, number: int, check: Callable[[], object], otherwise: str = "") -> None:
        """Raises, in the words of `otherwise` or of the check, if the check fails."""
        try:
            check()
        except (DenizenError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise self.fault(number, otherwise or str(error).rstrip(".")) from error

    def require_unique(self, number: int, *key: Any) -> None:
        """Raises if a line had this key before."""
        self.require(number, key not in self._keys, "there was one of these before")
        self._keys.add(key)


class _AnyHeader(BaseModel):
    """The part of a header that every version has."""

    format: str = ""
    version: int = 0
    kind: str = ""


class ExportFile:
    """A file that can be read repeatedly."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def header(self) -> Header:
        """Reads the header. Raises `ImportInvalid` if it is not an export file, or of an unknown version."""
        for number, raw in self._raw():
            begun = self._parsed(TypeAdapter(_AnyHeader), number, raw, "it is not a Denizen export")
            if begun.format != FORMAT:
                raise self.fault(number, "it is not a Denizen export")
            if begun.version != VERSION:
                raise self.fault(
                    number,
                    f"it is written in version {begun.version} of the format, and this Denizen knows {VERSION}. "
                    "Use a Denizen that knows it",
                )
            return self._parsed(TypeAdapter(Header), number, raw, "its header cannot be read")
        raise self.fault(1, "the file is empty")

    def lines(self) -> Iterator[tuple[int, Line]]:
        """Yields every line after the header, with its number; the last is not returned, but has to be there."""
        number = last = 0
        for number, raw in self._raw():
            if number == 1:
                continue
            if last:
                raise self.fault(number, "there is more after the end")
            line = self._parsed(adapter(), number, raw, "it cannot be read")
            if isinstance(line, EndLine):
                if line.lines != number:
                    raise self.fault(number, f"this should be line {line.lines:,}: a line is missing or repeated")
                last = number
                continue
            yield number, line
        if not last:
            raise self.fault(number, "the file is incomplete: its last line is missing. Export it again")

    def check(self, kind: Kind) -> None:
        """Raises `ImportInvalid` unless the file is of that kind."""
        found = self.header().kind
        if found != kind:
            raise self.fault(1, f"it holds {_A[found]}, not {_A[kind]}")

    def fault(self, number: int, what: str) -> ImportInvalid:
        return ImportInvalid(self.path.name, number, what)

    def _raw(self) -> Iterator[tuple[int, bytes]]:
        # Bytes, because texts may hold other characters that some take for a line break.
        with self.path.open("rb") as file:
            number = 0
            while raw := file.readline(LONGEST_LINE):
                number += 1
                if len(raw) == LONGEST_LINE and not raw.endswith(b"\n"):
                    raise self.fault(number, f"it is longer than {LONGEST_LINE // 1024**2} MB")
                yield number, raw

    def _parsed(self, kind: TypeAdapter[Any], number: int, raw: bytes, otherwise: str) -> Any:
        try:
            return kind.validate_json(raw)
        except ValidationError as error:
            raise self.fault(number, _told(error, otherwise)) from None


def first_line(source: ExportFile, kind: type[First]) -> First:
    """Reads the first line after the header. Raises `ImportInvalid` if it is of another kind."""
    for number, line in source.lines():
        if not isinstance(line, kind):
            raise source.fault(number, f"it should begin with a line {kind.model_fields['row'].default!r}")
        return line
    raise source.fault(2, "it is empty")


_A: Final[dict[Kind, str]] = {"agent": "an agent", "space": "a space"}


def _told(error: ValidationError, otherwise: str) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    # The first part of the location is the kind of line, which the line itself names.
    place = ".".join(str(each) for each in first["loc"])
    if first["type"] == "json_invalid":
        return f"{otherwise}: it is not JSON"
    if first["type"] == "extra_forbidden":
        return f"{place}: this Denizen knows no such field"
    if first["type"].startswith("union_tag"):
        return "this Denizen knows no such kind of line"
    return f"{place}: {first['msg'].removeprefix('Value error, ')}" if place else f"{otherwise}: {first['msg']}"
