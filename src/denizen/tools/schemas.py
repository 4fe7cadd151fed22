"""Arguments checked by JSON Schema, for tools that are not Python functions: providers do not check them for us."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from denizen.errors import InvalidInput

if TYPE_CHECKING:
    from jsonschema import ValidationError

_SHOWN: Final = 5
"""How many problems are told at once."""
_LONGEST: Final = 300
"""Characters of one: it may quote the whole of what was wrong."""


def schema_problem(schema: Mapping[str, Any]) -> str | None:
    """What is wrong with a schema of arguments, or None."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    if schema.get("type") != "object":
        return 'parameters must be the schema of an object: `{"type": "object", "properties": {…}}`'
    try:
        Draft202012Validator.check_schema(dict(schema))
    except SchemaError as error:
        where = ".".join(str(part) for part in error.absolute_path)
        return f"parameters is no valid JSON Schema{f' at {where}' if where else ''}: {error.message}"
    return None


def checker(name: str, schema: Mapping[str, Any]) -> Callable[[str | Mapping[str, Any] | None], Mapping[str, Any]]:
    """A function that gives a call's arguments if they fit the schema, and raises `InvalidInput` if they do not."""
    from jsonschema import Draft202012Validator
    from referencing import Registry

    # A registry of nothing: by default a `$ref` to an address would be fetched from there.
    validator = Draft202012Validator(dict(schema), registry=Registry())  # pyright: ignore[reportUnknownArgumentType]

    def check(arguments: str | Mapping[str, Any] | None) -> Mapping[str, Any]:
        given = _parsed(name, arguments)
        problems = _problems(name, validator.iter_errors(given))  # pyright: ignore[reportUnknownMemberType]
        if problems:
            raise InvalidInput(f"{name} was not called, because its arguments are wrong: {'; '.join(problems)}.")
        return given

    return check


def _problems(name: str, errors: Iterable[ValidationError]) -> list[str]:
    """The first of what is wrong, in words."""
    from referencing.exceptions import Unresolvable

    try:
        return [
            f"{'.'.join(str(part) for part in error.absolute_path) or 'arguments'}: {_short(error.message)}"
            for error in islice(errors, _SHOWN)
        ]
    except (Unresolvable, RecursionError) as error:
        raise InvalidInput(
            f"{name} was not called, because the schema of its arguments cannot be used: {type(error).__name__}."
        ) from error


def _short(message: str) -> str:
    return message if len(message) <= _LONGEST else f"{message[:_LONGEST]}…"


def _parsed(name: str, arguments: str | Mapping[str, Any] | None) -> Mapping[str, Any]:
    if not isinstance(arguments, str):
        return arguments or {}
    try:
        given = json.loads(arguments or "{}")
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{name} was not called, because its arguments are not JSON: {error}.") from error
    if not isinstance(given, dict):
        raise InvalidInput(f"{name} was not called, because its arguments are not a JSON object.")
    return given  # pyright: ignore[reportUnknownVariableType]
