"""Documents that are applied, what became of them, and an agent as one."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, JsonValue, field_validator

from denizen.agents.applying import missing_tools
from denizen.agents.differences import Change
from denizen.agents.documents import Plain
from denizen.agents.files import Declared
from denizen.inbox.outside import NESTING, is_deep, storable_data
from denizen.server.shapes.examples import asked, given

DOCUMENTS: int = 1_000


class DocumentIn(BaseModel):
    """What one document of a definition file says, and where it stands."""

    model_config = asked(place="agents.yaml:1", document={"kind": "person", "name": "Sam"})

    place: Annotated[str, Field(max_length=1_000, description="Under which its problems are told.")]
    document: Annotated[
        Mapping[str, JsonValue],
        Field(description="An agent, a space or a person, as `docs/definitions.md` tells them."),
    ]

    @field_validator("document")
    @classmethod
    def _can_be_kept(cls, document: Mapping[str, JsonValue]) -> Any:
        if is_deep(dict(document)):
            raise ValueError(f"nested deeper than {NESTING} levels")
        return storable_data(dict(document))


class Apply(BaseModel):
    """Documents, and whether they are only to be tried."""

    model_config = asked(
        documents=[{"place": "agents.yaml:1", "document": {"kind": "person", "name": "Sam"}}], dry_run=True
    )

    documents: Annotated[list[DocumentIn], Field(min_length=1, max_length=DOCUMENTS)]
    dry_run: Annotated[bool, Field(description="Only say what would change.")] = False

    @field_validator("documents")
    @classmethod
    def _each_in_its_place(cls, documents: list[DocumentIn]) -> list[DocumentIn]:
        if len({each.place for each in documents}) < len(documents):
            raise ValueError("two documents have the same place: each needs its own")
        return documents


class FieldChangeOut(BaseModel):
    """A part of something that is different now; null is where there is nothing. Secrets show as `•••`."""

    path: str
    old: JsonValue
    new: JsonValue


class ChangeOut(BaseModel):
    """What became of one thing that a document names."""

    model_config = given(
        kind="person", name="sam", action="created", fields=[{"path": "name", "old": None, "new": "Sam"}]
    )

    kind: Literal["agent", "space", "person"]
    name: Annotated[str, Field(description="A handle, or the name of a space.")]
    action: Literal["created", "changed", "unchanged"]
    fields: list[FieldChangeOut]

    @classmethod
    def of(cls, change: Change) -> ChangeOut:
        fields = [FieldChangeOut(path=each.path, old=_json(each.old), new=_json(each.new)) for each in change.fields]
        return cls(kind=change.kind, name=change.name, action=change.action, fields=fields)


def _json(value: Plain) -> Any:
    return value


class Applied(BaseModel):
    """What became of all of them, in their order."""

    model_config = given(dry_run=False, changes=[], warnings=[])

    dry_run: Annotated[bool, Field(description="Whether nothing was changed.")]
    changes: list[ChangeOut]
    warnings: Annotated[list[str], Field(description="Of tools that agents shall have and this server has not.")]

    @classmethod
    def of(
        cls, changes: Sequence[Change], declared: Sequence[Declared], tools: Container[str], *, dry_run: bool
    ) -> Applied:
        warnings = missing_tools(declared, tools)
        return cls(dry_run=dry_run, changes=[ChangeOut.of(each) for each in changes], warnings=warnings)


class DocumentOut(BaseModel):
    """An agent as a document."""

    model_config = given(document={"name": "Ada", "handle": "ada", "instructions": "You look after this house."})

    document: Annotated[Mapping[str, JsonValue], Field(description="As `docs/definitions.md` tells it; no secrets.")]
