"""A database of each kind, opened, and what it announced."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from denizen.clock import Clock, SystemClock
from denizen.storage.database import Database
from denizen.storage.opening import open_database


class Opening:
    """Opens databases, closes them when the test is over, and keeps all that they announce."""

    def __init__(self) -> None:
        self.announced: list[tuple[str, Mapping[str, Any]]] = []
        self._opened: list[Database] = []

    async def __call__(self, url: str, clock: Clock | None = None) -> Database:
        database = await open_database(url, clock=clock or SystemClock(), announce=self._hear)
        self._opened.append(database)
        return database

    def _hear(self, announcements: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        self.announced.extend(announcements)

    async def close(self) -> None:
        for database in self._opened:
            await database.close()


@asynccontextmanager
async def _closing() -> AsyncGenerator[Opening]:
    opening = Opening()
    try:
        yield opening
    finally:
        await opening.close()


@pytest.fixture
async def opening() -> AsyncGenerator[Opening]:
    """Call it with a URL to open a database."""
    async with _closing() as opening:
        yield opening


@pytest.fixture
async def database(opening: Opening, ready_url: str) -> Database:
    """An empty database: the test runs once on SQLite and once on PostgreSQL."""
    return await opening(ready_url)
