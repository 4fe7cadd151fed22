"""A process that writes a long answer and is stopped in the middle of it. It is meant to be killed."""

from __future__ import annotations

import asyncio
import os
import signal
from multiprocessing.connection import Connection
from typing import Final

from denizen import Runtime, failpoints
from denizen.agents.pace import Pace
from denizen.ids import EntityId, SpaceId
from denizen.models.scripted import forever, reply

LONG: Final = "One word after the other, until somebody stops me in the middle of it."
MODEL: Final = "script:ada"
PACE: Final = Pace(lease_seconds=0.5, sweep_seconds=0.1, grace_seconds=0)


def die_while_stopping(url: str, space_id: str, noor: str, point: str, ready: Connection) -> None:
    """Writes, is stopped in the middle, and is killed at this point."""
    asyncio.run(_die(url, SpaceId(space_id), EntityId(noor), point, ready))


async def _die(url: str, space_id: SpaceId, noor: EntityId, point: str, ready: Connection) -> None:
    pieces = 0

    async def pause() -> None:
        nonlocal pieces
        pieces += 1
        if pieces == 10:
            failpoints.arm(point, lambda: os.kill(os.getpid(), signal.SIGKILL))
            await denizen.spaces.stop(space_id, noor)

    model = forever(lambda _messages, _info: reply(LONG), pause=pause, chunk=4)
    async with Runtime(url, models={MODEL: model}, pace=PACE) as denizen, denizen.living():
        ready.send("living")
        await denizen.spaces.post(space_id, noor, "Count.")
        await asyncio.Event().wait()
