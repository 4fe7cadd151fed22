"""Converts one message of a history to JSON text, and back. What is loaded equals what was dumped."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def dump(message: ModelMessage) -> str:
    """The message as compact JSON.

    Half of a surrogate pair, which no database and no provider accepts, becomes U+FFFD.
    """
    try:
        return _writer(type(message)).dump_json(message, exclude_none=True).decode()
    except (PydanticSerializationError, UnicodeEncodeError):
        return _dump_replacing_surrogates(message)


def load(text: str) -> ModelMessage:
    """The message that `dump` wrote."""
    return _adapter().validate_json(text)


@cache
def _adapter() -> TypeAdapter[ModelMessage]:
    # Imported and built at the first use: it takes most of a second.
    from pydantic_ai.messages import ModelMessage

    return TypeAdapter(ModelMessage)


@cache
def _writer(kind: type[ModelMessage]) -> TypeAdapter[ModelMessage]:
    # The adapter of both kinds writes a response twice: strictly, which its usage does not allow, and then again.
    return TypeAdapter(kind)


def _dump_replacing_surrogates(message: ModelMessage) -> str:
    plain: Any = _adapter().dump_python(message, mode="json", exclude_none=True)
    text = json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
    return _LONE_SURROGATE.sub("\ufffd", text)
