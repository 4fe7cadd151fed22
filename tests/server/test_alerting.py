"""Owners are told of an agent's or a panel's trouble once for each cause: in a stream, and by a webhook."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage

from denizen.access.signatures import verify
from denizen.agents.registry import Agent
from denizen.clock import SECOND
from denizen.errors import ModelKeyRejected, ModelRejected
from denizen.inbox import parking, statuses
from denizen.inbox.statuses import ParkingCause
from denizen.models.scripted import Info, Turn
from denizen.panel.panels import Panel
from denizen.server.alerting import Receiver, keep_telling, tell
from denizen.storage.database import Tx
from tests.panel.test_rounds import a_panel, echoing, voices
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


async def test_an_alert_that_was_put_off_is_not_late_by_what_the_clock_was_set_back(small_world: World) -> None:
    await park(small_world, await small_world.agent("Ada"), "key")
    async with inbox() as theirs:
        receiver = Receiver(theirs.url, None, ("127.0.0.1",))
        async with receiver.outbound:
            theirs.status = 500
            await tell(small_world.denizen, receiver)
            theirs.status = 204
            small_world.clock.advance(-86_400)
            await tell(small_world.denizen, receiver)
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


async def panel_of(world: World, fails: list[bool], *, private: bool = False) -> tuple[Any, Any, Panel]:
    """An owner, a member with a panel in which the key is rejected as long as `fails` says so, and that panel."""

    def answer(who: str, messages: list[ModelMessage], info: Info) -> Turn:
        return ModelKeyRejected("401") if fails[0] else echoing(who, messages, info)

    owner = await world.person("Owner")
    noor, panel = await a_panel(world, voices(answer), "Seth", "Buber", private=private)
    return owner, noor, panel


async def test_owners_are_told_once_that_nobody_can_answer_in_a_panel(house: House) -> None:
    """However often it is asked again; and again when it begins anew. The owner is not in the panel."""
    world, fails = house.world, [True]
    owner, noor, panel = await panel_of(world, fails)
    reason = "the provider rejected the API key. Check it under Administration › Keys, then try again."
    async with inbox() as theirs, house.listen(owner, "/api/stream") as stream:
        await stream.until("ready")
        receiver = Receiver(theirs.url, SECRET, ("127.0.0.1",))
        async with receiver.outbound:
            turn = await world.denizen.panels.ask(panel, noor, "Hello?")
            await world.run()
            await tell(world.denizen, receiver)
            for _ in range(2):
                await world.denizen.rounds.retry(turn)
                await tell(world.denizen, receiver)
                await world.run()
                await tell(world.denizen, receiver)
            assert theirs.causes == ["key"]
            [told] = [each.data for each in await stream.until("notice") if each.name == "notice"]
            assert (told["kind"], told["text"]) == ("panel_trouble", f"Nobody can answer in the panel Board: {reason}")
            health = (await house.call("GET", "/api/health", owner)).json()
            assert ("panels_unable", told["text"]) in [(each["code"], each["text"]) for each in health["alerts"]]
            fails[0] = False
            await world.denizen.rounds.retry(turn)
            await world.run()
            await tell(world.denizen, receiver)
            fails[0] = True
            await world.denizen.panels.ask(panel, noor, "And now?")
            await world.run()
            await tell(world.denizen, receiver)
            assert theirs.causes == ["key", "key"]
    assert json.loads(theirs.got[0][1]) == {
        "type": "panel.trouble",
        "panel": {"id": panel.id, "name": "Board"},
        "cause": "key",
        "text": f"Nobody can answer in the panel Board: {reason}",
        "since": "2026-01-05T09:00:00+00:00",
        "server": world.denizen.public_url,
    }


async def test_the_name_of_a_private_panel_is_not_told(house: House) -> None:
    world = house.world
    owner, noor, panel = await panel_of(world, [True], private=True)
    async with inbox() as theirs:
        receiver = Receiver(theirs.url, None, ("127.0.0.1",))
        async with receiver.outbound:
            await world.denizen.panels.ask(panel, noor, "Hello?")
            await world.run()
            await tell(world.denizen, receiver)
        health = (await house.call("GET", "/api/health", owner)).text
    told = json.loads(theirs.got[0][1])
    assert told["panel"] == {"id": panel.id, "name": None}
    assert told["text"].startswith("Nobody can answer in a private panel: the provider rejected the API key.")
    assert "Nobody can answer in a private panel" in health
    assert "Board" not in health


async def test_passing_trouble_in_a_panel_is_not_told_to_owners(small_world: World) -> None:
    world = small_world
    noor, panel = await a_panel(world, voices(lambda *_: ModelRejected("no")), "Seth")
    async with inbox() as theirs:
        receiver = Receiver(theirs.url, None, ("127.0.0.1",))
        async with receiver.outbound:
            await world.denizen.panels.ask(panel, noor, "Hello?")
            await world.run()
            await tell(world.denizen, receiver)
    assert theirs.got == []
