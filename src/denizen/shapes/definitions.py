"""What applying definition files changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from denizen.shapes.examples import example
from denizen.shapes.value import Open, Value


class FieldChangeOut(Value):
    """A changed field, with its value before and after; null: none. Secrets are shown as `•••`."""

    path: str
    old: JsonValue
    new: JsonValue


class ChangeOut(Value):
    """The result for one item of a document."""

    model_config = example(kind="person", name="sam")

    kind: Open[Literal["agent", "space", "person", "bridge"]]
    name: Annotated[str, Field(description="A handle, or the name of a space.")]
    action: Open[Literal["created", "changed", "unchanged"]]
    fields: list[FieldChangeOut]


class Applied(Value):
    """The results, in the order of the documents."""

    dry_run: Annotated[bool, Field(description="Whether it was a dry run, without changes.")]
    changes: list[ChangeOut]
    warnings: Annotated[
        list[str], Field(description="Warnings about tools that agents use and this server does not have.")
    ]


class DocumentOut(Value):
    """An agent as a document."""

    document: Annotated[Mapping[str, JsonValue], Field(description="As `docs/definitions.md` tells it; no secrets.")]
