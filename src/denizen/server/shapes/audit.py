"""The audit log over HTTP, and private spaces that an owner opens."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from denizen.access.audit import ACTIONS, Entry, Named
from denizen.access.openings import REASON_CHARACTERS, Opening
from denizen.clock import Instant, moment
from denizen.server.shapes.given import Given
from denizen.shapes.audit import AuditEntry, NamedOut, OpeningOut
from denizen.shapes.examples import asked


def named_out(named: Named | None) -> NamedOut | None:
    return None if named is None else NamedOut(id=named.id, handle=named.handle, name=named.name)


def audit_entry_out(entry: Entry) -> AuditEntry:
    known = ACTIONS.get(entry.action)
    return AuditEntry(
        number=entry.number,
        at=moment(Instant(entry.at)),
        by=named_out(entry.by),
        token_id=entry.token_id,
        kind=entry.kind,
        action=entry.action,
        what=entry.action if known is None else known.words,
        subject_id=entry.subject_id,
        subject=named_out(entry.subject),
        detail=entry.detail,
        reason=entry.reason,
    )


class OpenSpace(Given):
    """Why an owner opens a private space."""

    model_config = asked(reason="A complaint about what was said here.")

    reason: Annotated[str, Field(min_length=1, max_length=REASON_CHARACTERS, description="The members will read it.")]


def opening_out(opening: Opening) -> OpeningOut:
    return OpeningOut(
        id=opening.id,
        space_id=opening.space_id,
        reason=opening.reason,
        opened_at=moment(Instant(opening.created_at)),
        until=moment(Instant(opening.until)),
    )
