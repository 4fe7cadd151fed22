"""The proxy of the laboratory breaks a connection to a real PostgreSQL exactly where it is told to."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from lab.proxy import Proxy, Trap, Way, Where, is_commit, proxy


def through(made: Proxy, url: str) -> str:
    return f"postgresql://postgres@127.0.0.1:{made.port}/{conninfo_to_dict(url)['dbname']}"


def socket_of(url: str) -> str:
    return str(Path(str(conninfo_to_dict(url)["host"]), ".s.PGSQL.5432"))


@pytest.mark.parametrize(("where", "stored"), [("before", 0), ("after", 1)])
@pytest.mark.parametrize("way", ["drop", "reset"])
async def test_a_connection_breaks_on_either_side_of_commit(
    postgres_url: str, way: Way, where: Where, stored: int
) -> None:
    """Before it, nothing was stored; after it, everything was, and nobody was told."""
    async with proxy(socket_of(postgres_url), None, speaks_postgresql=True) as made:
        line = await psycopg.AsyncConnection.connect(through(made, postgres_url), autocommit=True)
        await line.execute("CREATE TABLE notes (text text)")
        trap = made.trap = Trap(is_commit, way, where)
        await line.execute("BEGIN")
        await line.execute("INSERT INTO notes VALUES (%s)", ["new"])
        with pytest.raises(psycopg.OperationalError):
            await line.execute("COMMIT")
        assert trap.sprung.is_set()
    async with await psycopg.AsyncConnection.connect(postgres_url) as direct:
        while await _others(direct):  # noqa: ASYNC110  the server's own work has no event here
            await asyncio.sleep(0)
        rows = await (await direct.execute("SELECT * FROM notes")).fetchall()
    assert len(rows) == stored


async def _others(direct: psycopg.AsyncConnection) -> int:
    """How many other connections the server still has to this database."""
    counting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    row = await (await direct.execute(counting)).fetchone()
    await direct.rollback()
    assert row is not None
    return row[0]


async def test_a_frozen_connection_goes_on_and_a_dark_one_is_reset(postgres_url: str) -> None:
    async with proxy(socket_of(postgres_url), None, speaks_postgresql=True) as made:
        frozen, dark = [
            await psycopg.AsyncConnection.connect(through(made, postgres_url), autocommit=True) for _ in range(2)
        ]
        answers: list[asyncio.Task[object]] = []
        breaks: list[tuple[psycopg.AsyncConnection, Way]] = [(frozen, "freeze"), (dark, "dark")]
        for line, way in breaks:
            trap = made.trap = Trap(lambda statement: statement.startswith("SELECT 1"), way, "before")
            answers.append(asyncio.create_task(line.execute("SELECT 1")))
            await trap.sprung.wait()
        made.heal()
        await answers[0]
        with pytest.raises(psycopg.OperationalError):
            await answers[1]
        await frozen.close()
