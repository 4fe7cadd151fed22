"""A server from outside: what the client promises when the server goes away, refuses, or is none."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import httpx2
import pytest

from denizen.client import (
    Call,
    Client,
    Connected,
    Lost,
    Message,
    MessageChanged,
    StreamEvent,
    UnknownEvent,
)
from denizen.client.streaming import decode
from denizen.errors import InvalidInput, RequestRefused, ServerError, ServerUnreachable, TokenRefused
from denizen.ids import SpaceId, new_id
from denizen.reflection import records
from denizen.server.shapes.stances import stance_out
from denizen.shapes.events import AgentStance
from tests.cli.chat.houses import CONFIRM, House, asking, open_house
from tests.made import delta, made


@pytest.fixture
async def house(ready_sqlite_url: str) -> AsyncGenerator[House]:
    async with open_house(ready_sqlite_url) as house:
        yield house


@pytest.fixture
async def client(house: House) -> AsyncGenerator[Client]:
    async with Client(house.url, house.token) as client:
        yield client


async def test_a_stream_outlives_the_server(client: Client, house: House) -> None:
    """It says that the connection is lost, and after the server's return tells what was said meanwhile, once."""
    told: list[StreamEvent] = []
    async with asyncio.timeout(60), aclosing(client.stream(house.cellar.id, after=0)) as stream:
        await client.post(house.cellar.id, "before", key=new_id())
        async for event in stream:
            told.append(event)
            if isinstance(event, Message) and event.text == "before":
                await house.stop_server()
            if isinstance(event, Lost) and sum(isinstance(each, Lost) for each in told) == 1:
                await house.runtime.spaces.post(house.cellar, house.noor, "meanwhile")
                await house.start_server()
            if isinstance(event, Message) and event.text == "meanwhile":
                break
    assert [each.text for each in told if isinstance(each, Message)] == ["before", "meanwhile"]
    assert [type(each) for each in told if isinstance(each, Connected | Lost)][:2] == [Connected, Lost]


async def test_a_server_that_is_away_is_named(house: House) -> None:
    await house.stop_server()
    async with Client(house.url, house.token) as client:
        with pytest.raises(ServerUnreachable, match=f"No Denizen server answers at {house.url}"):
            await client.me()
        async with aclosing(client.stream(house.cellar.id, after=0)) as stream:
            assert isinstance(await anext(stream), Lost)
    await house.start_server()


async def test_whether_a_server_answers_can_be_asked_without_a_token(house: House) -> None:
    async with Client(house.url, "") as client:
        assert (await client.health()).ok
        with pytest.raises(TokenRefused):
            await client.me()


async def test_a_wrong_token_is_told_and_not_tried_again(house: House) -> None:
    async with Client(house.url, "dz_wrong") as client:
        assert (await client.health()).ok
        with pytest.raises(TokenRefused, match="refused access"):
            await client.me()
        async with aclosing(client.stream(house.cellar.id, after=0)) as stream:
            with pytest.raises(TokenRefused):
                await anext(stream)


async def test_what_the_server_refuses_has_its_code_and_its_sentence(client: Client, house: House) -> None:
    with pytest.raises(RequestRefused) as refused:
        await client.messages("../me")
    assert (refused.value.problem, refused.value.status) == ("not_found", 404)

    key = new_id()
    await client.post(house.cellar.id, "one thing", key=key)
    with pytest.raises(RequestRefused) as refused:
        await client.post(house.cellar.id, "another thing", key=key)
    assert refused.value.problem == "idempotency_key_reused"


async def test_a_second_answer_is_refused_with_its_code(ready_sqlite_url: str) -> None:
    async with (
        open_house(ready_sqlite_url, ada=asking(), tools=[CONFIRM]) as house,
        Client(house.url, house.token) as client,
        asyncio.timeout(60),
        aclosing(client.stream(house.room.id, after=0)) as stream,
    ):
        await client.post(house.room.id, "Go", key=new_id())
        asked = await anext(event async for event in stream if isinstance(event, Call))
        assert (asked.state, await client.calls(), await client.call(asked.id)) == ("waiting", [asked], asked)
        assert (await client.answer(asked.id, ["on", "Monday"])).result == '["on","Monday"]'
        with pytest.raises(RequestRefused) as refused:
            await client.answer(asked.id, "no")
        assert (refused.value.problem, refused.value.status) == ("already_settled", 409)
        with pytest.raises(RequestRefused) as refused:
            await client.answer("../me", "no")
        assert refused.value.status == 404


async def test_another_program_is_no_denizen() -> None:
    """Whatever else listens there is told apart, however it answers."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
        await writer.drain()
        writer.close()

    other = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with other, Client(f"http://127.0.0.1:{other.sockets[0].getsockname()[1]}", "x") as client:
        with pytest.raises(ServerError, match="is not a Denizen server"):
            await client.health()


@pytest.mark.parametrize("url", ["", "localhost:8420", "ftp://localhost", "http://", "http://[::1"])
def test_what_is_no_address_is_said(url: str) -> None:
    with pytest.raises(InvalidInput, match="is not a server address"):
        Client(url, "token")


def test_an_event_is_read_as_its_shape_and_an_unknown_one_as_it_is() -> None:
    """A newer server may send more events, and more fields of those that are known."""
    sent = {"type": "stream.delta", "id": "m", "agent": "a", "epoch": 1, "offset": 3, "text": "x", "mood": "calm"}
    assert decode(_sent("stream.delta", sent)) == delta("m", "a", 3, "x")
    assert decode(_sent("agent.dreams", {"agent": "a"})) == UnknownEvent("agent.dreams", {"agent": "a"})
    with pytest.raises(ServerError):
        decode(_sent("stream.delta", {**sent, "offset": "three"}))


@pytest.mark.parametrize("name", ["message.edited", "message.deleted"])
def test_a_changed_message_is_not_taken_for_a_new_one(name: str) -> None:
    said = made(Message)
    sent = httpx2.ServerSentEvent(name, said.model_dump_json())
    assert decode(sent) == MessageChanged(said)


def _sent(name: str, data: dict[str, Any]) -> httpx2.ServerSentEvent:
    return httpx2.ServerSentEvent(name, json.dumps(data))


def test_a_stance_comes_typed() -> None:
    """As the server tells it; what is none is refused."""
    shape = AgentStance(agent="a", stance=stance_out(records.Stance(SpaceId("s"), "short", "default", 3)))
    sent = httpx2.ServerSentEvent("agent.stance", shape.model_dump_json())
    told = decode(sent)
    assert isinstance(told, AgentStance)
    assert (told.agent, told.stance.space_id, told.stance.profile.id) == ("a", "s", "short")
    assert told.stance.state.mood == "neutral"
    with pytest.raises(ServerError):
        decode(httpx2.ServerSentEvent("agent.stance", '{"agent": "a"}'))
