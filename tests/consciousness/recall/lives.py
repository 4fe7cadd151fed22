"""Lives to be recalled, written straight into the index, as the cycles that lived them would."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from denizen import ManualClock, Runtime
from denizen.agents.registry import Agent
from denizen.clock import SECOND
from denizen.consciousness.recall import passages, settling
from denizen.consciousness.recall.fetching import RecalledPassage
from denizen.consciousness.recall.passages import Piece
from denizen.consciousness.recall.searching import search
from denizen.storage.database import Database, Params, Row, Statement, Tx

START = 1_767_603_600 * SECOND
"""Monday, 5 January 2026, nine o'clock, UTC."""
MINUTE = 60 * SECOND


def heard(text: str, *, minute: float = 0, space: str = "", who: str = "Noor") -> Piece:
    return Piece("heard", text, START + int(minute * MINUTE), space, None, who)


async def an_agent(runtime: Runtime, name: str = "Ada") -> Agent:
    return await runtime.agents.create(name, model="demo")


async def live(
    db: Database, agent: Agent, cycles: Iterable[Sequence[Piece]], first: int = 1, *, settled: bool = True
) -> None:
    """Each of these is a cycle of the agent's life; as many as there should be are settled."""

    def write(tx: Tx) -> None:
        for number, pieces in enumerate(cycles, start=first):
            passages.remember(tx, agent.id, number, pieces)

    await db.write(write)
    if settled:
        await settling.settle(db, agent.id)


async def found(db: Database, agent: Agent, query: str, **options: Any) -> list[RecalledPassage]:
    return await db.read(search, agent.id, query, **options)


async def texts(db: Database, agent: Agent, query: str, **options: Any) -> list[str]:
    return [each.text for each in await found(db, agent, query, **options)]


def house(url: str) -> Runtime:
    return Runtime(url, clock=ManualClock())


@dataclass
class Counting:
    """A transaction that counts the rows and the bytes it is given."""

    tx: Tx
    rows: int = 0
    postings: int = 0
    """Those that are rows by themselves; segments are of the newest block only."""

    def one(self, statement: Statement, /, **params: Params) -> Row | None:
        row = self.tx.one(statement, **params)
        self.rows += row is not None
        return row

    def all(self, statement: Statement, /, **params: Params) -> list[Row]:
        rows = self.tx.all(statement, **params)
        self.rows += len(rows)
        of_terms = [row for row in rows if isinstance(row[0], str)]
        self.postings += sum(len(value) // 4 for row in of_terms for value in row if isinstance(value, bytes))
        return rows

    def __getattr__(self, name: str) -> Any:
        return getattr(self.tx, name)
