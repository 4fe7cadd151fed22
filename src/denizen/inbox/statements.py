"""The statements in a text, to see whether a fact is already told there. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from denizen.inbox.format import one_line

_FRAME: Final = '"“”.! '
"""What may stand around a statement without changing it."""
_LIST_MARK: Final = re.compile(r"^\s*(?:\||[-*>]\s)\s*")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+")


def plain_statement(text: str) -> str:
    """Normalizes a statement to compare it: without case, extra spaces, quotation marks and the full stop."""
    return one_line(text).casefold().strip(_FRAME)


def statements_in(text: str) -> frozenset[str]:
    """Returns the lines and the sentences of a text, normalized; also without what stands before a colon."""
    return frozenset(each for line in text.splitlines() for each in _statements(_LIST_MARK.sub("", line)))


def _statements(line: str) -> Iterator[str]:
    while line:
        yield plain_statement(line)
        yield from map(plain_statement, _SENTENCE_END.split(line))
        line = line.partition(": ")[2]
