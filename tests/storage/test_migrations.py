"""Every database that anyone may have can be opened by this version, whole."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, LiteralString, cast
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row
from structlog.testing import capture_logs

from denizen.errors import DatabaseNewer
from denizen.storage import migrating, sqlite
from tests.servers import fresh_database
from tests.storage.conftest import Opening
from tests.storage.notes import everything, put
from tests.storage.processes import ROOT

if TYPE_CHECKING:
    from alembic.script import ScriptDirectory

START = 1_767_603_600_000_000
FIXTURES = Path(__file__).parent / "fixtures"
DROPPED_TABLES = {"reservations"}
DROPPED_COLUMNS = {("agents", "held_told")}
"""What later steps have removed, because no version used it any more."""
STEPS = ROOT / "src" / "denizen" / "storage" / "migrations" / "versions"


def migrate(url: str, to: str = migrating.HEAD) -> None:
    """Bring the database to exactly that step, from where it is."""
    if url.startswith("sqlite"):
        migrating.migrate_sqlite(Path(url.removeprefix("sqlite:///")), to)
    else:
        migrating.migrate_postgresql(url, to)


Query = Callable[..., list[dict[str, Any]]]
"""Gives the rows of a statement and its parameters, as the driver gives them."""


@contextmanager
def connected(url: str) -> Iterator[Query]:
    """Statements on one connection: to make one takes longer than most statements."""
    if url.startswith("sqlite"):
        with closing(sqlite.connect(Path(url.removeprefix("sqlite:///")))) as file:
            file.row_factory = sqlite3.Row
            yield lambda text, /, **params: [dict(row) for row in file.execute(text, params)]
        return
    with psycopg.connect(url, autocommit=True) as connection:

        def ask(text: str, /, **params: Any) -> list[dict[str, Any]]:
            cursor = connection.cursor(row_factory=dict_row).execute(cast("LiteralString", text), params or None)
            return cursor.fetchall() if cursor.description else []

        yield ask


def query(url: str, text: str, /, **params: Any) -> list[dict[str, Any]]:
    """The rows of one statement."""
    with connected(url) as ask:
        return ask(text, **params)


def fixture_rows(revision: str) -> list[tuple[str, dict[str, Any]]]:
    lines = (FIXTURES / f"{revision}.jsonl").read_text().splitlines()
    return [(entry["table"], entry["row"]) for entry in map(json.loads, lines)]


def load(url: str, rows: list[tuple[str, dict[str, Any]]]) -> None:
    with connected(url) as ask:
        for table, row in rows:
            marks = [mark(url, name) for name in row]
            ask(f'INSERT INTO "{table}" ({", ".join(row)}) VALUES ({", ".join(marks)})', **row)
        if url.startswith("postgresql"):
            # Rows that came with their number did not move the counter that gives the next one.
            for table in {table for table, row in rows if "number" in row and table != "cycles"}:
                ask(f"SELECT setval(pg_get_serial_sequence('{table}', 'number'), max(number)) FROM {table}")


def tables(url: str) -> set[str]:
    listing = (
        "SELECT name FROM sqlite_master WHERE type = 'table'"
        if url.startswith("sqlite")
        else "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'"
    )
    return {row["name"] for row in query(url, listing)} - {"alembic_version"}


class Ladder:
    """Databases of every age. One takes the steps and is copied on its way: each by itself would take all that came
    before again, which was half of what these tests took."""

    def __init__(self, begin: Callable[[], AbstractContextManager[str]]) -> None:
        self._begin = begin
        self._held = ExitStack()
        self._url, self._at = "", migrating.HEAD

    def climb(self, revision: str) -> str:
        """The address of a database that has taken the steps up to this one. Nobody is connected to it."""
        if revision <= self._at:  # the first test, or one that this worker was given late
            self.close()
            self._url = self._held.enter_context(self._begin())
        migrate(self._url, revision)
        self._at = revision
        return self._url

    def close(self) -> None:
        self._held.close()


@pytest.fixture(scope="module", autouse=True)
def _steps_read_once() -> Iterator[None]:
    """Alembic reads all steps anew for each upgrade, which takes as long as most of them."""
    from alembic.script import ScriptDirectory

    read = _script_directory()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ScriptDirectory, "from_config", lambda _config: read)
        yield


def _script_directory() -> ScriptDirectory:
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(STEPS.parent))
    config.set_main_option("path_separator", "os")
    return ScriptDirectory.from_config(config)


@pytest.fixture(scope="module")
def sqlite_ladder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ladder]:
    with closing(
        Ladder(lambda: nullcontext(f"sqlite:///{tmp_path_factory.mktemp('ladder') / 'denizen.db'}"))
    ) as ladder:
        yield ladder


@pytest.fixture(scope="module")
def postgres_ladder(_postgres_of_the_run: str) -> Iterator[Ladder]:
    with closing(Ladder(lambda: fresh_database(_postgres_of_the_run, f"ladder_{uuid4().hex}"))) as ladder:
        yield ladder


@pytest.fixture(params=["sqlite", "postgresql"])
def old_url(request: pytest.FixtureRequest, revision: str, tmp_path: Path) -> Iterator[str]:
    """An empty database of this test's own, which has taken the steps up to `revision`."""
    if request.param == "sqlite":
        ladder: Ladder = request.getfixturevalue("sqlite_ladder")
        shutil.copy(ladder.climb(revision).removeprefix("sqlite:///"), tmp_path / "denizen.db")
        yield f"sqlite:///{tmp_path / 'denizen.db'}"
        return
    ladder = request.getfixturevalue("postgres_ladder")
    template = conninfo_to_dict(ladder.climb(revision))["dbname"]
    server = request.getfixturevalue("_postgres_of_the_run")
    with fresh_database(server, f"test_{uuid4().hex}", template=str(template)) as url:
        yield url


