"""The JSON names of reflection settings (`historyWindow`, `sentimentTracking`), converted to ours. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, cast

from pydantic import JsonValue

_CAPITAL: Final = re.compile(r"(?<=[a-z0-9])([A-Z])")
PERSONA_KEYS: Final = {"sentimentTracking": "sentiment", "metaPrompts": "metaprompts"}
"""The keys of a persona for parts of `reflection`, with ours."""


def snake(value: JsonValue) -> JsonValue:
    """Converts the names of fields to Python's form."""
    if isinstance(value, Mapping):
        return {_CAPITAL.sub(r"_\1", key).lower(): snake(each) for key, each in value.items()}
    return [snake(each) for each in value] if isinstance(value, list) else value


def with_model(given: JsonValue) -> JsonValue:
    """Renames the two names that the file may use for a model to our one."""
    if not isinstance(given, dict) or not isinstance(given.get("model_id"), str):
        return given
    model, provider = str(given["model_id"]), given.get("provider_id")
    return {**given, "model": model.replace("/", ":", 1) if provider is None else f"{provider}:{model}"}


def reflection_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns `reflection` of a definition with our names; values of other types stay as they are."""
    found = cast("dict[str, Any]", snake({PERSONA_KEYS.get(key, key): value for key, value in given.items()}))
    if "sentiment" in found:
        found["sentiment"] = _with_one_model(found["sentiment"])
    if isinstance(found.get("metaprompts"), list):
        found["metaprompts"] = [_with_one_model(each) for each in found["metaprompts"]]
    return found


def _with_one_model(given: Any) -> Any:
    found: Any = with_model(given)
    if not isinstance(found, dict):
        return found
    named = cast("dict[str, Any]", found)
    return {key: value for key, value in named.items() if key not in ("model_id", "provider_id")}
