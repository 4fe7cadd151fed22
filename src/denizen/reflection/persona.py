"""Converts definitions written as persona files, with JSON names: `sentimentTracking`, `metaPrompts`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from denizen.reflection.configuration import snake, with_model

SENTIMENT: Final = "sentimentTracking"
METAPROMPTS: Final = "metaPrompts"
INSTRUCTIONS: Final = "baseSystemPrompt"


def as_definition(given: Any) -> Any:
    """Renames the keys of a persona, and those under `reflection`, to ours. Other keys stay."""
    if not isinstance(given, Mapping):
        return given
    fields = dict(cast("Mapping[str, Any]", given))
    reflection: Any = fields.get("reflection")
    if isinstance(reflection, Mapping):
        reflection = _as_reflection(cast("Mapping[str, Any]", reflection))
        fields["reflection"] = reflection
    found = {our: fields.pop(key) for key, our in _REFLECTION.items() if key in fields}
    if found:
        already = cast("dict[str, Any]", reflection) if isinstance(reflection, dict) else {}
        fields["reflection"] = {**already, **_as_reflection(found)}
    if INSTRUCTIONS in fields and "instructions" not in fields:
        fields["instructions"] = fields.pop(INSTRUCTIONS)
    return fields


_REFLECTION: Final = {SENTIMENT: "sentiment", METAPROMPTS: "metaprompts"}


def _as_reflection(given: Mapping[str, Any]) -> dict[str, Any]:
    renamed = {_REFLECTION.get(key, key): value for key, value in given.items()}
    found = cast("dict[str, Any]", snake(renamed))
    if "sentiment" in found:
        found["sentiment"] = _with_model(found["sentiment"])
    if isinstance(found.get("metaprompts"), list):
        found["metaprompts"] = [_with_model(each) for each in found["metaprompts"]]
    return found


def _with_model(given: Any) -> Any:
    """Renames the two names that a persona may use for a model to our one."""
    found: Any = with_model(given)
    if not isinstance(found, dict):
        return found
    named = cast("dict[str, Any]", found)
    return {key: value for key, value in named.items() if key not in ("model_id", "provider_id")}
