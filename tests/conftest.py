"""What every test may ask for. Servers start when a test first asks for them, and end with the run."""

from __future__ import annotations

import gc

# What is imported now and while tests are collected stays to the end. Looking through it for garbage again and again
# took a fifth of the whole run.
gc.disable()

import os
import ssl
from collections.abc import Callable, Iterator
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest
import structlog
from hypothesis import HealthCheck, settings

from denizen import failpoints
from denizen.api.wiring import Wiring
from denizen.storage import sqlite
from denizen.storage.migrating import migrate_postgresql
from tests import databases, servers
from tests.databases import with_tables
from tests.hangs import (  # noqa: F401  hooks
    pytest_runtest_protocol,
    pytest_timeout_cancel_timer,
    pytest_timeout_set_timer,
)
from tests.reused_connections import end_idle_connections, idle_processes, reused_connections
from tests.world import (  # noqa: F401  fixtures for every folder
    small_unhurried_world,
    small_world,
    unhurried_world,
    world,
)

TESTS = Path(__file__).parent

ON_BOTH_DATABASES = (
    "agents/test_gone_instances.py",
    "agents/test_life.py",
    "bridges/test_in_process.py",
    "bridges/test_managing.py",
    "bridges/test_receiving.py",
    "bridges/test_two_bridges.py",
    "cli/test_doctor.py",
    "consciousness/recall",
    "consciousness/test_chapters.py",
    "crash",
    "cycles",
    "forgetting/test_expiring.py",
    "inbox",
    "memory",
    "notifications/test_pushing.py",
    "panel",
    "plans",
    "server/test_sizes.py",
    "spaces/test_marking.py",
    "spaces/test_posting.py",
    "spaces/test_searching.py",
    "storage",
    "test_servers.py",
    "trust",
)
"""Where the database matters, its locks and leases or SQL of its own: these tests run on SQLite and on PostgreSQL.

The others run on SQLite, and on both with `--all-databases`, as in `make test-all`. A test that needs PostgreSQL asks
for `postgres_url`, whatever this list says: see tests/properties.
"""

OWN_CONNECTIONS = ("crash", "storage")
"""Tests of connections and of how they break: each has new ones. All others reuse those of the test before."""

SLOW_FIRST = ("surfaces", "deploy", "crash", "web", "cli/chat", "cli", "properties", "server", "consciousness")
"""These folders take the longest. What is left for the end should be short, or one worker ends long after the rest."""

# The same examples on every run, so that a red build is red for everyone; `thorough` looks for new ones, for longer.
# Neither has a deadline: a slow machine is no defect. A loaded one makes examples slow to draw.
settings.register_profile(
    "ci", deadline=None, derandomize=True, max_examples=30, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("thorough", settings.get_profile("ci"), derandomize=False, max_examples=1000, print_blob=True)
Wiring.finds_models = False
"""Which models this machine has is nobody's business here."""

settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

*_as_usual, _ = structlog.get_config()["processors"]
_plainly = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)


@pytest.fixture(autouse=True)
def _plain_tracebacks() -> None:
    """A pretty one, with all that each frame knows, takes seconds to draw, and nobody looks at it."""
    structlog.reset_defaults()  # a test before this one may have had a command set up its own log
    structlog.configure(processors=[*_as_usual, _plainly])


@pytest.fixture(scope="session", autouse=True)
def synchronous_as_shipped() -> Iterator[str]:
    """How SQLite commits, but for here: the machine does not lose power in a test, and to flush takes 5 ms each time.

    Processes that tests start flush as they do for everyone.
    """
    with pytest.MonkeyPatch.context() as patch:
        shipped = sqlite.SYNCHRONOUS
        patch.setattr(sqlite, "SYNCHRONOUS", "OFF")
        yield shipped


@pytest.fixture(scope="session", autouse=True)
def _certificates_read_once() -> Iterator[None]:
    """Clients share what they trust. To read the certificates takes 15 to 30 ms, and every client of a test did."""
    read = cache(lambda *_places, **asked: httpx2.create_ssl_context(**asked))

    def create_ssl_context(**asked: Any) -> ssl.SSLContext:
        return read(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"), **asked)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("httpx2._transports.default.create_ssl_context", create_ssl_context)
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all-databases", action="store_true", help="run every test that can on PostgreSQL as well as on SQLite"
    )


def pytest_configure() -> None:
    missing = [place for place in (*ON_BOTH_DATABASES, *OWN_CONNECTIONS, *SLOW_FIRST) if not (TESTS / place).exists()]
    if missing:
        raise pytest.UsageError(f"tests/conftest.py names what is not there: {', '.join(missing)}. Correct its lists.")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Gives `database_url` and `ready_url` their databases."""
    for name in ("database_url", "ready_url"):
        if name in metafunc.fixturenames:
            within = _within(metafunc.definition.path, ON_BOTH_DATABASES) is not None
            both = within or metafunc.config.getoption("--all-databases")
            metafunc.parametrize(name, ["sqlite", "postgresql"] if both else ["sqlite"], indirect=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes long begins first, above all what has a limit of its own: at the end, everyone would wait for it."""

    def place(item: pytest.Item) -> tuple[bool, int]:
        slow = _within(item.path, SLOW_FIRST)
        return item.get_closest_marker("timeout") is None, len(SLOW_FIRST) if slow is None else slow

    items.sort(key=place)
    # Each worker begins with a share of the list, the first one with its beginning. Files are dealt out to the shares,
    # so that each share begins with slow ones.
    files = [list(group) for _, group in groupby(items, key=lambda item: item.path)]
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    items[:] = [item for share in range(workers) for file in files[share::workers] for item in file]


