"""Removes uploads that no message uses, and the bytes of files that are gone."""

from __future__ import annotations

from typing import Final

from denizen.clock import SECOND
from denizen.files import storing
from denizen.storage.database import Database, Tx

GRACE: Final = 600 * SECOND
"""How long after a content was dropped its row stays: a chunk of it that was on its way is deleted, too."""


async def tidy(db: Database) -> None:
    """Remove uploads that no message has used for a day, then the bytes of every content that was dropped.

    Safe to repeat and to run in several processes.
    """
    while await db.read(storing.has_unused):
        await db.write(storing.remove_unused)
    for content_id in await db.read(_dropped, 0):
        while await db.blobs.write(storing.delete_chunks, content_id):
            pass
    for content_id in await db.read(_dropped, GRACE):
        await db.write(storing.delete_content, content_id)


def _dropped(tx: Tx, ago: int) -> list[str]:
    return storing.dropped_contents(tx, tx.now - ago)
