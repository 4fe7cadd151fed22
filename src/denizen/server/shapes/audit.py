"""The audit log over HTTP, and private spaces that an owner opens."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from denizen.access.audit import ACTIONS, AuditRecord
from denizen.access.openings import REASON_CHARACTERS, Opening
from denizen.clock import moment
from denizen.server.shapes.filling import filled
from denizen.server.shapes.given import RequestBody
from denizen.shapes.audit import AuditEntry, OpeningOut
from denizen.shapes.examples import body_example


def audit_entry_out(entry: AuditRecord) -> AuditEntry:
    known = ACTIONS.get(entry.action)
    return filled(AuditEntry, entry, what=entry.action if known is None else known.words)


class OpenSpace(RequestBody):
    """Why an owner opens a private space."""

    model_config = body_example(reason="A complaint about what was said here.")

    reason: Annotated[
        str, Field(min_length=1, max_length=REASON_CHARACTERS, description="The members of the space see it.")
    ]


def opening_out(opening: Opening) -> OpeningOut:
    return filled(OpeningOut, opening, opened_at=moment(opening.created_at))
