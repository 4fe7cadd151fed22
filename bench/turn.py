"""What one durable turn costs: a message in, a model call, a tool call, a model call, and everything committed.

    python -m bench.turn [--turns N] [--agents N] [--database-url URL]

The model is scripted and answers at once, so all that is measured is ours. Beside it stands the floor: plain sqlite3
writing the same number of rows of the same size in the same number of fsynced transactions. `wake_ms` is the time from
the call of `post` to the call of the model, its commit included. `kb` is all that is written to files, by the commits
and when the write-ahead log is written back. `round_trips` is how often PostgreSQL is waited for.
`python` is the version of the interpreter, and `interpreter_ms` how long it takes for a fixed piece of work: that
depends on how it was built, and on the machine.
The event loop and the garbage collection are those of `denizen up`, which leaves out what it has imported.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import platform
import sqlite3
import statistics
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from pydantic_ai.messages import ModelMessage, ToolReturnPart

from bench._life import TEXT, age
from denizen import Runtime, forever, reply
from denizen.agents.registry import Agent
from denizen.bus.port import Frame
from denizen.bus.streams import agent_topic
from denizen.models.scripted import Info
from denizen.server.running import run_server
from denizen.spaces.directory import Entity, Space
from requirements import pick_python

AGES = (0, 100, 1_000, 5_000)
WARM_UP = 250
"""Turns before those that are measured. They fill the write-ahead log once: until then its file grows, and each commit
has to store where the new part is as well. A server does that only during the first 200 turns after its start."""


class Asked:
    """A scripted model that answers once and then sums up, and notes when it was asked."""

    def __init__(self) -> None:
        self.at = 0.0
        self.cpu_at = 0.0
        """The CPU time of the process at that moment."""

    def decide(self, messages: list[ModelMessage], _info: Info) -> Any:
        # What somebody says while it answers comes with the result of the call, and is answered as well.
        if all(isinstance(part, ToolReturnPart) for part in messages[-1].parts):
            return "Answered Noor."
        self.at, self.cpu_at = time.perf_counter(), time.process_time()
        return reply(TEXT)


async def one_age(folder: Path, age_messages: int, turns: int, database_url: str | None) -> dict[str, float]:
    """The cost of a turn of an agent that has this many messages behind it."""
    asked = Asked()
    url = database_url or f"sqlite:///{folder}/turn-{age_messages}.db"
    async with Runtime(url) as runtime:
        person, agent, space = await household(runtime, asked, age_messages)
        await age(runtime, agent, age_messages)
        async with runtime.living(), runtime.bus.subscribe(agent_topic(agent.id)) as life:
            for _ in range(WARM_UP):
                await turn(runtime, person, space, life)
            gc.collect()
            write_back(url)
            before, commits, trips = io_and_cpu(), runtime.db.commits, round_trips(runtime)
            began = time.perf_counter()
            wakes: list[float] = []
            for _ in range(turns):
                posted = time.perf_counter()
                await turn(runtime, person, space, life)
                wakes.append(asked.at - posted)
            wall, (cpu, _), turned = time.perf_counter() - began, io_and_cpu(), runtime.db.commits - commits
            trips = round_trips(runtime) - trips
            write_back(url)
            _, written = io_and_cpu()
        measured = {
            "wall_ms": round(wall / turns * 1000, 3),
            "cpu_ms": round((cpu - before[0]) / turns * 1000, 3),
            "kb": round((written - before[1]) / turns / 1024, 1),
            "commits": round(turned / turns, 2),
            "wake_ms": round(statistics.median(wakes) * 1000, 3),
        }
        return measured | ({"round_trips": round(trips / turns, 1)} if trips else {})


def write_back(url: str) -> None:
    """Copies the write-ahead log into the database: what it holds of other turns is written in these ones otherwise.

    Its file keeps its length, and is written again from its beginning.
    """
    if url.startswith("sqlite:///"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            connection.execute("PRAGMA wal_checkpoint(RESTART)")


def round_trips(runtime: Runtime) -> int:
    """How often PostgreSQL was waited for so far; 0 on SQLite."""
    return getattr(runtime.db, "round_trips", 0)


def interpreter() -> dict[str, str | float | None]:
    """Which interpreter runs this, and the CPU that it takes for a fixed piece of work, in a process of its own."""
    taken = pick_python.seconds(sys.executable)
    return {"python": platform.python_version(), "interpreter_ms": None if taken is None else round(taken * 1000, 1)}


async def household(runtime: Runtime, asked: Asked, number: int = 0) -> tuple[Entity, Agent, Space]:
    """A person, an agent, and a space for the two of them."""
    model = forever(asked.decide, chunk=None, record=False)
    person = await runtime.people.create("Noor", handle=f"noor-{number}")
    agent = await runtime.agents.create("Ada", handle=f"ada-{number}", model=model)
    return person, agent, await runtime.spaces.create("Home", [person, agent])


async def turn(runtime: Runtime, person: Entity, space: Space, life: Any) -> None:
    await runtime.spaces.post(space, person, TEXT)
    async for frame in life:
        if isinstance(frame, Frame) and frame.payload.get("status") == "sleeping":
            return


async def concurrent(folder: Path, agents: int, turns: int) -> dict[str, float]:
    """Turns per second of many agents at once in one process, each with a person of its own."""
    async with Runtime(f"sqlite:///{folder}/concurrent.db") as runtime:
        homes = [await household(runtime, Asked(), number) for number in range(agents)]
        async with runtime.living():

            async def live(person: Entity, agent: Agent, space: Space, count: int) -> None:
                async with runtime.bus.subscribe(agent_topic(agent.id)) as life:
                    for _ in range(count):
                        await turn(runtime, person, space, life)

            await asyncio.gather(*(live(*home, 2) for home in homes))
            began, cpu = time.perf_counter(), time.process_time()
            await asyncio.gather(*(live(*home, turns) for home in homes))
            seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    done = agents * turns
    return {"agents": agents, "turns_per_s": round(done / seconds, 1), "cpu_ms": round(cpu / done * 1000, 3)}


def floor(folder: Path, turns: int, rows: int, commits: int) -> dict[str, float]:
    """The same rows in the same number of fsynced transactions, by sqlite3 alone."""
    connection = sqlite3.connect(folder / "floor.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE log (number INTEGER PRIMARY KEY, agent TEXT, seq INTEGER, text TEXT)")
    connection.execute("CREATE UNIQUE INDEX log_seq ON log (agent, seq)")
    each = [rows // commits + (1 if at < rows % commits else 0) for at in range(commits)]
    seq = 0
    began, before = time.perf_counter(), io_and_cpu()
    for _ in range(turns):
        for count in each:
            connection.execute("BEGIN IMMEDIATE")
            for _ in range(count):
                seq += 1
                connection.execute("INSERT INTO log (agent, seq, text) VALUES (?, ?, ?)", ("ada", seq, TEXT[:600]))
            connection.execute("COMMIT")
    wall, after = time.perf_counter() - began, io_and_cpu()
    connection.close()
    return {
        "wall_ms": round(wall / turns * 1000, 3),
        "cpu_ms": round((after[0] - before[0]) / turns * 1000, 3),
        "kb": round((after[1] - before[1]) / turns / 1024, 1),
        "commits": commits,
        "rows": rows,
    }


def io_and_cpu() -> tuple[float, int]:
    """Seconds of CPU of this process so far, all threads, and bytes it has written."""
    try:
        written = int(Path("/proc/self/io").read_text().split("wchar: ")[1].split()[0])
    except (OSError, IndexError):
        written = 0
    return time.process_time(), written


ROWS = 14
"""Rows that a turn inserts or changes: two messages, an event (delivered, taken, done), four log entries, an effect,
two ledger lines, the cycle (begun, advanced, ended)."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=300)
    parser.add_argument("--agents", type=int, default=100)
    parser.add_argument("--database-url")
    given = parser.parse_args()
    gc.freeze()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        by_age = {
            str(age_messages): run_server(one_age(folder, age_messages, given.turns, given.database_url))
            for age_messages in AGES
        }
        result = {
            "bench": "turn",
            **interpreter(),
            "turns": by_age,
            "floor": floor(folder, given.turns, ROWS, round(by_age["0"]["commits"])),
            "growth_100_to_5000": round(by_age["5000"]["cpu_ms"] / by_age["100"]["cpu_ms"], 2),
            "concurrent": run_server(concurrent(folder, given.agents, max(given.turns // 15, 5))),
        }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
