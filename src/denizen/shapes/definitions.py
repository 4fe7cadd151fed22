"""What applying definition files changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from denizen.shapes.examples import given
from denizen.shapes.value import Open, Value


class FieldChangeOut(Value):
    """A part of something that is different now; null is where there is nothing. Secrets show as `•••`."""

    path: str
    old: JsonValue
    new: JsonValue


class ChangeOut(Value):
    """What became of one thing that a document names."""

    model_config = given(
        kind="person", name="sam", action="created", fields=[{"path": "name", "old": None, "new": "Sam"}]
    )

    kind: Open[Literal["agent", "space", "person"]]
    name: Annotated[str, Field(description="A handle, or the name of a space.")]
    action: Open[Literal["created", "changed", "unchanged"]]
    fields: list[FieldChangeOut]


class Applied(Value):
    """What became of all of them, in their order."""

    model_config = given(dry_run=False, changes=[], warnings=[])

    dry_run: Annotated[bool, Field(description="Whether nothing was changed.")]
    changes: list[ChangeOut]
    warnings: Annotated[list[str], Field(description="Of tools that agents shall have and this server has not.")]


class DocumentOut(Value):
    """An agent as a document."""

    model_config = given(document={"name": "Ada", "handle": "ada", "instructions": "You look after this house."})

    document: Annotated[Mapping[str, JsonValue], Field(description="As `docs/definitions.md` tells it; no secrets.")]
