"""Makes the examples in the API's description: from what a schema says of its fields, and from their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from denizen.shapes.examples import ADA, KITCHEN, NINE, NOOR, THING
from denizen.shapes.value import EXAMPLE

REFERENCE: Final = "#/components/schemas/"

_VALUES: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("advisor", "bridge_id", "cycle_id", "id", "memory_id", "message_id", "round"), THING),
    **dict.fromkeys(("agent", "agent_id"), ADA),
    **dict.fromkeys(("asked_by", "entity_id", "given_by", "sender_id", "subject_id", "user_id"), NOOR),
    **dict.fromkeys(("panel", "space_id"), KITCHEN),
    "about": "You look after this house.",
    "account": "@noor:example.org",
    "address": "http://127.0.0.1:8080/v1",
    "agents": 2,
    "attempts": 0,
    "bytes": 48_200_000,
    "cause": "key",
    "complete": True,
    "context_source": "the provider",
    "cycle": (12, THING),
    "cycles": 12,
    "description": "Looks after this house.",
    "enabled": True,
    "error": "The provider did not answer.",
    "handle": "ada",
    "hop": 0,
    "input_tokens": 8_400,
    "issuer": "https://login.example.com",
    "key": "OPENAI_API_KEY",
    "kept": True,
    "kind": ("agent", "conversation", "token"),
    "label": "Concise",
    "last_seq": 7,
    "markdown": "**Noor:** Good morning.",
    "media_type": "image/jpeg",
    "mentions": ["ada"],
    "message": "Good morning.",
    "metaprompt": "frustration_recovery",
    "metaprompts": ["frustration_recovery"],
    "model": "anthropic:claude-sonnet-5-5",
    "name": "Ada",
    "number": 12,
    "outcome": "acted",
    "output_tokens": 120,
    "path": "name",
    "people": ["Noor"],
    "plain": "Good morning, @ada.",
    "position": (1, "For it."),
    "profiles": ["off", "basic"],
    "provider": "openai",
    "purpose": "Keeps the house in order.",
    "reason": "done",
    "role": "member",
    "room": "ticket-7",
    "schedule": "0 7 * * * (Europe/Berlin)",
    "scope": "user",
    "secret": "shown-this-once",
    "sender": "Noor",
    "sender_kind": "human",
    "seq": 7,
    "since": NINE,
    "size": 48_213,
    "space": "Kitchen",
    "space_name": "Kitchen",
    "spaces": ["Kitchen"],
    "stop_reason": "end_turn",
    "summary": "Told Noor that the build passed.",
    "text": "Good morning, @ada.",
    "thinking": ("", False),
    "title": "OpenAI",
    "tool": "send_message",
    "tools": ["send_message"],
    "version": ("0.1.0", 3),
    "wakes": True,
}
"""Values of fields by the name of the field. Of a tuple, the first that the field can have."""
VALUES: Final = {
    name: cast("tuple[Any, ...]", each) if isinstance(each, tuple) else (each,) for name, each in _VALUES.items()
}

_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
}


def example_of(schema: Mapping[str, Any], schemas: Mapping[str, Any], name: str = "") -> Any:
    """Returns the schema's own example, or one made from its fields and from the name of the field that it describes.

    Raises `LookupError` if there is none: then say it with the shape (`example`), or add the name above.
    """
    fitting = [each for each in VALUES.get(name, ()) if "examples" not in schema and _can_be(each, schema)]
    if fitting:
        return fitting[0]
    match schema:
        case {"$ref": str(reference)}:
            return example_of(schemas[reference.removeprefix(REFERENCE)], schemas)
        case {"examples": [first, *_]}:
            return first
        case {"example": value} | {"const": value} | {"default": value}:
            return value
        case {"enum": [first, *_]}:
            return first
        case {"anyOf": options} | {"oneOf": options}:
            return None if {"type": "null"} in options else example_of(options[0], schemas, name)
        case {"type": "string", "format": form} if form in _FORMATS:
            return _FORMATS[form]
        case {"type": "array", "items": items}:
            return [] if items.get("type") == "string" else [example_of(items, schemas)]
        case {"type": "object", "properties": fields}:
            own = schema.get(EXAMPLE, {})
            return {each: own[each] if each in own else example_of(fields[each], schemas, each) for each in fields}
        case {"type": kind} if kind in _ANY:
            return _ANY[kind]
        case {"type": _}:
            raise LookupError(f"There is no example of {name or schema.get('title', schema)}.")
        case _:
            return None  # any JSON


_FORMATS: Final = {"date-time": NINE, "date": "2026-01-05", "binary": "the bytes of the file"}
_ANY: Final[Mapping[str, Any]] = {"object": {}, "integer": 3, "number": 0.25, "boolean": False, "null": None}


def _can_be(value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether the field can have this value, as far as its type and its possible values tell."""
    if "anyOf" in schema:
        return any(_can_be(value, each) for each in schema["anyOf"])
    if "enum" in schema or "const" in schema:
        return value in schema.get("enum", [schema.get("const")])
    kind = _TYPES.get(schema.get("type", ""), ())
    if isinstance(value, list):
        return list in kind and schema.get("items", {}).get("type") == "string"
    return isinstance(value, kind) and (bool in kind or not isinstance(value, bool)) and "format" not in schema
