"""The Matrix bridge against a real Synapse."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
from sqlalchemy import delete, select

from denizen import reply, scripted
from denizen.bridges.registry import Bridge
from denizen.bus.streams import TypingElsewhere
from denizen.errors import SignatureWrong
from denizen.storage.database import Tx, insert_into, statement
from denizen.storage.schema import carried, channels, outbox
from tests.bridges.conformance import ROOM, BridgeSuite, Service, build
from tests.bridges.listening import listening
from tests.bridges.live_suite import LiveSuite, Pen, typing_in
from tests.bridges.real.homeserver import Matrix, Relay
from tests.bridges.real.synapse import HS_TOKEN, Synapse
from tests.bridges.status_suite import StatusSuite
from tests.world import World


@pytest.fixture
async def matrix(synapse: Synapse) -> AsyncIterator[Matrix]:
    found = Matrix(synapse)
    async with listening(found.pass_on) as found.url:
        yield found


class TestMatrix(LiveSuite, StatusSuite, BridgeSuite):
    @pytest.fixture
    def service(self, matrix: Matrix) -> Service:
        return matrix


async def test_an_agent_answers_in_the_room_and_is_itself_there(bay: World, matrix: Matrix) -> None:
    """A mention of its user wakes it; what it says is written by its user, with its name."""
    ada = await bay.agent("Ada", reply("At *noon*."), "Told Eve.")
    pier = await build(bay, matrix, ada)
    room = matrix.room_id(ROOM)
    content = {"msgtype": "m.text", "body": "Ada: when?", "m.mentions": {"user_ids": ["@denizen_ada:test"]}}
    matrix.synapse.send("Eve", matrix.id_of(room), "m.room.message", content, f"ask-{room[1:40]}")
    await pier.run()
    assert await pier.lines() == ["Eve: @ada Ada: when?", "Ada: At *noon*."]
    assert matrix.said == [f"{ROOM}: Ada: At *noon*."]
    found, _ = matrix.synapse.timeline("Eve", matrix.id_of(room))
    assert found[-1]["content"]["formatted_body"] == "<p>At <em>noon</em>.</p>"
    members = matrix.synapse.call("Eve", "GET", f"/rooms/{quote(matrix.id_of(room))}/joined_members")["joined"]
    assert {each["display_name"] for each in members.values()} >= {"Ada", "Eve", "Mia"}


async def test_an_agent_that_thinks_is_shown_as_typing_until_it_has_spoken(bay: World, matrix: Matrix) -> None:
    """People in the room see it as the homeserver tells them: it is the agent's own user who types."""
    pen = Pen()
    ada = await bay.agent("Ada", model=scripted(reply("At noon."), "Told Eve.", pause=pen.pause))
    await build(bay, matrix, ada)
    room = matrix.id_of(matrix.room_id(ROOM))
    async with bay.denizen.living(), asyncio.timeout(120):
        since = matrix.synapse.call("Eve", "GET", "/sync")["next_batch"]
        await matrix.write(ROOM, "Eve", "@ada when?")
        since = await _until_typing(matrix, room, since, ["@denizen_ada:test"])
        pen.write()
        await matrix.until("At noon.")
        await _until_typing(matrix, room, since, [])
        await bay.run()
    assert matrix.typed[0] == "@denizen_ada:test True"
    assert matrix.typed[-1] == "@denizen_ada:test False"


async def _until_typing(matrix: Matrix, room: str, since: str, who: list[str]) -> str:
    """Returns when the homeserver tells Eve that these type; how far she has heard by then."""
    while True:
        told = await asyncio.to_thread(matrix.synapse.call, "Eve", "GET", "/sync", since=since, timeout="1000")
        since = told["next_batch"]
        heard = told.get("rooms", {}).get("join", {}).get(room, {}).get("ephemeral", {}).get("events", [])
        if who in [each["content"]["user_ids"] for each in heard if each["type"] == "m.typing"]:
            return since


async def test_what_a_program_writes_is_a_programs(bay: World, matrix: Matrix) -> None:
    pier = await build(bay, matrix)
    await matrix.write(ROOM, "Mia", "Backup done.", bot=True)
    await pier.run()
    message = (await bay.denizen.spaces.messages(pier.space))[-1]
    assert (message.author_kind, message.hop) == ("service", 1)


async def test_an_encrypted_room_is_refused_with_a_reason(bay: World, matrix: Matrix) -> None:
    room = matrix.room_id(ROOM)
    path = f"/rooms/{quote(matrix.id_of(room))}/state/m.room.encryption"
    matrix.synapse.call("Eve", "PUT", path, {"algorithm": "m.megolm.v1.aes-sha2"})
    pier = await build(bay, matrix)
    assert "is encrypted" in ((await bay.denizen.bridges.get(pier.bridge)).bridge.error or "")


