"""What is particular to SQLite: the shared commit, and a file that others may hold, lock, fill or spoil."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import text

from denizen.errors import (
    DatabaseDamaged,
    DatabaseLocked,
    DatabaseReadOnly,
    DatabaseUnavailable,
    DiskFull,
    InvalidInput,
)
from denizen.storage import sqlite
from denizen.storage.database import Conflict, Database, Tx, statement
from tests.storage.conftest import Opening
from tests.storage.notes import Gate, everything, put, put_and_fail


@pytest.fixture
async def database(opening: Opening, ready_sqlite_url: str) -> Database:
    return await opening(ready_sqlite_url)


def file_of(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


async def held(database: Database) -> tuple[Gate, asyncio.Future[None]]:
    """The writer is inside a write that ends when the gate is opened."""
    gate = Gate()
    holding = asyncio.ensure_future(database.write(gate.hold))
    await asyncio.to_thread(gate.entered.wait)
    return gate, holding


async def test_writes_that_wait_together_share_one_commit(database: Database) -> None:
    """Fifty callers, one fsync."""
    gate, holding = await held(database)
    writes = [asyncio.ensure_future(database.write(put, f"{number:02}")) for number in range(50)]
    await asyncio.sleep(0)  # all are queued
    gate.open()
    await asyncio.gather(holding, *writes)
    assert (database.commits, database.writes) == (1, 51)


async def test_the_bytes_of_files_hold_up_no_other_write(database: Database) -> None:
    """They have a writer of their own."""
    gate, holding = await held(database.blobs)
    await database.write(put, "a message")
    assert not holding.done()
    gate.open()
    await holding


async def test_a_renewal_goes_ahead_of_what_is_queued(database: Database) -> None:
    gate, holding = await held(database)
    order: list[str] = []

    def note(_tx: Tx, what: str) -> None:
        order.append(what)

    queued = asyncio.ensure_future(database.write(note, "queued"))
    await asyncio.sleep(0)
    first = asyncio.ensure_future(database.write_first(note, "renewal"))
    await asyncio.sleep(0)
    gate.open()
    await asyncio.gather(holding, queued, first)
    assert order == ["renewal", "queued"]


async def test_a_batch_has_a_bound(database: Database) -> None:
    gate, holding = await held(database)
    writes = [asyncio.ensure_future(database.write(put, f"{number:04}")) for number in range(sqlite.BATCH)]
    await asyncio.sleep(0)  # all are queued
    gate.open()
    await asyncio.gather(holding, *writes)
    assert (database.commits, database.writes) == (2, sqlite.BATCH + 1)


def thread_name(_: Tx) -> str:
    return threading.current_thread().name


async def test_reads_one_after_the_other_have_the_same_reader(database: Database) -> None:
    """Its connection has prepared their statements."""
    assert {await database.read(thread_name) for _ in range(20)} == {"sqlite reader 1"}


async def test_a_read_does_not_wait_for_long_ones(database: Database) -> None:
    """There are more readers, up to a bound. What then waits is read in its order, by whoever is ready first."""
    gates = [Gate() for _ in range(sqlite.READERS - 1)]
    holding = [asyncio.ensure_future(database.read(gate.hold)) for gate in gates]
    for gate in gates:
        await asyncio.to_thread(gate.entered.wait)
    assert await database.read(thread_name) == f"sqlite reader {sqlite.READERS}"
    last = Gate()
    holding.append(asyncio.ensure_future(database.read(last.hold)))
    await asyncio.to_thread(last.entered.wait)
    order: list[int] = []
    waiting = [
        asyncio.ensure_future(database.read(lambda _, number=number: order.append(number))) for number in (1, 2, 3)
    ]
    await asyncio.sleep(0)  # all wait
    assert order == []
    last.open()
    await asyncio.gather(*waiting)
    assert order == [1, 2, 3]
    for gate in gates:
        gate.open()
    await asyncio.gather(*holding)


async def test_what_waits_for_a_reader_when_the_database_is_closed_is_still_read(database: Database) -> None:
    gates = [Gate() for _ in range(sqlite.READERS)]
    holding = [asyncio.ensure_future(database.read(gate.hold)) for gate in gates]
    for gate in gates:
        await asyncio.to_thread(gate.entered.wait)
    waiting = [asyncio.ensure_future(database.read(thread_name)) for _ in range(3)]
    await asyncio.sleep(0)  # all wait
    closing_it = asyncio.ensure_future(database.close())
    await asyncio.sleep(0)  # it has begun
    with pytest.raises(DatabaseUnavailable):
        await database.read(thread_name)
    for gate in gates:
        gate.open()
    assert all(name.startswith("sqlite reader ") for name in await asyncio.gather(*waiting))
    await asyncio.gather(*holding, closing_it)


@pytest.mark.parametrize("page_bytes", [None, 2048, 4096])
async def test_a_new_database_has_small_pages_and_an_older_one_keeps_its_own(
    opening: Opening, tmp_path: Path, page_bytes: int | None
) -> None:
    path = tmp_path / "denizen.db"
    if page_bytes is not None:
        with closing(sqlite3.connect(path)) as older:
            older.execute(f"PRAGMA page_size = {page_bytes}")
            older.execute("CREATE TABLE older (id TEXT)")
    database = await opening(f"sqlite:///{path}")
    await database.write(put, "a")
    with closing(sqlite.connect(path)) as connection:
        assert connection.execute("PRAGMA page_size").fetchone() == (page_bytes or sqlite.PAGE_BYTES,)
        (pages,) = connection.execute("PRAGMA wal_autocheckpoint").fetchone()
    assert pages * (page_bytes or sqlite.PAGE_BYTES) == pytest.approx(sqlite.CHECKPOINT_BYTES, rel=0.01)


def put_and_call_up(tx: Tx, name: str, key: str) -> None:
    put(tx, name)
    tx.call_up(key)


async def test_a_write_that_stands_by_shares_the_commit_of_the_one_that_calls_it_up(
    database: Database, opening: Opening
) -> None:
    """It sees what that one wrote; it is told of after what both announced, and before anything of a later commit."""
    told = list[tuple[str, int]]()
    ready = database.stand_by("ada", lambda: told.append(("then", len(opening.announced))), put, "second")
    await database.write(put_and_call_up, "first", "somebody else")
    assert not ready.done()
    before = database.commits
    await database.write(put_and_call_up, "third", "ada")
    await ready
    assert (database.commits - before, database.withdraw("ada")) == (1, False)
    assert await everything(database) == ["first", "second", "third"]
    assert told == [("then", 3)]
    await database.write(put_and_call_up, "fourth", "ada")
    assert await everything(database) == ["first", "fourth", "second", "third"]


async def test_what_joins_after_a_write_that_was_called_up_is_announced_after_it(
    database: Database, opening: Opening
) -> None:
    """They share the commit; but whoever is told of the one must know that the others are newer than what it read."""
    gate = Gate()
    told = list[list[str]]()
    ready = database.stand_by("ada", lambda: told.append([each["name"] for _, each in opening.announced]), gate.hold)
    calling = asyncio.ensure_future(database.write(put_and_call_up, "first", "ada"))
    await asyncio.to_thread(gate.entered.wait)
    late = asyncio.ensure_future(database.write(put, "late"))
    await asyncio.sleep(0)  # it is queued
    gate.open()
    await asyncio.gather(calling, ready, late)
    assert (database.commits, database.writes) == (1, 3)
    assert told == [["first"]]
    assert [each["name"] for _, each in opening.announced] == ["first", "late"]


async def test_a_write_that_stands_by_fails_alone(database: Database) -> None:
    ready = database.stand_by("ada", lambda: None, put_and_fail, "second")
    await database.write(put_and_call_up, "first", "ada")
    with pytest.raises(LookupError):
        await ready
    assert await everything(database) == ["first"]


async def test_a_write_that_was_withdrawn_does_not_run(database: Database) -> None:
    database.stand_by("ada", lambda: None, put, "second")
    assert database.withdraw("ada")
    await database.write(put_and_call_up, "first", "ada")
    assert await everything(database) == ["first"]


async def test_a_commit_that_fails_fails_every_write_in_it(
    database: Database, ready_sqlite_url: str, opening: Opening
) -> None:
    """None of their effects remain, nothing is announced, and the next write is not harmed."""
    later = statement(text("PRAGMA defer_foreign_keys = ON"))
    orphan = statement(text("INSERT INTO memberships (space_id, entity_id, joined_at) VALUES ('s', 'e', 0)"))

    def break_the_commit(tx: Tx) -> None:
        tx.run(later)
        tx.run(orphan)

    gate, holding = await held(database)
    writes = [asyncio.ensure_future(database.write(put, name)) for name in "abc"]
    breaking = asyncio.ensure_future(database.write(break_the_commit))
    failing = asyncio.ensure_future(database.write(put_and_fail, "d"))
    await asyncio.sleep(0)  # all are queued
    gate.open()
    outcomes = await asyncio.gather(holding, *writes, breaking, failing, return_exceptions=True)

    assert [type(outcome) for outcome in outcomes] == [Conflict] * 5 + [LookupError]
    assert await everything(database) == []
    assert (opening.announced, database.commits) == ([], 0)
    await database.write(put, "e")
    assert await everything(database) == ["e"]


async def test_another_program_that_holds_the_file_is_reported(
    sqlite_url: str, opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a while, with what to do; once it lets go, writing works again. Reading always does."""
    monkeypatch.setattr(sqlite, "LOCK_SECONDS", 0.05)
    database = await opening(sqlite_url)
    with closing(sqlite3.connect(file_of(sqlite_url), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseLocked, match="Another program holds"):
            await database.write(put, "a")
        assert await everything(database) == []
        other.execute("COMMIT")
    await database.write(put, "b")
    assert await everything(database) == ["b"]


async def test_another_program_that_holds_an_old_file_keeps_it_from_being_opened(
    sqlite_url: str, opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "LOCK_SECONDS", 0.05)
    with closing(sqlite3.connect(file_of(sqlite_url), isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(DatabaseLocked, match="Another program holds"):
            await opening(sqlite_url)


async def test_a_full_disk_is_reported_and_nothing_was_written(database: Database) -> None:
    """When there is room again, writing works again."""

    def limit(tx: Tx, pages: int) -> None:
        tx.all(statement(text(f"PRAGMA max_page_count = {pages}")))

    await database.write(limit, 1)  # as few as it has now
    assert not database.is_full
    with pytest.raises(DiskFull, match="is full"):
        await database.write(put, "a", "x" * 1_000_000)
    assert database.is_full
    assert await everything(database) == []
    await database.write(limit, 1_000_000)
    await database.write(put, "b", "x" * 1_000_000)
    assert await everything(database) == ["b"]


async def test_a_full_disk_fails_all_that_shared_its_transaction_or_none_of_it(database: Database) -> None:
    """Whatever the others are told is what is stored."""
    gate, holding = await held(database)

    def fill(tx: Tx) -> None:
        tx.all(statement(text("PRAGMA max_page_count = 1")))
        put(tx, "full", "x" * 1_000_000)

    writes = [asyncio.ensure_future(database.write(put, name)) for name in "ab"]
    filling = asyncio.ensure_future(database.write(fill))
    await asyncio.sleep(0)  # all are queued
    gate.open()
    outcomes = await asyncio.gather(*writes, return_exceptions=True)
    with pytest.raises(DiskFull):
        await filling
    await asyncio.gather(holding, return_exceptions=True)
    stored = [name for name, outcome in zip("ab", outcomes, strict=True) if outcome is None]
    assert await everything(database) == stored


async def test_what_is_no_database_is_reported(sqlite_url: str, opening: Opening) -> None:
    file_of(sqlite_url).write_bytes(b"Dear diary, " * 1000)
    with pytest.raises(DatabaseDamaged, match="not a database"):
        await opening(sqlite_url)
    assert file_of(sqlite_url).read_bytes() == b"Dear diary, " * 1000


async def test_a_database_with_a_hole_is_reported(ready_sqlite_url: str, opening: Opening) -> None:
    """The file's first page is whole, so that it opens; what it holds is not."""
    database = await opening(ready_sqlite_url)
    for number in range(200):
        await database.write(put, str(number), "x" * 1000)
    await database.close()
    file = file_of(ready_sqlite_url)
    with file.open("r+b") as stream:
        stream.seek(4096)
        stream.write(b"\xff" * (file.stat().st_size - 4096))
    with pytest.raises(DatabaseDamaged, match="Restore it from a backup"):
        await everything(await opening(ready_sqlite_url))


@contextmanager
def ordinary_user() -> Generator[Path]:
    """A folder, and for the time being no more rights than an ordinary user's: root may write everywhere."""
    user = os.geteuid()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if user == 0:
            os.chown(folder, 65534, 65534)
            os.seteuid(65534)
        try:
            yield folder
        finally:
            os.seteuid(user)
            folder.chmod(0o700)


@pytest.mark.parametrize("closed", ["file", "folder"])
async def test_a_database_that_may_not_be_written_is_reported(opening: Opening, closed: str) -> None:
    """Whether it is the file or its folder."""
    with ordinary_user() as folder:
        file = folder / "denizen.db"
        await (await opening(f"sqlite:///{file}")).close()
        file.chmod(0o444 if closed == "file" else 0o600)
        folder.chmod(0o500 if closed == "folder" else 0o700)
        with pytest.raises(DatabaseReadOnly, match="may not be written to"):
            await opening(f"sqlite:///{file}")


async def test_a_missing_folder_is_made(tmp_path: Path, opening: Opening) -> None:
    database = await opening(f"sqlite:///{tmp_path}/not/yet/denizen.db")
    await database.write(put, "a")
    assert await everything(database) == ["a"]


async def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path, opening: Opening) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DatabaseUnavailable, match="cannot be created"):
        await opening(f"sqlite:///{tmp_path}/file/folder/denizen.db")


async def test_a_database_without_a_name_is_gone_when_it_is_closed(opening: Opening) -> None:
    """It can be opened as often as one likes; each is another."""
    first = await opening("sqlite://")
    second = await opening("sqlite://")
    await first.write(put, "a")
    assert await everything(second) == []
    folder = first._path.parent  # pyright: ignore[reportAttributeAccessIssue]
    await first.close()
    assert not folder.exists()
    third = await opening("sqlite://")
    await third.write(put, "b")
    assert await everything(third) == ["b"]


async def test_a_closed_database_is_one_file(
    opening: Opening, ready_sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connections that close at the same moment would leave the log beside it, and a copy of the file lack it."""
    closing_now, overlaps = 0, 0

    class Slow(sqlite3.Connection):
        def close(self) -> None:
            nonlocal closing_now, overlaps
            closing_now += 1
            overlaps += closing_now > 1
            time.sleep(0.02)
            super().close()
            closing_now -= 1

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Slow))
    database = await opening(ready_sqlite_url)
    await database.write(put, "a")
    await asyncio.gather(*(everything(database) for _ in range(20)))
    await database.close()
    assert overlaps == 0
    file = file_of(ready_sqlite_url)
    assert [each.name for each in file.parent.iterdir() if each.name.startswith(file.name)] == [file.name]


async def test_an_unknown_kind_of_database_is_refused(opening: Opening) -> None:
    with pytest.raises(InvalidInput, match="mysql"):
        await opening("mysql://localhost/denizen")


async def test_writes_are_flushed_to_the_disk(
    ready_sqlite_url: str, opening: Opening, synchronous_as_shipped: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings that a library upgrade must not change under us."""
    monkeypatch.setattr(sqlite, "SYNCHRONOUS", synchronous_as_shipped)
    database = await opening(ready_sqlite_url)
    settings = {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}
    for name, value in settings.items():
        assert await database.write(lambda tx, name=name: tx.one(statement(text(f"PRAGMA {name}")))) == (value,)
