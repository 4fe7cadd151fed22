"""Forgetting, as `denizen.spaces`, `denizen.people` and `denizen.memory` do it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, ParamSpec

from denizen.api.wiring import Wiring
from denizen.forgetting import forgetting
from denizen.forgetting.forgetting import ForgetRehearsed
from denizen.forgetting.receipts import Receipt
from denizen.storage.database import Tx

P = ParamSpec("P")


async def forget(
    runtime: Wiring,
    dry_run: bool,
    erase: Callable[Concatenate[Tx, P], Receipt],
    *args: P.args,
    **options: P.kwargs,
) -> Receipt:
    """Erase; or, in a dry run, return the receipt that there would be and change nothing."""
    if dry_run:
        try:
            return await runtime.db.write(forgetting.rehearse, erase, *args, **options)
        except ForgetRehearsed as rehearsed:
            return rehearsed.receipt
    receipt = await runtime.db.write(erase, *args, **options)
    await runtime.empty_write_ahead_log()
    return receipt
