"""A kitchen in which an agent reflects on what Noor says."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic_ai.messages import ModelMessage

from denizen import reply, scripted
from denizen.agents.registry import Agent
from denizen.models.scripted import Info, ScriptedModel, Turn, forever
from denizen.spaces.directory import Entity, Space
from tests.world import World

CROSS = "I hate this, it is terrible and awful."
INTERVAL = {"id": "look_back", "prompt_template": "{{evidence}}", "model": "utility",
            "trigger": {"type": "turn_interval", "interval_turns": 3}}  # fmt: skip


class Pondering:
    """A model that answers metaprompts when it may, always the same."""

    def __init__(self, *answers: Turn) -> None:
        self.begun, self.may_answer = asyncio.Event(), asyncio.Event()
        self.model = forever(self._answer, name="utility")
        self._answers = answers

    async def _answer(self, _messages: list[ModelMessage], _info: Info) -> Turn:
        self.begun.set()
        await self.may_answer.wait()
        return self._answers[min(len(self.model.requests), len(self._answers)) - 1]


def utility(world: World, *turns: Any, model: ScriptedModel | None = None) -> ScriptedModel:
    """The model that answers metaprompts."""
    found = model or scripted(*turns, name="utility")
    world.denizen.models.register("utility", found)
    return found


def ponder(world: World, *answers: Turn) -> Pondering:
    """Metaprompts are asked of a model that answers them when it may."""
    pondering = Pondering(*answers)
    utility(world, model=pondering.model)
    return pondering


async def kitchen(world: World, turns: int = 10, **reflection: Any) -> tuple[Agent, Entity, Space]:
    settings = {"profile": "basic", "model": "utility", **reflection}
    ada = await world.agent("Ada", *[reply("I see."), "Done."] * turns, reflection=settings)
    noor = await world.person("Noor")
    return ada, noor, await world.space("Kitchen", noor, ada)


async def say(world: World, noor: Entity, where: Space, *texts: str) -> None:
    for text in texts:
        await world.say(noor, text, where)
        await world.run()


async def runs(world: World, ada: Agent, room: Space) -> list[tuple[int | None, str | None, str, str]]:
    found = await world.denizen.reflection.states_of_mind(ada, room)
    return [(each.cycle, each.metaprompt, each.cause, each.outcome) for each in reversed(found)]
