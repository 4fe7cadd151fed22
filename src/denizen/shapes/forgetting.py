"""Receipts of forgetting."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

from pydantic import Field

from denizen.shapes.examples import NOOR, THING, example
from denizen.shapes.value import NextBefore, Open, Value
from denizen.shapes.vocabulary import ReceiptKind


class ReceiptOut(Value):
    """A receipt of what was forgotten: how much was removed from where, never the content."""

    model_config = example(subject_id=THING, by_id=NOOR, removed={"messages": 1, "log": 4, "passages": 2})

    id: Annotated[str | None, Field(description="Null after a dry run.")]
    kind: Open[ReceiptKind]
    subject_id: str
    by_id: str | None
    removed: Annotated[Mapping[str, int], Field(description="How many rows of each table were emptied or changed.")]
    created_at: datetime
    dry_run: Annotated[bool, Field(description="Whether it was a dry run, without removals.")] = False


class ReceiptPage(Value):
    """Receipts, newest first."""

    receipts: list[ReceiptOut]
    next: NextBefore[str]
