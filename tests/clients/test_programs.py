"""Agents for the programs that people have: each runs unmodified against a real server."""

from __future__ import annotations

from pathlib import Path

import pytest

from denizen import call, reply
from tests.clients.conftest import run_program
from tests.server.conftest import House, served
from tests.server.test_openai import Compass
from tests.world import open_world


async def test_langchain_with_tools_and_structured_output(client_python: Path) -> None:
    greeting, counting = (reply("Hello, Noor."), "Greeted."), (reply("One two three."), "Counted.")
    weather = (call("weather", town="Oslo"), reply("It rains."), "Told Noor.")
    async with open_world("sqlite://") as world, served(world) as house, world.denizen.living():
        noor = await world.person("Noor")
        verdict = reply('{"passed": true, "tests": 3}')
        ada = await world.agent("Ada", *greeting, *counting, *weather, verdict, "Told the program.")
        told = await run_program(client_python, "langchain_tools.py", house, await house.token(noor))
        cycles = await world.cycles(ada)
    assert told == {
        "plain": "Hello, Noor.",
        "streamed": "One two three.",
        "told": "It rains.",
        "verdict": {"passed": True, "tests": 3},
    }
    assert len(cycles) >= 3


async def test_embeddings_of_langchain(client_python: Path) -> None:
    async with open_world("sqlite://", embedder=Compass()) as world, served(world) as house:
        token = await house.token(await world.person("Noor"))
        told = await run_program(client_python, "langchain_embeddings.py", house, token)
    vectors = [pytest.approx([1, 0]), pytest.approx([0.6, -0.8])]
    assert told == {"tokens": vectors, "texts": vectors}


async def test_litellm(client_python: Path) -> None:
    house: House
    async with open_world("sqlite://") as world, served(world) as house, world.denizen.living():
        noor = await world.person("Noor")
        await world.agent("Ada", reply("Hello, Noor."), "Greeted.", reply("One two three."), "Counted.")
        told = await run_program(client_python, "litellm_chat.py", house, await house.token(noor))
    assert told == {"plain": "Hello, Noor.", "streamed": "One two three."}


async def test_llm(client_python: Path) -> None:
    async with open_world("sqlite://") as world, served(world) as house, world.denizen.living():
        noor = await world.person("Noor")
        await world.agent("Ada", reply("Hello, Noor."), "Greeted.", reply("One two three."), "Counted.")
        told = await run_program(client_python, "llm_chat.py", house, await house.token(noor))
    assert told == {"plain": "Hello, Noor.", "streamed": "One two three."}


async def test_openai_for_javascript(client_node: Path) -> None:
    weather = (call("weather", town="Oslo"), reply("It rains."), "Told Noor.")
    async with open_world("sqlite://") as world, served(world) as house, world.denizen.living():
        noor = await world.person("Noor")
        greeting, counting = (reply("Hello, Noor."), "Greeted."), (reply("One two three."), "Counted.")
        await world.agent("Ada", *greeting, *counting, *weather, reply("Bye."), "Said goodbye.")
        told = await run_program(client_node, "openai_npm.mjs", house, await house.token(noor))
    assert told == {"plain": "Hello, Noor.", "streamed": "One two three.", "told": "It rains.", "responded": "Bye."}


async def test_the_vercel_ai_sdk(client_node: Path) -> None:
    weather = (call("weather", town="Oslo"), reply("It rains."), "Told Noor.")
    async with open_world("sqlite://") as world, served(world) as house, world.denizen.living():
        noor = await world.person("Noor")
        greeting, counting = (reply("Hello, Noor."), "Greeted."), (reply("One two three."), "Counted.")
        verdict = (reply('{"passed": true, "tests": 3}'), "Told the program.")
        await world.agent("Ada", *greeting, *counting, *weather, *verdict)
        told = await run_program(client_node, "vercel.mjs", house, await house.token(noor))
    assert told == {
        "plain": "Hello, Noor.",
        "streamed": "One two three.",
        "told": "It rains.",
        "verdict": {"passed": True, "tests": 3},
    }
