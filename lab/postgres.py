"""A second PostgreSQL that follows the first, and takes its place."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import tempfile
from pathlib import Path
from shutil import rmtree

import psycopg

from lab.world import World
from tests.servers import Server, postgres_account, postgres_answers, postgres_programs


async def fail_over(world: World) -> None:
    """The primary is gone in the middle of its work. Its standby, which confirmed every commit, is promoted."""
    assert world.postgres is not None
    primary = world.postgres
    standby = await asyncio.to_thread(_follow, primary)
    try:
        await world.pause(1)
        await asyncio.to_thread(primary.stop)
        await world.pause(1)
        await asyncio.to_thread(_promote, standby)
    finally:
        for proxy in world.database_proxies:
            proxy.target = (str(standby.folder / ".s.PGSQL.5432"), None)
            proxy.break_all("reset")
        world.postgres = standby
        world.cleanup.callback(_restore_primary, primary, standby)


def _follow(primary: Server) -> Server:
    """A standby of that server, which has caught up, and for which every commit waits."""
    folder = Path(tempfile.mkdtemp(prefix="denizen-standby-"))
    account = postgres_account(folder)
    programs = postgres_programs(folder)
    subprocess.run(
        [programs / "pg_basebackup", "-D", folder / "data", "-h", primary.folder, "-U", "postgres", "-R", "-c", "fast"],
        check=True,
        cwd=folder,
        user=account,
        group=account,
        extra_groups=None if account is None else (),
    )
    standby = Server(
        url=f"postgresql://postgres@/postgres?host={folder}",
        folder=folder,
        lock=primary.lock,
        command=[str(programs / "postgres"), "-D", str(folder / "data"), "-k", str(folder)],
        stop_signal=signal.SIGQUIT,
        answers=postgres_answers,
        user="-" if account is None else str(account),
    )
    standby.start()
    with psycopg.connect(primary.url, autocommit=True) as line:
        line.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        line.execute("SELECT pg_reload_conf()")
        while line.execute("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'").fetchone() is None:
            line.execute("SELECT pg_sleep(0.05)")
    return standby


def _promote(standby: Server) -> None:
    with psycopg.connect(standby.url, autocommit=True) as line:
        line.execute("SELECT pg_promote()")


def _restore_primary(primary: Server, standby: Server) -> None:
    """The first one runs again, alone, for the worlds after this one."""
    standby.stop()
    rmtree(standby.folder, ignore_errors=True)
    settings = primary.folder / "data" / "postgresql.auto.conf"
    settings.write_text("# nothing\n")
    primary.start()