async def test_an_account_is_linked_with_a_code_in_a_room_of_its_own(bay: World, matrix: Matrix) -> None:
    pier = await build(bay, matrix)
    await matrix.write(ROOM, "Eve", "I am Noor.")
    await pier.run()
    await bay.denizen.bridges.send_code(pier.bridge, "@eve:test", pier.noor)
    await pier.run()
    code = matrix.newest_code("Eve")
    await bay.denizen.bridges.link(pier.bridge, "@eve:test", pier.noor, code)
    await matrix.write(ROOM, "Eve", "It is me.")
    await pier.run()
    assert await pier.lines() == ["Eve: I am Noor.", "Noor: It is me."]


async def test_a_message_that_waited_longer_than_a_day_is_not_sent_twice(bay: World, matrix: Matrix) -> None:
    """The homeserver has forgotten the transaction id by then: the message is found by its mark."""
    pier = await build(bay, matrix)
    await pier.say("Hello")
    bay.clock.advance(1)
    await pier.run()
    await bay.denizen.db.write(_as_if_never_known)
    bay.clock.advance(30 * 3600)
    sent = matrix.sent
    await pier.run()
    await pier.run()
    assert matrix.said == [f"{ROOM}: Noor: Hello"]
    assert matrix.sent == sent
    assert (await bay.denizen.bridges.get(pier.bridge)).backlog.waiting == 0


def _as_if_never_known(tx: Tx) -> None:
    """The process died after it had sent the message, and before it knew."""
    (channel_id, message_id), *_ = tx.all(
        statement(select(carried.c.channel_id, carried.c.message_id).where(carried.c.direction == "out"))
    )
    bridge_id, room = tx.all(statement(select(channels.c.bridge_id, channels.c.room)))[0]
    tx.run(statement(delete(carried).where(carried.c.direction == "out")))
    row = {
        "bridge_id": bridge_id,
        "channel_id": channel_id,
        "target": room,
        "message_id": message_id,
        "action": "post",
        "transaction_id": f"{message_id}.{channel_id}",
        "tries": 1,
        "next_at": tx.now,
        "created_at": tx.now,
    }
    tx.run(insert_into(outbox, *row), **row)


async def test_a_push_of_the_homeserver_is_a_hint(bay: World, tmp_path: Path) -> None:
    """What was written is read at once: the clock stands still, so nobody looks by themselves."""
    heard: list[str] = []
    relay = Relay()
    async with relay.listening(), _synapse(tmp_path, relay.url) as synapse:
        matrix = Matrix(synapse)
        matrix.url = synapse.url
        pier = await build(bay, matrix)

        async def take(token: str, body: bytes) -> None:
            await bay.denizen.bridges.receive_push(pier.bridge.id, token, body)
            heard.append(token)

        relay.take = take
        async with bay.denizen.living():
            await matrix.write(ROOM, "Eve", "One")
            while not heard:  # noqa: ASYNC110  the homeserver says it
                await asyncio.sleep(0.05)
            await matrix.write(ROOM, "Eve", "Two")
            while await pier.lines() != ["Eve: One", "Eve: Two"]:  # noqa: ASYNC110  the database says it
                await asyncio.sleep(0.05)
    assert set(heard) == {f"Bearer {HS_TOKEN}"}
    for wrong in ("", "Bearer no", "Bearer "):
        with pytest.raises(SignatureWrong):
            await bay.denizen.bridges.receive_push(pier.bridge.id, wrong)
    with pytest.raises(SignatureWrong):
        await bay.denizen.bridges.receive_push("unknown", f"Bearer {HS_TOKEN}")


async def test_somebody_who_types_there_is_shown_as_typing_here(bay: World, tmp_path: Path) -> None:
    """As the homeserver pushes it, for people of the space only: Mia has never written."""
    relay, bridges = Relay(), list[Bridge]()

    async def take(token: str, body: bytes) -> None:
        for each in bridges:
            await bay.denizen.bridges.receive_push(each.id, token, body)

    # From the beginning: a homeserver whose push was refused pushes nothing for a while, and drops who types.
    relay.take = take
    async with relay.listening(), _synapse(tmp_path, relay.url) as synapse:
        matrix = Matrix(synapse)
        matrix.url = synapse.url
        pier = await build(bay, matrix)
        bridges.append(pier.bridge)
        await matrix.write(ROOM, "Eve", "Ahoy!")
        await pier.run()
        async with bay.denizen.living(), typing_in(bay, pier) as told, asyncio.timeout(120):
            await bay.run()
            for who in ("Mia", "Eve"):
                path = f"/rooms/{quote(matrix.id_of(matrix.room_id(ROOM)))}/typing/@{who.lower()}:test"
                await asyncio.to_thread(synapse.call, who, "PUT", path, {"typing": True, "timeout": 30_000})
            assert await anext(told) == TypingElsewhere(pier.space.id, "Eve", "@eve:test")


@asynccontextmanager
async def _synapse(folder: Path, push: str) -> AsyncIterator[Synapse]:
    synapse = Synapse(folder, push)
    await asyncio.to_thread(synapse.start)
    try:
        yield synapse
    finally:
        synapse.kill()
