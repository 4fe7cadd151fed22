"""How long an agent takes to begin thinking: from the call of `post` to the call of its model.

    python -m bench.wake [--posts N] [--agents N] [--database-url URL]

A warm agent has its mind in memory; a cold one is rows in the database, with a hundred messages behind it, and is
brought to life by the post. Once there is one agent, once there are `--agents` of them, all of them alive when warm.
The commit of the post, fsync included, is part of the time. Posts come one after the other, to agents at random.
`cpu` is the CPU time of the process in between: on a busy machine it says more than the time.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import statistics
import tempfile
import time
from pathlib import Path

from bench._life import age
from bench.turn import Asked, household, turn
from denizen import Runtime
from denizen.agents.pace import Pace
from denizen.agents.registry import Agent
from denizen.bus.port import Subscription
from denizen.bus.streams import agent_topic
from denizen.server.running import run_server
from denizen.spaces.directory import Entity, Space

COLD = Pace(warm_seconds=0)
"""An agent lets go as soon as its cycle has ended."""
WARM = Pace(warm_seconds=3_600)
PAST_MESSAGES = 100

Home = tuple[Asked, Entity, Agent, Space]


async def measured(url: str, agents: int, posts: int, pace: Pace, chance: random.Random) -> dict[str, float]:
    """The time to the model's call, in milliseconds: half of the posts take at most p50, 99 of 100 at most p99."""
    async with Runtime(url, pace=pace) as runtime:
        homes = [await _home(runtime, number) for number in range(agents)]
        async with runtime.living() as residents:
            for _, person, _, space in homes if pace is WARM else homes[:20]:
                await runtime.spaces.post(space, person, "Good morning.")
            await residents.run_until_idle()
            gc.collect()
            waits = [await _wait(runtime, chance.choice(homes)) for _ in range(posts)]
    cuts, cpu = (statistics.quantiles(those, n=100) for those in zip(*waits, strict=True))
    return {
        "p50_ms": round(cuts[49], 3),
        "p99_ms": round(cuts[98], 3),
        "cpu_p50_ms": round(cpu[49], 3),
        "cpu_p99_ms": round(cpu[98], 3),
    }


async def _home(runtime: Runtime, number: int) -> Home:
    asked = Asked()
    person, agent, space = await household(runtime, asked, number)
    await age(runtime, agent, PAST_MESSAGES)
    return asked, person, agent, space


async def _wait(runtime: Runtime, home: Home) -> tuple[float, float]:
    asked, person, agent, space = home
    async with runtime.bus.subscribe(agent_topic(agent.id)) as life:
        return await _turn(runtime, asked, person, space, life)


async def _turn(
    runtime: Runtime, asked: Asked, person: Entity, space: Space, life: Subscription
) -> tuple[float, float]:
    posted, cpu = time.perf_counter(), time.process_time()
    await turn(runtime, person, space, life)
    return (asked.at - posted) * 1000, (asked.cpu_at - cpu) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posts", type=int, default=500)
    parser.add_argument("--agents", type=int, default=1_000)
    parser.add_argument("--database-url", help="an empty database, for a single measurement of `--agents` warm ones")
    given = parser.parse_args()
    chance = random.Random(1)
    result: dict[str, object] = {"bench": "wake", "posts": given.posts}
    with tempfile.TemporaryDirectory() as folder:
        if given.database_url is not None:
            found = run_server(measured(given.database_url, given.agents, given.posts, WARM, chance))
            result[f"warm_{given.agents}"] = found
        else:
            for agents in (1, given.agents):
                for name, pace in (("warm", WARM), ("cold", COLD)):
                    url = f"sqlite:///{Path(folder)}/{name}-{agents}.db"
                    result[f"{name}_{agents}"] = run_server(measured(url, agents, given.posts, pace, chance))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