@pytest.mark.parametrize("revision", migrating.REVISIONS)
async def test_a_life_stored_by_an_older_version_is_whole(revision: str, old_url: str, opening: Opening) -> None:
    """Every row of that time is there after the upgrade, except what was dropped, and life goes on."""
    rows = fixture_rows(revision)
    load(old_url, rows)

    database = await opening(old_url)

    with connected(old_url) as ask:
        for table, columns in rows:
            if table in DROPPED_TABLES:
                continue
            row = {name: value for name, value in columns.items() if (table, name) not in DROPPED_COLUMNS}
            wanted = " AND ".join(
                f"{name} IS NULL" if row[name] is None else f"{name} = {mark(old_url, name)}" for name in row
            )
            given = {name: value for name, value in row.items() if value is not None}
            assert len(ask(f'SELECT 1 FROM "{table}" WHERE {wanted}', **given)) == 1, (table, row)
    await database.write(put, "new")
    assert "new" in await everything(database)


def mark(url: str, name: str) -> str:
    return f":{name}" if url.startswith("sqlite") else f"%({name})s"


def test_a_fixture_has_rows_of_every_table_of_its_time(sqlite_url: str) -> None:
    for revision in migrating.REVISIONS:
        migrate(sqlite_url, revision)
        assert {table for table, _ in fixture_rows(revision)} == tables(sqlite_url), revision


def test_every_step_is_known_and_leads_to_the_next() -> None:
    """The list in `migrating` is what lets a start do without Alembic: it must be true."""
    steps = list(_script_directory().walk_revisions())
    assert tuple(step.revision for step in reversed(steps)) == migrating.REVISIONS
    assert all(Path(step.path).name.startswith(f"{step.revision}_") for step in steps)


