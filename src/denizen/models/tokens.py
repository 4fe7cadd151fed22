"""How many tokens a text is likely to be: four characters each. Used where no provider has counted yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

PER_MESSAGE = 4
"""What providers add around each message for its role and separators, roughly."""


def estimate(text: str) -> int:
    """Tokens of `text`: 0 when it is empty, else at least 1."""
    return (len(text) + 3) // 4


def estimate_message(message: ModelMessage) -> int:
    """Tokens of what a provider is sent of `message`: contents, tool names, arguments, and a little for its frame."""
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
