"""How many messages per second a space takes whose every message goes into the inboxes of many agents.

    python -m bench.fanout [--agents N] [--messages N] [--at-once N] [--database-url URL]

Each message and its events are one durable transaction. `single` posts one after the other, `concurrent` many at once,
as people do. Nobody thinks meanwhile: only posting is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Awaitable

from bench._life import TEXT
from denizen import Runtime


async def measure(url: str, agents: int, messages: int, at_once: int) -> dict[str, object]:
    async with Runtime(url) as runtime:
        person = await runtime.people.create("Noor")
        crowd = [await runtime.agents.create(f"Agent {number}") for number in range(agents)]
        space = await runtime.spaces.create("Square", [person, *crowd], floor="all")

        async def post(count: int) -> None:
            for _ in range(count):
                await runtime.spaces.post(space, person, TEXT)

        await post(20)
        single = await rate(post(messages), messages)
        together = asyncio.gather(*(post(messages // at_once) for _ in range(at_once)))
        concurrent = await rate(together, messages // at_once * at_once)
        waiting = len(await runtime.minds.inbox(crowd[-1]))
        assert waiting == min(200, 20 + messages + messages // at_once * at_once), waiting
        return {"bench": "fanout", "agents": agents, "single": single, "concurrent": concurrent}


async def rate(work: Awaitable[object], messages: int) -> dict[str, float]:
    began, cpu = time.perf_counter(), time.process_time()
    await work
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    return {"messages_per_s": round(messages / seconds, 1), "cpu_ms": round(cpu / messages * 1000, 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=50)
    parser.add_argument("--messages", type=int, default=400)
    parser.add_argument("--at-once", type=int, default=50)
    parser.add_argument("--database-url")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = given.database_url or f"sqlite:///{folder}/fanout.db"
        print(json.dumps(asyncio.run(measure(url, given.agents, given.messages, given.at_once))))


if __name__ == "__main__":
    main()
