"""Converts definitions written as persona files: `baseSystemPrompt`, `sentimentTracking`, `metaPrompts`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from denizen.reflection.names import PERSONA_KEYS, reflection_fields

INSTRUCTIONS: Final = "baseSystemPrompt"


def as_definition(given: Any, *, has_handle: bool = False) -> Any:
    """Renames the keys of a persona to ours; other keys stay.

    A persona's `version` is dropped. Its `id` becomes the handle, if there may be one and none is given.
    """
    if not isinstance(given, Mapping):
        return given
    fields = dict(cast("Mapping[str, Any]", given))
    if isinstance(fields.get("reflection"), Mapping):
        fields["reflection"] = reflection_fields(fields["reflection"])
    if fields.keys().isdisjoint({INSTRUCTIONS, *PERSONA_KEYS}):
        return fields
    if parts := {key: fields.pop(key) for key in PERSONA_KEYS if key in fields}:
        fields["reflection"] = {**(fields.get("reflection") or {}), **reflection_fields(parts)}
    if INSTRUCTIONS in fields and not fields.get("instructions"):
        fields["instructions"] = fields.pop(INSTRUCTIONS)
    fields.pop("version", None)
    id = fields.pop("id", None)
    if has_handle and isinstance(id, str):
        fields.setdefault("handle", id.replace("_", "-"))
    return fields
