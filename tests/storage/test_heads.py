"""A database that lost its write-ahead log is not opened as an older state without a word."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from asyncio.subprocess import PIPE
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from denizen import Runtime
from denizen.storage import copying
from denizen.storage.heads import SLOTS, Head, HeadsFile, find_missing, heads_path, missing_path, read_heads

ROOT = Path(__file__).parents[2]
LIFE = """
import asyncio, sys
from denizen import Runtime, reply, scripted

async def main():
    async with Runtime(sys.argv[1]) as denizen:
        noor = await denizen.people.create("Noor")
        ada = await denizen.agents.create("Ada", model=scripted(reply("Four."), "Answered."))
        desk = await denizen.spaces.create("Desk", [noor, ada])
        await denizen.spaces.post(desk, noor, "Two and two?")
        await denizen.run_until_idle()
        print("lived", flush=True)
        sys.stdin.readline()

asyncio.run(main())
"""


async def _live_until_killed(database: Path) -> None:
    """A process has answered a message in this database, and was killed."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", LIFE, f"sqlite:///{database}"),
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        stdin=PIPE,
        stdout=PIPE,
    )
    assert process.stdout is not None
    while (line := await process.stdout.readline()) != b"lived\n":
        assert line, "it ended too early"
    process.kill()
    await process.wait()


async def _missing(database: Path) -> str | None:
    async with Runtime(f"sqlite:///{database}") as denizen:
        return denizen.db.missing


def _wal(database: Path) -> Path:
    return database.with_name(f"{database.name}-wal")


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "denizen.db"


async def test_a_kill_loses_nothing(database: Path) -> None:
    await _live_until_killed(database)
    assert await _missing(database) is None


async def test_a_write_ahead_log_that_was_deleted_is_noticed(database: Path) -> None:
    """Also at the next start, until the file that says so is deleted."""
    await _live_until_killed(database)
    _wal(database).unlink()
    found = await _missing(database)
    assert found is not None
    assert (
        "is older than it was: 2 messages in 1 space and 1 cycle in 1 agent had been stored and are missing." in found
    )
    assert await _missing(database) == found
    missing_path(database).unlink()
    assert await _missing(database) is None


async def test_all_that_open_it_at_once_are_told(database: Path) -> None:
    """As the checks of `denizen doctor` do, or two commands that a person starts together."""
    await _live_until_killed(database)
    _wal(database).unlink()
    heads, openers = heads_path(database).read_bytes(), 8
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(openers) as threads:
            for _ in range(20):
                heads_path(database).write_bytes(heads)
                missing_path(database).unlink(missing_ok=True)
                told = list(threads.map(find_missing, [database] * openers))
                assert len(set(told)) == 1
                assert "is older than it was" in (told[0] or "")
    finally:
        sys.setswitchinterval(interval)
    assert sorted(path.name for path in database.parent.iterdir() if "-missing" in path.name) == ["denizen.db-missing"]


async def test_a_write_ahead_log_that_was_cut_off_is_noticed(database: Path) -> None:
    await _live_until_killed(database)
    with _wal(database).open("r+b") as file:
        file.truncate(_wal(database).stat().st_size // 2)
    found = await _missing(database)
    assert found is not None
    assert "is older than it was" in found


async def test_an_older_file_in_its_place_is_noticed_and_a_restored_backup_is_not(
    database: Path, tmp_path: Path
) -> None:
    url, backup = f"sqlite:///{database}", tmp_path / "backup"
    async with Runtime(url) as denizen:
        noor = await denizen.people.create("Noor")
        desk = await denizen.spaces.create("Desk", [noor])
        await denizen.spaces.post(desk, noor, "Kept.")
        copying.back_up(url, backup)
        await denizen.spaces.post(desk, noor, "Lost.")
    newer = tmp_path / "newer"
    shutil.move(database, newer)
    shutil.copyfile(backup, database)
    assert "1 message in 1 space" in (await _missing(database) or "")

    shutil.move(database, tmp_path / "older")
    copying.restore(url, backup)
    assert await _missing(database) is None


async def test_a_lost_edit_is_noticed(database: Path) -> None:
    """Forgotten or edited text must not come back in silence."""
    url = f"sqlite:///{database}"
    async with Runtime(url) as denizen:
        noor = await denizen.people.create("Noor")
        desk = await denizen.spaces.create("Desk", [noor])
        posted = await denizen.spaces.post(desk, noor, "The code is 1234.")
        copying.back_up(url, database.with_name("older"))
        await denizen.spaces.forget_message(posted.id)
    shutil.copyfile(database.with_name("older"), database)
    assert "1 change in 1 chain" in (await _missing(database) or "")


async def test_a_file_that_cannot_be_written_fails_no_commit(database: Path) -> None:
    heads_path(database).mkdir(parents=True)
    async with Runtime(f"sqlite:///{database}") as denizen:
        noor = await denizen.people.create("Noor")
        desk = await denizen.spaces.create("Desk", [noor])
        await denizen.spaces.post(desk, noor, "Stored all the same.")
        assert len(await denizen.spaces.messages(desk)) == 1


def test_the_file_stays_small_and_keeps_the_newest(database: Path) -> None:
    file = HeadsFile(database)
    for number in range(SLOTS + 10):
        file.keep([Head("space", f"space-{number}", number, bytes(16))])
    file.keep([Head("space", f"space-{SLOTS}", 9_999, bytes(16))])
    file.close()
    assert heads_path(database).stat().st_size <= SLOTS * 72
    kept = {head.id: head.position for _, head in read_heads(heads_path(database))}
    assert len(kept) == SLOTS
    assert kept[f"space-{SLOTS}"] == 9_999
    assert f"space-{SLOTS + 9}" in kept
