"""A life in which everything happens that shapes a request: for tests that build its past again."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse

from denizen import call, forever, reply, skip, tool
from denizen.agents.registry import Agent
from denizen.models import codec
from denizen.models.scripted import Info, ScriptedModel, Turn
from denizen.spaces.directory import Entity, Space
from tests.world import World, as_text

ROOM = {"max_tokens": 9_500, "output_tokens": 256, "min_recent_cycles": 2}
"""A window so small that cycles leave it."""


def deciding(messages: list[ModelMessage], info: Info) -> Turn:
    """Does as it is told, and numbers everything it says by the request that it answers."""
    inboxes = [at for at, each in enumerate(messages) if as_text(each).startswith("[INBOX - ")]
    steps = sum(isinstance(each, ModelResponse) for each in messages[inboxes[-1] :])
    told, number = as_text(messages[inboxes[-1]]), f"#{info.number}"
    if as_text(messages[-1]).startswith("[REMINDER]"):
        return reply(f"Sorry. {number}")
    if steps == 0 and "skip" in told:
        return skip(number)
    if steps == 0 and "work" in told:
        return call("work", urgently="urgently" in told, number=number)
    if steps == 0 and "silent" in told:
        return f"Nobody hears this. {number}"
    if steps <= 1 and not as_text(messages[-1]).startswith("send_message"):
        return reply(f"Answer {number} " + "so it is and so on " * 30)
    return f"Answered Noor. {number}"


@dataclass
class Past:
    """An agent that has lived, and what its model was really sent."""

    world: World
    ada: Agent
    noor: Entity
    hall: Space

    @property
    def model(self) -> ScriptedModel:
        return self.world.model(self.ada)

    async def hear(self, *texts: str) -> None:
        for text in texts:
            await self.world.say(self.noor, text, self.hall)
            await self.world.run()


async def new_life(world: World, **definition: Any) -> Past:
    """An agent with a small window whose first step is in a strict phase."""

    @tool
    async def work(urgently: bool, number: str) -> str:
        """Work."""
        await world.say(
            past.noor, f"By the way, something else has come up about {number}.", past.hall, urgent=urgently
        )
        return f"worked {number} " + "z" * 1_000

    phases = [{"until_step": 0, "tools": ["work", "send_message"], "strict": True}]
    given = {"window": ROOM, "cycle": {"phases": phases}, **definition}
    ada = await world.agent("Ada", model=forever(deciding), tools=[work], **given)
    noor = await world.person("Noor")
    past = Past(world, ada, noor, await world.space("Hall", noor, ada))
    return past


async def eventful_life(world: World) -> Past:
    """Previews, updates, reminders, skips, restarts, windows that move and what is compacted then."""
    past = await new_life(world)
    await past.hear("Hello!", "work", "silent, please", "skip this", "work urgently")
    # Nobody waits for an answer to this: the skip leaves no trace.
    await world.denizen.agents.trigger(past.ada, "bell", text="skip this too")
    await world.run()
    await world.restart()
    for number in range(6):
        await past.hear(f"Tell me about number {number}. " + "And so on. " * 40, "work")
    world.clock.advance(1_000)
    await world.denizen.goals.set(past.ada, "Be kind.")
    await past.hear("Good night.", "silent, please")
    return past


def bare(messages: Sequence[ModelMessage]) -> list[Any]:
    """Messages without the times at which they were put together."""
    return [_bare(json.loads(codec.dump(each))) for each in messages]


def _bare(dumped: dict[str, Any]) -> dict[str, Any]:
    parts = [{name: value for name, value in part.items() if name != "timestamp"} for part in dumped["parts"]]
    return {**{name: value for name, value in dumped.items() if name != "timestamp"}, "parts": parts}


def number_of(response: ModelResponse) -> int:
    """Which request of its model a response answers."""
    return int(re.findall(r"#(\d+)", as_text(response))[-1])
