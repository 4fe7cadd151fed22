"""PostgreSQL behind a pooler, and databases that cannot hold every text."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

from denizen import reply
from denizen.checker import check_database
from denizen.clock import SystemClock
from denizen.errors import InvalidInput
from denizen.storage.opening import open_database
from tests.servers import free_port
from tests.world import open_world

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


@asynccontextmanager
async def pooled(url: str, folder: Path, mode: str) -> AsyncGenerator[str]:
    """The same database through PgBouncer."""
    assert PGBOUNCER is not None
    parts, port = urlsplit(url), free_port()
    host = parse_qs(parts.query).get("host", [parts.hostname or ""])[0]
    name, user = parts.path.lstrip("/"), parts.username or "postgres"
    target = f"host={host} port={parts.port or 5432} dbname={name} user={user}"
    settings = folder / "pgbouncer.ini"
    settings.write_text(
        f"[databases]\n{name} = {target}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n"
        f"auth_type = any\npool_mode = {mode}\ndefault_pool_size = 20\nunix_socket_dir =\n"
    )
    for each in (folder, *folder.parents[:3]):
        each.chmod(each.stat().st_mode | 0o055)
    settings.chmod(0o644)
    # It refuses to run as root.
    user_of_program = "nobody" if os.getuid() == 0 else None
    process = await asyncio.create_subprocess_exec(
        PGBOUNCER,
        str(settings),
        stderr=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        user=user_of_program,
    )
    try:
        assert process.stderr is not None
        async for line in process.stderr:
            if b"process up" in line:
                break
        else:
            pytest.fail("pgbouncer does not start")
        yield f"postgresql://{user}@127.0.0.1:{port}/{name}"
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


needs_pgbouncer = pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed")


@needs_pgbouncer
async def test_a_pooler_that_changes_connections_is_refused_at_the_start(postgres_url: str, tmp_path: Path) -> None:
    async with pooled(postgres_url, tmp_path, "transaction") as url:
        with pytest.raises(InvalidInput, match=r"a pooler that gives each transaction another connection.*session"):
            await open_database(url, clock=SystemClock(), announce=lambda *_: None)


@needs_pgbouncer
async def test_agents_live_behind_a_pooler_that_keeps_connections(postgres_url: str, tmp_path: Path) -> None:
    async with pooled(postgres_url, tmp_path, "session") as url, open_world(url) as world:
        noor, ada = await world.person("Noor"), await world.agent("Ada", *(reply("Yes."), "Said so.") * 3)
        room = await world.space("Room", noor, ada)
        for _ in range(3):
            await world.say(noor, "Still there?", room)
            await world.run()
        assert await world.transcript(room) == ["Noor: Still there?", "Ada: Yes."] * 3
        assert await check_database(world.denizen.db) == []


async def test_a_database_that_is_not_utf8_is_refused_at_the_start(postgres_url: str) -> None:
    name = urlsplit(postgres_url).path.lstrip("/")
    create = f"CREATE DATABASE {name}_latin ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0"
    async with await psycopg.AsyncConnection.connect(postgres_url, autocommit=True) as connection:
        await connection.execute(create.encode())
        try:
            with pytest.raises(InvalidInput, match=r"stores text as LATIN1.* Denizen needs UTF8"):
                await open_database(
                    postgres_url.replace(name, f"{name}_latin"), clock=SystemClock(), announce=lambda *_: None
                )
        finally:
            await connection.execute(f"DROP DATABASE {name}_latin WITH (FORCE)".encode())
