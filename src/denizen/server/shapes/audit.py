"""The audit log over HTTP, and private spaces that an owner opens."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field, JsonValue

from denizen.access.audit import ACTIONS, Entry, Kind, Named
from denizen.access.openings import REASON_CHARACTERS, Opening
from denizen.clock import Instant, moment
from denizen.server.shapes.examples import KITCHEN, NINE, NOOR, THING, asked, given
from denizen.server.shapes.given import Given

_NAMED = {"id": NOOR, "handle": "noor", "name": "Noor"}
_ENTRY = {
    "number": 12,
    "at": NINE,
    "by": _NAMED,
    "token_id": THING,
    "kind": "people",
    "action": "change_entity",
    "what": "changed the name or role of",
    "subject_id": NOOR,
    "subject": _NAMED,
    "detail": {"role": ["member", "admin"]},
    "reason": None,
}


class NamedOut(BaseModel):
    """Someone or something, as it is called now."""

    model_config = given(**_NAMED)

    id: str
    handle: Annotated[str, Field(description="Empty for a space.")]
    name: str

    @classmethod
    def of(cls, named: Named | None) -> NamedOut | None:
        return None if named is None else cls(id=named.id, handle=named.handle, name=named.name)


class AuditEntry(BaseModel):
    """One change: who made it, when, and to what."""

    model_config = given(**_ENTRY)

    number: int
    at: datetime
    by: Annotated[NamedOut | None, Field(description="Null: whoever runs the server, on its own machine.")]
    token_id: Annotated[str | None, Field(description="The token or session that they came with.")]
    kind: str
    action: Annotated[str, Field(description="The name of the operation.")]
    what: Annotated[str, Field(description="The same in words: “Noor *changed the name or role of* Sam”.")]
    subject_id: str | None
    subject: Annotated[NamedOut | None, Field(description="What was changed, where you may know its name.")]
    detail: Annotated[Mapping[str, JsonValue], Field(description="Never a secret.")]
    reason: Annotated[str | None, Field(description="Why a private space was opened.")]

    @classmethod
    def of(cls, entry: Entry) -> AuditEntry:
        known = ACTIONS.get(entry.action)
        return cls(
            number=entry.number,
            at=moment(Instant(entry.at)),
            by=NamedOut.of(entry.by),
            token_id=entry.token_id,
            kind=entry.kind,
            action=entry.action,
            what=entry.action if known is None else known.words,
            subject_id=entry.subject_id,
            subject=NamedOut.of(entry.subject),
            detail=entry.detail,
            reason=entry.reason,
        )


class AuditPage(BaseModel):
    """Some entries of the audit log, the newest first."""

    model_config = given(entries=[_ENTRY], next=12, kinds=["people", "tokens"])

    entries: list[AuditEntry]
    next: Annotated[int | None, Field(description="Give it as `before` for the next page; null: there is none.")]
    kinds: Annotated[list[Kind], Field(description="Every kind of change there is.")]


class OpenSpace(Given):
    """Why an owner opens a private space."""

    model_config = asked(reason="A complaint about what was said here.")

    reason: Annotated[str, Field(min_length=1, max_length=REASON_CHARACTERS, description="The members will read it.")]


class OpeningOut(BaseModel):
    """A private space that an owner may read for a while."""

    model_config = given(id=THING, space_id=KITCHEN, reason="A complaint.", opened_at=NINE, until=NINE)

    id: str
    space_id: str
    reason: str
    opened_at: datetime
    until: datetime

    @classmethod
    def of(cls, opening: Opening) -> OpeningOut:
        return cls(
            id=opening.id,
            space_id=opening.space_id,
            reason=opening.reason,
            opened_at=moment(Instant(opening.created_at)),
            until=moment(Instant(opening.until)),
        )
