"""A house to talk to."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from denizen.client import Client
from tests.cli.chat.houses import CONFIRM, House, asking, open_house


@pytest.fixture
async def house(ready_sqlite_url: str) -> AsyncGenerator[House]:
    async with open_house(ready_sqlite_url) as house:
        yield house


@pytest.fixture
async def house_that_asks(ready_sqlite_url: str) -> AsyncGenerator[House]:
    """Ada asks before she says anything."""
    async with open_house(ready_sqlite_url, ada=asking(), tools=[CONFIRM]) as house:
        yield house


@pytest.fixture
async def client(house: House) -> AsyncGenerator[Client]:
    """Noor's way into the house, in this process."""
    async with house.client() as client:
        yield client
