"""A process killed while a chapter is claimed or stored leaves it written and paid for once, or not at all."""

from __future__ import annotations

import pytest
from sqlalchemy import bindparam, func, select

from denizen import Runtime
from denizen.consciousness import chapters
from denizen.storage.database import Tx, statement, value
from denizen.storage.schema import ledger
from tests.crash.chaptering import CHAPTERS, MODEL, WRITER, Life, live, models
from tests.crash.killing import KILLED, lived

WINDOW = {"max_tokens": 7_000, "output_tokens": 256, "min_recent_cycles": 2}

_paid = statement(select(func.count()).where(ledger.c.agent_id == bindparam("agent_id"), ledger.c.detail == "memory"))


@pytest.mark.parametrize("write", ["claim_chapter", "keep_chapter"])
@pytest.mark.parametrize("when", ["commit", "committed"])
async def test_killed_at(when: str, write: str, database_url: str) -> None:
    async with Runtime(database_url, models=models()) as denizen:
        noor = await denizen.people.create("Noor")
        ada = await denizen.agents.create("Ada", model=MODEL, window=WINDOW)
        hall = await denizen.spaces.create("Hall", [noor, ada])
        for number in range(10 * CHAPTERS + 15):
            await denizen.spaces.post(hall, noor, f"Number {number}. " + "well " * 200)
            await denizen.run_until_idle()
        await denizen.agents.edit(ada, window={**WINDOW, "strategy": "written", "writer_model": WRITER})
    life = Life(database_url, ada.id, noor.id, hall.id, f"{when}:{write}")
    assert lived(live, life) == KILLED
    assert lived(live, Life(database_url, ada.id, noor.id, hall.id, None)) == 0
    async with Runtime(database_url, models=models()) as denizen:
        notes = await denizen.db.read(chapters.notes_of, ada.id, 1, 1_000)
        assert {number: each[0].text for number, each in notes.items()} == {
            number: f"Of cycle {number}." for number in notes
        }
        assert await denizen.db.read(_charges, ada.id) == len(notes) // 10


def _charges(tx: Tx, agent_id: str) -> int:
    return value(tx, _paid, agent_id=agent_id) or 0
