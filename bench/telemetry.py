"""What watching costs: the CPU time of a durable turn when nothing is told, when it is counted, and when it is traced.

    python -m bench.telemetry [--turns N] [--before PATH [--rounds N]]

The ways take turns, one agent each, all in one process, so that whatever else the machine does falls on all of them.
Told are the medians over the turns, and those of each turn's ratio to its neighbour under `off`. Spans are sent to a
collector in another process, which throws them away; the thread that sends them works once for hundreds of turns, so
that a median leaves it out. With `--before`, the sources of another version (a folder that holds the package `denizen`)
are measured as well, in processes of their own, and `off` beside them likewise; told is the best of the rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import AsyncExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from bench.turn import Asked, household, turn
from denizen import Runtime
from denizen.bus.streams import agent_topic

WARM_UP = 50


async def measured(folder: Path, ways: dict[str, dict[str, Any]], turns: int) -> dict[str, list[float]]:
    """Milliseconds of CPU of each turn."""
    async with AsyncExitStack() as stack:
        homes: dict[str, Any] = {}
        for name, options in ways.items():
            runtime = await stack.enter_async_context(Runtime(f"sqlite:///{folder}/{name}.db", **options))
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
    """The three ways, compared."""
    from denizen.telemetry.metrics import Metrics
    from denizen.telemetry.telemetry import OFF, Telemetry
    from denizen.telemetry.traces import Tracer

    traced = Telemetry(Metrics(), Tracer(collector))
    ways = {"off": OFF, "metrics": Telemetry(Metrics()), "otel": traced}
    try:
        return await measured(folder, {way: {"telemetry": each} for way, each in ways.items()}, turns)
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


def alone(source: Path, turns: int) -> float:
    """A turn by the sources in that folder, in a process of its own, with nothing told."""
    command = [sys.executable, "-m", "bench.telemetry", "--alone", "--turns", str(turns)]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    return float(subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout)


def one_round(folder: Path, turns: int) -> float:
    try:
        from denizen.telemetry.telemetry import OFF

        options: dict[str, Any] = {"telemetry": OFF}
    except ImportError:  # a version that had none
        options = {}
    return statistics.median(asyncio.run(measured(folder, {"alone": options}, turns))["alone"])


def against(before: Path, turns: int, rounds: int) -> dict[str, float]:
    import denizen

    here = Path(denizen.__file__).parents[1]
    pairs = [(alone(before, turns), alone(here, turns)) for _ in range(rounds)]
    then, now = (min(each) for each in zip(*pairs, strict=True))
    return {"before_cpu_ms": round(then, 3), "off_cpu_ms": round(now, 3), "ratio": round(now / then, 4)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--collect", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.collect:
        collect()
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if given.alone:
            print(one_round(folder, given.turns))
            return
        figures = compared(folder, given.turns)
        off = figures["off"]
        result: dict[str, Any] = {
            "bench": "telemetry",
            "cpu_ms": {way: round(statistics.median(each), 3) for way, each in figures.items()},
            "ratio": {
                way: round(statistics.median(a / b for a, b in zip(each, off, strict=True)), 4)
                for way, each in figures.items()
            },
        }
        if given.before is not None:
            result["before"] = against(given.before.resolve(), given.turns, given.rounds)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
