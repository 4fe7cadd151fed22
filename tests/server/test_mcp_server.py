"""The MCP server at `/mcp`, by the client of the official library, in both of its protocols."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Literal

import httpx2
import pytest
from fastapi import FastAPI
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from denizen import call, reply, scripted
from denizen.access import roles
from denizen.access.roles import ROLES
from denizen.agents.registry import Agent
from denizen.server.context import ServerLimits
from denizen.server.mcp_server import TOOLS
from denizen.spaces.directory import Entity
from tests.hesitation import Hesitation
from tests.server.conftest import Built, House, served, visited
from tests.server.test_chat import confirm
from tests.world import open_world

Mode = Literal["auto", "legacy"]
BOTH: tuple[Mode, ...] = ("auto", "legacy")
"""The protocol without a handshake, and the one with it that most programs still speak."""
AT_ONCE = 1e-9
"""Seconds: the answer is not waited for."""


@asynccontextmanager
async def connected(house: House, secret: str, mode: Mode = "auto") -> AsyncGenerator[Client]:
    headers = {"Authorization": f"Bearer {secret}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(f"{house.address}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


@asynccontextmanager
async def client_of(house: House, who: Entity | Agent, mode: Mode = "auto") -> AsyncGenerator[Client]:
    async with connected(house, house.secrets.get(who.id) or await house.token(who), mode) as client:
        yield client


def text(result: CallToolResult) -> str:
    return "\n".join(each.text for each in result.content if isinstance(each, TextContent))


async def tell(client: Client, tool: str, **arguments: Any) -> str:
    """The text of a call that succeeds."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text(result)
    return text(result)


@pytest.mark.parametrize("mode", BOTH)
async def test_a_program_whose_token_is_wrong_is_told_so(small_house: House, mode: Mode) -> None:
    with pytest.raises(BaseException) as failure:  # noqa: PT011  a group of one, or the error itself
        async with connected(small_house, "dz_wrong", mode) as client:
            await client.list_tools()
    error: BaseException = failure.value
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert str(error) == "This access token is unknown, revoked or expired."


@pytest.mark.parametrize("mode", BOTH)
async def test_a_program_finds_the_agents_and_asks_one(small_house: House, mode: Mode) -> None:
    world = small_house.world
    noor = await world.person("Noor")
    await world.agent("Ada", reply("It **did**."), "Told Noor.", purpose="Watches the builds.")
    told: list[tuple[float, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, message))

    async with world.denizen.living(), client_of(small_house, noor, mode) as client:
        offered = (await client.list_tools()).tools
        known = await tell(client, "list_agents")
        arguments = {"agent": "ada", "text": "Did the build pass?"}
        answer = await client.call_tool("ask", arguments, progress_callback=note)
        where = answer.structured_content["space_id"] if answer.structured_content else ""
        read = await tell(client, "read", space=where)
        found = await tell(client, "recall", query="build")
        mine = await tell(client, "read")

    assert [each.name for each in offered] == list(TOOLS)
    assert all(each.description and each.input_schema["type"] == "object" for each in offered)
    assert known.startswith("@ada: Ada, ")
    assert known.endswith("Watches the builds.")
    assert (text(answer), answer.is_error) == ("It **did**.", False)
    assert answer.structured_content is not None
    assert answer.structured_content["outcome"] == "acted"
    assert [progress for progress, _ in told] == list(range(1, len(told) + 1))
    assert told[0][1] == "ada has your message."
    assert read.splitlines() == [
        "1. 2026-01-05 09:00 Noor: Did the build pass?",
        "2. 2026-01-05 09:00 Ada: It **did**.",
    ]
    assert found == "1. 2026-01-05 09:00 Noor: Did the build pass?"
    assert mine == f"Noor and Ada (space {where}, private): @noor, @ada; 1 unread of 2"


async def test_progress_shows_the_text_while_it_is_written(small_house: House) -> None:
    world, hesitation = small_house.world, Hesitation()
    noor, counted = await world.person("Noor"), "One two three four five six seven."
    await world.agent("Ada", model=scripted(reply(counted), "Counted.", pause=hesitation))
    seen: list[str] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append(message or "")
        if counted.startswith(seen[-1]):
            hesitation.may_go_on.set()

    async with world.denizen.living(), client_of(small_house, noor) as client:
        answer = await client.call_tool("ask", {"agent": "@ada", "text": "Count!"}, progress_callback=note)
    assert text(answer) == counted
    assert any(each and counted.startswith(each) and each != counted for each in seen), seen


