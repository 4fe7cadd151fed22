"""The JSON of forgetting: requests and receipts."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from denizen.forgetting.receipts import Receipt
from denizen.server.shapes.filling import filled
from denizen.shapes.examples import THING, body_example
from denizen.shapes.forgetting import ReceiptOut
from denizen.shapes.vocabulary import ForgetKind as Kind


class Forget(BaseModel):
    """What to forget everywhere."""

    model_config = body_example(kind="message", id=THING, also_replies=False, dry_run=True)

    kind: Kind
    id: Annotated[str, Field(description="The id of the message, memory, person or space; a person also by `@handle`.")]
    also_replies: Annotated[
        bool, Field(description="For a message: also the answers of agents, and the cycles that wrote them.")
    ] = False
    dry_run: Annotated[bool, Field(description="Only return how much would be removed from where.")] = False


def receipt_out(receipt: Receipt, *, dry_run: bool = False) -> ReceiptOut:
    return filled(ReceiptOut, receipt, id=None if dry_run else receipt.id, dry_run=dry_run)
