"""What the server carries: posts, streams, and what an open stream weighs.

    python -m bench.gateway [--readers N] [--agents N] [--posts N] [--at-once N]

A server in a process of its own, on SQLite, with `--agents` agents, each in a space with one person, and `--readers`
open streams of those spaces. Their model is scripted and answers at once. Posts come over HTTP, first one after the
other, for the time from the post to the first byte of the agent's answer on a stream of its space; then `--at-once` of
them at a time, for posts in a second, each of which is answered. The client shares the machine with the server.
`readers_100_ratio` is the server's CPU time for a post and its answer in a space that 100 read, divided by that of a
space that one reads; `reader_1_cpu_ms` is the latter. The readers are 100 people, each with a token of their own, who
follow everything that they may see, as the web client does (`/api/stream`). `space_readers_100_ratio` is the same for
readers of the stream of the space.
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
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import structlog

from bench.turn import Asked, household
from denizen import Runtime
from denizen.access import tokens
from denizen.agents.pace import Pace
from denizen.ids import SpaceId
from denizen.server.application import create_app
from denizen.server.context import ServerLimits
from denizen.server.serving import bind, serve_on
from denizen.spaces import directory

WARM_UP = 20
TURNS = 100
CROWD = 100


# The server


async def serve(folder: Path, agents: int) -> None:
    """Tells on stdout where it is and whom it knows, and answers each line on stdin with its memory and CPU time, until
    there is none."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    async with Runtime(f"sqlite:///{folder}/gateway.db", pace=Pace(warm_seconds=3_600)) as runtime:
        homes = [await household(runtime, Asked(), number) for number in range(agents)]
        reader = homes[0][0]
        for _, _, space in homes[1:]:
            await runtime.db.write(directory.join, space.id, reader.id)
        secret = await runtime.db.write(lambda tx: tokens.create(tx, reader.id, "bench")[1])
        crowd = [await _joined(runtime, homes[0][2].id, number) for number in range(CROWD)]
        listener, ready, stop = bind("127.0.0.1", 0), asyncio.Event(), asyncio.Event()
        app = create_app(
            runtime, limits=ServerLimits(requests_per_minute=0, connections_per_address=0, streams_per_person=0)
        )
        async with runtime.living(), asyncio.TaskGroup() as tasks:
            tasks.create_task(serve_on(app, listener, ready=ready, stop=stop))
            await ready.wait()
            _tell(
                {
                    "port": listener.getsockname()[1],
                    "token": secret,
                    "crowd": crowd,
                    "spaces": [space.id for *_, space in homes],
                }
            )
            while await asyncio.to_thread(sys.stdin.readline):
                gc.collect()
                _tell({"resident_kb": _resident_kb(), "cpu_s": time.process_time()})
            stop.set()


async def _joined(runtime: Runtime, space_id: SpaceId, number: int) -> str:
    """The secret of another person in the space: each reader's access is checked for itself."""
    person = await runtime.people.create(f"Reader {number}")
    await runtime.db.write(directory.join, space_id, person.id)
    return await runtime.db.write(lambda tx: tokens.create(tx, person.id, "bench")[1])


def _tell(what: dict[str, Any]) -> None:
    print(json.dumps(what), flush=True)


def _resident_kb() -> int:
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))


# Its clients


@dataclass
class Space:
    """A space, and what its readers are told."""

    id: str
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    answered: asyncio.Event = field(default_factory=asyncio.Event)
    begun_at: float = 0.0

    def expect(self) -> None:
        self.begun.clear()
        self.answered.clear()

    def hear(self, line: bytes) -> None:
        if line.startswith(b"event: stream.started") and not self.begun.is_set():
            self.begun_at = time.perf_counter()
            self.begun.set()
        elif line.startswith(b"data: ") and b'"kind":"agent"' in line.replace(b" ", b""):
            if not self.begun.is_set():
                self.begun_at = time.perf_counter()
                self.begun.set()
            self.answered.set()


