"""A space as server-sent events: nothing is lost, nothing comes twice, and it ends when it should."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fastapi import FastAPI

from denizen import Runtime, reply
from denizen.access import tokens
from denizen.bus.local import LocalBus
from denizen.bus.streams import AgentStatus, ReplyChanged, StreamDelta, StreamStarted, agent_topic, space_topic
from denizen.clock import SECOND, Instant
from denizen.ids import MessageId
from denizen.models.scripted import call, forever, scripted
from denizen.panel.panels import Panel
from denizen.server.context import ServerLimits
from denizen.spaces.directory import Entity, Space
from denizen.tools.settings import ClientTool
from tests.hesitation import Hesitation
from tests.server.conftest import House, SentEvent, Stream, served
from tests.world import UNHURRIED, World, open_world


def texts(events: list[SentEvent]) -> list[tuple[int | None, str]]:
    return [(event.id, event.data["text"]) for event in events if event.name == "message"]


async def test_messages_come_as_they_are_posted(house: House) -> None:
    world = house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    kitchen = await world.space("Kitchen", noor, sam)
    await world.say(noor, "Before", kitchen)

    async with house.stream(sam, kitchen) as stream:
        first = await house.say(noor, "Good\nmorning \r\u2028\u0085\x1c 🦊", kitchen)
        second = await house.say(sam, "Hello", kitchen)
        assert await stream.until("message", 2) == [
            SentEvent("message", first, 2),
            SentEvent("message", second, 3),
        ]


async def test_a_reader_resumes_where_it_was(house: House) -> None:
    """By the header or by the address; the header is newer. A number that was never given is taken as the last one."""
    noor = await house.world.person("Noor")
    kitchen = await house.world.space("Kitchen", noor)
    for number in range(1, 402):
        await house.world.say(noor, f"{number}", kitchen)

    for newest, after in enumerate((0, 200, 1000), start=402):
        left = [(number, f"{number}") for number in range(min(after, newest - 1) + 1, newest + 1)]
        for options in ({"after": after}, {"last": after}, {"last": after, "after": 5}):
            async with house.stream(noor, kitchen, **options) as stream:
                if options == {"after": after}:
                    await house.say(noor, f"{newest}", kitchen)
                elif after >= newest:
                    break
                assert texts(await stream.until("message", len(left))) == left


async def test_a_position_that_is_no_number_is_refused(small_house: House) -> None:
    noor = await small_house.world.person("Noor")
    kitchen = await small_house.world.space("Kitchen", noor)
    for headers, query in [({"Last-Event-ID": "x"}, ""), ({}, "?after=-1")]:
        answer = await small_house.call("GET", f"/api/spaces/{kitchen.id}/stream{query}", noor, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")


async def test_an_agents_text_streams_and_becomes_the_message_of_the_same_id(house: House) -> None:
    world = house.world
    noor = await world.person("Noor")
    answer = "It did: 212 tests, none failed. 🦊 And the docs are built, too."
    hesitation = Hesitation()
    ada = await world.agent("Ada", model=scripted(reply(answer), "Told Noor.", pause=hesitation))
    kitchen = await world.space("Kitchen", noor, ada)

    async with asyncio.TaskGroup() as tasks, house.stream(noor, kitchen) as stream:
        await house.say(noor, "Did the build pass?", kitchen)
        tasks.create_task(world.run())
        events = await stream.until("stream.delta")
        hesitation.may_go_on.set()
        events += await stream.until("message")
        events += await stream.until("agent.status", status="sleeping")

    message = next(event for event in events if event.id == 2)
    started = [event.data for event in events if event.name == "stream.started"]
    deltas = [event.data for event in events if event.name == "stream.delta"]
    assert [(each["id"], each["agent"], each["offset"]) for each in started] == [(message.data["id"], ada.id, 0)]
    assert len(deltas) > 3
    assert "".join(each["text"] for each in deltas) == message.data["text"] == answer
    names = [event.name for event in events if event.name != "agent.status"]
    assert names == ["message", "stream.started", *["stream.delta"] * len(deltas), "message"]
    statuses = [event.data["status"] for event in events if event.name == "agent.status"]
    assert statuses == ["sleeping", "alive", "sleeping"]
    assert [event.id for event in events if event.name != "message"] == [None] * (len(events) - 2)


async def test_who_comes_in_the_middle_of_a_text_gets_it_from_its_beginning(small_house: House) -> None:
    """Whoever was there before is not told it twice."""
    world = small_house.world
    noor = await world.person("Noor")
    hesitation = Hesitation()
    counting = scripted(reply("One two three four five six seven"), "Done.", pause=hesitation)
    ada = await world.agent("Ada", model=counting)
    kitchen = await world.space("Kitchen", noor, ada)
    async with asyncio.TaskGroup() as tasks, small_house.stream(noor, kitchen) as early:
        await small_house.say(noor, "Count", kitchen)
        tasks.create_task(world.run())
        await early.until("stream.delta")
        async with small_house.stream(noor, kitchen) as late:
            assert (await late.next()).data["status"] == "alive"
            [start, first] = await late.until("stream.delta")
            assert (start.name, first.data["offset"], first.data["text"][:4]) == ("stream.started", 0, "One ")
            hesitation.may_go_on.set()
            events = await late.until("message")
        deltas = [first.data, *(event.data for event in events if event.name == "stream.delta")]
        message = events[-1].data
        assert "".join(each["text"] for each in deltas) == message["text"]
        await early.until("message")
        whole = [event.data["text"] for event in early.seen if event.name == "stream.delta"]
        assert "".join(whole) == message["text"]


async def test_statuses_are_of_the_agents_in_the_space(small_house: House) -> None:
    """Also of one that comes later; and of none elsewhere."""
    world = small_house.world
    noor = await world.person("Noor")
    ada, bee, cat = [await world.agent(name) for name in ("Ada", "Bee", "Cat")]
    kitchen = await world.space("Kitchen", noor, ada)

    async def seen(stream: Any, *wanted: tuple[str, str]) -> None:
        names = {ada.id: "Ada", bee.id: "Bee", cat.id: "Cat"}
        for expected in wanted:
            event = await stream.next()
            assert (event.name, names[event.data["agent"]], event.data["status"]) == ("agent.status", *expected)

    async with small_house.stream(noor, kitchen) as stream:
        await seen(stream, ("Ada", "sleeping"))
        await world.denizen.agents.suspend(cat)
        await world.denizen.agents.suspend(ada)
        await seen(stream, ("Ada", "suspended"))
        await world.denizen.spaces.join(kitchen, bee)
        await seen(stream, ("Bee", "sleeping"))
        assert (await stream.next()).name == "space.changed"
        await small_house.say(noor, "Bye", kitchen)
        assert (await stream.next()).name == "message"
        await world.denizen.agents.suspend(bee)
        await seen(stream, ("Bee", "suspended"))


async def test_what_a_former_holder_says_is_not_told(small_house: House) -> None:
    """The epochs are known from the database before the first frame."""
    world = small_house.world
    noor, ada = await world.person("Noor"), await world.agent("Ada")
    kitchen = await world.space("Kitchen", noor, ada)
    await world.denizen.agents.suspend(ada)  # which moves the epoch on
    topic, id_, bus = space_topic(kitchen.id), MessageId("m1"), world.denizen.bus

    async with small_house.stream(noor, kitchen) as stream:
        await stream.until("agent.status", status="suspended")
        for epoch in (0, 1):
            bus.publish(topic, StreamStarted(id_, ada.id, kitchen.id, epoch).to_payload())
            bus.publish(topic, StreamDelta(id_, ada.id, epoch, 0, f"epoch {epoch}").to_payload())
        assert (await stream.next()).data["epoch"] == 1
        assert (await stream.next()).data["text"] == "epoch 1"


async def test_an_idle_stream_beats_and_looks_for_what_it_missed(small_world: World) -> None:
    """A message whose frame was lost is found at the next heartbeat."""
    world = small_world
    noor = await world.person("Noor")
    kitchen = await world.space("Kitchen", noor)
    async with served(world) as house, house.stream(noor, kitchen) as stream:
        await idle(world)
        async with elsewhere(world) as denizen:
            await denizen.spaces.post(kitchen, noor, "Nobody heard")
        world.clock.advance(14.9)
        world.clock.advance(0.1)
        assert await stream.next() == SentEvent(":", "heartbeat")
        assert texts([await stream.next()]) == [(1, "Nobody heard")]
        await idle(world)
        world.clock.advance(15)
        assert await stream.next() == SentEvent(":", "heartbeat")


async def test_a_busy_stream_looks_for_what_it_missed_as_well(small_world: World) -> None:
    """A message whose frame was lost is found although frames of others arrive all the time."""
    world = small_world
    noor = await world.person("Noor")
    kitchen = await world.space("Kitchen", noor)
    ada = await world.agent("Ada")
    await world.denizen.spaces.join(kitchen, ada)
    async with served(world) as house, house.stream(noor, kitchen) as stream:
        await stream.until("agent.status")
        await idle(world)
        async with elsewhere(world) as denizen:
            await denizen.spaces.post(kitchen, noor, "Nobody heard")
        for status in ("alive", "paused", "alive"):
            world.clock.advance(6)
            world.denizen.bus.publish(agent_topic(ada.id), AgentStatus(ada.id, status, 1).to_payload())
            await stream.until("agent.status", status=status)
        while not texts(stream.seen):
            await stream.next()
        assert texts(stream.seen) == [(1, "Nobody heard")]


@asynccontextmanager
async def following_a_board(world: World, of: str) -> AsyncGenerator[tuple[Entity, Panel, Stream]]:
    """Noor follows the stream of her panel, or her own."""
    noor = await world.person("Noor")
    panel = await world.denizen.panels.create("Board", [noor], advisors=["Seth"], model="m")
    path = "/api/stream" if of == "person" else f"/api/spaces/{panel.id}/stream"
    async with served(world) as house, house.listen(noor, path) as stream:
        if of == "person":
            await stream.until("ready")
        await idle(world)
        yield noor, panel, stream


@pytest.mark.parametrize("of", ["space", "person"])
async def test_a_round_that_ended_unheard_is_told(small_world: World, of: str) -> None:
    """The process that answers may not know whether its commit arrived, or die right after it: its hint is lost."""
    world = small_world
    async with following_a_board(world, of) as (noor, panel, stream):
        for text, heard in (("Well?", True), ("Nobody heard that either?", False)):
            async with elsewhere(world) as denizen:
                denizen.models.register("m", forever(lambda *_: "So it is."))
                asked = await (world.denizen if heard else denizen).panels.ask(panel, noor, text)
                if heard:
                    assert not (await stream.until("panel.round", id=asked.id))[-1].data["all_completed"]
                await denizen.run_until_idle()
            await idle(world)
            world.clock.advance(15)
            # A stream that is just beginning may find the round by its first look and by the hint.
            told = (await stream.until("panel.round", id=asked.id, all_completed=True))[-1].data
            assert [each["content"] for each in told["advisor_responses"].values()] == ["So it is."]
            await idle(world)


@pytest.mark.parametrize("of", ["space", "person"])
async def test_a_round_of_which_only_the_last_reply_was_heard_is_told(small_world: World, of: str) -> None:
    """Redis may go away between the two hints of one commit: that a reply is done, and that its round is."""
    world = small_world
    async with following_a_board(world, of) as (noor, panel, stream):
        async with elsewhere(world) as denizen:
            denizen.models.register("m", forever(lambda *_: "So it is."))
            asked = await denizen.panels.ask(panel, noor, "Well?")
            await denizen.run_until_idle()
        [reply] = (await world.denizen.rounds.get(asked)).replies
        hint = ReplyChanged(panel.id, asked.id, reply.voice, reply.part)
        world.denizen.bus.publish(space_topic(panel.id), hint.to_payload())
        assert (await stream.until("panel.reply"))[-1].data["reply"]["state"] == "done"
        await idle(world)
        world.clock.advance(15)
        assert (await stream.until("panel.round", id=asked.id))[-1].data["all_completed"]


@pytest.mark.parametrize("of", ["space", "person"])
async def test_a_question_that_was_asked_or_answered_unheard_is_told(small_world: World, of: str) -> None:
    world = small_world
    noor = await world.person("Noor")
    confirm = ClientTool(name="confirm", description="Ask whether you may.")
    ada = await world.agent("Ada", call("confirm"), "Thanks.", tools=[confirm])
    kitchen = await world.space("Kitchen", noor, ada)
    path = "/api/stream" if of == "person" else f"/api/spaces/{kitchen.id}/stream"
    async with served(world) as house, house.listen(noor, path) as stream:
        await stream.until("agent.status")
        await idle(world)
        async with elsewhere(world) as denizen:
            denizen.models.register(ada.definition.model, world.model(ada))
            await denizen.spaces.post(kitchen, noor, "Bring it.")
            await denizen.run_until_idle()
            world.clock.advance(15)
            told = (await stream.until("call"))[-1].data
            assert told["state"] == "waiting"
            await idle(world)
            await denizen.calls.answer(told["id"], "The red one.", by=noor)
        world.clock.advance(15)
        assert (await stream.until("call"))[-1].data["state"] == "answered"


async def test_after_a_gap_the_database_is_read(small_world: World) -> None:
    world = small_world
    noor = await world.person("Noor")
    kitchen = await world.space("Kitchen", noor)
    bus = world.denizen.bus
    assert isinstance(bus, LocalBus)
    async with served(world) as house, house.stream(noor, kitchen) as stream:
        async with elsewhere(world) as denizen:
            await denizen.spaces.post(kitchen, noor, "Nobody heard")
        bus.gap()
        assert texts([await stream.next()]) == [(1, "Nobody heard")]


@asynccontextmanager
async def elsewhere(world: World) -> AsyncGenerator[Runtime]:
    """Another process on the same database, whose bus does not reach ours: what it says is in the database only."""
    async with Runtime(world.url, clock=world.clock) as denizen:
        yield denizen


async def idle(world: World) -> None:
    """Someone sleeps until the next heartbeat: the stream has told all it knows and waits."""
    await world.clock.sleeper(15)


async def test_what_is_said_through_another_instance_is_heard(ready_postgres_url: str, redis_url: str) -> None:
    """One PostgreSQL, one Redis, two servers: messages and live text reach the readers of both."""
    async with open_world(ready_postgres_url, redis_url=redis_url) as world:
        noor = await world.person("Noor")
        hesitation = Hesitation()
        counting = scripted(reply("One two three four five six."), "Done.", pause=hesitation)
        ada = await world.agent("Ada", model=counting)
        kitchen = await world.space("Kitchen", noor, ada)
        other = World(ready_postgres_url, clock=world.clock, redis_url=redis_url)
        await other.open()
        async with served(world) as house, served(other) as second:
            second.secrets[noor.id] = await house.token(noor)
            async with asyncio.TaskGroup() as tasks, second.stream(noor, kitchen) as stream:
                await house.say(noor, "Count", kitchen)
                await stream.until("message")
                tasks.create_task(world.run())
                events = await stream.until("stream.delta")
                hesitation.may_go_on.set()
                events += await stream.until("message")
        await other.close()
    deltas = [event.data["text"] for event in events if event.name == "stream.delta"]
    assert "".join(deltas) == events[-1].data["text"] == "One two three four five six."


async def leaves(house: House, noor: Entity, kitchen: Space) -> None:
    await house.world.denizen.spaces.leave(kitchen, noor)


async def token_revoked(house: House, noor: Entity, kitchen: Space) -> None:
    [token] = await house.world.denizen.db.read(tokens.tokens_of, noor.id)
    await house.world.denizen.db.write(tokens.revoke, token.id)


async def token_expires(house: House, noor: Entity, kitchen: Space) -> None:
    house.world.clock.advance(14)


@pytest.mark.parametrize("happens", [leaves, token_revoked, token_expires])
@pytest.mark.parametrize("then", ["message", "stream", "heartbeat"])
async def test_a_stream_ends_when_its_reader_may_not_read_any_more(house: House, happens: Callable, then: str) -> None:
    """At the latest when the next message is there, or begins to be written."""
    world = house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    ada = await world.agent("Ada")
    kitchen = await world.space("Kitchen", noor, sam, ada)
    expires_at = Instant(world.clock.now() + 14 * SECOND) if happens is token_expires else None
    await house.token(noor, expires_at=expires_at)

    async with house.stream(noor, kitchen) as stream:
        await stream.until("agent.status")
        await idle(world)
        await happens(house, noor, kitchen)
        if then == "message":
            await world.say(sam, "Noor is gone: a secret", kitchen)
        elif then == "stream":
            topic, id_ = space_topic(kitchen.id), MessageId("m1")
            world.denizen.bus.publish(topic, StreamStarted(id_, ada.id, kitchen.id, 0).to_payload())
            world.denizen.bus.publish(topic, StreamDelta(id_, ada.id, 0, 0, "a secret").to_payload())
        else:
            world.clock.advance(15)
        told = [event.name for event in await stream.rest()]
        # Whoever leaves is not waited for: the heartbeat may come too late for them.
        assert told == ([":"] if then == "heartbeat" else []) or (happens is leaves and told == [])


async def test_a_stream_ends_when_the_runtime_closes(ready_sqlite_url: str) -> None:
    world = World(ready_sqlite_url)
    await world.open()
    noor = await world.person("Noor")
    kitchen = await world.space("Kitchen", noor)
    async with served(world) as house, house.stream(noor, kitchen) as stream:
        await world.close()
        assert await stream.rest() == []


async def test_when_a_reader_leaves_the_server_lets_go(small_house: House) -> None:
    """Nobody listens on the bus any more."""
    world = small_house.world
    noor, ada = await world.person("Noor"), await world.agent("Ada")
    kitchen = await world.space("Kitchen", noor, ada)
    bus = world.denizen.bus
    async with small_house.stream(noor, kitchen) as stream:
        await stream.until("agent.status")
        assert bus.attention(space_topic(kitchen.id))
    while bus.attention(space_topic(kitchen.id)) or bus.attention(agent_topic(ada.id)):  # noqa: ASYNC110
        await asyncio.sleep(0)


async def test_a_reader_that_does_not_read_is_cut_off(small_world: World) -> None:
    """Its connection ends; others, who read, are not disturbed."""
    world = small_world
    noor, ada = await world.person("Noor"), await world.agent("Ada")
    kitchen = await world.space("Kitchen", noor, ada)
    bus, topic, made = world.denizen.bus, space_topic(kitchen.id), list[FastAPI]()
    limits = ServerLimits(stream_frames=50)
    async with served(world, limits=limits, made=made) as house, house.stream(noor, kitchen) as attentive:
        await attentive.until("agent.status")
        secret = (await house.headers(noor))["Authorization"]
        host, port = house.address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as deaf:
            deaf.setblocking(False)
            request = f"GET /api/spaces/{kitchen.id}/stream HTTP/1.1\r\nHost: {host}\r\nAuthorization: {secret}\r\n\r\n"
            loop = asyncio.get_running_loop()
            await loop.sock_sendall(deaf, request.encode())
            began = await loop.sock_recv(deaf, 100)
            assert began.startswith(b"HTTP/1.1 200")
            streams = made[0].state.context.streams
            await share(made[0], kitchen, 2)

            sent = 0
            bus.publish(topic, StreamStarted(MessageId("m1"), ada.id, kitchen.id, 0).to_payload())
            while streams[noor.id] == 2:
                piece = "x" * 100_000
                bus.publish(topic, StreamDelta(MessageId("m1"), ada.id, 0, sent, piece).to_payload())
                sent += len(piece)
                got = [each.data for each in await attentive.until("stream.delta")]
                assert got[-1]["offset"] == sent - len(piece)

            # What was sent may still be read; then comes the end, and not an orderly one.
            assert not (await the_rest(deaf)).endswith(b"0\r\n\r\n")
        bus.publish(topic, StreamDelta(MessageId("m1"), ada.id, 0, sent, "!").to_payload())
        assert (await attentive.next()).data["text"] == "!"


async def the_rest(deaf: socket.socket) -> bytes:
    read = bytearray()
    while piece := await asyncio.get_running_loop().sock_recv(deaf, 1_000_000):
        read += piece
    return bytes(read)


async def share(app: FastAPI, where: Space, count: int) -> None:
    """Returns when so many readers share the feed of the space."""
    while app.state.context.shared_feeds[where.id].readers_following != count:  # noqa: ASYNC110
        await asyncio.sleep(0)


@pytest.mark.parametrize("seed", range(4))
async def test_every_reader_sees_every_message_once_whatever_happens(ready_url: str, seed: int) -> None:
    """People post, agents answer, frames get lost, readers come and go at any point."""
    chance = random.Random(seed)
    async with open_world(ready_url, pace=UNHURRIED) as world, served(world) as house, elsewhere(world) as other:
        people = [await world.person(name) for name in ("Noor", "Sam", "Eve")]
        bot = await world.agent("Echo", model=forever(echo), handle="echo")
        kitchen = await world.space("Kitchen", *people, bot)
        for who in people:
            await house.token(who)

        async def post(who: Entity) -> None:
            for number in range(20):
                if chance.random() < 0.2:
                    await other.spaces.post(kitchen, who, f"{who.name} {number}")
                else:
                    await house.say(who, f"{who.name} {number}", kitchen)
                for _ in range(chance.randrange(4)):
                    await asyncio.sleep(0)

        async def read(who: Entity, chance: random.Random) -> list[SentEvent]:
            seen: list[SentEvent] = []
            while THE_END not in (text for _, text in texts(seen)):
                last = max((event.id or 0 for event in seen), default=0)
                async with house.stream(who, kitchen, last=last) as stream:
                    for _ in range(chance.randrange(1, 40)):
                        event = await stream.next()
                        seen.append(event)
                        if texts([event]) and event.data["text"] == THE_END:
                            break
            return seen

        async with world.denizen.living() as residents, asyncio.TaskGroup() as tasks:
            reading = [tasks.create_task(read(chance.choice(people), random.Random(seed + each))) for each in range(4)]
            await asyncio.gather(*map(post, people))
            await residents.run_until_idle()
            end = await house.say(people[0], THE_END, kitchen)

        said = (await world.denizen.spaces.messages(kitchen))[: end["seq"]]
        assert len(said) > 61
        for each in reading:
            assert texts(each.result()) == [(message.seq, message.text) for message in said]
            check_live_text(each.result(), {message.id: message.text for message in said})


THE_END = "The end"


def echo(messages: Any, info: Any) -> Any:
    """Says something in the space it was told about, then ends."""
    return reply(f"Echo {info.number}: " + "word " * 12) if info.number % 2 == 0 else "Echoed."


def check_live_text(events: list[SentEvent], texts: dict[str, str]) -> None:
    """Every stream's text, from its offset on, begins the message of its id, and nothing follows the message."""
    live: dict[str, tuple[int, str]] = {}
    said: set[str] = set()
    for event in events:
        match event:
            case SentEvent("message", data):
                said.add(data["id"])
            case SentEvent("stream.started", data):
                assert data["id"] not in said
                live[data["id"]] = (data["offset"], "")
            case SentEvent("stream.delta", data):
                assert data["id"] not in said
                offset, text = live[data["id"]]
                assert data["offset"] == offset + len(text)
                live[data["id"]] = (offset, text + data["text"])
            case _:
                pass
    for id_, (offset, text) in live.items():
        if id_ in texts:
            assert texts[id_][offset:].startswith(text)


async def test_a_reader_hears_that_a_message_was_edited_or_deleted(house: House) -> None:
    """As it is now, and without an id: the place to resume from stays."""
    world = house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    kitchen = await world.space("Kitchen", noor, sam)
    posted = await world.say(noor, "Tea at four", kitchen)
    async with house.stream(sam, kitchen, after=0) as stream:
        await stream.until("message")
        await world.denizen.spaces.edit_message(posted.id, "Tea at five", by=noor)
        edited = (await stream.until("message.edited"))[-1]
        await world.denizen.spaces.delete_message(posted.id, by=noor)
        deleted = (await stream.until("message.deleted"))[-1]
    assert (edited.id, edited.data["id"], edited.data["text"]) == (None, posted.id, "Tea at five")
    assert (deleted.id, deleted.data["id"], deleted.data["text"]) == (None, posted.id, "[deleted]")
