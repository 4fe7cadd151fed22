"""Agents that sleep cost nothing: to start and to look for work, no table that grows with them is read through."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from denizen import Runtime
from denizen.storage import sqlite
from denizen.storage.migrating import migrate_sqlite

GROWS = ("agents", "entities", "spaces", "memberships", "minds", "leases", "selves", "messages", "log", "recalls")
"""Tables with at least one row for each agent, asleep or not."""


async def test_a_start_and_a_sweep_read_no_table_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "dormitory.db"
    migrate_sqlite(path)
    ran: list[str] = []
    connect = sqlite.connect

    def listening(*where: Path, **how: bool) -> sqlite3.Connection:
        connection = connect(*where, **how)
        connection.set_trace_callback(ran.append)
        return connection

    monkeypatch.setattr(sqlite, "connect", listening)
    async with Runtime(f"sqlite:///{path}") as denizen, denizen.living() as residents:
        await residents.run_until_idle()

    asked = [statement for statement in ran if re.match(r"\s*(SELECT|UPDATE|DELETE|WITH)", statement)]
    assert any("held_by" in each for each in asked)
    assert [each for each in asked if scans(path, each)] == []


def scans(path: Path, statement: str) -> bool:
    """Whether the statement goes through a whole table, or an index that has every row of it."""
    connection = sqlite3.connect(path)
    try:
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")]
        whole = [step for step in plan if re.match(rf"SCAN ({'|'.join(GROWS)})\b", step)]
        return any(not is_partial(connection, step) for step in whole)
    finally:
        connection.close()


def is_partial(connection: sqlite3.Connection, step: str) -> bool:
    """Whether the index that the step goes through has only the few rows that it is about."""
    named = re.search(r"INDEX (\w+)", step)
    made = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", [named[1] if named else ""]).fetchone()
    return made is not None and made[0] is not None and " WHERE " in made[0]
