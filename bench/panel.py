"""How much longer twelve advisors take than one, and what a streamed token costs us.

    python -m bench.panel [--tokens N] [--rate N] [--rounds 1 20]

A model behind a loopback port streams `rate` tokens a second over OpenAI's API, each as a chunk of its own. `ratio` is
the time of a round with 12 advisors over that of a round with one, measured to the commit of the last reply.
`cpu_us_per_token` is our CPU for each token that went through, the client of the model and a listening reader included.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from denizen import Runtime
from denizen.bus.streams import space_topic
from denizen.panel.panels import Panel
from denizen.spaces.directory import Entity

ADVISORS = 12


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--tokens", type=int, default=100)
    arguments.add_argument("--rate", type=float, default=50)
    arguments.add_argument("--rounds", type=int, nargs="*", default=[1, 20])
    print(json.dumps(asyncio.run(measure(arguments.parse_args()))))


async def measure(given: argparse.Namespace) -> dict[str, Any]:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    from denizen.models.openai import accelerate

    async with serving(given.tokens, given.rate) as port:
        provider = OpenAIProvider(base_url=f"http://127.0.0.1:{port}/v1", api_key="none")
        model = accelerate(OpenAIChatModel("loopback", provider=provider))
        with tempfile.TemporaryDirectory() as folder:
            async with Runtime(f"sqlite:///{Path(folder) / 'bench.db'}", models={"m": model}) as denizen:
                noor = await denizen.people.create("Noor")
                async with denizen.living():
                    alone = await open_panel(denizen, noor, 1)
                    await timed(denizen, noor, [alone])
                    single, _ = await timed(denizen, noor, [alone])
                    results: dict[str, Any] = {"bench": "panel", "single_seconds": round(single, 3)}
                    for count in given.rounds:
                        panels = [await open_panel(denizen, noor, ADVISORS) for _ in range(count)]
                        seconds, cpu = await timed(denizen, noor, panels)
                        tokens = count * ADVISORS * given.tokens
                        name = "" if count == 1 else f"_{count}_rounds"
                        results[f"ratio{name}"] = round(seconds / single, 3)
                        results[f"cpu_us_per_token{name}"] = round(cpu / tokens * 1e6, 1)
    return results


async def open_panel(denizen: Runtime, noor: Entity, advisors: int) -> Panel:
    names = [f"Advisor {number}" for number in range(advisors)]
    return await denizen.panels.create("Board", [noor], advisors=names, model="m")


async def timed(denizen: Runtime, noor: Entity, panels: list[Panel]) -> tuple[float, float]:
    """How long one round in each of these panels at the same time takes, in time and in CPU; all with a reader."""
    readers = [asyncio.create_task(read(denizen, panel)) for panel in panels]
    await asyncio.sleep(0.05)
    began, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(denizen.panels.ask(panel, noor, "Well?") for panel in panels))
    await asyncio.gather(*readers)
    spent = time.perf_counter() - began, time.process_time() - cpu
    for panel in panels:
        [*_, last] = await denizen.rounds.list(panel)
        assert all(each.state == "done" for each in last.spoken), [each.error for each in last.spoken]
    return spent


async def read(denizen: Runtime, panel: Panel) -> None:
    """Hear everything, until the round is complete."""
    before = len(await denizen.rounds.list(panel))
    async with denizen.bus.subscribe(space_topic(panel.id), limit=1_000_000) as frames:
        async for frame in frames:
            if getattr(frame, "payload", {}).get("type") != "round.changed":
                continue
            rounds = await denizen.rounds.list(panel)
            if len(rounds) > before and rounds[-1].all_completed:
                return


@asynccontextmanager
async def serving(tokens: int, rate: float):
    """A server in a process of its own, so that its CPU is not ours."""
    import sys

    script = str(Path(__file__).with_name("_streaming_model.py"))
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-P", script, str(tokens), str(rate), stdout=asyncio.subprocess.PIPE
    )
    assert child.stdout is not None
    try:
        yield int(await child.stdout.readline())
    finally:
        child.terminate()
        await child.wait()


if __name__ == "__main__":
    main()