@cache
def _within(path: Path, places: tuple[str, ...]) -> int | None:
    """The number of the first of these files and folders that `path` is in, or is."""
    return next((at for at, place in enumerate(places) if path.is_relative_to(TESTS / place)), None)


def pytest_collection_finish() -> None:
    # Nothing is collected first: that takes longer than a hundred tests, and what it frees nobody needs.
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A folder that all processes of this test run share."""
    folder = tmp_path_factory.getbasetemp()
    return folder if worker_id == "master" else folder.parent


@pytest.fixture(scope="session")
def _postgres_of_the_run(run_folder: Path) -> Iterator[str]:
    with servers.shared_postgres(run_folder / "postgres.lock") as url:
        yield url


@pytest.fixture(scope="session")
def _redis_of_the_worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    # One for each worker, not one for the run: channels are not parted by database, so that what one worker publishes
    # would reach the subscribers of another.
    with servers.private_valkey(tmp_path_factory.getbasetemp() / "valkey.lock") as server:
        yield server.url


@pytest.fixture
def postgres_url(_postgres_of_the_run: str) -> Iterator[str]:
    """An empty PostgreSQL database of this test's own."""
    with servers.fresh_database(_postgres_of_the_run, f"test_{uuid4().hex}") as url:
        yield url


@pytest.fixture
def postgres_server(tmp_path: Path) -> Iterator[servers.Server]:
    """A whole PostgreSQL of this test's own, with `url`, `stop()` and `start()`."""
    with servers.private_postgres(tmp_path / "postgres.lock") as server:
        yield server


@pytest.fixture
def redis_url(_redis_of_the_worker: str) -> str:
    """An empty Redis that no other test uses at the same time."""
    servers.flush_valkey(_redis_of_the_worker)
    return _redis_of_the_worker


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[servers.Server]:
    """A whole Redis of this test's own, with `url`, `stop()` and `start()`."""
    with servers.private_valkey(tmp_path / "valkey.lock") as server:
        yield server


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """An SQLite database of this test's own; the file does not exist yet."""
    return f"sqlite:///{tmp_path / 'denizen.db'}"


@pytest.fixture(scope="session")
def _migrated_postgres(_postgres_of_the_run: str, run_folder: Path) -> str:
    """The name of a database to copy, which the first worker makes for all: nobody is connected to it."""
    servers.make_database_once(_postgres_of_the_run, "migrated", run_folder / "migrated.lock", migrate_postgresql)
    return "migrated"


@pytest.fixture(scope="session", autouse=True)
def _tables_of_the_run(run_folder: Path) -> None:
    """The same on SQLite: `with_tables` copies a file."""
    databases.made_in = run_folder


@pytest.fixture
def ready_sqlite_url(tmp_path: Path) -> str:
    """An SQLite database of this test's own, with all its tables: most tests are not about making them."""
    return with_tables(tmp_path / "denizen.db")


@pytest.fixture(scope="session")
def _postgres_to_clean(_postgres_of_the_run: str, _migrated_postgres: str, worker_id: str) -> Iterator[str]:
    """A database with all its tables for one test after the other: making one takes longer than most tests."""
    with servers.fresh_database(_postgres_of_the_run, f"ready_{worker_id}", template=_migrated_postgres) as url:
        yield url
        end_idle_connections()


@pytest.fixture
def ready_postgres_url(request: pytest.FixtureRequest, _postgres_to_clean: str) -> Iterator[str]:
    """The same on PostgreSQL."""
    if _within(request.path, OWN_CONNECTIONS) is None:
        with reused_connections():
            yield _postgres_to_clean
    else:
        end_idle_connections()
        yield _postgres_to_clean
    servers.clean_database(_postgres_to_clean, spare=idle_processes())


@pytest.fixture
def ready_url(request: pytest.FixtureRequest) -> str:
    """Either of them: the test runs on SQLite, and once more on PostgreSQL where `ON_BOTH_DATABASES` says so."""
    fixture = {"sqlite": "ready_sqlite_url", "postgresql": "ready_postgres_url"}[request.param]
    return request.getfixturevalue(fixture)


@pytest.fixture
def database_url(request: pytest.FixtureRequest) -> str:
    """An empty database of this test's own: on SQLite, and on PostgreSQL where `ON_BOTH_DATABASES` says so."""
    fixture = {"sqlite": "sqlite_url", "postgresql": "postgres_url"}[request.param]
    return request.getfixturevalue(fixture)


@pytest.fixture
def broken() -> Iterator[Callable[[str], None]]:
    """Has this process die once at a point, or as much of it as a raised error ends."""

    def break_at(name: str) -> None:
        def die() -> None:
            failpoints.disarm(name)
            raise RuntimeError("the process died")

        failpoints.arm(name, die)

    yield break_at
    failpoints.disarm()
