"""Receipts of forgetting: what was forgotten, when and by whom, and how much was removed where. Never the text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import bindparam, or_

from denizen.errors import NotFound
from denizen.ids import EntityId, OrganizationId
from denizen.shapes.vocabulary import ForgetKind as Kind
from denizen.shapes.vocabulary import ReceiptKind
from denizen.storage.database import Tx, columns, insert_into, select_where
from denizen.storage.schema import redactions

_LATEST: Final = 2**62


@dataclass(frozen=True, slots=True)
class Receipt:
    """The record that something was forgotten, and how much was removed where. Never the text."""

    id: str
    organization_id: OrganizationId
    kind: ReceiptKind
    subject_id: str
    by_id: EntityId | None
    removed: Mapping[str, int]
    """How many rows of each table were emptied or changed."""
    created_at: int


_receipt = columns(redactions, "id, organization_id, kind, subject_id, by_id, receipt, created_at")
_receipts = select_where(redactions, _receipt, "organization_id", order_by="created_at, id")
_first_of = select_where(redactions, _receipt, "kind, subject_id", order_by="created_at, id", limit=1)
_add = insert_into(redactions, "id, organization_id, kind, subject_id, by_id, receipt, created_at")


def receipts(tx: Tx, organization_id: OrganizationId) -> list[Receipt]:
    """Returns the receipts of this organization, oldest first."""
    return [_as_receipt(row) for row in tx.all(_receipts, organization_id=organization_id)]


_receipts_before = select_where(
    redactions,
    _receipt,
    "organization_id",
    redactions.c.created_at <= bindparam("at"),
    or_(redactions.c.created_at < bindparam("at"), redactions.c.id < bindparam("id")),
    order_by="created_at desc, id desc",
    limit="limit",
)
_one_receipt = select_where(redactions, _receipt, "id")


def receipts_before(tx: Tx, organization_id: OrganizationId, receipt_id: str | None, *, limit: int) -> list[Receipt]:
    """Returns the receipts before that one, or the newest, newest first."""
    at, id = _LATEST, ""
    if receipt_id is not None:
        row = tx.one(_one_receipt, id=receipt_id)
        receipt = None if row is None else _as_receipt(row)
        if receipt is None or receipt.organization_id != organization_id:
            raise NotFound("receipt", receipt_id)
        at, id = receipt.created_at, receipt_id
    rows = tx.all(_receipts_before, organization_id=organization_id, at=at, id=id, limit=limit)
    return [_as_receipt(row) for row in rows]


def give_receipt(tx: Tx, receipt: Receipt) -> None:
    """Stores the receipt."""
    tx.run(
        _add,
        id=receipt.id,
        organization_id=receipt.organization_id,
        kind=receipt.kind,
        subject_id=receipt.subject_id,
        by_id=receipt.by_id,
        receipt=json.dumps(receipt.removed),
        created_at=receipt.created_at,
    )


def _as_receipt(row: tuple[Any, ...]) -> Receipt:
    id, organization_id, kind, subject_id, by_id, removed, created_at = row
    return Receipt(id, organization_id, kind, subject_id, by_id, json.loads(removed), created_at)


def receipt_of(tx: Tx, kind: Kind, subject_id: str) -> Receipt | None:
    """Returns the receipt, if this was forgotten before."""
    row = tx.one(_first_of, kind=kind, subject_id=subject_id)
    return None if row is None else _as_receipt(row)
