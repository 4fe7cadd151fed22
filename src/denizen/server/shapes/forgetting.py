"""What is to be forgotten, and the receipts of what was."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field

from denizen.clock import moment
from denizen.forgetting.forgetting import Kind, Receipt
from denizen.server.shapes.examples import NINE, NOOR, THING, asked, given


class Forget(BaseModel):
    """What shall be gone everywhere."""

    model_config = asked(kind="message", id=THING, also_replies=False, dry_run=True)

    kind: Kind
    id: Annotated[str, Field(description="Of the message, memory, person or space; a person also by `@handle`.")]
    also_replies: Annotated[
        bool, Field(description="Of a message: also what agents answered it, and the cycles in which they did.")
    ] = False
    dry_run: Annotated[bool, Field(description="Only say how much would be removed where.")] = False


class ReceiptOut(BaseModel):
    """That something was forgotten, and how much was removed where; never what it said."""

    model_config = given(
        id=THING,
        kind="message",
        subject_id=THING,
        by_id=NOOR,
        removed={"messages": 1, "log": 4, "passages": 2},
        created_at=NINE,
        dry_run=False,
    )

    id: Annotated[str | None, Field(description="Null after a dry run.")]
    kind: Kind
    subject_id: str
    by_id: str | None
    removed: Annotated[Mapping[str, int], Field(description="How many rows of each table were emptied or changed.")]
    created_at: datetime
    dry_run: Annotated[bool, Field(description="Whether nothing was removed.")] = False

    @classmethod
    def of(cls, receipt: Receipt, *, dry_run: bool = False) -> ReceiptOut:
        return cls(
            id=None if dry_run else receipt.id,
            kind=receipt.kind,
            subject_id=receipt.subject_id,
            by_id=receipt.by_id,
            removed=receipt.removed,
            created_at=moment(receipt.created_at),
            dry_run=dry_run,
        )


class ReceiptPage(BaseModel):
    """Receipts, the newest first."""

    receipts: list[ReceiptOut]
    next: Annotated[str | None, Field(description="Give it as `before` for the next page; null: there is none.")]
