"""Lenient parsing of a model's arguments: unknown ones are left out, numbers in strings become numbers.

Pure. The model is told what was left out with the result. Everything else is checked exactly, as before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast

from denizen.tools.tool import OwnTool, Tool

Given = str | Mapping[str, Any] | None
"""The arguments of a call as the model wrote them: JSON, or an object."""

_NUMBER: Final = re.compile(r"\s*-?\d{1,15}(\.\d{1,15})?\s*")
_WORDS: Final[Mapping[str, bool]] = {"true": True, "false": False}


class ParsedArguments(NamedTuple):
    """The arguments for a tool, and the names of those that were left out."""

    arguments: Given
    left_out: tuple[str, ...] = ()


def read(tool: Tool, arguments: Given) -> ParsedArguments:
    """The arguments for this tool. Anything but an object is returned unchanged: the check reports what is wrong."""
    given = _object(arguments)
    if given is None:
        return ParsedArguments(arguments)
    schema: dict[str, Any] = tool.definition.parameters_json_schema
    properties: Mapping[str, Any] = schema.get("properties") or {}
    if isinstance(tool, OwnTool):
        taken = set(tool.arguments.model_fields)
    elif schema.get("additionalProperties") is False and not schema.get("patternProperties"):
        taken = set(properties)
    else:
        taken = set(given)
    kept = {name: _as_typed(value, properties.get(name)) for name, value in given.items() if name in taken}
    return ParsedArguments(kept, tuple(name for name in given if name not in taken))


def check(tool: Tool, arguments: Given, parsed: ParsedArguments | None = None) -> Any:
    """The arguments, parsed leniently and then checked. Raises `InvalidInput` that tells the model what is wrong.

    `parsed` is what `read` returned for them, here and in `noted`.
    """
    taken = (parsed or read(tool, arguments)).arguments
    # JSON is checked as JSON: a strict date may be a string there, and problems are described in terms of JSON.
    return tool.check(json.dumps(taken) if isinstance(arguments, str) and isinstance(taken, Mapping) else taken)


def noted(tool: Tool | None, arguments: Given, result: str, parsed: ParsedArguments | None = None) -> str:
    """The result, with a note about the arguments that were left out, if any."""
    left_out = () if tool is None else (parsed or read(tool, arguments)).left_out
    if tool is None or not left_out:
        return result
    note = f"Left out, because {tool.name} has no such argument: {', '.join(name[:60] for name in left_out[:5])}"
    if isinstance(tool, OwnTool) and result.startswith("{"):
        # Other code parses it to see what was done: it must stay JSON.
        return json.dumps({**json.loads(result), "note": note}, ensure_ascii=False, separators=(",", ":"))
    return f"{result}\n[{note}]"


def _object(arguments: Given) -> dict[str, Any] | None:
    if isinstance(arguments, str):
        try:
            loaded: object = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            return None
        return cast("dict[str, Any]", loaded) if isinstance(loaded, dict) else None
    return dict(arguments or {})


def _as_typed(value: Any, schema: Any) -> Any:
    """A number or boolean that was written as a string, converted if the schema wants one."""
    wanted = cast("dict[str, Any]", schema).get("type") if isinstance(schema, dict) else None
    if not isinstance(value, str):
        return value
    if wanted in ("integer", "number") and (found := _NUMBER.fullmatch(value)) is not None:
        return float(value) if found[1] else int(value)
    return _WORDS.get(value.strip().lower(), value) if wanted == "boolean" else value
