"""The examples as stories: their files are applied to a house of the test's own, and scripted models play the roles."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from pydantic_ai.messages import ModelMessage

from denizen import ManualClock, Runtime, forever
from denizen.agents.registry import Agent
from denizen.cli.apply import read_paths
from denizen.models.demo.model import demo
from denizen.models.scripted import Info, ScriptedModel, Turn
from denizen.spaces import directory
from denizen.spaces.directory import Entity, Space
from tests.fresh import ROOT
from tests.world import as_text

EXAMPLES = ROOT / "examples"


@dataclass(frozen=True)
class House:
    """An example that was applied by Noor, and the clock of its house."""

    denizen: Runtime
    clock: ManualClock
    noor: Entity

    async def space(self, name: str) -> Space:
        spaces = await self.denizen.db.read(directory.spaces_of, self.noor.id)
        return next(each for each in spaces if each.name == name)

    async def agent(self, handle: str) -> Agent:
        return await self.denizen.agents.get((await self.denizen.people.find(handle)).id)

    async def say(self, where: str, text: str) -> None:
        """Noor says something, and everyone does what there is to do."""
        await self.denizen.spaces.post(await self.space(where), self.noor, text)
        await self.denizen.run_until_idle()

    async def transcript(self, where: str) -> list[str]:
        return await self.denizen.spaces.transcript(await self.space(where))


@asynccontextmanager
async def playing(example: str, url: str, model: ScriptedModel | None = None, **options: Any) -> AsyncGenerator[House]:
    """Inside, the agents of the example are there, thinking with this model or with the demo model."""
    clock = ManualClock()
    models = {"demo": demo(pace=0)} if model is None else {"played": model}
    name = "demo" if model is None else "played"
    async with Runtime(url, clock=clock, models=models, default_model=name, **options) as denizen:
        noor = await denizen.people.create("Noor")
        await denizen.agents.apply(read_paths([str(EXAMPLES / example / "agents.yaml")]), creator=noor)
        yield House(denizen, clock, noor)


def cast(**roles: list[Turn]) -> ScriptedModel:
    """A model for several agents: each is asked by its handle, and answers with its own lines in turn."""
    lines = {handle: iter(turns) for handle, turns in roles.items()}

    def decide(messages: list[ModelMessage], _: Info) -> Turn:
        return next(lines[handle_in(messages)])

    return forever(decide)


def handle_in(messages: list[ModelMessage]) -> str:
    """Of the agent whose request this is."""
    found = re.search(r"handle: @(\S+)", as_text(messages[0]))
    assert found is not None
    return found[1]


def space_id_in(messages: list[ModelMessage], name: str) -> str:
    """As the self tells it."""
    found = re.search(rf'"{name}" \(id: ([\w-]+)', as_text(messages[0]))
    assert found is not None
    return found[1]
