"""A process that carries messages between a space and a room elsewhere, for the tests that kill it.

The room is two files: what people write there, and what has arrived. What is sent twice with the same id is there once.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from denizen import Runtime, failpoints
from denizen.bridges import registry, sending
from denizen.bridges.port import (
    Adapter,
    Batch,
    BridgeKind,
    BridgeSettings,
    IncomingMessage,
    Means,
    Outcome,
    Outgoing,
    Sent,
    Writer,
)
from denizen.ids import BridgeId, EntityId, MessageId, SpaceId
from denizen.storage.database import Tx
from tests.crash.life import append_line
from tests.crash.thinking import PACE

ROOM: Final = "pier"
WRITTEN: Final = ("One", "Two", "Three")
"""What people write there."""
SAID: Final = ("Four", "Five", "Six")
"""What Noor says here."""


class BookSettings(BridgeSettings):
    folder: str


class BookAdapter:
    """Reads and writes the two files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def read(self, rooms: Mapping[str, str | None]) -> Sequence[Batch]:
        cursor = rooms.get(ROOM, "3")
        if cursor is None:
            return [Batch(ROOM, (), "0")]
        if cursor == str(len(WRITTEN)):
            return ()
        eve = Writer("@eve", "Eve", verified=True)
        events = [IncomingMessage(f"event-{at}", eve, text) for at, text in enumerate(WRITTEN)]
        return [Batch(ROOM, events, str(len(WRITTEN)))]

    async def news(self) -> None:
        await asyncio.Event().wait()

    async def close(self) -> None:
        return

    async def send(self, what: Outgoing) -> Outcome:
        append_line(self._folder / "sent", json.dumps([what.id, what.text]))
        return Sent(f"there-{what.id}")


def _open(settings: BridgeSettings, means: Means) -> Adapter:
    assert isinstance(settings, BookSettings)
    return BookAdapter(Path(settings.folder))


BOOK: Final = BridgeKind("book", BookSettings, _open)


def arrived(folder: Path) -> list[str]:
    """What is in the room, in order: once for each id."""
    lines = [json.loads(line) for line in (folder / "sent").read_text().splitlines()]
    return list(dict(lines).values())


@dataclass(frozen=True)
class Carrying:
    """What a process does, and where it is killed."""

    url: str
    noor: EntityId
    pier: SpaceId
    bridge: BridgeId
    point: str | None


def carry(life: Carrying) -> None:
    """Say what was not said yet, and carry everything."""
    if life.point is not None:
        failpoints.arm(life.point, lambda: os.kill(os.getpid(), signal.SIGKILL), after=1)
    asyncio.run(_carry(life))


async def _carry(life: Carrying) -> None:
    async with Runtime(life.url, bridge_kinds=[BOOK], pace=PACE) as denizen:
        for at, text in enumerate(SAID):
            id = MessageId(f"0190c9a2-cccc-7ccc-8ccc-cccccccccc{at:02}")
            await denizen.spaces.post(life.pier, life.noor, text, id=id)
        async with denizen.living():
            # The lease of a dead process ends first.
            while not await denizen.db.read(_is_done, life.bridge):  # noqa: ASYNC110  the database says it
                await asyncio.sleep(0.05)


def _is_done(tx: Tx, bridge_id: BridgeId) -> bool:
    (channel,) = registry.channels_of(tx, bridge_id)
    return sending.next_at(tx, bridge_id) is None and channel.cursor == str(len(WRITTEN))
