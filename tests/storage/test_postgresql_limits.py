"""Time limits of PostgreSQL transactions: a process that stops, a network that goes dark, a statement without end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest
from sqlalchemy import text

from denizen import failpoints
from denizen.errors import DatabaseUnavailable, OutcomeUnknown, StorageError
from denizen.storage import postgresql
from denizen.storage.database import Database, Tx, long_running, statement
from denizen.storage.postgresql import NETWORK, WRITING, PostgresqlDatabase, connect, with_network_settings
from tests.proxy import DarkProxy, dark_proxy
from tests.storage.conftest import Opening
from tests.storage.notes import LOCK_COUNTER, PUT, Gate, count, counted, everything, make_counters, put

SLEEP = statement(text("SELECT cast(pg_sleep(0.5) AS text)"))
SETTINGS = """
    SELECT name, setting FROM pg_settings
    WHERE name IN ('idle_in_transaction_session_timeout', 'lock_timeout', 'statement_timeout')
"""


@pytest.fixture
async def database(opening: Opening, ready_postgres_url: str) -> Database:
    return await opening(ready_postgres_url)


@pytest.fixture
def proxy(ready_postgres_url: str) -> Iterator[DarkProxy]:
    with dark_proxy(ready_postgres_url) as proxy:
        yield proxy


# The limits as shipped would make the tests wait for seconds.


@pytest.fixture
def short_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgresql, "WRITING", replace(postgresql.WRITING, idle=0.3))


@pytest.fixture
def short_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgresql, "WRITING", replace(postgresql.WRITING, idle=0.1, statement=0.3))
    monkeypatch.setattr(postgresql, "READING", replace(postgresql.READING, statement=0.3))
    monkeypatch.setattr(postgresql, "ANSWER_SECONDS", 0.2)


@pytest.mark.usefixtures("short_idle")
@pytest.mark.parametrize("rows", [0, 1, 2])
async def test_a_silent_transaction_is_ended_and_its_locks_are_free(
    database: Database, ready_postgres_url: str, opening: Opening, rows: int
) -> None:
    """Another process gets the row; the silent one runs again when it is back, and happens once.

    Also where the last statement was for many rows: the driver sends those in a way that stopped the server's watch.
    """
    other = await opening(ready_postgres_url)
    await database.write(make_counters, "c")
    gate = Gate()

    def count_slowly(tx: Tx) -> int:
        tx.one(LOCK_COUNTER, id="c")
        tx.many(PUT, [{"name": f"{number}", "text": ""} for number in range(rows)])
        gate.entered.set()
        assert gate.wait()
        return count(tx, "c")

    silent = asyncio.ensure_future(database.write(count_slowly))
    await asyncio.to_thread(gate.entered.wait)
    assert await other.write(count, "c") == 1
    gate.open()
    assert await silent == 2


@pytest.mark.usefixtures("short_idle")
async def test_a_commit_after_the_server_has_ended_the_transaction_is_not_a_commit(
    database: Database, ready_postgres_url: str, opening: Opening
) -> None:
    """The server says why it hung up: the outcome is known, and the write is made again."""
    other = await opening(ready_postgres_url)
    await database.write(make_counters, "c")
    gate = Gate()

    def wait_once() -> None:
        failpoints.disarm()
        gate.entered.set()
        assert gate.wait()

    failpoints.arm("commit:count", wait_once)
    silent = asyncio.ensure_future(database.write(count, "c"))
    await asyncio.to_thread(gate.entered.wait)
    assert await other.write(count, "c") == 1
    gate.open()
    assert await silent == 2


@pytest.mark.usefixtures("short_statements")
async def test_a_dead_connection_is_given_up_and_the_write_made_on_another(proxy: DarkProxy, opening: Opening) -> None:
    """Nobody resets it, and its network acknowledges every byte: only the missing answer shows that it is dead."""
    database = await opening(proxy.url)
    await database.write(make_counters, "c")
    runs = list[int]()

    def count_and_lose(tx: Tx) -> int:
        runs.append(count(tx, "c"))
        if len(runs) == 1:
            proxy.darken(new_ones_too=False)
        return count(tx, "c")

    assert await database.write(count_and_lose) == 2
    assert runs == [1, 1]
    assert await database.read(counted, "c") == 2


@pytest.mark.usefixtures("short_statements")
async def test_a_connection_that_dies_at_the_commit_leaves_the_outcome_unknown(
    proxy: DarkProxy, opening: Opening
) -> None:
    database = await opening(proxy.url)

    def darken() -> None:
        failpoints.disarm()
        proxy.darken(new_ones_too=False)

    failpoints.arm("commit:put", darken)
    with pytest.raises(OutcomeUnknown, match="may or may not have happened"):
        await database.write(put, "a")
    assert opening.announced == [("put", {"name": "a"})], "it may have happened: whoever waits for it looks"
    assert await everything(database) == []


async def test_closing_does_not_wait_for_a_dead_network(
    proxy: DarkProxy, opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits is told so: who is served now, and who stands in the queue."""
    monkeypatch.setattr(postgresql, "CLOSE_SECONDS", 0.2)
    monkeypatch.setattr(postgresql, "CONNECT_SECONDS", 2)  # the least that the driver knows
    database = await opening(proxy.url)
    await database.write(put, "a")
    proxy.darken(new_ones_too=True)
    writes = [asyncio.ensure_future(database.write(put, f"{number}")) for number in range(30)]
    await asyncio.sleep(0)
    await database.close()
    for outcome in await asyncio.gather(*writes, return_exceptions=True):
        assert isinstance(outcome, StorageError)


