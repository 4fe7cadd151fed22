"""Owners are told of an agent's trouble once for each cause: in its stream, and by a webhook."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from denizen.access.signatures import verify
from denizen.agents.registry import Agent
from denizen.clock import SECOND
from denizen.inbox import parking, statuses
from denizen.inbox.statuses import ParkingCause
from denizen.server.alerting import Receiver, keep_telling, tell
from denizen.storage.database import Tx
from tests.server.conftest import House
from tests.world import World

SECRET = "swordfish"


@dataclass
class Inbox:
    """A service that takes webhooks, or refuses them with a status."""

    status: int = 204
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list[tuple[dict[str, str], bytes]])
    url: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in head[1:] if each)}
        self.got.append((headers, await reader.readexactly(int(headers["content-length"]))))
        writer.write(f"HTTP/1.1 {self.status} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    @property
    def causes(self) -> list[str]:
        return [json.loads(body)["cause"] for _, body in self.got]


@asynccontextmanager
async def inbox() -> AsyncGenerator[Inbox]:
    found = Inbox()
    async with await asyncio.start_server(found.serve, "127.0.0.1", 0) as server:
        found.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/alerts"
        yield found


async def park(world: World, agent: Agent, cause: ParkingCause) -> None:
    def write(tx: Tx) -> None:
        parking.park(tx, agent.id, cause, provider="OpenAI", model="gpt-x")

    await world.denizen.db.write(write)


async def test_owners_are_told_once_for_each_agent_and_cause(house: House) -> None:
    """However often it is tried again and in however many spaces it is shown; and again when it begins anew."""
    world = house.world
    noor, ada = await world.person("Noor"), await world.agent("Ada")
    for name in ("One", "Two"):
        await world.say(noor, "Hello?", await world.space(name, noor, ada))
    async with inbox() as theirs, house.listen(noor, f"/api/agents/{ada.id}/stream") as stream:
        receiver = Receiver(theirs.url, SECRET, ("127.0.0.1",))
        async with receiver.outbound:
            for _ in range(3):
                await park(world, ada, "key")
                await tell(world.denizen, receiver)
                world.clock.advance(700)
            [told] = [each.data for each in await stream.until("agent.alert") if each.name == "agent.alert"]
            assert theirs.causes == ["key"]
            await park(world, ada, "model")
            await tell(world.denizen, receiver)
            await park(world, ada, "key")
            await tell(world.denizen, receiver)
            assert theirs.causes == ["key", "model", "key"]
    headers, body = theirs.got[0]
    verify("generic", SECRET, headers, body, 1_767_603_600)
    sentence = "OpenAI rejected the API key of Ada. Check it under Administration › Keys; Ada then answers by itself."
    assert json.loads(body) == {
        "type": "agent.trouble",
        "agent": {"id": ada.id, "handle": "ada", "name": "Ada"},
        "cause": "key",
        "text": sentence,
        "since": "2026-01-05T09:00:00+00:00",
        "server": world.denizen.public_url,
    }
    assert (told["kind"], told["text"]) == ("key", sentence)


async def test_what_was_set_aside_is_told_and_silence_is_not(small_world: World) -> None:
    """That an agent did not reply is between it and the people in the space."""
    world = small_world
    noor, ada = await world.person("Noor"), await world.agent("Ada")
    two = await world.space("Two", noor, ada)
    message = await world.say(noor, "Hello?", two)
    async with inbox() as theirs:
        receiver = Receiver(theirs.url, None, ("127.0.0.1",))
        async with receiver.outbound:
            for cause in ("no_reply", "gave_up", "failing"):

                def show(tx: Tx, cause: statuses.Cause = cause) -> None:
                    statuses.show(tx, ada.id, two.id, cause, message_id=message.id, count=5)

                await world.denizen.db.write(show)
            await tell(world.denizen, receiver)
    assert theirs.causes == ["gave_up"]
    assert "denizen-signature" not in theirs.got[0][0]


async def test_a_receiver_that_fails_gets_it_later_also_after_a_restart(small_world: World) -> None:
    world = small_world
    ada = await world.agent("Ada")
    await park(world, ada, "key")
    async with inbox() as theirs:
        receiver = Receiver(theirs.url, None, ("127.0.0.1",))
        async with receiver.outbound:
            theirs.status = 500
            await tell(world.denizen, receiver)
            await tell(world.denizen, receiver)
            assert theirs.causes == ["key"], "it is not tried again at once"
            await world.restart()
            theirs.status = 204
            world.clock.advance(60)
            await tell(world.denizen, receiver)
            world.clock.advance(6_000)
            await tell(world.denizen, receiver)
            assert theirs.causes == ["key", "key"]


async def test_a_private_address_is_refused_unless_it_is_allowed(
    small_world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world = small_world
    await park(world, await world.agent("Ada"), "key")
    async with inbox() as theirs:
        receiver = Receiver(theirs.url)
        async with receiver.outbound:
            await tell(world.denizen, receiver)
    assert theirs.got == []
    assert "webhook for alerts failed" in capsys.readouterr().out


async def test_trouble_is_looked_for_until_the_server_stops(small_world: World) -> None:
    world, stop = small_world, asyncio.Event()
    ada = await world.agent("Ada")
    async with inbox() as theirs, asyncio.TaskGroup() as tasks:
        receiver = Receiver(theirs.url, None, ("127.0.0.1",))
        async with receiver.outbound:
            telling = tasks.create_task(keep_telling(world.denizen, receiver, stop))
            await world.clock.sleeper(10)
            await park(world, ada, "tool")
            world.clock.advance(10)
            await world.clock.sleeper(10)
            assert theirs.causes == ["tool"]
            stop.set()
            await telling
    assert world.clock.now() % SECOND == 0
