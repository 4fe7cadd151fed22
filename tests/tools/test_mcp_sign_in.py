"""Signing in to MCP servers in a browser: against the authorization server of the official library."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy import select

from denizen import call, reply
from denizen.access import roles
from denizen.access.vault import new_key
from denizen.errors import InvalidInput, NotFound
from denizen.storage.database import statement, value
from denizen.storage.schema import secrets
from denizen.tools.mcp_sign_in import ATTEMPT_SECONDS
from denizen.tools.settings import McpServer, McpSignInSettings
from tests.server.conftest import House, served
from tests.servers import free_port
from tests.tools.test_mcp import serving
from tests.world import World, open_world

SIGNING_IN = str(Path(__file__).with_name("mcp_sign_in_server.py"))
NAME = "TRACKER_SIGN_IN"
TURNS = (call("add", a=2, b=3), reply("Five."), "Added.")


class Story:
    """An agent with a server that wants somebody to sign in, and a person who talks with it."""

    def __init__(self, world: World, house: House, url: str) -> None:
        self.world, self.house, self.url = world, house, url
        sign_in = McpSignInSettings(tokens=f"${{{NAME}}}")
        self.server = McpServer(url=url, sign_in=sign_in, allow_private=("127.0.0.1",), results="trusted")

    async def begin(self, *turns: Any) -> None:
        self.noor = await self.world.person("Noor")
        self.ada = await self.world.agent("Ada", *turns, mcp={"tracker": self.server})
        self.room = await self.world.space("Room", self.noor, self.ada)

    async def say(self, words: str) -> str:
        """The result of the last tool that the agent called."""
        await self.world.say(self.noor, words, self.room)
        await self.world.run()
        results = [each for each in await self.world.history(self.ada) if each.startswith("results: add")]
        return results[-1] if results else ""

    async def alerts(self) -> list[str]:
        told = (await self.house.call("GET", "/api/health", self.noor)).json()["alerts"]
        return [each["text"] for each in told if each["code"] == "mcp_unreachable"]

    async def sign_in(self) -> str:
        """What the browser is sent back to."""
        return await answer_of(await self.world.denizen.mcp_servers.begin(NAME))


async def answer_of(address: str) -> str:
    async with httpx2.AsyncClient(timeout=60) as browser:
        sent = await browser.get(address, follow_redirects=False)
    assert sent.status_code == 302, sent.text
    return sent.headers["Location"]


@pytest.fixture
async def story(ready_sqlite_url: str, tmp_path: Path) -> AsyncGenerator[Story]:
    async with (
        serving(tmp_path, free_port(), SIGNING_IN) as url,
        open_world(ready_sqlite_url, secret_key=new_key()) as world,
        served(world) as house,
    ):
        yield Story(world, house, url)


async def test_an_admin_signs_in_and_the_agent_has_the_tools(story: Story):
    await story.begin(reply("Not yet."), "Waited.", *TURNS)
    assert await story.say("Add.") == ""
    [alert] = await story.alerts()
    assert "an admin has to sign in to it. Open Administration › MCP servers" in alert
    assert f"denizen mcp connect {NAME}" in alert
    [known] = (await story.house.call("GET", "/api/mcp-servers", story.noor)).json()["servers"]
    assert known == {"name": NAME, "url": story.url, "agents": ["Ada"], "signed_in_at": None}

    begun = (await story.house.call("POST", f"/api/mcp-servers/{NAME}/sign-in", story.noor)).json()
    answer = await answer_of(begun["url"])
    assert answer.startswith(f"{story.world.denizen.public_url}/admin/mcp?code=")
    done = await story.house.call("POST", "/api/mcp-servers/answer", story.noor, json={"answer": answer})
    assert (done.status_code, done.json()["signed_in_at"]) == (200, "2026-01-05T09:00:00Z")

    assert await story.say("Add.") == "results: add → 5"
    assert await story.alerts() == []


async def test_tokens_are_encrypted_and_renewed(story: Story, tmp_path: Path):
    await story.begin(*TURNS, *TURNS, *TURNS)
    await story.world.denizen.mcp_servers.finish(await story.sign_in())
    assert await story.say("Add.") == "results: add → 5"
    kept = json.loads(await stored(story) or "")
    assert kept["access_token"].startswith("access-")
    sealed = await story.world.denizen.db.read(value, statement(select(secrets.c.sealed)))
    assert "access-" not in sealed

    (tmp_path / "expired").write_text(kept["access_token"])
    assert await story.say("Add.") == "results: add → 5", "refused before its time: it is renewed"
    assert json.loads(await stored(story) or "")["access_token"] != kept["access_token"]
    story.world.clock.advance(3590)
    assert await story.say("Add.") == "results: add → 5"
    assert (tmp_path / "renewed").read_text() == "again\nagain\n"


async def test_a_sign_in_that_was_taken_back_is_an_alert_until_somebody_signs_in_again(story: Story, tmp_path: Path):
    await story.begin(*TURNS, *TURNS, *TURNS)
    await story.world.denizen.mcp_servers.finish(await story.sign_in())
    await story.say("Add.")
    (tmp_path / "revoked").touch()
    (tmp_path / "expired").write_text(json.loads(await stored(story) or "")["access_token"])
    assert "an admin has to sign in to it" in await story.say("Add.")
    assert "an admin has to sign in to it" in (await story.alerts())[0]
    (tmp_path / "revoked").unlink()
    await story.world.denizen.mcp_servers.finish(await story.sign_in())
    assert await story.say("Add.") == "results: add → 5"
    assert await story.alerts() == []


async def test_an_answer_that_belongs_to_no_attempt_is_refused(story: Story):
    await story.begin()
    servers = story.world.denizen.mcp_servers
    with pytest.raises(NotFound):
        await servers.begin("OTHER_SIGN_IN")
    answer = await story.sign_in()
    for wrong, why in (
        ("https://denizen.example/admin/mcp?code=1", "it has no `state`"),
        (f"https://denizen.example/admin/mcp?code=1&state={NAME}.guessed", "belongs to no sign-in"),
        (f"{answer}&iss=https://evil.example", "another authorization server"),
        (answer.replace("code=", "error=access_denied&was="), "refused the sign-in: access_denied"),
        (answer.replace("code=", "code=not-"), "gave no tokens"),
    ):
        with pytest.raises(InvalidInput, match=why):
            await servers.finish(wrong)
    story.world.clock.advance(ATTEMPT_SECONDS + 1)
    with pytest.raises(InvalidInput, match="took too long"):
        await servers.finish(answer)
    again = await story.sign_in()
    await servers.finish(again)
    with pytest.raises(InvalidInput, match="belongs to no sign-in"):
        await servers.finish(again)


async def test_tokens_are_not_sent_to_another_address(story: Story):
    await story.begin(*TURNS)
    await story.world.denizen.mcp_servers.finish(await story.sign_in())
    moved = story.server.model_copy(update={"url": story.url.replace("/mcp", "/other")})
    await story.world.denizen.agents.edit(story.ada, mcp={"tracker": moved})
    [listed] = await story.world.denizen.mcp_servers.list()
    assert (listed.url, listed.signed_in_at) == (moved.url, None)


async def test_only_admins_sign_in(story: Story):
    await story.begin()
    sam = await story.world.person("Sam")
    await story.world.denizen.db.write(roles.set_role, sam.id, "member")
    for method, path in (("GET", ""), ("POST", f"/{NAME}/sign-in"), ("POST", "/answer")):
        told = await story.house.call(method, f"/api/mcp-servers{path}", sam, json={"answer": "x"})
        assert told.status_code == 403


async def stored(story: Story) -> str | None:
    return await story.world.denizen.load_secret(story.noor.organization_id, NAME)
