"""A codec, UTF-8, whose decoder returns whole lines only; in place of one that is too long, that the call failed.

The library of MCP joins what a program has written so far with each piece that follows, and looks for a line in all of
it: a line of 50 MB kept the process busy for a minute. It takes the name of a codec, and so it gets no half line.
"""

from __future__ import annotations

import codecs
import json
import re
from functools import cache
from typing import Any, Final

from denizen.amounts import human_size

NAME: Final = "denizen_whole_lines"
LINE_BYTES: Final = 16_000_000
_EDGE: Final = 1_000
"""How many bytes at each end of a line that is too long are kept."""
_ID: Final = rb'"id"\s*:\s*(\d+|"[^"\\]{1,100}")'
_ID_FIRST: Final = re.compile(_ID)
_ID_LAST: Final = re.compile(_ID + rb'\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')


@cache
def register() -> str:
    """Makes the codec known to this process. Returns its name."""
    utf_8 = codecs.lookup("utf-8")
    info = codecs.CodecInfo(utf_8.encode, utf_8.decode, incrementaldecoder=_WholeLines, name=NAME)
    codecs.register({NAME: info}.get)
    return NAME


class _WholeLines(codecs.IncrementalDecoder):
    def __init__(self, errors: str = "strict") -> None:
        super().__init__(errors)
        self._begun: list[bytes] = []
        """The line that has no end yet; if it is too long, its ends."""
        self._size = 0

    def decode(self, input: Any, final: bool = False) -> str:  # noqa: A002  as the base class names it
        *ends, rest = bytes(input).split(b"\n")
        lines = b"".join(self._ended(each) for each in ends)
        self._add(rest)
        if final and self._size:
            lines += self._ended(b"")
        return lines.decode("utf-8", self.errors)

    def _add(self, part: bytes) -> None:
        self._begun.append(part)
        self._size += len(part)
        if self._size > LINE_BYTES:
            kept = b"".join(self._begun)
            self._begun = [kept[:_EDGE], kept[_EDGE:][-_EDGE:]]

    def _ended(self, end: bytes) -> bytes:
        self._add(end)
        line, size = b"".join(self._begun), self._size
        self._begun, self._size = [], 0
        return (_refusal(line) if size > LINE_BYTES else line) + b"\n"


def _refusal(line: bytes) -> bytes:
    """What the library is told in place of an answer that is too long, of which only the ends are known."""
    found = _ID_FIRST.search(line.partition(b'"result"')[0]) or _ID_LAST.search(line)
    said = f"The answer is larger than {human_size(LINE_BYTES)}. Ask for less."
    id = None if found is None else json.loads(found[1])
    return json.dumps({"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": said}}).encode()
