"""Processes that are killed lose nothing of what they were told is stored; several may share a database."""

from __future__ import annotations

import asyncio

from denizen import failpoints
from denizen.storage.database import Database, Tx
from tests.storage import processes
from tests.storage.conftest import Opening
from tests.storage.notes import count, counted, everything, make_counters, put


async def test_what_was_acknowledged_survives_sigkill(ready_url: str, opening: Opening) -> None:
    """A process is killed in the middle of writing: all that it had been told is stored, is."""
    writer = await processes.start(ready_url, "put", "name")
    acknowledged = [await processes.hear(writer) for _ in range(200)]
    writer.kill()
    await writer.communicate()

    database = await opening(ready_url)
    stored = await everything(database)
    assert len(set(acknowledged)) == 200
    assert set(acknowledged) <= set(stored)


async def test_two_processes_write_to_one_database(ready_url: str, opening: Opening) -> None:
    """Neither loses a write to the other."""
    database = await opening(ready_url)
    await database.write(make_counters, "c")
    other = await processes.start(ready_url, "count", "c", "300")
    await asyncio.gather(*(database.write(count, "c") for _ in range(300)))
    await processes.finish(other)
    assert await database.read(counted, "c") == 600


async def test_several_processes_may_start_at_once(database_url: str, opening: Opening) -> None:
    """On an empty database, one of them makes the schema and the others wait for it."""
    several = [await processes.start("-", "open") for _ in range(3)]
    assert [await processes.hear(process) for process in several] == ["ready"] * 3
    # A new file can be had for nothing, so that a race gets more than one chance to be lost.
    urls = [f"{database_url}{number}" for number in range(5)] if database_url.startswith("sqlite") else [database_url]
    for url in urls:
        for process in several:
            await processes.tell(process, url)
        assert [await processes.hear(process) for process in several] == ["opened"] * 3
        assert await everything(await opening(url)) == []
    for process in several:
        await processes.finish(process)


async def test_the_points_around_a_commit_carry_the_function_s_name(database: Database) -> None:
    """A harness finds them by running once."""

    def post(tx: Tx) -> None:
        put(tx, "a")

    with failpoints.recording() as names:
        await database.write(post)
        await database.read(everything_in)
    assert names == ["commit:post", "committed:post"]


async def test_a_break_before_the_commit_leaves_nothing(database: Database) -> None:
    """The caller hears of it, and the next write is not harmed."""

    def break_here() -> None:
        raise ConnectionAbortedError

    failpoints.arm("commit:put", break_here, after=1)
    try:
        await database.write(put, "a")
        outcome = (await asyncio.gather(database.write(put, "b"), return_exceptions=True))[0]
    finally:
        failpoints.disarm()
    assert isinstance(outcome, ConnectionAbortedError)
    await database.write(put, "c")
    assert await everything(database) == ["a", "c"]


def everything_in(tx: Tx) -> str:
    return tx.dialect