def test_the_steps_lead_to_the_schema(database_url: str, make_empty: Callable[[], str]) -> None:
    """A database that took every step and one that was created at once are the same, to the last index and trigger."""
    for revision in migrating.REVISIONS[-2:]:  # not at once to the newest, or it would be created without steps
        migrate(database_url, revision)
    direct = make_empty()
    migrate(direct)
    assert structure(database_url) == structure(direct)
    assert rows(direct) == rows(database_url) == {"alembic_version": [{"version_num": migrating.HEAD}]}


def test_only_an_old_database_needs_alembic(database_url: str, make_empty: Callable[[], str]) -> None:
    """Importing it and running all steps would be half of what a first start takes."""
    program = "import sys\nfrom tests.storage.test_migrations import migrate\nmigrate(*sys.argv[1:])\n"
    program += "print('alembic' in sys.modules)\n"

    def loads_alembic(url: str, *to: str) -> bool:
        command = [sys.executable, "-c", program, url, *to]
        paths = {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        return subprocess.run(command, check=True, env=paths, capture_output=True, text=True).stdout == "True\n"

    assert loads_alembic(database_url, migrating.REVISIONS[-2])
    assert loads_alembic(database_url)
    assert not loads_alembic(make_empty())


@pytest.fixture
def make_empty(database_url: str, tmp_path: Path) -> Iterator[Callable[[], str]]:
    """Another empty database of the same kind."""
    if database_url.startswith("sqlite"):
        yield lambda: f"sqlite:///{tmp_path / 'direct.db'}"
        return
    name = conninfo_to_dict(database_url)["dbname"]
    query(database_url, f"CREATE DATABASE {name}_direct TEMPLATE template0")
    yield lambda: database_url.replace(f"/{name}", f"/{name}_direct")
    query(database_url, f"DROP DATABASE {name}_direct WITH (FORCE)")


def structure(url: str) -> dict[str, Any]:
    """Tables with their columns, keys, constraints and indexes, whatever the order of columns, and the rest."""
    is_sqlite = url.startswith("sqlite")
    described = _sqlite_table if is_sqlite else _postgresql_table
    with connected(url) as ask:
        others = ask(_SQLITE_REST if is_sqlite else _POSTGRESQL_REST)
        rest = sorted((each["kind"], each["name"], " ".join(each["sql"].split())) for each in others)
        return {"": rest} | {table: described(ask, table) for table in (*tables(url), "alembic_version")}


def rows(url: str) -> dict[str, Any]:
    """The rows of each table that has any."""
    with connected(url) as ask:
        found = {table: ask(f'SELECT * FROM "{table}"') for table in (*tables(url), "alembic_version")}
        return {table: there for table, there in found.items() if there}


_SQLITE_REST = "SELECT type AS kind, name, sql FROM sqlite_master WHERE type IN ('view', 'trigger')"
_POSTGRESQL_REST = """
    SELECT 'trigger' AS kind, tgname AS name, pg_get_triggerdef(oid) AS sql FROM pg_trigger WHERE NOT tgisinternal
    UNION ALL
    SELECT 'function', proname, pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    UNION ALL
    SELECT 'sequence', sequencename, data_type || ' from ' || start_value || ' by ' || increment_by FROM pg_sequences
    UNION ALL
    SELECT 'relation', relname, format('%s %s', relkind, relpersistence) FROM pg_class
    WHERE relnamespace = 'public'::regnamespace
    UNION ALL
    SELECT 'type', typname, typtype::text FROM pg_type WHERE typnamespace = 'public'::regnamespace
    UNION ALL
    SELECT 'extension', extname, extversion FROM pg_extension
"""
"""Whatever else steps can make."""


def _sqlite_table(ask: Query, table: str) -> list[Any]:
    columns = ask('SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_info(:t)', t=table)
    parents = ask('SELECT "table", "from", "to", on_delete FROM pragma_foreign_key_list(:t)', t=table)
    indexes = ask(
        "SELECT CASE origin WHEN 'c' THEN list.name END AS name, \"unique\", origin, partial, master.sql,"
        " (SELECT group_concat(name) FROM pragma_index_info(list.name)) AS columns"
        " FROM pragma_index_list(:t) AS list LEFT JOIN sqlite_master AS master ON master.name = list.name",
        t=table,
    )
    kind = ask("SELECT wr FROM pragma_table_list WHERE name = :t", t=table)
    return [kind, *(sorted(map(str, part)) for part in (columns, parents, indexes))]


def _postgresql_table(ask: Query, table: str) -> list[Any]:
    columns = ask(
        "SELECT column_name, data_type, is_nullable, column_default FROM information_schema.columns"
        " WHERE table_schema = 'public' AND table_name = %(t)s",
        t=table,
    )
    constraints = ask(
        "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint"
        " WHERE conrelid = %(t)s::regclass AND contype <> 'n'",
        t=table,
    )
    indexes = ask("SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename = %(t)s", t=table)
    return [sorted(map(str, part)) for part in (columns, constraints, indexes)]


async def test_a_database_of_a_newer_version_is_refused_and_left_alone(ready_url: str, opening: Opening) -> None:
    """It would be unwise to guess what it means."""
    query(ready_url, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(DatabaseNewer, match="9999"):
        await opening(ready_url)
    assert query(ready_url, "SELECT version_num FROM alembic_version") == [{"version_num": "9999"}]


def test_a_database_that_is_up_to_date_opens_without_alembic(ready_url: str) -> None:
    """Loading it would be most of the time that a start takes."""
    program = (
        "import asyncio, sys\n"
        "from denizen.clock import SystemClock\n"
        "from denizen.storage.opening import open_database\n"
        "async def main():\n"
        "    await (await open_database(sys.argv[1], clock=SystemClock(), announce=print)).close()\n"
        "asyncio.run(main())\n"
        "assert 'alembic' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program, ready_url], check=True, env={"PYTHONPATH": str(ROOT / "src")})


def test_files_from_before_they_were_read_are_read_and_recalled(database_url: str) -> None:
    """Those of kinds that are read; what an agent has heard of them becomes recallable."""
    migrate(database_url, "0032")
    content = {"organization_id": "org-1", "link_key": "k", "size": 5, "created_at": START}
    file = {"organization_id": "org-1", "uploader_id": "entity-sam", "message_id": "message-1", "created_at": START}
    old: list[tuple[str, dict[str, Any]]] = []
    for name in ("Plan.PDF", "notes.txt", "photo.png", "bundle.zip"):
        kind = "image/png" if name.endswith("png") else "application/octet-stream"
        old.append(("contents", {"id": f"content of {name}", "digest": name, **content}))
        old.append(
            ("files", {"id": name, "content_id": f"content of {name}", "name": name, "media_type": kind, **file})
        )
    load(database_url, [*fixture_rows("0032"), *old])
    migrate(database_url)
    with connected(database_url) as ask:
        waiting = ask("SELECT id FROM contents WHERE reading = 'waiting' ORDER BY id")
        heard = ask("SELECT agent_id, cycle, next_page FROM heard_files WHERE file_id = 'Plan.PDF'")
    assert [row["id"] for row in waiting] == ["content of Plan.PDF", "content of photo.png"]
    assert heard == [{"agent_id": "entity-ada", "cycle": 1, "next_page": 1}]


def test_an_upgrade_is_told_in_the_log(database_url: str, make_empty: Callable[[], str]) -> None:
    """An operator sees that the schema changes, and what it was; a new database is nothing to tell of."""
    with capture_logs() as logs:
        migrate(make_empty())
    assert logs == []
    old = database_url
    migrate(old, "0020")
    with capture_logs() as logs:
        migrate(old)
        migrate(old)
    told = {"event": "database is being upgraded", "was": "0020", "will_be": migrating.HEAD, "log_level": "info"}
    assert logs == [told]