async def test_a_repeated_question_is_asked_once(small_house: House) -> None:
    """A client that gave up asks again with the same words, or a key: the agent has one message, and both get the
    answer. What was answered can be asked again."""
    world, hesitation = small_house.world, Hesitation()
    noor = await world.person("Noor")
    eight = "Eight, as far as anybody can count them here."
    turns = reply(eight), "Told Noor.", reply("Still eight."), "Told Noor again.", reply("Nine."), "Told Noor."
    ada = await world.agent("Ada", model=scripted(*turns, pause=hesitation))
    question = {"agent": "@ada", "text": "How many legs?"}

    async def go_on(progress: float, total: float | None, message: str | None) -> None:
        hesitation.may_go_on.set()

    async with world.denizen.living(), client_of(small_house, noor) as client:
        first = await client.call_tool("ask", {**question, "seconds": AT_ONCE})
        second = await client.call_tool("ask", question, progress_callback=go_on)
        again = await client.call_tool("ask", question)
        keyed = [await client.call_tool("ask", {**question, "text": "And now?", "key": "k1"}) for _ in range(2)]

    assert first.structured_content is not None
    assert first.structured_content["outcome"] == "working"
    assert text(first).endswith("@ada has not finished. Repeat this call to go on waiting.")
    assert [text(each) for each in (second, again, *keyed)] == [eight, "Still eight.", "Nine.", "Nine."]
    said = await world.denizen.spaces.messages(first.structured_content["space_id"])
    assert [each.text for each in said if each.author_id == noor.id] == ["How many legs?", "How many legs?", "And now?"]
    assert len(await world.cycles(ada)) == 3


async def test_a_question_back_is_shown_and_answered(small_house: House) -> None:
    world = small_house.world
    noor = await world.person("Noor")
    turns = call("confirm", what="deploy"), reply("Deployed."), "Deployed it."
    await world.agent("Ada", *turns, tools=[confirm()])
    async with world.denizen.living(), client_of(small_house, noor) as client:
        asked = await tell(client, "ask", agent="@ada", text="Deploy")
        answer = await tell(client, "ask", agent="@ada", text="Yes")
    assert "confirm" in asked
    assert "deploy" in asked
    assert answer == "Deployed."


async def test_messages_are_posted_and_events_sent_once_for_each_key(small_house: House) -> None:
    world = small_house.world
    noor, ada = await world.person("Noor"), await world.agent("Ada", "Read it.", "Read it.")
    room = await world.space("Room", noor, ada)
    async with client_of(small_house, noor) as client:
        posted = [await tell(client, "post", space=room.id, text="Hello, @ada.", key="once") for _ in range(2)]
        event = {"agent": "@ada", "service": "CI", "text": "It failed.", "data": {"run": 7}, "key": "run 7"}
        sent = [await tell(client, "trigger", **event) for _ in range(2)]
    assert posted == ["Posted as message 1."] * 2
    assert sent == ["The event is in the inbox of @ada."] * 2
    inbox = await world.denizen.minds.inbox(ada)
    assert [(each.type, each.text) for each in inbox] == [
        ("mention", "Hello, @ada."),
        ("service_trigger", "It failed."),
    ]


async def test_what_went_wrong_is_told_as_the_result(small_house: House) -> None:
    world = small_house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    ada = await world.agent("Ada")
    theirs = await world.space("Theirs", sam, ada)
    await world.denizen.agents.suspend(ada)
    async with client_of(small_house, noor) as client, world.denizen.living():
        refused = {
            name: await client.call_tool(name, arguments)
            for name, arguments in {
                "ask": {"agent": "@nobody", "text": "Hello?"},
                "post": {"space": theirs.id, "text": "Let me in."},
                "read": {"space": theirs.id},
                "trigger": {"agent": "@ada", "service": ""},
                "recall": {"query": "x", "limit": 1_000},
                "dance": {},
            }.items()
        }
        resting = await client.call_tool("ask", {"agent": "@ada", "text": "Hello?"})
    assert all(each.is_error for each in (*refused.values(), resting))
    assert {text(refused[name]) for name in ("post", "read")} == {f"There is no space {theirs.id!r}."}
    assert refused["ask"].structured_content == {"code": "not_found"}
    assert text(refused["recall"]).startswith("limit: ")
    assert text(refused["dance"]) == (
        "There is no tool 'dance'. There are ask, post, read, recall, list_agents, trigger."
    )
    assert text(resting).startswith("Ada is suspended.")


async def test_every_role_may_do_what_it_may_over_http(built: Built, tmp_path: Any) -> None:
    """Every tool, by everyone there is, about their own and about what is not theirs: the walk through the routes
    leaves `/mcp` out, because all its tools are one route."""
    async with visited(built, tmp_path) as house:
        town = built.town
        for role in ROLES:
            people = roles.reaches(role, "member")
            async with connected(house, town.secrets[role]) as client:
                offered = {each.name for each in (await client.list_tools()).tools}
                others = {"post", "read"} if role == "guest" else {"post", "read", "trigger"}
                assert offered == (set(TOOLS) if people else others), role
                for part, foreign in ((town.home, False), (town.elsewhere, True), (town.diary, role != "owner")):
                    for name, arguments in _calls(part.ids).items():
                        result = await client.call_tool(name, arguments)
                        told = text(result)
                        assert "elsewhereonly" not in told, (role, name, told)
                        assert role == "owner" or "privateonly" not in told, (role, name, told)
                        if (name in ("ask", "recall", "list_agents") and not people) or (
                            name == "trigger" and role == "guest"
                        ):
                            assert result.structured_content == {"code": "not_allowed"}, (role, name, told)
                        elif (name in ("read", "post") and foreign) or (
                            name in ("ask", "trigger") and part is town.elsewhere
                        ):
                            assert result.structured_content == {"code": "not_found"}, (role, name, told)
                        elif name in ("read", "post", "list_agents"):
                            assert not result.is_error, (role, name, told)
                remembered = await client.call_tool("recall", {"query": "hello", "agent": town.home.ids["agent"]})
                assert remembered.is_error == (not roles.reaches(role, "admin")), (role, text(remembered))


