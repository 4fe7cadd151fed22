"""A house to talk to, and both ways into it."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from denizen.cli.chat.connection import Connection
from denizen.cli.chat.local import Local
from denizen.client import Client
from tests.cli.chat.houses import House, open_house


@pytest.fixture
async def house(sqlite_url: str) -> AsyncGenerator[House]:
    async with open_house(sqlite_url) as house:
        yield house


@pytest.fixture(params=["remote", "in-process"])
async def connection(request: pytest.FixtureRequest, house: House) -> AsyncGenerator[Connection]:
    """Noor's way into the house, once through the server and once without."""
    if request.param == "in-process":
        yield Local(house.runtime, house.noor)
    else:
        async with Client(house.url, house.token) as client:
            yield client
