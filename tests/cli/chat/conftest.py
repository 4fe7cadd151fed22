"""A house to talk to, and both ways into it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeAlias

import pytest

from denizen.cli.chat.connection import Connection
from denizen.cli.chat.local import Local
from denizen.client import Client
from tests.cli.chat.houses import CONFIRM, House, asking, open_house

Way: TypeAlias = Callable[[House], AbstractAsyncContextManager[Connection]]
"""How Noor comes into a house."""


@pytest.fixture
async def house(ready_sqlite_url: str) -> AsyncGenerator[House]:
    async with open_house(ready_sqlite_url) as house:
        yield house


@pytest.fixture
async def house_that_asks(ready_sqlite_url: str) -> AsyncGenerator[House]:
    """Ada asks before she says anything."""
    async with open_house(ready_sqlite_url, ada=asking(), tools=[CONFIRM]) as house:
        yield house


@pytest.fixture(params=["remote", "in-process"])
def way(request: pytest.FixtureRequest) -> Way:
    """Once through the server and once without."""
    return _in_process if request.param == "in-process" else _remote


@pytest.fixture
async def connection(way: Way, house: House) -> AsyncGenerator[Connection]:
    """Noor's way into the house, once through the server and once without."""
    async with way(house) as connection:
        yield connection


@asynccontextmanager
async def _in_process(house: House) -> AsyncGenerator[Connection]:
    yield Local(house.runtime, house.noor)


@asynccontextmanager
async def _remote(house: House) -> AsyncGenerator[Connection]:
    async with Client(house.url, house.token) as client:
        yield client
