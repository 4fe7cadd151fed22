"""Every request and every answer in the API's description has an example, and it is one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from jsonschema_rs import Draft202012Validator

from denizen.server.examples import example_of
from tests.server import small_town


def contents(operation: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The bodies of an operation by what they are: of the request, and of each answer."""
    for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
        yield f"the request, {media_type}", content
    for status, answer in operation["responses"].items():
        for media_type, content in answer.get("content", {}).items():
            yield f"{status}, {media_type}", content


def test_every_operation_has_examples_that_its_schemas_allow() -> None:
    description = small_town.description()
    schemas = description["components"]["schemas"]
    faults: list[str] = []
    for method, path, operation in small_town.operations(description):
        for where, content in contents(operation):
            schema = content["schema"]
            example = content["example"] if "example" in content else example_of(schema, schemas)
            found = Draft202012Validator({**schema, "components": {"schemas": schemas}}).iter_errors(example)
            faults += [f"{method} {path}, {where}: {each.instance_path}: {each.message}" for each in found]
            json.dumps(example)
    assert not faults, "\n".join(faults)
