"""The audit log."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

from pydantic import Field, JsonValue

from denizen.shapes.examples import NOOR, THING, example
from denizen.shapes.value import NextBefore, Open, Value
from denizen.shapes.vocabulary import AuditKind


class NamedOut(Value):
    """A person, an agent or a space, with its present name."""

    model_config = example(id=NOOR, handle="noor", name="Noor")

    id: str
    handle: Annotated[str, Field(description="Empty for a space.")]
    name: str


class AuditEntry(Value):
    """One change: who made it, when, and to what."""

    model_config = example(token_id=THING, kind="people", action="change_entity", what="changed the name or role of")

    number: int
    at: datetime
    by: Annotated[NamedOut | None, Field(description="Null: the operator, on the server's own machine.")]
    token_id: Annotated[str | None, Field(description="The token or session that was used.")]
    kind: str
    action: Annotated[str, Field(description="The name of the operation.")]
    what: Annotated[str, Field(description="The same in words: “Noor *changed the name or role of* Sam”.")]
    subject_id: str | None
    subject: Annotated[NamedOut | None, Field(description="What was changed, if you may know its name.")]
    detail: Annotated[Mapping[str, JsonValue], Field(description="Never a secret.")]
    reason: Annotated[str | None, Field(description="Why a private space was opened.")]


class AuditPage(Value):
    """Entries of the audit log, newest first."""

    model_config = example(kinds=["people", "tokens"])

    entries: list[AuditEntry]
    next: NextBefore[int]
    kinds: Annotated[list[Open[AuditKind]], Field(description="All kinds of changes.")]


class OpeningOut(Value):
    """A private space that an owner may read for a while."""

    model_config = example(reason="A complaint.")

    id: str
    space_id: str
    reason: str
    opened_at: datetime
    until: datetime
