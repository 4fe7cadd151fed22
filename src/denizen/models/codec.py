"""Converts one message of a history to JSON text, and back. What is loaded equals what was dumped."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai.messages import ModelMessage
from pydantic_core import PydanticSerializationError

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def dump(message: ModelMessage) -> str:
    """The message as compact JSON.

    Half of a surrogate pair, which no database and no provider accepts, becomes U+FFFD.
    """
    try:
        return _adapter().dump_json(message, exclude_none=True).decode()
    except (PydanticSerializationError, UnicodeEncodeError):
        return _dump_replacing_surrogates(message)


def load(text: str) -> ModelMessage:
    """The message that `dump` wrote."""
    return _adapter().validate_json(text)


@cache
def _adapter() -> TypeAdapter[ModelMessage]:
    # Built at the first use: it takes a tenth of a second.
    return TypeAdapter(ModelMessage)


def _dump_replacing_surrogates(message: ModelMessage) -> str:
    plain: Any = _adapter().dump_python(message, mode="json", exclude_none=True)
    text = json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
    return _LONE_SURROGATE.sub("\ufffd", text)
