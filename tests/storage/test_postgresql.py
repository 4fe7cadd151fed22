"""What is particular to PostgreSQL: writers in each other's way, and a server that goes away."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter

import psycopg
import pytest
from sqlalchemy import text

from denizen import failpoints
from denizen.errors import DatabaseUnavailable, DiskFull, InvalidInput, OutcomeUnknown
from denizen.storage.database import Conflict, Database, Tx, statement
from denizen.storage.postgresql import CONNECTIONS
from tests.servers import Server
from tests.storage.conftest import Opening
from tests.storage.notes import COUNT, LOCK_COUNTER, count, counted, everything, make_counters, names, put

BACKEND = statement(text("SELECT pg_backend_pid()"))


@pytest.fixture
async def database(opening: Opening, ready_postgres_url: str) -> Database:
    return await opening(ready_postgres_url)


def backend(tx: Tx) -> int:
    row = tx.one(BACKEND)
    assert row is not None
    return row[0]


def terminate(url: str, process: int) -> None:
    """The server ends that connection, and has done so when this returns."""
    with psycopg.connect(url, autocommit=True) as connection:
        assert connection.execute("SELECT pg_terminate_backend(%s, 10000)", [process]).fetchone() == (True,)


async def test_a_deadlock_is_tried_again(database: Database) -> None:
    """Two writes that lock the same rows in opposite order both happen, once each."""
    await database.write(make_counters, "a", "b")
    met = threading.Barrier(2)
    runs: Counter[str] = Counter()

    def count_both(tx: Tx, first: str, second: str) -> None:
        runs[first] += 1
        tx.one(LOCK_COUNTER, id=first)
        if runs[first] == 1:
            met.wait(60)
        count(tx, second)
        count(tx, first)

    await asyncio.gather(database.write(count_both, "a", "b"), database.write(count_both, "b", "a"))
    # A new try may lock its row before the one that waits for it, and then there is another deadlock.
    assert sum(runs.values()) > 2
    assert [await database.read(counted, name) for name in "ab"] == [2, 2]


async def test_a_connection_lost_before_the_commit_is_made_again(database: Database, ready_postgres_url: str) -> None:
    """The write runs again on the new one, and happens once."""
    await database.write(make_counters, "c")
    runs: list[int] = []

    def count_and_lose(tx: Tx) -> int:
        runs.append(backend(tx))
        tx.one(COUNT, id="c")
        if len(runs) == 1:
            terminate(ready_postgres_url, runs[0])
        return count(tx, "c")

    assert await database.write(count_and_lose) == 2
    assert len(set(runs)) == 2


async def test_connections_that_broke_while_idle_are_no_trouble(database: Database, ready_postgres_url: str) -> None:
    """After a restart of the server, or of a firewall, the next call connects again."""
    for process in {await database.read(backend) for _ in range(20)}:
        terminate(ready_postgres_url, process)
    await database.write(put, "a")
    assert await everything(database) == ["a"]


async def test_a_connection_lost_while_committing_leaves_the_outcome_unknown(
    database: Database, ready_postgres_url: str, opening: Opening
) -> None:
    """It is not tried again, because it may have happened; what is there can be read."""
    backends: list[int] = []

    def put_and_remember(tx: Tx) -> None:
        backends.append(backend(tx))
        put(tx, "a")

    failpoints.arm("commit:put_and_remember", lambda: terminate(ready_postgres_url, backends[-1]))
    try:
        with pytest.raises(OutcomeUnknown, match="may or may not have happened"):
            await database.write(put_and_remember)
    finally:
        failpoints.disarm()
    assert len(backends) == 1
    assert opening.announced == [("put", {"name": "a"})], "a hint too many only makes its readers look"
    assert await everything(database) == []
    await database.write(put_and_remember)
    assert await everything(database) == ["a"]


async def test_a_commit_that_the_server_refuses_leaves_nothing(postgres_url: str, opening: Opening) -> None:
    """The server says no only at the commit; that is an answer, not a lost connection."""
    database = await opening(postgres_url)

    def refuse_at_the_commit(tx: Tx) -> None:
        tx.run(
            statement(
                text(
                    "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
                    " $$ BEGIN RAISE unique_violation USING constraint = 'too_late'; END $$"
                )
            )
        )
        tx.run(
            statement(
                text(
                    "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON toolsets"
                    " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()"
                )
            )
        )

    await database.write(refuse_at_the_commit)
    with pytest.raises(Conflict) as refused:
        await database.write(put, "a")
    assert refused.value.constraint == "too_late"
    assert opening.announced == []
    assert await everything(database) == []


async def test_a_full_disk_is_reported(database: Database) -> None:
    """PostgreSQL's own code for it."""
    fill = statement(text("DO $$ BEGIN RAISE disk_full; END $$"))
    assert not database.is_full
    with pytest.raises(DiskFull, match="is full"):
        await database.write(lambda tx: tx.run(fill))
    assert database.is_full


