"""Estimates how many tokens a text has: four characters each. Used if no provider has counted yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from denizen.models.pictures import MARK, picture_in, picture_tokens

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

PER_MESSAGE = 4
"""Roughly what providers add to each message for its role and separators."""


def estimate(text: str) -> int:
    """Returns the tokens of `text`: 0 if it is empty, otherwise at least 1."""
    return (len(text) + 3) // 4


def estimate_message(message: ModelMessage) -> int:
    """Returns the tokens of `message` as it is sent: contents, tool names, arguments, and a little for its frame."""
    return PER_MESSAGE + sum(_estimate_part(part) for part in message.parts)


def _estimate_part(part: Any) -> int:
    tokens = 0
    if name := getattr(part, "tool_name", None):
        tokens += estimate(name)
    if (args := getattr(part, "args", None)) is not None:
        tokens += estimate(args if isinstance(args, str) else part.args_as_json_str())
    if (content := getattr(part, "content", None)) is not None:
        tokens += _estimate_content(content)
    return tokens


def _estimate_content(content: Any) -> int:
    if isinstance(content, str):
        return estimate(content) + (_estimate_picture(content) if content.startswith(MARK) else 0)
    if isinstance(content, list) and (line := next(iter(cast("list[Any]", content)), None)) and picture_in(line):
        # A line and its picture, as a model gets it: the line says how large that is.
        return _estimate_content(line)
    return estimate(str(cast("Any", content)))


def _estimate_picture(line: str) -> int:
    picture = picture_in(line)
    return 0 if picture is None else picture_tokens(picture.width, picture.height)
