"""Forgets messages, people and spaces, and lists the receipts."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from denizen.errors import InvalidInput
from denizen.forgetting import receipts
from denizen.forgetting.receipts import Receipt
from denizen.forgetting.subjects import find_subject
from denizen.ids import EntityId, MessageId, SpaceId
from denizen.server.auth import Admin, Caller, require
from denizen.server.router import new_router
from denizen.server.shapes.forgetting import Forget, receipt_out
from denizen.shapes.forgetting import ReceiptOut, ReceiptPage
from denizen.storage.database import Tx, storable

router = new_router()


@router.post(
    "/api/forget",
    summary="Forget data everywhere",
    openapi_extra={"x-who": "admins and owners; a person or a space: owners"},
)
async def forget(caller: Admin, wanted: Forget) -> ReceiptOut:
    """A message or a memory; for owners, also a person or a space. This cannot be undone.

    A dry run returns how much would be removed.

    Repeating the request returns the same receipt.
    """
    if wanted.kind in ("person", "space"):
        require(caller, "owner")
    if wanted.kind != "message" and wanted.also_replies:
        raise InvalidInput("also_replies: this is for messages.")
    runtime = caller.runtime
    home = caller.entity.organization_id
    subject = await runtime.db.read(find_subject, home, wanted.kind, storable(wanted.id))
    by, dry_run = caller.entity.id, wanted.dry_run
    match wanted.kind:
        case "message":
            also = wanted.also_replies
            receipt = await runtime.spaces.forget_message(MessageId(subject), by=by, also_replies=also, dry_run=dry_run)
        case "person":
            # Where people ask over HTTP, an owner without a name and without tokens would lock everyone out.
            whom = EntityId(subject)
            receipt = await runtime.people.forget(whom, by=by, dry_run=dry_run, refuse_last_owner=True)
        case "space":
            receipt = await runtime.spaces.forget(SpaceId(subject), by=by, dry_run=dry_run)
        case "memory":
            receipt = await runtime.memory.forget(subject, by=by, dry_run=dry_run)
    return receipt_out(receipt, dry_run=dry_run)


@router.get("/api/receipts", summary="List what was forgotten")
async def list_receipts(
    caller: Admin,
    before: Annotated[str | None, Query(max_length=100, description="From before this receipt on.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> ReceiptPage:
    """Receipts, newest first: how much was removed from where, never the content."""
    known = None if before is None else storable(before)
    found = await caller.runtime.db.read(_receipts, caller, known, limit)
    page = found[:limit]
    return ReceiptPage(receipts=[receipt_out(each) for each in page], next=page[-1].id if len(found) > limit else None)


def _receipts(tx: Tx, caller: Caller, before: str | None, limit: int) -> list[Receipt]:
    return receipts.receipts_before(tx, caller.entity.organization_id, before, limit=limit + 1)
