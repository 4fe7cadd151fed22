"""A process that carries messages between a space and a real service, for the tests that kill it."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import dataclass

from denizen import Runtime, failpoints
from denizen.bridges import sending
from denizen.ids import BridgeId, EntityId, MessageId, SpaceId
from tests.crash.thinking import PACE

SAID = ("Four", "Five", "Six")
"""What Noor says here."""


@dataclass(frozen=True)
class RoomCarrying:
    """What a process does, and where it is killed."""

    url: str
    secret_key: str
    noor: EntityId
    pier: SpaceId
    bridge: BridgeId
    wanted: int
    """How many messages are in the space when everything was carried."""
    point: str | None
    trusts: str | None = None
    """A file with a certificate that is trusted."""


def carry(life: RoomCarrying) -> None:
    """Say what was not said yet, and carry everything."""
    if life.trusts is not None:
        os.environ["SSL_CERT_FILE"] = life.trusts
    if life.point is not None:
        failpoints.arm(life.point, lambda: os.kill(os.getpid(), signal.SIGKILL), after=1)
    asyncio.run(_carry(life))


async def _carry(life: RoomCarrying) -> None:
    async with Runtime(life.url, pace=PACE, secret_key=life.secret_key) as denizen:
        for at, text in enumerate(SAID):
            id = MessageId(f"0190c9a2-cccc-7ccc-8ccc-cccccccccc{at:02}")
            await denizen.spaces.post(life.pier, life.noor, text, id=id)
        async with denizen.living():
            while not await _is_done(denizen, life):  # noqa: ASYNC110  the database says it
                await asyncio.sleep(0.05)


async def _is_done(denizen: Runtime, life: RoomCarrying) -> bool:
    waiting = await denizen.db.read(sending.next_at, life.bridge)
    return waiting is None and len(await denizen.spaces.messages(life.pier)) >= life.wanted
