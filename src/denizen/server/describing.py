"""Completes the OpenAPI document: the type of errors, the events of streams, and an example of every answer.

Each shape has its own example. The example of a list is made from those of its parts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, cast, get_args

from fastapi import FastAPI
from pydantic.json_schema import models_json_schema

from denizen.server.gate import OPENAI
from denizen.server.problems import MEDIA_TYPE
from denizen.shapes.events import EVENTS, Stream

_JSON: Final = "application/json"
_REFERENCE: Final = "#/components/schemas/"
_SENT: Final = "serialization"


def complete(app: FastAPI) -> None:
    """Makes the app's OpenAPI document complete."""
    describe: Callable[[], dict[str, Any]] = app.openapi

    def described() -> dict[str, Any]:
        whole = describe()
        schemas = whole["components"]["schemas"]
        _add_events(schemas)
        _tell_titles_apart(schemas)
        for schema in schemas.values():
            if "examples" in schema:
                schema["examples"] = [_with_nulls(each, schema, schemas) for each in schema["examples"]]
        for path, operation in operations(whole):
            _tell_of_problems(path, operation)
            _give_examples(operation, schemas)
        return whole

    app.openapi = described


def _add_events(schemas: dict[str, Any]) -> None:
    """Adds a schema for each stream with the data of every event under the event's name (`x-events`)."""
    shapes = {each.shape for each in EVENTS.values()}
    references, found = models_json_schema([(each, _SENT) for each in shapes], ref_template=_REFERENCE + "{model}")
    for name, schema in sorted(found["$defs"].items()):
        schemas.setdefault(name, schema)
    for stream in get_args(Stream):
        sent = {name: references[each.shape, _SENT] for name, each in EVENTS.items() if stream in each.streams}
        title = f"{stream.title()}StreamEvents"
        description = "The data of each event of this stream, by the name of the event."
        schemas[title] = {"title": title, "type": "object", "description": description, "properties": sent}


def _tell_titles_apart(schemas: dict[str, Any]) -> None:
    """Gives every schema a title of its own: generators of clients name classes by them, and leave out what has the
    name of another, with all operations that use it.
    """
    counted = Counter(each.get("title") for each in schemas.values())
    for name, schema in schemas.items():
        if counted[schema.get("title")] > 1:
            words = re.split(r"[^A-Za-z0-9]+", name.removeprefix("denizen__").replace("_", " "))
            schema["title"] = "".join(word[:1].upper() + word[1:] for word in words)


def operations(description: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in description["paths"].items():
        for operation in methods.values():
            yield path, operation


def _tell_of_problems(path: str, operation: dict[str, Any]) -> None:
    # `default` describes all errors: FastAPI's own description of validation errors would be a second one.
    operation["responses"].pop("422", None)
    content = operation["responses"]["default"]["content"]
    # Clients of OpenAI's API get errors in OpenAI's format.
    if _JSON in content and not path.startswith(OPENAI):
        content[MEDIA_TYPE] = content.pop(_JSON)


def _give_examples(operation: dict[str, Any], schemas: Mapping[str, Any]) -> None:
    for answer in operation["responses"].values():
        content = answer.get("content", {}).get(_JSON)
        if (
            content is not None
            and not content.keys() & {"example", "examples"}
            and not _says(content["schema"], schemas)
        ):
            with suppress(LookupError):  # A test finds those without one.
                content["example"] = example_of(content["schema"], schemas)


def _says(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> bool:
    """Whether it has its own example."""
    return "examples" in schemas.get(schema.get("$ref", "").removeprefix(_REFERENCE), schema)


def _with_nulls(example: Any, schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Any:
    """Adds the null values to the example, which FastAPI leaves out."""
    match schema, example:
        case {"$ref": str(name)}, _:
            return _with_nulls(example, schemas[name.removeprefix(_REFERENCE)], schemas)
        case {"anyOf": options}, dict() | list():
            wanted = "array" if isinstance(example, list) else "object"
            fitting = [each for each in options if "$ref" in each or each.get("type") == wanted]
            return _with_nulls(cast("Any", example), fitting[0], schemas) if fitting else cast("Any", example)
        case {"items": items}, list():
            return [_with_nulls(each, items, schemas) for each in cast("list[Any]", example)]
        case {"properties": fields}, dict():
            given = cast("dict[str, Any]", example)
            absent = {name: None for name in schema.get("required", ()) if name not in given}
            return {name: _with_nulls(value, fields.get(name, {}), schemas) for name, value in given.items()} | absent
        case _:
            return example


def example_of(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Any:
    """Returns the schema's own example, or one made from its parts. Raises `LookupError` if there is none."""
    match schema:
        case {"$ref": str(name)}:
            return example_of(schemas[name.removeprefix(_REFERENCE)], schemas)
        case {"examples": [first, *_]}:
            return first
        case {"example": value} | {"const": value} | {"default": value}:
            return value
        case {"enum": [first, *_]}:
            return first
        case {"anyOf": options} | {"oneOf": options}:
            return None if {"type": "null"} in options else example_of(options[0], schemas)
        case {"type": "string", "format": "binary"}:
            return "the bytes of the file"
        case {"type": "array", "items": items}:
            return [example_of(items, schemas)]
        case {"type": "object", "properties": fields}:
            return {name: example_of(field, schemas) for name, field in fields.items()}
        case _:
            raise LookupError(f"There is no example of {schema.get('title', schema)}.")
