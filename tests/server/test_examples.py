"""Every request and every answer in the API's description has an example, and it is one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from denizen.server.describing import example_of
from tests.server import small_town

DESCRIPTION = small_town.description()
SCHEMAS = DESCRIPTION["components"]["schemas"]


def contents(operation: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The bodies of an operation by what they are: of the request, and of each answer."""
    for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
        yield f"the request, {media_type}", content
    for status, answer in operation["responses"].items():
        for media_type, content in answer.get("content", {}).items():
            yield f"{status}, {media_type}", content


@pytest.mark.parametrize(
    ("path", "operation"),
    [pytest.param(path, each, id=f"{method} {path}") for method, path, each in small_town.operations(DESCRIPTION)],
)
def test_every_operation_has_examples_that_its_schemas_allow(path: str, operation: dict[str, Any]) -> None:
    for where, content in contents(operation):
        schema = content["schema"]
        example = content["example"] if "example" in content else example_of(schema, SCHEMAS)
        faults = Draft202012Validator({**schema, "components": {"schemas": SCHEMAS}}).iter_errors(example)
        assert [f"{path}, {where}: {each.json_path}: {each.message}" for each in faults] == []
        json.dumps(example)
