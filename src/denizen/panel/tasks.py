"""Model tasks other than replies: synthesis, votes, checks, suggestions. Pure.

Each task has a request and a reader of its answer. If an answer has fields, the model gets one tool to call with them;
JSON written as text is accepted as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse

_FENCED = re.compile(r"```(?:json)?\s*(\{.*\})\s*```", re.DOTALL)
_OBJECT = re.compile(r"\{.*\}", re.DOTALL)


def fields_of(response: ModelResponse, tool: str) -> Mapping[str, Any] | None:
    """Returns the arguments of the tool call, or the JSON object written instead; None if there is neither."""
    for part in response.parts:
        if part.part_kind == "tool-call" and part.tool_name == tool:
            return part.args_as_dict(raise_if_invalid=False)
    text = "".join(part.content for part in response.parts if part.part_kind == "text")
    for pattern in (_FENCED, _OBJECT):
        found = pattern.search(text)
        if found is None:
            continue
        try:
            loaded = json.loads(found[1] if pattern is _FENCED else found[0])
        except (ValueError, RecursionError):
            continue
        if isinstance(loaded, dict):
            return loaded  # pyright: ignore[reportUnknownVariableType]
    return None


def line(value: object, characters: int) -> str:
    """Returns whatever the model gave as a short text in one line."""
    return " ".join(str(value or "").split())[:characters]