async def test_a_process_that_stops_waits_for_a_dead_network_only_once(
    proxy: DarkProxy, opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first call gets no answer until the deadline. Later ones are not sent, and closing waits for nothing."""
    monkeypatch.setattr(postgresql, "CLOSE_SECONDS", 3_600)
    monkeypatch.setattr(postgresql, "LAST_SECONDS", 0.2)
    database = await opening(proxy.url)
    assert isinstance(database, PostgresqlDatabase)
    await database.write(put, "a")
    proxy.darken(new_ones_too=True)
    database.end_within(0.2)
    # On a busy machine the connection may already have been given up, and it is a new one that gets no answer.
    with pytest.raises(DatabaseUnavailable, match=r"no answer for|timeout expired"):
        await database.write(put, "b")
    sent = database.round_trips
    for _ in range(30):
        with pytest.raises(DatabaseUnavailable, match="this process is stopping"):
            await database.read(counted, "c")
    assert database.round_trips == sent
    await database.close()


async def test_a_database_that_answers_is_used_after_the_deadline(database: Database) -> None:
    """What a process does last, such as releasing a lease, happens however late it is."""
    database.end_within(0)
    await database.write(put, "a")
    assert await everything(database) == ["a"]


@pytest.mark.usefixtures("short_statements")
@pytest.mark.parametrize("reading", [False, True])
async def test_a_statement_without_end_is_cut_off(database: Database, *, reading: bool) -> None:
    def sleep(tx: Tx) -> None:
        tx.one(SLEEP)

    with pytest.raises(DatabaseUnavailable, match="took too long"):
        await (database.read if reading else database.write)(sleep)


@pytest.mark.usefixtures("short_statements")
async def test_what_is_marked_as_long_running_is_not_cut_off(database: Database) -> None:
    @long_running
    def sleep(tx: Tx) -> None:
        tx.one(SLEEP)

    await database.write(sleep)
    await database.read(sleep)


def test_the_limits_hold_inside_of_a_transaction_only(ready_postgres_url: str) -> None:
    """A pooler such as PgBouncer may give the connection to somebody else after each transaction."""
    with closing(connect(ready_postgres_url)) as connection:
        before = connection.execute(SETTINGS).fetchall()
        connection.execute("BEGIN")
        connection.execute(WRITING.sql.encode())
        inside = dict(connection.execute(SETTINGS).fetchall())
        connection.execute("COMMIT")
        assert connection.execute(SETTINGS).fetchall() == before
    assert inside == {
        "idle_in_transaction_session_timeout": "5000",
        "lock_timeout": "20000",
        "statement_timeout": "30000",
    }


def test_a_url_may_have_network_settings_of_its_own() -> None:
    made = with_network_settings("postgresql://ada@db/denizen?tcp_user_timeout=1000&connect_timeout=2")
    assert "tcp_user_timeout=1000" in made
    assert f"keepalives_idle={NETWORK['keepalives_idle']}" in made
