"""A database file that another program holds while an agent is stopped."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from denizen import Runtime, tool
from denizen.cycles import cycle
from denizen.errors import DatabaseLocked
from denizen.models.scripted import call, scripted
from denizen.storage import sqlite


async def test_a_cycle_that_cannot_be_handed_back_in_time_leaves_no_unread_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its write fails after nobody waits for it any more: that is no news to anybody."""
    monkeypatch.setattr(sqlite, "LOCK_SECONDS", 0.5)
    monkeypatch.setattr(cycle, "HAND_BACK_SECONDS", 0.01)
    unread: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, about: unread.append(about))
    hanging = asyncio.Event()

    @tool
    async def hang() -> None:
        """Take for ever."""
        hanging.set()
        await asyncio.Event().wait()

    path = tmp_path / "denizen.db"
    async with Runtime(f"sqlite:///{path}") as denizen:
        noor = await denizen.people.create("Noor")
        ada = await denizen.agents.create("Ada", model=scripted([call("hang")]), tools=[hang])
        desk = await denizen.spaces.create("Desk", [noor, ada])
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            async with denizen.living():
                await denizen.spaces.post(desk, noor, "Ada?")
                await asyncio.wait_for(hanging.wait(), 60)
                other.execute("BEGIN IMMEDIATE")
                denizen.hurry()
            with pytest.raises(DatabaseLocked):
                await denizen.spaces.post(desk, noor, "Still there?")
            other.execute("ROLLBACK")
        gc.collect()
        await asyncio.sleep(0)
    assert unread == []
