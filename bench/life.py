"""A long life, lived: what a cycle costs at its beginning and at its end.

    python -m bench.life [--cycles N] [--window TOKENS]

One agent lives N cycles through the public path: a message in, a model call, an answer, a model call, everything
committed; the model is scripted and answers at once. Around cycle 100, 1,000 and N it is measured what a cycle costs in
CPU and in KB written. Besides: the compactions on the way and how long each took inside its transaction, the size of
the database per cycle, and how long it takes at the end to load the agent's mind cold. `growth` is the CPU of a cycle
at the end by that at cycle 100.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from pydantic_ai.messages import ModelMessage, ToolReturnPart

from bench.age import Probe
from bench.turn import io_and_cpu
from denizen import Runtime, forever, reply
from denizen.agents.pace import Pace
from denizen.bus.port import Frame, Subscription
from denizen.bus.streams import agent_topic
from denizen.consciousness import compaction
from denizen.models.scripted import Info
from denizen.spaces.directory import Entity, Space

MEASURED = 60
"""Cycles over which a cost is averaged; the garbage of what came before is collected first."""
WORDS = ("kettle", "report", "lamp", "garden", "letter", "harbour", "budget", "violin", "invoice", "window", "bicycle")


class Talk:
    """What is said: each time something else, so that the index of a long life is that of a long life."""

    def __init__(self) -> None:
        self._chance = random.Random(1)

    def sentence(self, words: int) -> str:
        return " ".join(f"{self._chance.choice(WORDS)}{self._chance.randrange(300)}" for _ in range(words))

    def decide(self, messages: list[ModelMessage], _info: Info) -> Any:
        if isinstance(messages[-1].parts[0], ToolReturnPart):
            return f"Answered Noor about the {self.sentence(2)}. Nothing is pending."
        return reply(f"Of course: {self.sentence(20)}.")


async def live(path: Path, cycles: int, window: int, probe: Probe) -> dict[str, Any]:
    """A life, and what it cost at three ages."""
    talk, costs = Talk(), dict[str, dict[str, float]]()
    model = forever(talk.decide, chunk=None, record=False)
    async with Runtime(f"sqlite:///{path}", models={"script": model}) as runtime:
        person = await runtime.people.create("Noor")
        agent = await runtime.agents.create("Ada", model="script", window={"max_tokens": window})
        space = await runtime.spaces.create("Home", [person, agent])
        lived = 0
        async with runtime.living(), runtime.bus.subscribe(agent_topic(agent.id)) as life:
            for age in (100, 1_000, cycles):
                for _ in range(age - MEASURED - lived):
                    await turn(runtime, talk, person, space, life)
                gc.collect()
                before = io_and_cpu()
                for _ in range(MEASURED):
                    await turn(runtime, talk, person, space, life)
                after = io_and_cpu()
                lived = age
                costs[str(age)] = {
                    "cpu_ms": round((after[0] - before[0]) / MEASURED * 1000, 3),
                    "kb": round((after[1] - before[1]) / MEASURED / 1024, 1),
                }
    compactions = probe.told()
    return {
        "cycles": costs,
        "growth": round(costs[str(cycles)]["cpu_ms"] / costs["100"]["cpu_ms"], 3),
        "compactions": len(compactions),
        "compaction_ms": round(statistics.median(compactions), 2) if compactions else None,
        "compaction_ms_most": round(max(compactions), 2) if compactions else None,
        "database_kb_per_cycle": round(_size(path) / cycles / 1024, 2),
        "cold_ms": round(await cold(path, talk, space, person), 2),
    }


def _size(path: Path) -> int:
    return path.stat().st_size


async def turn(runtime: Runtime, talk: Talk, person: Entity, space: Space, life: Subscription) -> None:
    await runtime.spaces.post(space, person, f"Noor asks about the {talk.sentence(20)}?")
    async for frame in life:
        if isinstance(frame, Frame) and frame.payload.get("status") == "sleeping":
            return


async def cold(path: Path, talk: Talk, space: Space, person: Entity) -> float:
    """From the post to the model's first call, in a process that has the agent not in memory: the middle of five."""
    asked: list[float] = []

    def decide(messages: list[ModelMessage], info: Info) -> Any:
        asked.append(time.perf_counter())
        return talk.decide(messages, info)

    waits: list[float] = []
    model = forever(decide, chunk=None, record=False)
    house = Runtime(f"sqlite:///{path}", models={"script": model}, pace=Pace(warm_seconds=0))
    async with house as runtime, runtime.living() as residents:
        for _ in range(5):
            asked.clear()
            posted = time.perf_counter()
            await runtime.spaces.post(space, person, f"Noor asks about the {talk.sentence(20)}?")
            await residents.run_until_idle()
            waits.append((asked[0] - posted) * 1000)
    return statistics.median(waits)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", type=int, default=20_000)
    parser.add_argument("--window", type=int, default=30_000)
    given = parser.parse_args()
    probe = Probe(compaction.compact)
    compaction.compact = probe
    with tempfile.TemporaryDirectory() as folder:
        result = asyncio.run(live(Path(folder) / "life.db", given.cycles, given.window, probe))
    print(json.dumps({"bench": "life", **result}))


if __name__ == "__main__":
    main()
