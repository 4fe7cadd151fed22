"""A turn costs the same at any age: its statements find what they need by an index, and there are no more of them."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from denizen import Runtime, forever, reply
from denizen.models.scripted import Info
from denizen.storage.database import Params, Statement, Tx
from denizen.storage.sqlite import SqliteTx
from denizen.storage.work import Job

GROWING = {
    *("messages", "events", "log", "cycles", "cycle_spaces", "effects", "ledger", "spending", "calls"),
    *("passages", "postings", "layers", "memories", "audit", "crossings"),
}
"""Tables that grow with the lives of agents."""


def answer(messages: list[Any], _info: Info) -> Any:
    return "Answered." if messages[-1].parts[0].part_kind == "tool-return" else reply("Yes, it is open until six.")


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> dict[str, Mapping[str, Params]]:
    """Every statement that runs, with the parameters of its first run."""
    ran: dict[str, Mapping[str, Params]] = {}
    execute, many = SqliteTx._execute, SqliteTx.many

    def noting(self: SqliteTx, statement: Statement, params: Mapping[str, Params]) -> sqlite3.Cursor:
        ran.setdefault(statement.sqlite, dict(params))
        return execute(self, statement, params)

    def noting_many(self: SqliteTx, statement: Statement, rows: Sequence[Mapping[str, Params]], /) -> None:
        if rows:
            ran.setdefault(statement.sqlite, dict(rows[0]))
        many(self, statement, rows)

    monkeypatch.setattr(SqliteTx, "_execute", noting)
    monkeypatch.setattr(SqliteTx, "many", noting_many)
    return ran


async def test_no_statement_of_a_turn_reads_a_growing_table_from_end_to_end(
    tmp_path: Path, statements: dict[str, Mapping[str, Params]]
) -> None:
    """Only what is pending there, by a partial index."""
    async with Runtime(f"sqlite:///{tmp_path}/denizen.db") as runtime:
        noor = await runtime.people.create("Noor")
        ada = await runtime.agents.create("Ada", model=forever(answer, chunk=None, record=False))
        await runtime.spaces.create("Den", [noor, ada], private=True)
        home = await runtime.spaces.create("Home", [noor, ada])
        for number in range(10):
            await runtime.spaces.post(home, noor, f"Is the shop in street number {number} open today?")
            await runtime.run_until_idle()
    with closing(sqlite3.connect(tmp_path / "denizen.db")) as connection:
        named = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'index'").fetchall()
        partial = {name for name, sql in named if sql and " WHERE " in sql}
        scans = {
            (step, " ".join(sql.split()))
            for sql, params in statements.items()
            for *_, step in connection.execute(f"EXPLAIN QUERY PLAN {sql}", params)
            if step.startswith("SCAN") and step.split()[1] in GROWING and step.split()[-1] not in partial
        }
    assert len(statements) > 50
    assert scans == set()


MOST_STATEMENTS = {"post_message": 8, "open_cycle": 11, "carry_on": 13, "end_cycle": 14}
"""Of each transaction of a turn: a message in, a call that sends the answer, last words. One less to open a cycle of an
agent that was awake: its tools are stored."""


async def test_a_turn_makes_as_few_statements_as_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is added to a transaction of every turn is noticed here. Compaction and background work are apart."""
    ran: dict[str, list[str]] = {}
    running = threading.local()
    run, execute, many = Job.run, SqliteTx._execute, SqliteTx.many

    def noting_job(self: Job, tx: Tx) -> None:
        ran[self.name] = running.statements = []
        run(self, tx)

    def noting(self: SqliteTx, statement: Statement, params: Mapping[str, Params]) -> sqlite3.Cursor:
        running.statements.append(statement.sqlite)
        return execute(self, statement, params)

    def noting_many(self: SqliteTx, statement: Statement, rows: Sequence[Mapping[str, Params]], /) -> None:
        running.statements.append(statement.sqlite)
        many(self, statement, rows)

    async with Runtime(f"sqlite:///{tmp_path}/denizen.db") as runtime:
        noor = await runtime.people.create("Noor")
        ada = await runtime.agents.create("Ada", model=forever(answer, chunk=None, record=False))
        home = await runtime.spaces.create("Home", [noor, ada])
        await runtime.spaces.post(home, noor, "Is the shop open today?")
        await runtime.run_until_idle()  # the first cycle stores its tools and its self
        monkeypatch.setattr(Job, "run", noting_job)
        monkeypatch.setattr(SqliteTx, "_execute", noting)
        monkeypatch.setattr(SqliteTx, "many", noting_many)
        await runtime.spaces.post(home, noor, "And tomorrow?")
        await runtime.run_until_idle()
        monkeypatch.undo()
    for name, most in MOST_STATEMENTS.items():
        assert len(ran[name]) <= most, "\n".join(ran[name])
