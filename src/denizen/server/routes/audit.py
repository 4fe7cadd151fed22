"""The audit log: who changed what, and when; opens private spaces, which the log records."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Final, get_args

from fastapi import Query, Response
from starlette.responses import StreamingResponse

from denizen.access import audit, openings, people
from denizen.access.audit import Actor, AuditFilter, AuditRecord, Kind
from denizen.access.openings import Opening
from denizen.app import Runtime
from denizen.clock import instant
from denizen.ids import SpaceId
from denizen.server.auth import Admin, Caller, Owner
from denizen.server.gate import LINES
from denizen.server.router import new_router
from denizen.server.shapes.audit import OpenSpace, audit_entry_out, opening_out
from denizen.shapes.audit import AuditPage, OpeningOut
from denizen.shapes.examples import text_answer
from denizen.storage.database import Tx, storable

router = new_router()

_AT_ONCE: Final = 500
_EXAMPLE: Final = '{"number":12,"action":"change_entity"}\n'

By = Annotated[str | None, Query(max_length=100, description="Only changes by this person: an id or a `@handle`.")]
OfKind = Annotated[Kind | None, Query(description="Only changes of this kind.")]
Since = Annotated[datetime | None, Query(description="Only changes from this time on.")]
Until = Annotated[datetime | None, Query(description="Only changes before this time.")]


@router.get("/api/audit", summary="List the audit log")
async def list_audit(
    caller: Admin,
    by: By = None,
    kind: OfKind = None,
    since: Since = None,
    until: Until = None,
    before: Annotated[int | None, Query(ge=0, le=2**62)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> AuditPage:
    """Changes in your organization, newest first: roles, tokens, keys, agents, budgets, settings, exports,
    forgotten data, opened private spaces. It never contains a secret.
    """
    found = await caller.runtime.db.read(_page, caller, by, _wanted(kind, since, until, before), limit + 1)
    page = found[:limit]
    return AuditPage(
        entries=[audit_entry_out(each) for each in page],
        next=page[-1].number if len(found) > limit else None,
        kinds=list(get_args(Kind)),
    )


@router.get(
    "/api/audit/export",
    summary="Export the audit log as a file",
    response_class=Response,
    responses=text_answer(LINES[0], "JSON Lines, the newest first.", _EXAMPLE),
)
async def export_audit(
    caller: Admin, by: By = None, kind: OfKind = None, since: Since = None, until: Until = None
) -> Response:
    """Every entry that `GET /api/audit` shows, one per line. The export itself is recorded, too."""
    runtime = caller.runtime
    newest = await runtime.db.write(_note_export, caller, by)
    return StreamingResponse(_lines(runtime, caller, by, _wanted(kind, since, until, newest)), media_type=LINES[0])


async def _lines(runtime: Runtime, caller: Caller, by: str | None, wanted: AuditFilter) -> AsyncGenerator[str]:
    while True:
        found = await runtime.db.read(_page, caller, by, wanted, _AT_ONCE)
        for each in found:
            yield audit_entry_out(each).model_dump_json() + "\n"
        if len(found) < _AT_ONCE:
            return
        wanted = replace(wanted, before=found[-1].number)


def _wanted(kind: Kind | None, since: datetime | None, until: datetime | None, before: int | None) -> AuditFilter:
    return AuditFilter(
        kind=kind,
        since=None if since is None else instant(since),
        until=None if until is None else instant(until),
        before=before,
    )


def _page(tx: Tx, caller: Caller, by: str | None, wanted: AuditFilter, limit: int) -> list[AuditRecord]:
    who = None if by is None else people.find_profile(tx, caller.requester, by).entity.id
    return audit.entries(tx, caller.entity.organization_id, caller.entity.id, replace(wanted, by=who), limit=limit)


def _note_export(tx: Tx, caller: Caller, by: str | None) -> int | None:
    """The number of the entry that tells of the export: the file holds those before it.

    Raises `NotFound` if there is no `by`, before a byte of the answer is sent.
    """
    if by is not None:
        people.find_profile(tx, caller.requester, by)
    audit.record(tx, caller.entity.organization_id, caller.actor, "export_audit")
    found = audit.entries(tx, caller.entity.organization_id, caller.entity.id, AuditFilter(), limit=1)
    return found[0].number if found else None


@router.post("/api/spaces/{space_id}/open", status_code=201, summary="Open a private space for an hour")
async def open_private_space(caller: Owner, space_id: str, wanted: OpenSpace) -> OpeningOut:
    """Lets you read a private space that you are not a member of: its messages, and what agents know from it.

    Its members are told in the space who opened it, why and for how long, and the audit log records it.
    """
    return opening_out(await caller.runtime.db.write(_open, caller, space_id, wanted.reason))


def _open(tx: Tx, caller: Caller, space_id: str, reason: str) -> Opening:
    where = SpaceId(storable(space_id))
    # The members are told who opened it, also where that was done on the server's own machine.
    by = Actor(caller.entity.id, caller.actor.token_id)
    return openings.open_private_space(tx, caller.entity.organization_id, by, where, storable(reason))
