"""Many readers of one space: they are sent the same, and the database is read for all of them at once."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from fastapi import FastAPI

from denizen import reply
from denizen.access import tokens
from denizen.bus.streams import StreamDelta, StreamStarted, space_topic
from denizen.ids import MessageId
from denizen.models.scripted import scripted
from denizen.spaces.directory import Entity, Space
from tests.server.conftest import House, Stream, served
from tests.server.test_stream import share, texts
from tests.world import World

READERS = 12


@asynccontextmanager
async def crowd(world: World, where: Space, people: list[Entity]) -> AsyncGenerator[tuple[House, list[Stream]]]:
    """All these people read the space, and share its feed."""
    made: list[FastAPI] = []
    async with served(world, made=made) as house, AsyncExitStack() as open_streams:
        streams = [await open_streams.enter_async_context(house.stream(who, where)) for who in people]
        for each in streams:
            await each.until("agent.status")
        await share(made[0], where, len(people))
        yield house, streams


async def test_many_readers_cost_as_many_reads_as_one(small_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world = small_world
    people = [await world.person(f"Reader {number}") for number in range(READERS)]
    ada = await world.agent("Ada", model=scripted(reply("Good morning."), "Done."))
    kitchen = await world.space("Kitchen", *people, ada)

    async def reads_of_a_turn(readers: list[Entity]) -> int:
        async with crowd(world, kitchen, readers) as (_, streams):
            await world.say(people[0], "Hello", kitchen)
            reads, read = 0, world.denizen.db.read

            async def counted(*args: Any, **more: Any) -> Any:
                nonlocal reads
                reads += 1
                return await read(*args, **more)

            for each in streams:
                await each.until("message")
            with monkeypatch.context() as patched:
                patched.setattr(world.denizen.db, "read", counted)
                await world.say(people[0], "Is anybody there?", kitchen)
                for each in streams:
                    await each.until("message")
            return reads

    assert await reads_of_a_turn(people) <= await reads_of_a_turn(people[:2])


async def test_everybody_is_sent_the_same_in_the_same_order(small_world: World) -> None:
    world = small_world
    people = [await world.person(f"Reader {number}") for number in range(READERS)]
    ada = await world.agent("Ada", model=scripted(reply("Good morning to all of you."), "Done."))
    kitchen = await world.space("Kitchen", *people, ada)
    async with crowd(world, kitchen, people) as (house, streams):
        await house.say(people[3], "Good morning", kitchen)
        await world.run()
        heard = [[event for event in await each.until("message", 2) if event.name != ":"] for each in streams]
    assert all(each == heard[0] for each in heard)
    assert texts(heard[0]) == [(1, "Good morning"), (2, "Good morning to all of you.")]


@pytest.mark.parametrize("how", ["leaves", "token"])
async def test_one_of_many_who_may_not_read_any_more_is_sent_nothing_more(small_world: World, how: str) -> None:
    world = small_world
    noor, sam, eve = [await world.person(name) for name in ("Noor", "Sam", "Eve")]
    ada = await world.agent("Ada")
    kitchen = await world.space("Kitchen", noor, sam, eve, ada)
    async with crowd(world, kitchen, [noor, sam, eve]) as (_, (noors, sams, eves)):
        if how == "leaves":
            await world.denizen.spaces.leave(kitchen, eve)
        else:
            [token] = await world.denizen.db.read(tokens.tokens_of, eve.id)
            await world.denizen.db.write(tokens.revoke, token.id)
        topic, id_ = space_topic(kitchen.id), MessageId("m1")
        world.denizen.bus.publish(topic, StreamStarted(id_, ada.id, kitchen.id, 0).to_payload())
        world.denizen.bus.publish(topic, StreamDelta(id_, ada.id, 0, 0, "Eve is gone: a secret").to_payload())
        await world.say(sam, "Eve is gone: a secret", kitchen)
        assert await eves.rest() == []
        for each in (noors, sams):
            assert texts(await each.until("message")) == [(1, "Eve is gone: a secret")]


async def test_a_reader_that_comes_later_resumes_and_then_shares(small_world: World) -> None:
    world = small_world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    ada = await world.agent("Ada")
    kitchen = await world.space("Kitchen", noor, sam, ada)
    made: list[FastAPI] = []
    async with served(world, made=made) as house, house.stream(noor, kitchen) as early:
        for number in range(1, 4):
            await house.say(noor, f"Message {number}", kitchen)
        await early.until("message", 3)
        async with house.stream(sam, kitchen, last=1) as late:
            assert texts(await late.until("message", 2)) == [(2, "Message 2"), (3, "Message 3")]
            await share(made[0], kitchen, 2)
            await house.say(noor, "Message 4", kitchen)
            assert texts(await late.until("message")) == texts(await early.until("message")) == [(4, "Message 4")]
        await house.say(noor, "Message 5", kitchen)
        assert texts(await early.until("message")) == [(5, "Message 5")]
    assert made[0].state.context.shared_feeds == {}
