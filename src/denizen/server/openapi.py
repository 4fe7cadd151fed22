"""Completes the OpenAPI document: the type of errors, the events of streams, and an example of every answer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, get_args

from fastapi import FastAPI
from pydantic.json_schema import models_json_schema

from denizen.server.examples import REFERENCE, example_of
from denizen.server.gate import OPENAI
from denizen.server.problems import MEDIA_TYPE
from denizen.shapes.events import EVENTS, Stream
from denizen.shapes.value import EXAMPLE

_JSON: Final = "application/json"
_SENT: Final = "serialization"


def complete(app: FastAPI) -> None:
    """Makes the app's OpenAPI document complete."""
    describe: Callable[[], dict[str, Any]] = app.openapi

    def described() -> dict[str, Any]:
        whole = describe()
        schemas = whole["components"]["schemas"]
        _add_events(schemas)
        _tell_titles_apart(schemas)
        _give_examples(schemas)
        for path, operation in operations(whole):
            _tell_of_problems(path, operation)
            _give_example(operation, schemas)
        return whole

    app.openapi = described


def _add_events(schemas: dict[str, Any]) -> None:
    """Adds a schema for each stream with the data of every event under the event's name (`x-events`)."""
    shapes = {each.shape for each in EVENTS.values()}
    references, found = models_json_schema([(each, _SENT) for each in shapes], ref_template=REFERENCE + "{model}")
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


def _give_examples(schemas: Mapping[str, Any]) -> None:
    """Gives each shape its example, made from the values that it names and from its fields."""
    made = {name: example_of(each, schemas) for name, each in schemas.items() if EXAMPLE in each}
    for name, example in made.items():
        del schemas[name][EXAMPLE]
        schemas[name]["examples"] = [example]


def _give_example(operation: Mapping[str, Any], schemas: Mapping[str, Any]) -> None:
    """Gives an example to each answer whose schema has none."""
    for answer in operation["responses"].values():
        content = answer.get("content", {}).get(_JSON, {"example": None})
        named = content.get("schema", {}).get("$ref", "").removeprefix(REFERENCE)
        if not content.keys() & {"example", "examples"} and "examples" not in schemas.get(named, {}):
            content["example"] = example_of(content["schema"], schemas)
