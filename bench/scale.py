"""How one database and one bus serve several instances: turns, CPU, waking, connections and memory.

    python -m bench.scale [--instances 1,2,4] [--agents N] [--sleepers N] [--rate N] [--seconds N]

A PostgreSQL and a Valkey are started, with `--agents` agents that each share a space with a person, and `--sleepers`
more that nobody writes to. Then as many processes as `--instances` says run agents, while messages arrive as a Poisson
process of `--rate` a second, each at a random instance, for a random agent. The model is scripted and answers at once.
`wake` is the time from the call of `post` to the call of the model, in whichever process that is. All run on this
machine, PostgreSQL too: where `busy` (the share of its cores that was used) is near 1, it has no room for more.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import random
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import sql
from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart

from bench.sleepers import found_rows, resident_mb
from denizen import Runtime, forever, reply
from denizen.ids import EntityId, SpaceId
from denizen.models.scripted import Info
from denizen.storage.migrating import migrate_postgresql
from tests.servers import fresh_database, private_postgres, private_valkey

MODEL: Final = "script:sleeper"
WARM_UP_SECONDS: Final = 3.0
DRAIN_SECONDS: Final = 60.0
_SENT: Final = re.compile(r"sent at (\d+)\.")


class Answering:
    """A scripted model that answers once and then sums up; keeps how long each message took to reach it."""

    def __init__(self) -> None:
        self.wakes: list[float] = []
        self.turns = 0

    def decide(self, messages: list[ModelMessage], _info: Info) -> Any:
        now = time.time_ns()
        if isinstance(messages[-1].parts[0], ToolReturnPart):
            self.turns += 1
            return "Answered Noor."
        self.wakes += [(now - int(sent)) / 1e6 for sent in _SENT.findall(_text(messages[-1]))]
        return reply("This is what there is to say about it, and no more.")


def _text(message: ModelMessage) -> str:
    parts = message.parts if isinstance(message, ModelRequest) else ()
    return "\n".join(str(part.content) for part in parts if part.part_kind == "user-prompt")


async def serve(url: str, redis_url: str, agents: int, rate: float, seconds: float, seed: int) -> dict[str, Any]:
    """One instance: runs agents, and posts its share of the messages. Starts and stops measuring when told on stdin."""
    answering = Answering()
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    models = {MODEL: forever(answering.decide, chunk=None, record=False)}
    async with Runtime(url, redis_url=redis_url, models=models, default_model=MODEL) as runtime, runtime.living():
        gc.collect()
        gc.freeze()
        print("ready", flush=True)
        await lines.readline()
        await _post(runtime, agents, rate, WARM_UP_SECONDS, random.Random(seed))
        answering.wakes.clear()
        answering.turns, cpu, began = 0, _cpu(), time.perf_counter()
        posted = await _post(runtime, agents, rate, seconds, random.Random(seed + 1_000))
        print("posted", flush=True)
        await lines.readline()
        return {
            "posted": posted,
            "turns": answering.turns,
            "wakes": answering.wakes,
            "cpu_s": _cpu() - cpu,
            "wall_s": time.perf_counter() - began,
            # What `getrusage` says counts the process that started this one, which has made all the rows.
            "memory_mb": resident_mb("VmHWM"),
        }


async def _post(runtime: Runtime, agents: int, rate: float, seconds: float, chance: random.Random) -> int:
    """Messages arrive for so long, whether or not the earlier ones are stored; how many."""
    deadline, posted = time.perf_counter() + seconds, 0
    at = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        while (at := at + chance.expovariate(rate)) < deadline:
            await asyncio.sleep(max(at - time.perf_counter(), 0))
            tasks.create_task(_say(runtime, f"agent-{chance.randrange(agents)}"))
            posted += 1
    return posted


async def _say(runtime: Runtime, name: str) -> None:
    text = f"How is it going? sent at {time.time_ns()}."
    await runtime.spaces.post(SpaceId(f"space of {name}"), EntityId("noor"), text)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def fill(url: str, agents: int) -> None:
    """The database has its tables, a person, and so many agents."""
    migrate_postgresql(url)
    with psycopg.connect(url) as database, database.cursor() as cursor:
        for table, rows in found_rows(agents):
            _copy(cursor, table, rows)
    with psycopg.connect(url, autocommit=True) as database:
        database.execute("ANALYZE")


def _copy(cursor: psycopg.Cursor[Any], table: str, rows: Iterable[dict[str, Any]]) -> None:
    left = iter(rows)
    while some := list(islice(left, 10_000)):
        columns = sql.SQL(", ").join(map(sql.Identifier, some[0]))
        statement = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table), columns)
        with cursor.copy(statement) as copy:
            for row in some:
                copy.write_row([*row.values()])


def measure(postgres_url: str, redis_url: str, instances: int, given: argparse.Namespace) -> dict[str, Any]:
    """So many instances on a new database."""
    with fresh_database(postgres_url, f"scale_{instances}") as url:
        fill(url, given.agents + given.sleepers)
        command = [sys.executable, "-m", "bench.scale", "--serve", url, "--redis", redis_url]
        share = ["--agents", str(given.agents), "--rate", str(given.rate / instances), "--seconds", str(given.seconds)]
        began = time.perf_counter()
        running = [
            subprocess.Popen(
                [*command, *share, "--seed", str(seed)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            for seed in range(instances)
        ]
        for each in running:
            _expect(each, "ready")
        start_seconds = time.perf_counter() - began
        before = _machine()
        for each in running:
            _tell(each)
        for each in running:
            _expect(each, "posted")
        with psycopg.connect(url, autocommit=True) as database:
            connections = _connections(database)
            _until_drained(database)
        after = _machine()
        for each in running:
            _tell(each)
        results = [json.loads(each.communicate()[0].splitlines()[-1]) for each in running]
    return _summed(results, after[0] - before[0], after[1] - before[1], connections, start_seconds)


def _summed(results: list[dict[str, Any]], busy: float, whole: float, connections: int, start: float) -> dict[str, Any]:
    turns = sum(each["turns"] for each in results)
    cuts = statistics.quantiles([wake for each in results for wake in each["wakes"]], n=100)
    own = sum(each["cpu_s"] for each in results)
    return {
        "messages": sum(each["posted"] for each in results),
        "turns": turns,
        "turns_per_s": round(turns / max(each["wall_s"] for each in results), 1),
        "cpu_ms": round(own / turns * 1000, 2),
        "busy": round(busy / whole, 2),
        "wake_p50_ms": round(cuts[49], 1),
        "wake_p99_ms": round(cuts[98], 1),
        "connections": connections,
        "memory_mb": round(max(each["memory_mb"] for each in results), 1),
        "start_s": round(start, 2),
    }


def _expect(process: subprocess.Popen[str], word: str) -> None:
    """The instance has said this word; what it logs before does not matter."""
    assert process.stdout is not None
    if word not in (line.strip() for line in iter(process.stdout.readline, "")):
        raise RuntimeError(f"An instance ended before it was {word}.")


def _tell(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def _connections(database: psycopg.Connection[Any]) -> int:
    counted = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    row = database.execute(counted).fetchone()
    assert row is not None
    return row[0]


def _until_drained(database: psycopg.Connection[Any]) -> None:
    """Everything was taken up, or there was a minute."""
    deadline = time.monotonic() + DRAIN_SECONDS
    waiting = "SELECT 1 FROM events WHERE state IN ('pending', 'taken') LIMIT 1"
    while database.execute(waiting).fetchone() is not None and time.monotonic() < deadline:
        time.sleep(0.05)


def _machine() -> tuple[float, float]:
    """The CPU seconds that all programs of this machine have used, and those that there were."""
    user, nice, system, idle, wait, *more = map(int, Path("/proc/stat").read_text().split("\n")[0].split()[1:9])
    used = user + nice + system + sum(more)
    ticks = os.sysconf("SC_CLK_TCK")
    return used / ticks, (used + idle + wait) / ticks


def _numbers(text: str) -> list[int]:
    return [int(each) for each in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=_numbers, default=[1, 2, 4])
    parser.add_argument("--agents", type=int, default=200)
    parser.add_argument("--sleepers", type=int, default=0)
    parser.add_argument("--rate", type=float, default=30.0, help="messages a second, at all instances together")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--redis", help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve is not None:
        told = asyncio.run(serve(given.serve, given.redis, given.agents, given.rate, given.seconds, given.seed))
        print(json.dumps(told), flush=True)
        return
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        postgres = stack.enter_context(private_postgres(folder / "postgres"))
        valkey = stack.enter_context(private_valkey(folder / "valkey"))
        result: dict[str, Any] = {"bench": "scale", "agents": given.agents, "sleepers": given.sleepers}
        result |= {"rate": given.rate, "load_before": round(os.getloadavg()[0], 1)}
        result["instances"] = {str(each): measure(postgres.url, valkey.url, each, given) for each in given.instances}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
