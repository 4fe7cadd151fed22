"""What the privacy guard adds to a turn: an agent with one private space answers elsewhere with 200 words.

    python -m bench.guard [--turns N] [--oldest CYCLES] [--database-url URL]

Two agents of the same age and past take turns in one process, one of which is in a private space as well. `ratio_N` is
the CPU of a turn of that one by that of the other, both with N cycles behind them. Words are drawn as in language: few
are common, many are rare.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import random
import tempfile
from pathlib import Path
from typing import Any

from pydantic_ai.messages import ModelMessage, ToolReturnPart

from bench.turn import io_and_cpu, turn
from denizen import Runtime, forever, reply
from denizen.bus.streams import agent_topic
from denizen.consciousness.recall.passages import Piece, remember
from denizen.cycles.catching_up import catch_up
from denizen.ids import AgentId
from denizen.models.scripted import Info
from denizen.spaces.directory import Entity, Space
from denizen.storage.database import Tx

AGES = (20, 400, 10_000)
WORDS, LONG, SHORT = 20_000, 200, 40
AT_ONCE = 500
WARM_UP = 10


class Talker:
    """Texts of so many words, each word as frequent as its rank says."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        syllables = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
        self._words = ["".join(self._random.choices(syllables, k=2 + at % 3)) for at in range(WORDS)]
        self._weights = [1 / (at + 3) for at in range(WORDS)]

    def text(self, words: int) -> str:
        return " ".join(self._random.choices(self._words, self._weights, k=words)) + "."


def write_past(tx: Tx, agent_id: AgentId, person: Entity, spaces: list[Space], talker: Talker, last: int) -> None:
    for number in range(1, last + 1):
        space = spaces[number % len(spaces)]
        heard = Piece("heard", talker.text(SHORT), tx.now, space.id, person.id, person.name)
        said = Piece("said", talker.text(SHORT), tx.now, space.id, agent_id)
        remember(tx, agent_id, number, [heard, said])


async def cost(url: str, age: int, turns: int, *, private: bool) -> float:
    """CPU milliseconds of a turn."""
    talker = Talker(7)

    def decide(messages: list[ModelMessage], _info: Info) -> Any:
        return "Done." if isinstance(messages[-1].parts[0], ToolReturnPart) else reply(talker.text(LONG))

    async with Runtime(url) as runtime:
        noor = await runtime.people.create("Noor")
        bo = await runtime.people.create("Bo")
        agent = await runtime.agents.create("Ada", model=forever(decide, chunk=None, record=False))
        home = await runtime.spaces.create("Home", [noor, bo, agent])
        den = await runtime.spaces.create("Den", [bo, agent], private=private)
        for first in range(0, age, AT_ONCE):
            await runtime.db.write(write_past, agent.id, bo, [home, den], talker, min(AT_ONCE, age - first))
        await catch_up(runtime.db, agent.id)
        async with runtime.living(), runtime.bus.subscribe(agent_topic(agent.id)) as life:
            for _ in range(WARM_UP):
                await turn(runtime, noor, home, life)
            await runtime.run_until_idle()
            gc.collect()
            before = io_and_cpu()
            for _ in range(turns):
                await turn(runtime, noor, home, life)
            after = io_and_cpu()
    return (after[0] - before[0]) / turns * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=100)
    parser.add_argument("--oldest", type=int, default=10_000)
    parser.add_argument("--database-url")
    given = parser.parse_args()
    told: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for age in (each for each in AGES if each <= given.oldest):
            both = [
                asyncio.run(
                    cost(
                        given.database_url or f"sqlite:///{Path(folder)}/{age}-{private}.db",
                        age,
                        given.turns,
                        private=private,
                    )
                )
                for private in (False, True)
            ]
            told |= {f"ms_{age}": round(both[0], 2), f"guarded_ms_{age}": round(both[1], 2)}
            told[f"ratio_{age}"] = round(both[1] / both[0], 2)
    print(json.dumps({"bench": "guard", **told}))


if __name__ == "__main__":
    main()
