"""Removing what has expired, in the background of a runtime: a space after the other, a batch after the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from denizen.errors import InvalidInput, NotFound, OutcomeUnknown
from denizen.ids import SpaceId
from denizen.spaces import retention
from denizen.spaces.retention import Retention
from denizen.telemetry.logs import get_logger

if TYPE_CHECKING:
    from denizen.api.wiring import Wiring
    from denizen.forgetting.receipts import Receipt

log_line = get_logger(__name__)


async def remove_expired(runtime: Wiring, folder: Path | None, *, most: int | None = None) -> list[Receipt]:
    """Remove everything that has expired, in all organizations; archives are written to the folder.

    It may be broken off at any time, and run in several processes. A transaction removes `most` messages, so that
    others write in between. Without a folder, spaces with an archive are left alone.
    """
    found: list[Receipt] = []
    for space_id, wanted in await runtime.db.read(retention.in_force):
        if wanted.archive and folder is None:
            log_line.warning("messages not removed: there is no folder for the archive", space=space_id)
            continue
        try:
            found += await _remove(runtime, space_id, wanted, folder, most)
        except (InvalidInput, NotFound, OSError) as error:
            # Somebody forgot something meanwhile, or the disk is full: the next run continues here.
            log_line.warning("messages not removed", space=space_id, error=str(error))
    if found:
        await runtime.empty_write_ahead_log()
    return found


async def _remove(
    runtime: Wiring, space_id: SpaceId, wanted: Retention, folder: Path | None, most: int | None
) -> list[Receipt]:
    # Only now: a server whose spaces keep everything does not need it.
    from denizen.forgetting import expiring
    from denizen.portability import archiving

    most = most or expiring.AT_ONCE
    before = wanted.before(runtime.clock.now())
    found: list[Receipt] = []
    while batch := await runtime.db.read(expiring.expired, space_id, before, most=most):
        began = runtime.clock.now()
        if wanted.archive and folder is not None and batch.messages:
            await archiving.archive(runtime.db, folder, space_id, batch.messages[0][1], batch.messages[-1][1])
        try:
            receipt = await runtime.db.write(
                expiring.forget_expired, space_id, before, last=batch.last, unless_edited_since=began, most=most
            )
        except OutcomeUnknown:
            continue  # what is left is looked up again
        if receipt is None:
            break
        found.append(receipt)
        log_line.info("messages removed", space=space_id, removed=dict(receipt.removed))
    return found


@asynccontextmanager
async def removing(runtime: Wiring, folder: Path | None) -> AsyncGenerator[asyncio.Event]:
    """While entered, removes what has expired whenever the event is set."""
    due = asyncio.Event()

    async def remove() -> None:
        while True:
            await due.wait()
            due.clear()
            try:
                await remove_expired(runtime, folder)
            except Exception as error:  # noqa: BLE001  the loop's boundary: what is left is found again
                log_line.warning("messages not removed", error=repr(error))

    task = asyncio.create_task(remove(), name="removing what has expired")
    try:
        yield due
    finally:
        task.cancel()
        await asyncio.wait([task])
