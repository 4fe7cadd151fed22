"""Many agents that answer everything they see: a person is answered, and not drowned."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from pydantic_ai.messages import ModelMessage

from denizen import ManualClock, reply
from denizen.agents.registry import Agent
from denizen.models.scripted import Info, ScriptedModel, Turn, forever
from denizen.spaces.directory import AGENT_RUN_LIMIT, Entity, Floor, Space
from denizen.spaces.fan_out import HOP_BUDGET
from tests.world import World, as_text

AGENTS = 10
SLOWEST = 30.0
"""Seconds that a model takes at most."""
MODEL_CALLS = (HOP_BUDGET + 2) * AGENTS
"""What one message of a person may lead to: for each agent, every hop from 0 to the first that no longer wakes.

It holds for any timing: once agents no longer wake each other, each has at most the call under way, one for a preview,
one for the inbox, and the ends of two cycles before it; before that, there was a send and an end for each message.
"""
assert 2 * AGENT_RUN_LIMIT + 5 * AGENTS <= MODEL_CALLS


def answering(clock: ManualClock, seed: int) -> ScriptedModel:
    """A model that takes its time and answers everything that it is shown, also in the middle of a cycle."""
    random, answered = Random(seed), set[str]()

    async def decide(messages: list[ModelMessage], _info: Info) -> Turn:
        await clock.sleep(random.uniform(0.1, SLOWEST))
        shown = as_text(messages[-1])
        if shown.startswith("[INBOX") and shown not in answered:
            answered.add(shown)
            return reply("Me too!")
        return "Said something."

    return forever(decide)


async def let_time_pass(world: World) -> None:
    """Until everybody has done what there is to do; models take their time meanwhile."""
    running = asyncio.ensure_future(world.run())
    while not running.done():
        sleeping = asyncio.ensure_future(world.clock.sleeper(SLOWEST))
        await asyncio.wait({running, sleeping}, return_when=asyncio.FIRST_COMPLETED)
        sleeping.cancel()
        world.clock.skip(SLOWEST)
    await running


async def crowd(world: World, floor: Floor, seed: int) -> tuple[Entity, list[Agent], Space]:
    noor = await world.person("Noor")
    agents = [
        await world.agent(f"Agent {number}", model=answering(world.clock, seed * AGENTS + number))
        for number in range(AGENTS)
    ]
    return noor, agents, await world.space("Hall", noor, *agents, floor=floor)


async def said_after(world: World, noor: Entity, text: str, hall: Space) -> list[str]:
    """What is said after Noor has said this, until nobody has anything to do."""
    posted = await world.say(noor, text, hall)
    await let_time_pass(world)
    return [message.author_name for message in await world.denizen.spaces.messages(hall, after=posted.seq)]


def calls_of(world: World, agents: list[Agent]) -> int:
    return sum(len(world.model(each).requests) for each in agents)


@pytest.mark.parametrize("seed", range(3))
async def test_ten_agents_that_answer_everything_come_to_an_end(unhurried_world: World, seed: int):
    """Also while models take random time, and what comes meanwhile is seen in the middle of cycles."""
    world = unhurried_world
    noor, agents, hall = await crowd(world, "all", seed)
    for text in ("Hi", "Hi again"):
        before = calls_of(world, agents)
        assert set(await said_after(world, noor, text, hall)) == {each.entity.name for each in agents}
        assert calls_of(world, agents) - before <= MODEL_CALLS
        assert (await world.denizen.spaces.get(hall)).stopped


async def test_by_default_one_of_ten_answers(unhurried_world: World):
    """Where nobody was addressed, the first who joined; then who was addressed, and whoever spoke last."""
    world = unhurried_world
    noor, agents, hall = await crowd(world, "one", seed=0)
    said = [await said_after(world, noor, text, hall) for text in ("Hi", "@agent-7, and you?", "Good.")]
    assert said == [["Agent 0"], ["Agent 7"], ["Agent 7"]]
    assert calls_of(world, agents) == 6
    assert not (await world.denizen.spaces.get(hall)).stopped


async def test_agents_that_were_let_go_on_come_to_an_end_again(unhurried_world: World):
    world = unhurried_world
    noor, agents, hall = await crowd(world, "all", seed=7)
    await said_after(world, noor, "Hi", hall)
    before, said = calls_of(world, agents), len(await world.transcript(hall))
    await world.denizen.spaces.let_agents_go_on(hall, noor)
    await let_time_pass(world)
    assert len(await world.transcript(hall)) > said
    assert calls_of(world, agents) - before <= MODEL_CALLS
    assert (await world.denizen.spaces.get(hall)).stopped
