"""The bus carries hints: without any of them, and with a Redis that comes and goes, everything happens, and once."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from pydantic import JsonValue
from pydantic_ai.messages import ModelMessage

from denizen.agents.pace import SWEEP_SECONDS, Pace
from denizen.agents.registry import Agent
from denizen.app import Runtime
from denizen.bus.hearing import hearing_others
from denizen.bus.local import LocalBus
from denizen.bus.streams import WAKE, woken
from denizen.clock import ManualClock
from denizen.models.scripted import Info, Turn, call, forever, reply, skip
from denizen.spaces.directory import Entity, Space
from denizen.storage.database import Announcement
from tests.properties.house import unfinished, violations
from tests.servers import Server

ROOMS = 3


class DeafRuntime(Runtime):
    """It hears of nothing: every hint, its own as well, is lost."""

    def _announce(self, announcements: Sequence[Announcement]) -> None:
        pass


def answer(messages: list[ModelMessage], _: Info) -> Turn:
    """Answer each question of the inbox, then say that it is done; skip where there is none."""
    last = str(getattr(messages[-1].parts[0], "content", ""))
    if "[INBOX - " not in last:
        return "Answered."
    asked = re.findall(r"spaceId: ([\w-]+).*(question-\d+)", last)
    said = [(call("enter_space", space_id=room), reply(each.replace("question", "answer"))) for room, each in asked]
    return [piece for both in said for piece in both] or skip()


@asynccontextmanager
async def house(runtimes: Sequence[Runtime]) -> AsyncGenerator[tuple[Entity, list[Agent], list[Space]]]:
    """People and agents in rooms, and these runtimes open."""
    async with AsyncExitStack() as stack:
        for each in runtimes:
            await stack.enter_async_context(each)
        first = runtimes[0]
        noor = await first.people.create("Noor")
        agents = [await first.agents.create(f"Agent {at}", model="answering") for at in range(ROOMS)]
        # Each agent hears the answers of another, so that they wake each other too.
        rooms = [
            await first.spaces.create(f"Room {at}", [noor, agents[at], agents[(at + 1) % ROOMS]], floor="all")
            for at in range(ROOMS)
        ]
        yield noor, agents, rooms


async def answers(denizen: Runtime, rooms: Sequence[Space]) -> Counter[tuple[str, str]]:
    """How often each agent has given each answer."""
    found: Counter[tuple[str, str]] = Counter()
    for room in rooms:
        for message in await denizen.spaces.messages(room):
            if message.author_kind == "agent":
                found.update((message.author_id, each) for each in message.text.split())
    return found


def expected(agents: Sequence[Agent], questions: int) -> Counter[tuple[str, str]]:
    """Two agents are in each room, and each answers once."""
    both = ((agents[at % ROOMS], agents[(at + 1) % ROOMS]) for at in range(questions))
    return Counter((agent.id, f"answer-{at}") for at, pair in enumerate(both) for agent in pair)


@pytest.mark.parametrize("processes", [1, 2])
async def test_sweeping_alone_finds_everything(ready_url: str, processes: int) -> None:
    clock = ManualClock()
    models = {"answering": forever(answer)}
    # No lease ends, however often the clock is moved while they think.
    pace = Pace(lease_seconds=10_000_000)
    runtimes = [DeafRuntime(ready_url, clock=clock, models=models, pace=pace) for _ in range(processes)]
    async with house(runtimes) as (noor, agents, rooms), AsyncExitStack() as living:
        for each in runtimes:
            await living.enter_async_context(each.living())
        for number in range(9):
            await runtimes[number % processes].spaces.post(rooms[number % ROOMS], noor, f"question-{number}")
            if number % 4 == 3:
                clock.advance(SWEEP_SECONDS)
        async with asyncio.timeout(200):
            while await runtimes[0].db.read(unfinished):
                clock.advance(SWEEP_SECONDS)
        assert await answers(runtimes[0], rooms) == expected(agents, 9)
        assert not await runtimes[0].db.read(violations)


async def test_nothing_happens_without_a_sweep_if_every_hint_is_lost(ready_sqlite_url: str) -> None:
    """The test above tests something: without hints and without time passing, the agents sleep on."""
    runtime = DeafRuntime(ready_sqlite_url, clock=ManualClock(), models={"answering": forever(answer)})
    async with house([runtime]) as (noor, _, rooms), runtime.living():
        await runtime.spaces.post(rooms[0], noor, "question-0")
        for _ in range(20):
            assert await runtime.db.read(unfinished)


async def test_whoever_cannot_follow_the_hints_begins_to_listen_anew(ready_sqlite_url: str) -> None:
    """More of them than it could hear ended the whole house."""
    runtime = DeafRuntime(ready_sqlite_url, clock=ManualClock(), models={"answering": forever(answer)})
    bus = LocalBus()

    def wake(payload: Mapping[str, JsonValue]) -> None:
        for agent_id in woken(payload):
            residents.hint(agent_id)

    async with (
        house([runtime]) as (noor, agents, rooms),
        runtime.living() as residents,
        hearing_others(bus, WAKE, "here", wake, missed=lambda: None, most_unheard=10),
    ):
        for _ in range(11):
            bus.publish(WAKE, {"agents": []})
        assert not bus.attention(WAKE)
        while not bus.attention(WAKE):
            await runtime.spaces.post(rooms[0], noor, "question-0")
        bus.publish(WAKE, {"agents": [agents[0].id], "by": "elsewhere"})
        async with asyncio.timeout(200):
            while not await answers(runtime, rooms):
                pass


async def test_a_redis_that_comes_and_goes_delays_and_loses_nothing(
    ready_postgres_url: str, redis_server: Server
) -> None:
    models = {"answering": forever(answer)}
    pace = Pace(warm_seconds=0.3, sweep_seconds=0.1)
    runtimes = [Runtime(ready_postgres_url, redis_url=redis_server.url, models=models, pace=pace) for _ in range(2)]
    async with house(runtimes) as (noor, agents, rooms), AsyncExitStack() as living:
        for each in runtimes:
            await living.enter_async_context(each.living())

        async def ask(first: int, last: int) -> None:
            await asyncio.gather(
                *(
                    runtimes[number % 2].spaces.post(rooms[number % ROOMS], noor, f"question-{number}")
                    for number in range(first, last)
                )
            )

        async def all_answered(questions: int) -> None:
            async with asyncio.timeout(200):
                while not expected(agents, questions) <= await answers(runtimes[0], rooms):
                    await runtimes[0].clock.sleep(0.02)

        await ask(0, 6)
        await asyncio.to_thread(redis_server.stop)
        await ask(6, 12)
        await all_answered(12)
        await asyncio.to_thread(redis_server.start)
        await ask(12, 18)
        await asyncio.to_thread(redis_server.stop)
        await asyncio.to_thread(redis_server.start)
        await ask(18, 24)
        await all_answered(24)
        async with asyncio.timeout(200):
            while await runtimes[0].db.read(unfinished):
                await runtimes[0].clock.sleep(0.02)
        assert await answers(runtimes[0], rooms) == expected(agents, 24)
        assert not await runtimes[0].db.read(violations)
