"""The servers that tests run against do what the tests rely on."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
import redis

from denizen.storage import postgresql
from denizen.storage.migrating import HEAD
from tests import servers
from tests.reused_connections import end_idle_connections, idle_processes


def test_a_test_has_a_database_of_its_own(postgres_url: str, database_url: str) -> None:
    """Two fixtures, two databases: what one test stores, no other sees."""
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE marks (id int)")
        connection.commit()
        assert connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (1,)


@pytest.mark.parametrize("texts", [1, 2_000])
def test_a_database_that_was_cleaned_is_as_new(ready_postgres_url: str, texts: int) -> None:
    """Its tables are empty, whatever refers to what in them, its numbers begin anew, and nobody else is connected."""
    with psycopg.connect(ready_postgres_url) as other:
        other.execute("INSERT INTO organizations (id, name, created_at) VALUES ('o', 'o', 0)")
        other.execute(
            "INSERT INTO spaces (id, organization_id, kind, name, created_at) VALUES ('s', 'o', 'conversation', '', 0)"
        )
        other.execute("SELECT nextval('events_number_seq')")
        other.execute("UPDATE alembic_version SET version_num = '0001'")
        other.execute(
            "INSERT INTO toolsets (digest, tools) SELECT id, repeat(md5(id::text), 10) FROM generate_series(1, %s) id",
            [texts],
        )
        other.commit()

        servers.clean_database(ready_postgres_url)

        with pytest.raises(psycopg.OperationalError):
            other.execute("SELECT 1")
    with psycopg.connect(ready_postgres_url) as connection:
        for table in ("organizations", "spaces", "toolsets"):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
        assert connection.execute("SELECT nextval('events_number_seq')").fetchone() == (1,)
        assert connection.execute("SELECT version_num FROM alembic_version").fetchone() == (HEAD,)
        assert (connection.execute("SELECT pg_relation_size('toolsets')").fetchone() or (0,))[0] <= 10 * 8192


def test_a_connection_is_handed_on_as_new(ready_postgres_url: str) -> None:
    """Only between two transactions: one that was left inside of one ends with it, and so does one that broke."""
    end_idle_connections()  # or another one is handed on
    backend, limit = "SELECT pg_backend_pid()", "SHOW lock_timeout"
    with closing(postgresql.connect(ready_postgres_url)) as first:
        process = first.execute(backend).fetchone()
        as_new = first.execute(limit).fetchone()
        first.execute("SET lock_timeout = 1234")
        first.execute("SELECT pg_advisory_lock(7)")
    servers.clean_database(ready_postgres_url, spare=idle_processes())
    with closing(postgresql.connect(ready_postgres_url)) as again:
        assert again.execute(backend).fetchone() == process
        assert again.execute(limit).fetchone() == as_new
        assert again.execute(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
        ).fetchone() == (0,)
        again.execute("BEGIN")
    with closing(postgresql.connect(ready_postgres_url)) as other:
        assert (there := other.execute(backend).fetchone()) != process
    servers.clean_database(ready_postgres_url)
    with closing(postgresql.connect(ready_postgres_url)) as last:
        assert last.execute(backend).fetchone() not in (process, there)


@pytest.mark.parametrize("attempt", [1, 2])
def test_redis_is_empty_at_the_start_of_a_test(redis_url: str, attempt: int) -> None:
    """Whatever an earlier test stored is gone."""
    with redis.Redis.from_url(redis_url) as client:
        assert client.dbsize() == 0
        client.set("mark", attempt)


def test_postgres_stops_at_once_and_keeps_what_was_committed(postgres_server: servers.Server) -> None:
    """Stopping breaks open connections; starting again brings back every commit, at the same address."""
    with psycopg.connect(postgres_server.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE marks (id int)")
        postgres_server.stop()
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    assert not servers.postgres_answers(postgres_server.url)

    postgres_server.start()

    with psycopg.connect(postgres_server.url) as connection:
        assert connection.execute("SELECT count(*) FROM marks").fetchone() == (0,)


def test_redis_stops_and_comes_back_empty_at_the_same_address(redis_server: servers.Server) -> None:
    """Losing Redis loses all that was in it."""
    with redis.Redis.from_url(redis_server.url) as client:
        client.set("mark", 1)
        redis_server.stop()
        with pytest.raises(redis.ConnectionError):
            client.ping()

        redis_server.start()

        assert client.get("mark") is None


@pytest.mark.parametrize("kind", ["private_valkey", "private_postgres"])
def test_a_server_ends_with_its_user_even_if_that_is_killed(kind: str, tmp_path: Path) -> None:
    """A killed test run leaves no server and no folder behind."""
    lock = tmp_path / "lock"
    program = f"""if True:
        from tests import servers; import pathlib, sys
        with servers.{kind}(pathlib.Path(sys.argv[1])) as server:
            print(server.url, server.folder, flush=True)
            sys.stdin.read()
        """
    with subprocess.Popen(
        [sys.executable, "-c", program, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as user:
        assert user.stdout is not None
        url, folder = user.stdout.readline().split()
        user.kill()

    wait_for_the_end_of(url)

    with servers.shared_lock(lock):  # the keeper's until it is done
        assert not Path(folder).exists()


def wait_for_the_end_of(url: str) -> None:
    """The server there has gone: it breaks off a request that it would otherwise never answer."""
    if url.startswith("redis:"):
        with redis.Redis.from_url(url, retry=None) as client, pytest.raises(redis.ConnectionError):
            client.blpop(["never"], timeout=0)
    else:
        with pytest.raises(psycopg.OperationalError), psycopg.connect(url) as connection:
            connection.execute("SELECT pg_sleep(3600)")
