"""The command line asks the application in its own process as the owner; nothing that is sent over a socket can."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

import httpx2
import pytest

from denizen.access import audit, tokens
from denizen.access.audit import AuditFilter
from denizen.cli.in_process import client_of
from denizen.client import Client, Message
from denizen.errors import TokenRefused
from denizen.server.auth import IN_PROCESS
from tests.cli.chat.houses import House, open_house


@pytest.fixture
async def house(ready_sqlite_url: str) -> AsyncGenerator[House]:
    async with open_house(ready_sqlite_url) as house:
        yield house


async def test_the_owner_is_known_without_a_token_and_nothing_is_kept(house: House) -> None:
    before = await house.runtime.db.read(tokens.tokens_of, house.noor.id)
    async with client_of(house.runtime, house.noor) as client:
        assert (await client.me()).id == house.noor.id
        await client.post(house.cellar.id, "Hello")
        async with aclosing(client.stream(house.cellar.id, after=0)) as stream:
            said = await anext(event async for event in stream if isinstance(event, Message))
        assert said.text == "Hello"
        await client.suspend_agent("@ada")
    assert await house.runtime.db.read(tokens.tokens_of, house.noor.id) == before
    home = house.noor.organization_id
    newest = (await house.runtime.db.read(audit.entries, home, house.noor.id, AuditFilter(), limit=1))[0]
    assert (newest.action, newest.by) == ("suspend_agent", None)


async def test_a_request_over_a_socket_cannot_claim_to_be_in_process(house: House) -> None:
    claims = [
        {IN_PROCESS: house.noor.id},
        {IN_PROCESS.replace("_", "-"): house.noor.id},
        {"Authorization": f"Bearer {tokens.IN_PROCESS}"},
        {"Authorization": f"Bearer {house.noor.id}"},
        {"Cookie": f"{IN_PROCESS}={house.noor.id}"},
        {"X-Forwarded-For": "127.0.0.1", "Forwarded": "for=127.0.0.1"},
    ]
    async with httpx2.AsyncClient(base_url=house.url, trust_env=False, timeout=60) as outside:
        for headers in claims:
            answer = await outside.get("/api/me", headers=headers, params={IN_PROCESS: house.noor.id})
            assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized"), headers
    async with Client(house.url, tokens.IN_PROCESS) as client:
        with pytest.raises(TokenRefused):
            await client.agents()
