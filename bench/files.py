"""What files cost: uploads in chunks, and a turn whose message has a picture that the model sees.

    python -m bench.files [--megabytes N] [--turns N] [--database-url URL]

Uploads are files of 5 MB of random bytes, one after the other, each chunk durable before the next. `p99_wait_ms` is how
long an ordinary write waits while they arrive. `turn_with_image_cpu_ms` is the CPU of this process for a turn with a
picture that has been scaled before; `scale_cpu_ms` is the CPU of the process that scales one of 12 megapixels, with its
start. `page_kb` compares page sizes of SQLite by writing the same chunks with sqlite3 alone, in MB/s.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import os
import resource
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.turn import Asked
from denizen import Runtime, forever
from denizen.bus.port import Frame
from denizen.bus.streams import agent_topic
from denizen.files.pictures import SEEN
from denizen.files.storing import CHUNK_BYTES
from denizen.spaces import directory

MEGABYTE = 1024**2
FILE_MEGABYTES = 5
PAGES_KB = (1, 2, 4, 8, 16)


async def uploads(runtime: Runtime, megabytes: int) -> dict[str, float]:
    """Throughput and CPU of uploads, and how long other writes wait meanwhile."""
    noor = await runtime.people.create("Noor")
    waits: list[float] = []
    done = asyncio.Event()

    async def others() -> None:
        while not done.is_set():
            began = time.perf_counter()
            await runtime.db.write(directory.get_entity, noor.id)
            waits.append(time.perf_counter() - began)
            await asyncio.sleep(0.005)

    other = asyncio.create_task(others())
    count = max(megabytes // FILE_MEGABYTES, 1)
    files = [os.urandom(FILE_MEGABYTES * MEGABYTE) for _ in range(count)]
    began, cpu = time.perf_counter(), time.process_time()
    for data in files:
        await runtime.files.upload(noor, data, name="data.bin")
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    done.set()
    await other
    sent = count * FILE_MEGABYTES
    return {
        "upload_mb_s": round(sent / seconds, 1),
        "cpu_ms_per_mb": round(cpu / sent * 1000, 2),
        "p99_wait_ms": round(statistics.quantiles(waits, n=100)[98] * 1000, 1) if len(waits) > 1 else 0.0,
    }


def picture() -> bytes:
    """A picture of 12 megapixels, as phones take them."""
    from PIL import Image

    out = io.BytesIO()
    Image.effect_noise((4000, 3000), 60).convert("RGB").save(out, "JPEG", quality=85)
    return out.getvalue()


async def turns_with_image(runtime: Runtime, turns: int) -> dict[str, float]:
    """The CPU of a turn without and with a picture."""
    model = forever(Asked().decide, chunk=None, record=False)
    model.sees = True
    person = await runtime.people.create("Bert")
    agent = await runtime.agents.create("Ada", model=model)
    space = await runtime.spaces.create("Home", [person, agent])
    photo = await runtime.files.upload(person, picture(), name="photo.jpg")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    await runtime.files.variant(photo, SEEN)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    scaled = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    async with runtime.living(), runtime.bus.subscribe(agent_topic(agent.id)) as life:

        async def run(count: int, files: list[Any]) -> float:
            cpu = time.process_time()
            for _ in range(count):
                await runtime.spaces.post(space, person, "Look at this, please.", files=files)
                async for frame in life:
                    if isinstance(frame, Frame) and frame.payload.get("status") == "sleeping":
                        break
            return (time.process_time() - cpu) / count * 1000

        await run(20, [])
        plain = await run(turns, [])
        await run(3, [photo])
        with_image = await run(turns, [photo])
    return {
        "turn_cpu_ms": round(plain, 3),
        "turn_with_image_cpu_ms": round(with_image, 3),
        "scale_cpu_ms": round(scaled * 1000),
    }


def by_page_size(folder: Path, megabytes: int) -> dict[str, float]:
    """MB/s of committed chunks for each page size."""
    data = os.urandom(CHUNK_BYTES)
    found: dict[str, float] = {}
    for kilobytes in PAGES_KB:
        connection = sqlite3.connect(folder / f"pages-{kilobytes}.db", isolation_level=None)
        connection.execute(f"PRAGMA page_size={kilobytes * 1024}")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("CREATE TABLE chunks (content TEXT, n INTEGER, data BLOB, PRIMARY KEY (content, n))")
        began = time.perf_counter()
        for n in range(megabytes * MEGABYTE // CHUNK_BYTES):
            connection.execute("INSERT INTO chunks VALUES ('content', ?, ?)", (n, data))
        found[str(kilobytes)] = round(megabytes / (time.perf_counter() - began), 1)
        connection.close()
    return found


async def measure(megabytes: int, turns: int, database_url: str | None) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        async with Runtime(database_url or f"sqlite:///{folder}/files.db") as runtime:
            found: dict[str, Any] = {"bench": "files", **await uploads(runtime, megabytes)}
            found |= await turns_with_image(runtime, turns)
        return {**found, "page_kb": by_page_size(Path(folder), megabytes)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=50)
    parser.add_argument("--turns", type=int, default=50)
    parser.add_argument("--database-url")
    asked = parser.parse_args()
    print(json.dumps(asyncio.run(measure(asked.megabytes, asked.turns, asked.database_url))))


if __name__ == "__main__":
    main()