NAMING = ("ask", "post", "read", "trigger")


def _calls(ids: dict[str, str]) -> dict[str, dict[str, Any]]:
    return {
        "ask": {"agent": ids["agent"], "text": "Hello?", "seconds": AT_ONCE},
        "post": {"space": ids["space"], "text": "Hello?"},
        "read": {"space": ids["space"]},
        "list_agents": {},
        "trigger": {"agent": ids["agent"], "service": "CI", "text": "It failed."},
        "recall": {"query": "hello", "space": ids["space"]},
    }


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
ACCEPT = {"Accept": "application/json, text/event-stream"}


def code_of(answer: httpx2.Response) -> str:
    """Our code, in an error of JSON-RPC."""
    return answer.json()["error"]["data"]["code"]


async def test_only_with_a_token_and_not_from_pages_of_other_sites(small_house: House) -> None:
    noor = await small_house.world.person("Noor")
    without = await small_house.call("POST", "/mcp", json=INITIALIZE, headers=ACCEPT)
    wrong = await small_house.call("POST", "/mcp", json=INITIALIZE, headers={**ACCEPT, "Authorization": "Bearer dz_no"})
    page = await small_house.call(
        "POST", "/mcp", noor, json=INITIALIZE, headers={**ACCEPT, "Origin": "https://x.example"}
    )
    own = await small_house.call(
        "POST", "/mcp", noor, json=INITIALIZE, headers={**ACCEPT, "Origin": small_house.address}
    )
    stream = await small_house.call("GET", "/mcp", noor, headers=ACCEPT)
    assert (without.status_code, without.headers["www-authenticate"]) == (401, "Bearer")
    assert (wrong.status_code, code_of(wrong)) == (401, "unauthorized")
    assert (page.status_code, code_of(page)) == (403, "cross_site")
    assert (own.status_code, own.json()["result"]["serverInfo"]["name"]) == (200, "denizen")
    assert stream.status_code == 405


async def test_bodies_are_bounded_as_everywhere(small_house: House) -> None:
    noor = await small_house.world.person("Noor")
    deep = b"[" * 900 + b"]" * 900
    headers = {**ACCEPT, "Content-Type": "application/json"}
    answers = [
        await small_house.call("POST", "/mcp", noor, content=content, headers=headers)
        for content in (deep, b"{", b"x" * (2 * 1024 * 1024 + 1))
    ]
    assert [(each.status_code, code_of(each)) for each in answers] == [
        (400, "nested_too_deep"),
        (400, "invalid_json"),
        (413, "too_large"),
    ]


async def test_requests_are_counted_by_token() -> None:
    async with (
        open_world("sqlite://") as world,
        served(world, limits=ServerLimits(requests_per_minute=3)) as house,
    ):
        noor = await world.person("Noor")
        answers = [await house.call("POST", "/mcp", noor, json=INITIALIZE, headers=ACCEPT) for _ in range(4)]
    assert [each.status_code for each in answers] == [200, 200, 200, 429]


async def test_questions_that_wait_are_counted_as_streams() -> None:
    """And end when the program leaves: otherwise one person could have the server hold any number for minutes."""
    limits, hesitation, made = ServerLimits(streams_per_person=1), Hesitation(), list[FastAPI]()
    async with (
        open_world("sqlite://") as world,
        served(world, limits=limits, made=made) as house,
    ):
        noor = await world.person("Noor")
        await world.agent("Ada", model=scripted(reply("At last."), "Told Noor.", pause=hesitation))
        params = {"name": "ask", "arguments": {"agent": "@ada", "text": "Is it done?"}}
        asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        sent = {**await house.headers(noor), **ACCEPT}
        streams = made[0].state.context.streams
        async with world.denizen.living():
            async with house.client.stream("POST", "/mcp", json=asked, headers=sent) as waiting:
                assert waiting.status_code == 200
                second = await house.client.post("/mcp", json=asked, headers=sent)
                assert (second.status_code, code_of(second)) == (429, "too_many_streams")
                other = await house.call("POST", "/mcp", noor, json=INITIALIZE, headers=ACCEPT)
                assert other.status_code == 200
            while streams:  # noqa: ASYNC110  until the server has heard that it left
                await asyncio.sleep(0)
            hesitation.may_go_on.set()
