"""Reads of a space that many readers want at the same moment, done once for all of them.

A frame of the bus reaches every reader of a space in the same turn of the event loop, and each wants to read the same.
The first waits for one turn, so that the others can join; then one transaction checks the access of all of them and
reads what they want. Nobody is given what was read before they asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from denizen.errors import NotAMember
from denizen.ids import SpaceId
from denizen.server.streams.audience import SpaceReader, without_access
from denizen.storage.database import Database, Tx

T = TypeVar("T")


@dataclass(slots=True)
class _PendingRead:
    """A read that has not begun yet: readers that want the same join it."""

    readers: set[SpaceReader]
    loop: asyncio.AbstractEventLoop
    waiting: list[asyncio.Future[None]] = field(default_factory=list[asyncio.Future[None]])
    """Those who have joined. Not an `asyncio.Event`: it costs twice as much for each of them."""
    told: tuple[set[SpaceReader], Any] | None = None
    """Those who may no longer read the space, and what was found; None: nobody has read."""


class SharedReads:
    """The reads of this process that are about to begin."""

    def __init__(self) -> None:
        self._waiting: dict[Hashable, _PendingRead] = {}

    async def read(
        self, db: Database, space_id: SpaceId, reader: SpaceReader, what: Hashable, fn: Callable[[Tx], T]
    ) -> T:
        """Returns what `fn` finds in the space. Readers that ask for the same `what` at the same moment get the same.

        Raises `NotAMember` if the reader may no longer read the space.
        """
        key = (space_id, what)
        while True:
            shared = self._waiting.get(key)
            if shared is None:
                gone, found = await self._lead(db, key, space_id, reader, fn)
            else:
                shared.readers.add(reader)
                waiting = shared.loop.create_future()
                shared.waiting.append(waiting)
                await waiting
                if shared.told is None:
                    continue  # Whoever was to read has left, or failed: this reader asks itself.
                gone, found = shared.told
            if reader in gone:
                raise NotAMember("The reader has left the space.")
            return cast(T, found)

    async def _lead(
        self, db: Database, key: Hashable, space_id: SpaceId, reader: SpaceReader, fn: Callable[[Tx], T]
    ) -> tuple[set[SpaceReader], T]:
        shared = self._waiting[key] = _PendingRead({reader}, asyncio.get_running_loop())
        try:
            await asyncio.sleep(0)
            del self._waiting[key]

            def read(tx: Tx) -> tuple[set[SpaceReader], T]:
                return without_access(tx, space_id, shared.readers), fn(tx)

            shared.told = told = await db.read(read)
            return told
        finally:
            if self._waiting.get(key) is shared:
                del self._waiting[key]
            for each in shared.waiting:
                if not each.done():
                    each.set_result(None)
