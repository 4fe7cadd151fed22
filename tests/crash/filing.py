"""A process that uploads a file, posts it and has an agent hear of it, for the tests that kill it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from pydantic_ai.messages import ModelMessage, ToolReturnPart
from sqlalchemy import select

from denizen import Runtime, failpoints
from denizen.files import extracting
from denizen.files.storing import CHUNK_BYTES
from denizen.ids import EntityId, FileId, MessageId, SpaceId
from denizen.models.scripted import Info, ScriptedModel, Turn, forever, reply
from denizen.storage.database import Tx, statement
from denizen.storage.schema import heard_files, passages
from tests.crash.thinking import PACE
from tests.files.documents import pdf

MODEL: Final = "script:ada"
FILE: Final = FileId("0190c9a2-aaaa-7aaa-8aaa-aaaaaaaaaaaa")
MESSAGE: Final = MessageId("0190c9a2-bbbb-7bbb-8bbb-bbbbbbbbbbbb")
PAGES: Final = ("The violin is in the cellar.", "The cello is in the attic.")
DOCUMENT: Final = pdf(*PAGES) + b"\n%" + b"x" * CHUNK_BYTES
"""Larger than a chunk."""


@dataclass(frozen=True)
class Life:
    """What a process does, and where it is killed."""

    url: str
    noor: EntityId
    hall: SpaceId
    point: str | None


def live(life: Life) -> None:
    """Do everything that is not done yet."""
    if life.point is not None:
        failpoints.arm(life.point, lambda: os.kill(os.getpid(), signal.SIGKILL))
    # The next process need not wait until it is sure that this one is dead.
    extracting.CLAIM_SECONDS = 0  # pyright: ignore[reportConstantRedefinition]
    asyncio.run(_live(life))


def model() -> ScriptedModel:
    return forever(_answer, record=False)


def _answer(messages: list[ModelMessage], _info: Info) -> Turn:
    return "Noted." if isinstance(messages[-1].parts[0], ToolReturnPart) else reply("Thanks.")


async def _live(life: Life) -> None:
    async with Runtime(life.url, models={MODEL: model()}, pace=PACE) as denizen:
        begun = await denizen.files.begin(life.noor, name="a.pdf", size=len(DOCUMENT), id=FILE)
        arrived = await denizen.files.arrived(begun)
        await denizen.files.append(begun, arrived, _rest(arrived))
        await denizen.spaces.post(life.hall, life.noor, "Keep this.", files=[FILE], id=MESSAGE)
        async with denizen.living():
            # The lease of a dead process ends first.
            while not await denizen.db.read(_is_recallable):  # noqa: ASYNC110  the database says it
                await asyncio.sleep(0.05)


_waiting = statement(select(heard_files.c.file_id))
_recallable = statement(select(passages.c.number).where(passages.c.file_id == FILE))


def _is_recallable(tx: Tx) -> bool:
    return tx.one(_waiting) is None and tx.one(_recallable) is not None


async def _rest(arrived: int) -> AsyncIterator[bytes]:
    yield DOCUMENT[arrived:]
