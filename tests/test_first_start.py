"""The first world: made once, however many come to an empty database at the same moment."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest
from pydantic_ai.messages import ModelMessage

from denizen import Runtime, reply
from denizen.agents import registry
from denizen.agents.private_spaces import private_space
from denizen.first_start import set_up_home
from denizen.models.catalog import DEMO
from denizen.models.demo.model import demo
from denizen.models.scripted import Info, ScriptedModel, Turn, forever
from denizen.spaces import directory
from tests.world import as_text


async def test_instances_that_are_started_together_make_one_world(ready_url: str) -> None:
    """On PostgreSQL nothing else keeps them apart: each saw an empty database, and each made a house in it."""
    async with AsyncExitStack() as stack:
        runtimes = [await stack.enter_async_context(Runtime(ready_url)) for _ in range(4)]
        worlds = await asyncio.gather(*(set_up_home(each, "Noor") for each in runtimes))
        assert sorted(world.new for world in worlds) == [False, False, False, True]
        assert len({world.owner.id for world in worlds}) == 1
        assert len(await runtimes[0].db.read(directory.list_organizations)) == 1


async def test_its_private_rooms_are_those_that_every_way_in_leads_to(ready_sqlite_url: str) -> None:
    """A second room of the same two was made by the first request through HTTP, and `@ada` meant either."""
    async with Runtime(ready_sqlite_url) as runtime:
        owner = (await set_up_home(runtime, "Noor")).owner
        before = await runtime.db.read(directory.spaces_of, owner.id)
        for agent, _ in await runtime.db.read(registry.living_agents, owner.organization_id):
            await runtime.db.write(private_space, owner, agent)
        assert await runtime.db.read(directory.spaces_of, owner.id) == before


async def test_its_agents_say_what_they_are_for(ready_sqlite_url: str) -> None:
    """Whoever comes first read the beginning of their prompts: "You look after this house. You welcome …"."""
    async with Runtime(ready_sqlite_url) as runtime:
        owner = (await set_up_home(runtime, "Noor")).owner
        living = await runtime.db.read(registry.living_agents, owner.organization_id)
        assert all(agent.definition.purpose for agent, _ in living)


def chatty() -> ScriptedModel:
    """A model that answers everything it is shown."""

    def decide(messages: list[ModelMessage], _info: Info) -> Turn:
        return reply("Hi!") if as_text(messages[-1]).startswith("[INBOX") else "Said hi."

    return forever(decide)


@pytest.mark.parametrize("model", [chatty(), demo(pace=0)], ids=["chatty", "demo"])
async def test_hi_in_the_lobby_has_one_answer(ready_url: str, model: ScriptedModel) -> None:
    """It led to 144 messages of two agents that answered each other."""
    async with Runtime(ready_url, models={DEMO: model}) as runtime:
        owner = (await set_up_home(runtime, "Noor")).owner
        lobby = next(each for each in await runtime.db.read(directory.spaces_of, owner.id) if each.name == "Lobby")
        for number in (1, 2):
            await runtime.spaces.post(lobby, owner, "hi")
            await runtime.run_until_idle()
            authors = [message.author_name for message in await runtime.spaces.messages(lobby)]
            assert authors == ["Noor", "Ada"] * number
