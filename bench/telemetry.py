"""What watching costs: the CPU time of a durable turn when nothing is told, when it is counted, and when it is traced.

    python -m bench.telemetry [--turns N]

The ways take turns, one agent each, all in one process, so that whatever else the machine does falls on all of them.
Told are the medians over the turns, and those of each turn's ratio to its neighbour under `off`. Spans are sent to a
collector in another process, which throws them away; the thread that sends them works once for hundreds of turns, so
that a median leaves it out.

`off_share` is the share of a turn that goes into asking whether anybody watches when nobody does. It is far too small
to be seen beside a turn without it; so one way asks everything `TIMES` times, and what that adds is divided.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import structlog
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models import Model

from bench.turn import Asked, household, turn
from denizen import Runtime
from denizen.bus.streams import agent_topic
from denizen.cycles import cycle as cycles
from denizen.cycles.ledger import Charge
from denizen.cycles.outcome import CycleOutcome
from denizen.cycles.watching import Watch, WatchedRequest
from denizen.telemetry.metrics import Metrics
from denizen.telemetry.telemetry import OFF, Telemetry
from denizen.telemetry.traces import Tracer, under
from denizen.tools.effects import EffectRecord

WARM_UP = 50
TIMES = 50


class OffManyTimes(Watch):
    """A watch for nobody, which does everything that such a one does `TIMES` times."""

    def __init__(self, *of: Any) -> None:
        for _ in range(TIMES):
            super().__init__(*of)

    def __enter__(self) -> Watch:
        for _ in range(TIMES):
            super().__enter__()
            # What `think` does for the log lines of a cycle.
            bound = structlog.contextvars.bind_contextvars(cycle=self._cycle.id)
            structlog.contextvars.reset_contextvars(**bound)
        return self

    def __exit__(self, *error: Any) -> None:
        for _ in range(TIMES):
            super().__exit__(*error)

    def ended(self, outcome: CycleOutcome) -> None:
        for _ in range(TIMES):
            super().ended(outcome)

    def paid(self, charge: Charge) -> None:
        for _ in range(TIMES):
            super().paid(charge)

    def ask(self, model: Model, name: str, step: int, attempt: int) -> WatchedRequest:
        for _ in range(TIMES):
            asking = super().ask(model, name, step, attempt)
            with under(asking.span):
                pass
        return AskManyTimes(None, None, name, content=False)

    def carried_out(
        self, calls: Sequence[ToolCallPart], effects: Iterable[EffectRecord], outside: Iterable[int], began: float
    ) -> None:
        for _ in range(TIMES):
            super().carried_out(calls, effects, outside, began)


class AskManyTimes(WatchedRequest):
    """The same for one request."""

    def heard(self) -> None:
        for _ in range(TIMES):
            super().heard()

    def answered(self, response: ModelResponse) -> None:
        for _ in range(TIMES):
            super().answered(response)


MANY_TIMES = Telemetry()


def _watch(telemetry: Telemetry, *of: Any, content: bool) -> Watch:
    return OffManyTimes(telemetry, *of) if telemetry is MANY_TIMES else Watch(telemetry, *of, content=content)


async def measured(folder: Path, ways: dict[str, Telemetry], turns: int) -> dict[str, list[float]]:
    """Milliseconds of CPU of each turn."""
    async with AsyncExitStack() as stack:
        homes: dict[str, Any] = {}
        for name, telemetry in ways.items():
            runtime = await stack.enter_async_context(Runtime(f"sqlite:///{folder}/{name}.db", telemetry=telemetry))
            person, agent, space = await household(runtime, Asked())
            await stack.enter_async_context(runtime.living())
            life = await stack.enter_async_context(runtime.bus.subscribe(agent_topic(agent.id)))
            homes[name] = runtime, person, space, life
        figures: dict[str, list[float]] = {name: [] for name in ways}
        order = [*ways]
        for number in range(WARM_UP + turns):
            if number == WARM_UP:
                gc.collect()
            # What a turn leaves behind is done in the next one's time: nobody shall always come after the same.
            order = [*order[1:], order[0]] if number % 2 else [*reversed(order)]
            for name in order:
                began = time.process_time()
                await turn(*homes[name])
                if number >= WARM_UP:
                    figures[name].append((time.process_time() - began) * 1000)
        return figures


async def watched(folder: Path, collector: str, turns: int) -> dict[str, list[float]]:
    """The ways, compared."""
    # Where a cycle makes its watch: only here can it be given another.
    cycles.Watch = _watch  # pyright: ignore[reportAttributeAccessIssue]
    traced = Telemetry(Metrics(), Tracer(collector))
    ways = {"off": OFF, "off_many_times": MANY_TIMES, "metrics": Telemetry(Metrics()), "otel": traced}
    try:
        return await measured(folder, ways, turns)
    finally:
        await traced.aclose()


class Sink(BaseHTTPRequestHandler):
    """Takes what is sent, and forgets it."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the library's own signature
        del format, args


def collect() -> None:
    """Be a collector until stdin is closed; its address is the line that is printed."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Sink)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    sys.stdin.read()


def compared(folder: Path, turns: int) -> dict[str, list[float]]:
    started = subprocess.Popen(
        [sys.executable, "-m", "bench.telemetry", "--collect"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with started as collector:
        assert collector.stdout is not None
        return asyncio.run(watched(folder, collector.stdout.readline().strip(), turns))


def result(figures: dict[str, list[float]]) -> dict[str, Any]:
    off = figures["off"]
    ratio = {way: statistics.median(a / b for a, b in zip(each, off, strict=True)) for way, each in figures.items()}
    return {
        "bench": "telemetry",
        "cpu_ms": {way: round(statistics.median(each), 3) for way, each in figures.items()},
        "ratio": {way: round(each, 4) for way, each in ratio.items()},
        "off_share": round((ratio["off_many_times"] - 1) / (TIMES - 1), 5),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=300)
    parser.add_argument("--collect", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.collect:
        collect()
        return
    with tempfile.TemporaryDirectory() as name:
        print(json.dumps(result(compared(Path(name), given.turns))))


if __name__ == "__main__":
    main()
