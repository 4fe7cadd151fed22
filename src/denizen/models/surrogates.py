"""Joins surrogate pairs that a model splits between two pieces of text. Pure.

A provider that counts in UTF-16, as JavaScript does, may end a piece inside a pair: each half is then a lone surrogate,
which no database, stream or JSON parser accepts.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from pydantic_ai.messages import ModelResponse, ModelResponsePart, TextPart, ThinkingPart, ToolCallPart

_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_HALF: Final = re.compile("[\ud800-\udfff]")


def whole(text: str) -> str:
    """Returns the text with its pairs joined; a lone half becomes U+FFFD."""
    if text.isascii() or _HALF.search(text) is None:
        return text
    return _HALF.sub("\ufffd", _PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text))


class WholeCharacters:
    """Holds back half a pair at the end of a piece."""

    def __init__(self) -> None:
        self._half = ""

    def take(self, piece: str) -> str:
        """Returns the new text, without half a pair at its end: that waits for the next piece."""
        text = self._half + piece
        self._half = text[-1] if text and "\ud800" <= text[-1] <= "\udbff" else ""
        return whole(text[: len(text) - len(self._half)])


def of_whole_characters(response: ModelResponse) -> ModelResponse:
    """Returns the response with its surrogate pairs joined, so that it can be stored and shown."""
    parts = [_whole_part(part) for part in response.parts]
    if all(new is old for new, old in zip(parts, response.parts, strict=True)):
        return response
    return replace(response, parts=parts)


def _whole_part(part: ModelResponsePart) -> ModelResponsePart:
    match part:
        case TextPart() | ThinkingPart() if (text := whole(part.content)) is not part.content:
            return replace(part, content=text)
        case ToolCallPart(args=str(written)) if (text := whole(written)) is not written:
            return replace(part, args=text)
        case _:
            return part
