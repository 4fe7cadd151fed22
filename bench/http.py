"""What a turn costs with a model behind HTTP at a full window, beside what HTTP alone costs.

    python -m bench.http [--messages N] [--turns N] [--tokens N]

A server on loopback, in a process of its own, streams an answer over OpenAI's API. The agent has so many messages of
1,200 characters in its window, and each turn is one request. Turn by turn beside it, the same bytes are sent with httpx
alone, and the answer is read and thrown away: that is the floor. The third figure is the same turn with a scripted
model, so that what remains of the first is mapping, encoding, sending and parsing. All are CPU of this process.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2

from bench._life import TEXT, age
from bench.panel import serving
from denizen import Runtime, forever
from denizen.bus.port import Frame
from denizen.bus.streams import agent_topic

WARM_UP = 5


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--messages", type=int, default=228, help="about 300 tokens each")
    arguments.add_argument("--turns", type=int, default=30)
    arguments.add_argument("--tokens", type=int, default=40, help="of each answer")
    print(json.dumps(asyncio.run(measure(arguments.parse_args()))))


async def measure(given: argparse.Namespace) -> dict[str, Any]:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    bodies: list[bytes] = []

    async def keep(request: httpx2.Request) -> None:
        bodies[:] = [request.content]

    async with serving(given.tokens, 1_000_000) as port, httpx2.AsyncClient(event_hooks={"request": [keep]}) as client:
        url = f"http://127.0.0.1:{port}/v1"
        model = OpenAIChatModel("loopback", provider=OpenAIProvider(base_url=url, api_key="none", http_client=client))

        async def raw() -> None:
            how = {"content": bodies[0], "headers": {"Content-Type": "application/json"}}
            async with client.stream("POST", f"{url}/chat/completions", **how) as answer:
                async for _ in answer.aiter_bytes():
                    pass

        with tempfile.TemporaryDirectory() as folder:
            over_http = await turns(Path(folder) / "http.db", model, given, beside=raw)
            scripted = await turns(
                Path(folder) / "scripted.db", forever(lambda _messages, _info: "All is well.", record=False), given
            )
    return {
        "bench": "http",
        "body_kb": round(len(bodies[0]) / 1024),
        "turn_cpu_ms": over_http[0],
        "raw_cpu_ms": over_http[1],
        "scripted_cpu_ms": scripted[0],
        "ratio": round((over_http[0] - scripted[0]) / over_http[1], 2),
    }


async def turns(
    path: Path, model: Any, given: argparse.Namespace, beside: Callable[[], Awaitable[None]] | None = None
) -> tuple[float, float]:
    """The CPU of a turn, and of what is done beside it, in milliseconds: medians."""
    spent: list[float] = []
    spent_beside: list[float] = []
    async with Runtime(f"sqlite:///{path}") as denizen:
        noor = await denizen.people.create("Noor")
        ada = await denizen.agents.create("Ada", model=model, cycle={"silent_reply": "deliver"})
        home = await denizen.spaces.create("Home", [noor, ada])
        await age(denizen, ada, given.messages)

        async def turn() -> None:
            await denizen.spaces.post(home, noor, TEXT[:200])
            async for frame in life:
                if isinstance(frame, Frame) and frame.payload.get("status") == "sleeping":
                    return

        async with denizen.living(), denizen.bus.subscribe(agent_topic(ada.id)) as life:
            for number in range(WARM_UP + given.turns):
                if number == WARM_UP:
                    gc.collect()
                    spent.clear()
                    spent_beside.clear()
                spent.append(await cpu_of(turn))
                if beside is not None:
                    spent_beside.append(await cpu_of(beside))
        said = await denizen.spaces.transcript(home)
        assert len(said) == 2 * (WARM_UP + given.turns), said[-1]
    return _median(spent), _median(spent_beside)


async def cpu_of(what: Callable[[], Awaitable[None]]) -> float:
    began = time.process_time()
    await what()
    return time.process_time() - began


def _median(seconds: list[float]) -> float:
    return round(statistics.median(seconds) * 1000, 2) if seconds else 0.0


if __name__ == "__main__":
    main()
