"""A program that opens a database and writes, for tests that need another process.

python -m tests.storage.writing URL put PREFIX      writes names without end, and prints each once it is stored
python -m tests.storage.writing URL count ID TIMES  counts on a row, many at once, and ends
python -m tests.storage.writing URL open            opens and closes
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from denizen.clock import SystemClock
from denizen.storage.database import Database
from denizen.storage.opening import open_database
from tests.storage.notes import count, put


async def main(url: str, action: str, *details: str) -> None:
    if action == "open":
        return await _open_each()
    database = await open_database(url, clock=SystemClock(), announce=_ignore)
    if action == "put":
        await asyncio.gather(*(_put_for_ever(database, f"{details[0]}-{writer}") for writer in range(10)))
    elif action == "count":
        identifier, times = details
        await asyncio.gather(*(database.write(count, identifier) for _ in range(int(times))))
    return await database.close()


async def _open_each() -> None:
    print("ready", flush=True)  # noqa: T201
    while url := (await asyncio.to_thread(sys.stdin.readline)).strip():
        await (await open_database(url, clock=SystemClock(), announce=_ignore)).close()
        print("opened", flush=True)  # noqa: T201


async def _put_for_ever(database: Database, prefix: str) -> None:
    number = 0
    while True:
        name = f"{prefix}-{number}"
        await database.write(put, name)
        print(name, flush=True)  # noqa: T201
        number += 1


def _ignore(_: Sequence[object]) -> None:
    pass


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
