"""A database with a past that tests damage: each damage happens in a transaction that is undone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import pytest
from sqlalchemy import text

from denizen import Runtime, checker
from denizen.agents.pace import Pace
from denizen.checker import Violation
from denizen.storage.database import Tx, statement
from tests import servers

T = TypeVar("T")


class House:
    """A database with a past, and one event loop on which it is open."""

    def __init__(self, url: str, runner: asyncio.Runner, live: Callable[[Runtime], Awaitable[None]]) -> None:
        self._runner = runner
        # A damaged database has broken references: until the transaction ends, nothing checks them.
        self._unchecked = "PRAGMA defer_foreign_keys = ON"
        if url.startswith("postgresql"):
            self._unchecked = "SET LOCAL session_replication_role = replica"
        self.runtime = Runtime(url, pace=Pace(grace_seconds=0))
        runner.run(self.runtime.__aenter__())
        runner.run(self._live(live))

    def close(self) -> None:
        self._runner.run(self.runtime.__aexit__())

    def run(self, what: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(what)

    def check(self) -> list[Violation]:
        return self._runner.run(self.runtime.db.read(checker.check_deeply))

    def broken_by(self, *sql: str, how: Callable[[Tx], list[Violation]] = checker.check) -> list[Violation]:
        """What the checker says inside a transaction that did this; afterwards it never was."""
        found: list[Violation] = []
        with pytest.raises(_UndoneError):
            self._runner.run(self.runtime.db.write(_break, [self._unchecked, *sql], how, found))
        return found

    async def _live(self, live: Callable[[Runtime], Awaitable[None]]) -> None:
        await live(self.runtime)


class _UndoneError(Exception):
    pass


def _break(tx: Tx, sql: Sequence[str], how: Callable[[Tx], list[Violation]], found: list[Violation]) -> None:
    unchecked, *damage = sql
    tx.run(statement(text(unchecked)))
    for each in damage:
        assert tx.run(statement(text(each))) != 0 or each.startswith("DROP"), f"this broke nothing: {each}"
    found[:] = how(tx)
    raise _UndoneError


def houses(request: pytest.FixtureRequest, folder: Path, live: Callable[[Runtime], Awaitable[None]]) -> Iterator[House]:
    """A house on the database that the request's parameter names, closed at the end."""
    with ExitStack() as stack:
        runner = stack.enter_context(asyncio.Runner())
        url = f"sqlite:///{folder / 'denizen.db'}"
        if request.param == "postgresql":
            server = request.getfixturevalue("_postgres_of_the_run")
            url = stack.enter_context(servers.fresh_database(server, f"test_damage_{uuid4().hex}"))
        house = House(url, runner, live)
        stack.callback(house.close)
        yield house
