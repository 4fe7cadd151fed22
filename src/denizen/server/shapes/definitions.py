"""The JSON of definition documents and of the result of applying them."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, Field, JsonValue, field_validator

from denizen.agents.applying import missing_tools
from denizen.agents.differences import Change
from denizen.agents.documents import Plain
from denizen.agents.files import Declared
from denizen.inbox.outside import NESTING, is_deep, storable_data
from denizen.server.shapes.filling import filled
from denizen.shapes.definitions import Applied, ChangeOut, FieldChangeOut
from denizen.shapes.examples import body_example

DOCUMENTS: int = 1_000


class DocumentIn(BaseModel):
    """One document of a definition file, and its position."""

    model_config = body_example(place="agents.yaml:1", document={"kind": "person", "name": "Sam"})

    place: Annotated[str, Field(max_length=1_000, description="The name that errors use for it.")]
    document: Annotated[
        Mapping[str, JsonValue],
        Field(description="An agent, a space or a person, in the format of `docs/definitions.md`."),
    ]

    @field_validator("document")
    @classmethod
    def _can_be_kept(cls, document: Mapping[str, JsonValue]) -> Any:
        if is_deep(dict(document)):
            raise ValueError(f"nested deeper than {NESTING} levels")
        return storable_data(dict(document))


class Apply(BaseModel):
    """Documents to apply, or to try."""

    model_config = body_example(
        documents=[{"place": "agents.yaml:1", "document": {"kind": "person", "name": "Sam"}}], dry_run=True
    )

    documents: Annotated[list[DocumentIn], Field(min_length=1, max_length=DOCUMENTS)]
    dry_run: Annotated[bool, Field(description="Only return what would change.")] = False

    @field_validator("documents")
    @classmethod
    def _each_in_its_place(cls, documents: list[DocumentIn]) -> list[DocumentIn]:
        if len({each.place for each in documents}) < len(documents):
            raise ValueError("two documents have the same place: each needs its own")
        return documents


def change_out(change: Change) -> ChangeOut:
    fields = [FieldChangeOut(path=each.path, old=_json(each.old), new=_json(each.new)) for each in change.fields]
    return filled(ChangeOut, change, fields=fields)


def _json(value: Plain) -> Any:
    return value


def applied_out(
    changes: Sequence[Change], declared: Sequence[Declared], tools: Container[str], *, dry_run: bool
) -> Applied:
    warnings = missing_tools(declared, tools)
    return Applied(dry_run=dry_run, changes=[change_out(each) for each in changes], warnings=warnings)
