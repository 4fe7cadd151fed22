"""What sleeping agents cost: nothing but rows.

    python -m bench.sleepers [--agents N] [--posts N]

The same server process is started twice, on a database without agents and on one with `--agents` of them asleep. For
each: how long the start takes, what memory the process holds when it is up and has looked for work, and, for the full
one, how long a sleeping agent takes from `post` to the call of its model, cold, one after the other at random, and
how much CPU time of the process that was, which other work on the machine hardly changes.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from bench.turn import Asked, turn
from denizen import Runtime, forever
from denizen.agents.pace import Pace
from denizen.bus.streams import agent_topic
from denizen.ids import AgentId, EntityId, SpaceId
from denizen.storage.migrating import migrate_sqlite

MODEL = "script:sleeper"
_ORGANIZATION = "organization"
_NOW = 1_767_603_600_000_000


def found(path: Path, agents: int) -> None:
    """A database with one organization, one person, and so many agents that each share a space with her."""
    migrate_sqlite(path)
    database = sqlite3.connect(path)
    with database:
        for table, rows in found_rows(agents):
            _insert(database, table, rows)
    database.close()


def found_rows(agents: int) -> Iterator[tuple[str, Iterator[dict[str, Any]]]]:
    """The rows of that database, table by table, parents first."""
    yield "organizations", iter([{"id": _ORGANIZATION, "name": "Dormitory", "created_at": _NOW}])
    yield "entities", iter([_entity("noor", "human")])
    yield from _sleepers(agents)


def _entity(handle: str, kind: str) -> dict[str, Any]:
    return {
        "id": handle,
        "organization_id": _ORGANIZATION,
        "kind": kind,
        "handle": handle,
        "name": handle.title(),
        "created_at": _NOW,
    }


def _sleepers(agents: int) -> Iterator[tuple[str, Iterator[dict[str, Any]]]]:
    names = [f"agent-{number}" for number in range(agents)]
    definition = json.dumps({"model": MODEL, "instructions": "Be kind."})
    yield "entities", (_entity(name, "agent") for name in names)
    yield (
        "agents",
        (
            {"id": name, "organization_id": _ORGANIZATION, "definition": definition, "urgent": "{}", "created_at": _NOW}
            for name in names
        ),
    )
    yield "minds", ({"agent_id": name} for name in names)
    yield "leases", ({"agent_id": name} for name in names)
    yield (
        "spaces",
        (
            {
                "id": f"space of {name}",
                "organization_id": _ORGANIZATION,
                "kind": "conversation",
                "name": name,
                "created_at": _NOW,
            }
            for name in names
        ),
    )
    yield (
        "memberships",
        (
            {"space_id": f"space of {name}", "entity_id": who, "joined_at": _NOW}
            for name in names
            for who in ("noor", name)
        ),
    )


def _insert(database: sqlite3.Connection, table: str, rows: Iterator[dict[str, Any]]) -> None:
    first = next(rows, None)
    if first is None:
        return
    statement = f"INSERT INTO {table} ({', '.join(first)}) VALUES ({', '.join(f':{name}' for name in first)})"
    database.execute(statement, first)
    database.executemany(statement, rows)


async def serve(path: Path, agents: int, posts: int) -> dict[str, Any]:
    """One process, from its start until it is quiet; then, if there are agents, so many wakings."""
    asked = Asked()
    began = time.perf_counter()
    pace = Pace(warm_seconds=0)
    house = Runtime(f"sqlite:///{path}", models={MODEL: forever(asked.decide, record=False)}, pace=pace)
    async with house as runtime, runtime.living() as residents:
        started = time.perf_counter() - began
        await residents.run_until_idle()
        gc.collect()
        result: dict[str, Any] = {"start_s": round(started, 3), "memory_mb": round(resident_mb(), 1)}
        if posts:
            result |= await _wakes(runtime, asked, agents, posts)
    return result


async def _wakes(runtime: Runtime, asked: Asked, agents: int, posts: int) -> dict[str, float]:
    chance = random.Random(1)
    waits: list[float] = []
    worked: list[float] = []
    # The first few bring in what is imported or compiled at first use.
    for number in range(posts + 20):
        name = f"agent-{chance.randrange(agents)}"
        async with runtime.bus.subscribe(agent_topic(AgentId(name))) as life:
            posted, cpu = time.perf_counter(), time.process_time()
            await _post(runtime, name, life)
            if number >= 20:
                waits.append((asked.at - posted) * 1000)
                worked.append((asked.cpu_at - cpu) * 1000)
    cuts, cpu_cuts = statistics.quantiles(waits, n=100), statistics.quantiles(worked, n=100)
    return {
        "wake_p50_ms": round(cuts[49], 3),
        "wake_p99_ms": round(cuts[98], 3),
        "cpu_p50_ms": round(cpu_cuts[49], 3),
        "cpu_p99_ms": round(cpu_cuts[98], 3),
    }


async def _post(runtime: Runtime, name: str, life: Any) -> None:
    space, person = SpaceId(f"space of {name}"), EntityId("noor")
    await turn(runtime, person, space, life)  # pyright: ignore[reportArgumentType]  ids serve as well


def resident_mb(kind: Literal["VmRSS", "VmHWM"] = "VmRSS") -> float:
    """What the process holds in memory, or the most that it ever held."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{kind}:"):
            return int(line.split()[1]) / 1024
    return 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=100_000)
    parser.add_argument("--posts", type=int, default=300)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve is not None:
        print(json.dumps(asyncio.run(serve(given.serve, given.agents, given.posts))))
        return
    with tempfile.TemporaryDirectory() as folder:
        none = _in_a_process(Path(folder) / "none.db", 0, 0)
        asleep = _in_a_process(Path(folder) / "asleep.db", given.agents, given.posts)
    ratio = round(asleep["memory_mb"] / none["memory_mb"], 3) if none["memory_mb"] else None
    print(
        json.dumps({"bench": "sleepers", "agents": given.agents, "none": none, "asleep": asleep, "memory_ratio": ratio})
    )


def _in_a_process(path: Path, agents: int, posts: int) -> dict[str, Any]:
    found(path, agents)
    command = [sys.executable, "-m", "bench.sleepers", "--serve", str(path), "--agents", str(agents)]
    done = subprocess.run([*command, "--posts", str(posts)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
