"""Estimates how many tokens a text has: four characters each. Used if no provider has counted yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
        tokens += estimate(content if isinstance(content, str) else str(content))
    return tokens