async def read(port: int, token: str, space: Space, reading: asyncio.Event, *, everything: bool = False) -> None:
    """One open stream of the space, or of everything that the person may see, for as long as it is not cancelled."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    path = "/api/stream" if everything else f"/api/spaces/{space.id}/stream"
    asked = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
    writer.write(asked.encode())
    try:
        while line := await reader.readline():
            # A person's stream begins with the newest message when it is ready; that of a space when it is asked for.
            if not everything or line.startswith(b"event: ready"):
                reading.set()
            space.hear(line)
    finally:
        writer.close()


async def post(client: httpx2.AsyncClient, space: Space) -> float:
    """Say something there; gives how long it takes until its agent begins to answer."""
    space.expect()
    posted = time.perf_counter()
    answer = await client.post(f"/api/spaces/{space.id}/messages", json={"text": "Good morning."})
    answer.raise_for_status()
    await space.begun.wait()
    await space.answered.wait()
    return space.begun_at - posted


async def measured(server: subprocess.Popen[str], given: argparse.Namespace) -> dict[str, Any]:
    told = await _line(server)
    port, token, spaces = told["port"], told["token"], [Space(each) for each in told["spaces"]]
    address = f"http://127.0.0.1:{port}"
    async with httpx2.AsyncClient(base_url=address, headers={"Authorization": f"Bearer {token}"}, timeout=60) as client:
        idle = (await _ask(server))["resident_kb"]
        async with asyncio.TaskGroup() as tasks:
            readers, listening = [], []
            for number in range(given.readers):
                begun = asyncio.Event()
                listening.append(begun.wait())
                readers.append(tasks.create_task(read(port, token, spaces[number % len(spaces)], begun)))
            await asyncio.gather(*listening)
            busy = (await _ask(server))["resident_kb"]
            heard = spaces[: given.readers]
            for number in range(WARM_UP):
                await post(client, heard[number % len(heard)])
            waits = [await post(client, heard[number % len(heard)]) for number in range(given.posts)]
            began = time.perf_counter()
            await _many(client, heard, given)
            seconds = time.perf_counter() - began
            for reader in readers:
                reader.cancel()
        cpu_ms = {
            (readers, everything): await _cpu_ms_of_a_turn(server, client, told, readers, everything=everything)
            for readers in (1, CROWD)
            for everything in (True, False)
        }
    cuts = statistics.quantiles(waits, n=100)
    return {
        "first_byte_p50_ms": round(cuts[49] * 1000, 2),
        "first_byte_p99_ms": round(cuts[98] * 1000, 2),
        "posts_per_s": round(given.posts / seconds, 1),
        "kb_per_connection": round((busy - idle) / given.readers, 1),
        "reader_1_cpu_ms": round(cpu_ms[1, True], 2),
        "readers_100_ratio": round(cpu_ms[CROWD, True] / cpu_ms[1, True], 2),
        "space_readers_100_ratio": round(cpu_ms[CROWD, False] / cpu_ms[1, False], 2),
    }


async def _many(client: httpx2.AsyncClient, spaces: list[Space], given: argparse.Namespace) -> None:
    """All posts, so many at a time, never two in one space at once."""
    waiting = asyncio.Queue[Space]()
    for space in spaces:
        waiting.put_nowait(space)
    left = given.posts

    async def work() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            space = await waiting.get()
            await post(client, space)
            waiting.put_nowait(space)

    await asyncio.gather(*(work() for _ in range(min(given.at_once, len(spaces)))))


async def _line(server: subprocess.Popen[str]) -> dict[str, Any]:
    assert server.stdout is not None
    return json.loads(await asyncio.to_thread(server.stdout.readline))


async def _ask(server: subprocess.Popen[str]) -> dict[str, Any]:
    assert server.stdin is not None
    server.stdin.write("\n")
    server.stdin.flush()
    return await _line(server)


async def _cpu_ms_of_a_turn(
    server: subprocess.Popen[str], client: httpx2.AsyncClient, told: dict[str, Any], readers: int, *, everything: bool
) -> float:
    """The server's CPU time for a post and its answer in a space with so many readers, each of whom hears it."""
    spaces = [Space(told["spaces"][0]) for _ in range(readers)]
    async with asyncio.TaskGroup() as tasks:
        reading, listening = [], []
        for space, token in zip(spaces, told["crowd"], strict=False):
            begun = asyncio.Event()
            listening.append(begun.wait())
            reading.append(tasks.create_task(read(told["port"], token, space, begun, everything=everything)))
        await asyncio.gather(*listening)

        async def turns(count: int) -> None:
            for _ in range(count):
                for space in spaces:
                    space.expect()
                await post(client, spaces[0])
                for space in spaces:
                    await space.answered.wait()

        await turns(WARM_UP)
        before = (await _ask(server))["cpu_s"]
        await turns(TURNS)
        spent = (await _ask(server))["cpu_s"] - before
        for reader in reading:
            reader.cancel()
    return spent * 1000 / TURNS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--readers", type=int, default=200)
    parser.add_argument("--agents", type=int, default=50)
    parser.add_argument("--posts", type=int, default=1_000)
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve is not None:
        asyncio.run(serve(given.serve, given.agents))
        return
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "bench.gateway", "--serve", folder, "--agents", str(given.agents)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
            try:
                result = asyncio.run(measured(server, given))
            finally:
                assert server.stdin is not None
                server.stdin.close()
    print(json.dumps({"bench": "gateway", "readers": given.readers, "agents": given.agents, **result}))


if __name__ == "__main__":
    main()
