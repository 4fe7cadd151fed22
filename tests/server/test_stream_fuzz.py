"""Readers that come and go, two instances, and a Redis that is lost in the middle: everyone sees everything once."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import httpx2
import pytest

from denizen.bus.redis import PROBE_SECONDS, RedisBus
from denizen.ids import SpaceId
from denizen.models.scripted import forever
from denizen.spaces.directory import Entity, Space
from tests.server.conftest import House, SentEvent, served
from tests.server.test_stream import check_live_text, echo
from tests.servers import Server
from tests.world import UNHURRIED, World

THE_END = "The end"


def ends(events: list[SentEvent]) -> int:
    return sum(event.name == "message" and event.data["text"] == THE_END for event in events)


async def read(houses: list[House], who: Entity, path: str, start: Any, wanted: int, chance: random.Random) -> Any:
    """Read until the end of every space was seen, each time at another instance and for another while."""
    seen: list[SentEvent] = []
    last = start
    while ends(seen) < wanted:
        house = chance.choice(houses)
        try:
            async with house.listen(who, path, last=last) as stream:
                for _ in range(chance.randrange(1, 40)):
                    event = await stream.next()
                    seen.append(event)
                    last = last if event.id is None else event.id
                    if ends(seen) == wanted:
                        break
        except (httpx2.RequestError, StopAsyncIteration):
            continue  # cut off: come back
    return seen


def messages(events: list[SentEvent], space: Space) -> list[tuple[int, str]]:
    told = [event.data for event in events if event.name == "message" and event.data["space_id"] == space.id]
    return [(each["seq"], each["text"]) for each in told]


@pytest.mark.parametrize("seed", range(2))
async def test_every_reader_sees_every_message_once_and_in_order(
    ready_postgres_url: str, redis_server: Server, seed: int
) -> None:
    chance = random.Random(seed)
    worlds = [World(ready_postgres_url, redis_url=redis_server.url, pace=UNHURRIED) for _ in range(2)]
    for world in worlds:
        await world.open()
    first, second = worlds
    people = [await first.person(name) for name in ("Noor", "Sam")]
    bot = await first.agent("Echo", model=forever(echo), handle="echo")
    rooms = [await first.space(name, *people, bot) for name in ("Hall", "Attic")]
    async with served(first) as here, served(second) as there, first.denizen.living() as residents:
        houses = [here, there]
        for who in people:
            there.secrets[who.id] = await here.token(who)
        async with here.listen(people[0], "/api/stream") as stream:
            start = (await stream.until("ready"))[-1].id

        async def post(who: Entity) -> None:
            for number in range(15):
                await chance.choice(houses).say(who, f"{who.name} {number}", chance.choice(rooms))

        async def break_redis() -> None:
            buses = [world.denizen.bus for world in worlds]
            await asyncio.to_thread(redis_server.stop)
            for bus in buses:
                assert isinstance(bus, RedisBus)
                await bus.disconnected()
            await asyncio.to_thread(redis_server.start)
            for world, bus in zip(worlds, buses, strict=True):
                assert isinstance(bus, RedisBus)
                while not bus.is_connected:
                    # It is tried again after a while, shorter than the time that it has to answer.
                    world.clock.skip(PROBE_SECONDS / 2)
                    await asyncio.sleep(0)

        async with asyncio.TaskGroup() as tasks:
            of_person = [
                tasks.create_task(read(houses, people[0], "/api/stream", start, 2, random.Random(f"{seed} {each}")))
                for each in range(3)
            ]
            of_space = [
                tasks.create_task(read(houses, people[1], f"/api/spaces/{room.id}/stream", 0, 1, random.Random(seed)))
                for room in rooms
            ]
            await asyncio.gather(*map(post, people), break_redis())
            await residents.run_until_idle()
            for room in rooms:
                await there.say(people[0], THE_END, room)
            everyone = [*of_person, *of_space]
            while not all(task.done() for task in everyone):
                # What was not hinted at is found at the next heartbeat.
                for world in worlds:
                    world.clock.skip(15)
                await asyncio.wait(everyone, timeout=0.02)

        said = {room.id: await first.denizen.spaces.messages(room) for room in rooms}
    for world in worlds:
        await world.close()
    expected = {id_: [(each.seq, each.text) for each in found] for id_, found in said.items()}
    texts = {str(each.id): each.text for found in said.values() for each in found}
    for task in of_person:
        for room in rooms:
            assert _before_the_end(messages(task.result(), room)) == _before_the_end(expected[SpaceId(room.id)])
        check_live_text(task.result(), texts)
    for task, room in zip(of_space, rooms, strict=True):
        assert _before_the_end(messages(task.result(), room)) == _before_the_end(expected[SpaceId(room.id)])


def _before_the_end(found: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """The agent may still answer what is said last."""
    at = next(index for index, (_, text) in enumerate(found) if text == THE_END)
    return found[: at + 1]
