"""Processes that think, for the tests that stop them: in the middle of a word, or of a transaction."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import MutableMapping
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

import structlog
from pydantic_ai.messages import ModelMessage, ToolReturnPart

from denizen import Runtime, failpoints
from denizen.agents.pace import Pace
from denizen.clock import SystemClock
from denizen.models.scripted import Info, ScriptedModel, Turn, forever, reply
from denizen.storage import postgresql

PACE = Pace(lease_seconds=0.5, sweep_seconds=0.1, grace_seconds=0)
WORDS = "One word after the other, until somebody stops me in the middle of it. "
MODEL = "script:ada"
SHORT = replace(postgresql.WRITING, idle=0.5)
"""Time limits of those that stop inside of a transaction. The test need not wait for those that are shipped."""


class HeldClock(SystemClock):
    """Once held, nobody wakes any more: as if the renewal of leases were stuck, so that only the fence can refuse."""

    def __init__(self) -> None:
        self.free = asyncio.Event()
        self.free.set()

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds)
        await self.free.wait()


def think_slowly(url: str, redis_url: str, parent: Connection) -> None:
    """Says "living", "midway" in the middle of a streamed message, and "refused" when its write is refused."""
    asyncio.run(_think(url, redis_url, parent))


async def _think(url: str, redis_url: str, parent: Connection) -> None:
    clock, refused = HeldClock(), asyncio.Event()

    def listen(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> str:
        if event["event"] == "another process took over":
            refused.set()
        raise structlog.DropEvent

    structlog.configure(processors=[listen])
    model = _slow_model(clock, parent)
    async with Runtime(url, redis_url=redis_url, models={MODEL: model}, clock=clock, pace=PACE) as denizen:
        async with denizen.living():
            parent.send("living")
            await refused.wait()
        parent.send("refused")


def think_and_stop(url: str, point: str, parent: Connection) -> None:
    """Says "living", and "stopping" at this failpoint, where it stops itself (SIGSTOP). Ends when it is told to."""
    asyncio.run(_think_and_stop(url, point, parent))


async def _think_and_stop(url: str, point: str, parent: Connection) -> None:
    def stop() -> None:
        failpoints.disarm()
        parent.send("stopping")
        # To this very thread: another one would stop a moment later, and this one might go on meanwhile.
        signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)

    failpoints.arm(point, stop)
    postgresql.WRITING = SHORT
    async with Runtime(url, models={MODEL: answering()}, pace=PACE) as denizen, denizen.living():
        parent.send("living")
        await asyncio.to_thread(parent.recv)


def _slow_model(clock: HeldClock, parent: Connection) -> ScriptedModel:
    deltas = 0

    async def pause() -> None:
        nonlocal deltas
        deltas += 1
        if deltas == 10:
            clock.free.clear()
            parent.send("midway")
            await asyncio.to_thread(parent.recv)

    return forever(_answer, pause=pause)


def _answer(_messages: list[ModelMessage], _info: Info) -> Turn:
    return reply(WORDS * 4)


def answering() -> ScriptedModel:
    """A model that says one thing and is done. What it does follows from what it is shown, in whichever process."""
    return forever(_answer_once)


def _answer_once(messages: list[ModelMessage], _info: Info) -> Turn:
    return "Answered." if isinstance(messages[-1].parts[0], ToolReturnPart) else reply("Yes.")