async def test_a_server_that_goes_away_loses_nothing_and_repeats_nothing(
    postgres_server: Server, opening: Opening
) -> None:
    """Writers go on while the server is stopped and started; each counts on a row of its own.

    What was acknowledged is there. What was `DatabaseUnavailable` is not. Only `OutcomeUnknown` may be either.
    """
    database = await opening(postgres_server.url)
    counters = [f"c{number}" for number in range(16)]
    await database.write(make_counters, *counters)
    acknowledged: Counter[str] = Counter()
    unknown: Counter[str] = Counter()
    progress, away = asyncio.Semaphore(0), asyncio.Event()
    going = True

    async def write_on(counter: str) -> None:
        while going:
            try:
                await database.write(count, counter)
                acknowledged[counter] += 1
                progress.release()
            except OutcomeUnknown:
                unknown[counter] += 1
            except DatabaseUnavailable:
                away.set()

    async def progressed() -> None:
        for _ in range(100):
            await progress.acquire()

    async with asyncio.TaskGroup() as tasks:
        for counter in counters:
            tasks.create_task(write_on(counter))
        await progressed()
        await asyncio.to_thread(postgres_server.stop)
        await away.wait()
        await asyncio.to_thread(postgres_server.start)
        while not progress.locked():
            await progress.acquire()
        await progressed()
        going = False

    for counter in counters:
        stored = await database.read(counted, counter)
        assert acknowledged[counter] <= stored <= acknowledged[counter] + unknown[counter]


async def test_a_short_absence_is_not_even_noticed(postgres_server: Server, opening: Opening) -> None:
    """A read that finds the server gone waits for it to come back."""
    database = await opening(postgres_server.url)
    await database.write(put, "a")
    await asyncio.to_thread(postgres_server.stop)
    reading = asyncio.ensure_future(database.read(names))
    await asyncio.to_thread(postgres_server.start)
    assert await reading == ["a"]


@pytest.mark.parametrize(
    ("part", "other", "says"),
    [
        ("/test_", "/nowhere_", "There is no database nowhere_"),
        ("postgres@", "nobody_known@", "does not know this user"),
        ("host=/", "host=/nowhere/", "cannot be reached"),
    ],
)
async def test_a_wrong_url_is_reported_with_what_to_do(
    postgres_url: str, opening: Opening, part: str, other: str, says: str
) -> None:
    """The driver's words are kept as the cause."""
    with pytest.raises(DatabaseUnavailable, match=says) as refused:
        await opening(postgres_url.replace(part, other))
    assert isinstance(refused.value.__cause__, psycopg.Error)


async def test_a_wrong_password_is_reported(postgres_server: Server, opening: Opening) -> None:
    """And it is not repeated to whoever reads the message."""
    with psycopg.connect(postgres_server.url, autocommit=True) as connection:
        connection.execute("CREATE ROLE ada LOGIN PASSWORD 'right'")
        (rules,) = connection.execute("SHOW hba_file").fetchone() or ("",)
        with open(rules, "w") as file:  # noqa: ASYNC230, PTH123
            file.write("local all ada scram-sha-256\nlocal all all trust\n")
        connection.execute("SELECT pg_reload_conf()")
        while "ada" not in str(connection.execute("SELECT user_name FROM pg_hba_file_rules").fetchall()):
            pass
    url = postgres_server.url.replace("postgres@", "ada:wr0ng@")
    with pytest.raises(DatabaseUnavailable, match="user and password") as refused:
        await opening(url)
    assert "wr0ng" not in str(refused.value)


async def test_an_unreadable_url_is_refused(opening: Opening) -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        await opening("postgresql://localhost/denizen?colour=blue")


async def test_statements_are_prepared_once_whatever_their_values(database: Database) -> None:
    """Values of another size or none at all do not make another statement."""

    def write_all(tx: Tx) -> int:
        for number in (1, 2**20, 2**40, None) * 4:
            tx.one(statement_of_one_value, value=number)
        row = tx.one(statement(text("SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%one_value%'")))
        assert row is not None
        return row[0]

    statement_of_one_value = statement(text("SELECT cast(:value AS bigint) AS one_value"))
    assert await database.write(write_all) == 1


async def test_calls_that_come_one_by_one_share_the_warm_connections(database: Database) -> None:
    """They went round all of them: each was made, and each prepared every statement, for a trickle of calls."""
    used = Counter([await database.read(backend) for _ in range(200)])
    assert len(used) < CONNECTIONS
    assert used.most_common(1)[0][1] > 200 / CONNECTIONS
