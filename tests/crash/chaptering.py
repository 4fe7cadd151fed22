"""A process in which chapters of an agent's history are written, for the tests that kill it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from dataclasses import dataclass
from typing import Final

from pydantic_ai.messages import ModelMessage

from denizen import Runtime, failpoints
from denizen.consciousness import chapters
from denizen.ids import AgentId, EntityId, SpaceId
from denizen.memory import asking
from denizen.models.scripted import Info, ScriptedModel, Turn, forever, reply
from denizen.storage.database import Tx
from tests.crash.thinking import PACE
from tests.world import as_text

MODEL: Final = "script:ada"
WRITER: Final = "script:writer"
CHAPTERS: Final = 1
"""How many there are at least to write."""
_CYCLES: Final = re.compile(r"^\[CYCLE (\d+) — ", re.MULTILINE)


@dataclass(frozen=True)
class Life:
    """Who lives, and where the process is killed."""

    url: str
    ada: AgentId
    noor: EntityId
    hall: SpaceId
    point: str | None


def models() -> dict[str, ScriptedModel]:
    return {MODEL: forever(_answer, record=False), WRITER: forever(_note, record=False)}


def _answer(messages: list[ModelMessage], _info: Info) -> Turn:
    return reply("I see.") if as_text(messages[-1]).startswith("[INBOX") else "Talked."


def _note(messages: list[ModelMessage], _info: Info) -> Turn:
    numbers = [int(each) for each in _CYCLES.findall(as_text(messages[1]))]
    return json.dumps({"notes": [{"cycle": each, "kind": "fact", "text": f"Of cycle {each}."} for each in numbers]})


def live(life: Life) -> None:
    """Hear something, and write whatever is missing."""
    if life.point is not None:
        failpoints.arm(life.point, lambda: os.kill(os.getpid(), signal.SIGKILL))
    # The next process need not wait until no answer to this one can come any more.
    asking.LONGEST_SECONDS = 0  # pyright: ignore[reportConstantRedefinition]
    asyncio.run(_live(life))


async def _live(life: Life) -> None:
    async with Runtime(life.url, models=models(), pace=PACE) as denizen:
        await denizen.spaces.post(life.hall, life.noor, "Hello.")
        async with denizen.living():
            # The lease of a dead process ends first.
            while not await denizen.db.read(_is_written, life.ada):  # noqa: ASYNC110  the database says it
                await asyncio.sleep(0.05)


def _is_written(tx: Tx, ada: AgentId) -> bool:
    return len(chapters.notes_of(tx, ada, 1, 10 * CHAPTERS)) == 10 * CHAPTERS
