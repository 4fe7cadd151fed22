"""`denizen doctor`: says what is, and what to do about what is not right. It changes nothing."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import psycopg
import pytest

from denizen import ManualClock, Runtime, __version__
from denizen.cli.findings import Finding, guarded, in_thread
from denizen.errors import DenizenError
from denizen.inbox import parking
from denizen.shapes.agents import AgentTrouble
from denizen.shapes.health import AgentHealth, HealthOut
from denizen.storage.database import Tx
from denizen.storage.migrating import HEAD, REVISIONS, migrate_postgresql, migrate_sqlite
from tests.cli.conftest import Run
from tests.made import made
from tests.servers import Server


class Report:
    """What a run of the doctor says, by check."""

    def __init__(self, run: Run, **environ: str) -> None:
        result = run("doctor", "--json", **environ)
        assert result.exit_code in (0, 1), result.output
        told = json.loads(result.stdout)
        self.well = result.exit_code == 0
        assert told["ok"] is self.well
        self.checks: dict[str, dict[str, str]] = {each["check"]: each for each in told["checks"]}

    def status(self, check: str) -> str:
        return self.checks[check]["status"]

    def said(self, check: str) -> str:
        return self.checks[check]["said"]


def test_before_the_first_start_nothing_is_wrong_and_nothing_is_made(run: Run, environ: dict[str, str]) -> None:
    """A stranger who asks first is told what will happen; no file appears by asking."""
    report = Report(run)
    assert report.well
    assert (report.status("Python"), report.status("Settings"), report.status("Disk")) == ("ok", "ok", "ok")
    assert [report.status(check) for check in ("Home", "Database", "Server")] == ["note", "note", "note"]
    assert not Path(environ["DENIZEN_HOME"]).exists()


def test_files_that_others_may_read_are_told_and_the_next_start_closes_them(run: Run, environ: dict[str, str]) -> None:
    """Also those of a home that an older version made."""
    assert run("spaces", "list").exit_code == 0
    home = Path(environ["DENIZEN_HOME"])
    files = [home, home / "denizen.db"]
    assert [stat.S_IMODE(each.stat().st_mode) for each in files] == [0o700, 0o600]
    assert "Files" not in Report(run).checks

    home.chmod(0o755)
    (home / "token").touch()
    for name in ("denizen.db", "token"):
        (home / name).chmod(0o644)
    report = Report(run)
    assert (report.well, report.status("Files")) == (False, "problem")
    for each in (str(home), str(home / "denizen.db"), str(home / "token")):
        assert each in report.said("Files")
    assert stat.S_IMODE(home.stat().st_mode) == 0o755, "nothing is changed by asking"

    assert run("spaces", "list").exit_code == 0
    assert [stat.S_IMODE(each.stat().st_mode) for each in (*files, home / "token")] == [0o700, 0o600, 0o600]
    assert "Files" not in Report(run).checks


def test_people_read_a_list_with_marks(run: Run) -> None:
    """A tick, an exclamation mark or a cross, and an arrow to what to do."""
    result = run("doctor", REDIS_URL="redis://127.0.0.1:1/0")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert any(line.startswith("✓ Python") for line in lines)
    assert any(line.startswith("! Server") for line in lines)
    assert any(line.startswith("✗ Redis") for line in lines)
    assert any(line.strip() == "→ Start it with `denizen up`." for line in lines)


def test_wrong_settings_are_told_one_by_one(run: Run) -> None:
    """The other checks would look in the wrong places, and are left out."""
    result = run("doctor", DENIZEN_PROT="1", DENIZEN_LOG_LEVEL="loud")
    assert result.exit_code == 1
    assert result.stdout.count("✗ Settings") == 2
    assert "Did you mean DENIZEN_PORT?" in result.stdout
    assert "Database" not in result.stdout


def test_a_home_that_is_a_file_is_told(run: Run, environ: dict[str, str]) -> None:
    Path(environ["DENIZEN_HOME"]).write_text("")
    report = Report(run)
    assert (report.well, report.status("Home")) == (False, "problem")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_home_that_may_not_be_written_is_told(run: Run, environ: dict[str, str]) -> None:
    Path(environ["DENIZEN_HOME"]).mkdir(mode=0o500)
    assert Report(run).status("Home") == "problem"


async def make_world(url: str) -> None:
    """Three agents asleep and one suspended."""
    async with Runtime(url) as denizen:
        agents = [await denizen.agents.create(name, model="demo") for name in ("Ada", "Bo", "Cy", "Di")]
        await denizen.agents.suspend(agents[0])


def test_a_database_with_agents_is_described(run: Run, database_url: str) -> None:
    """Kind, version, schema, and how many live in it."""
    asyncio.run(make_world(database_url))
    report = Report(run, DATABASE_URL=database_url)
    assert report.well
    assert report.status("Database") == "ok"
    assert report.said("Database").startswith("SQLite 3." if "sqlite" in database_url else "PostgreSQL ")
    assert report.said("Schema") == f"Up to date ({HEAD})."
    assert report.said("Agents") == "4 agents: 0 awake, 3 asleep, 1 suspended."
    assert report.said("Instances") == "0 processes alive."
    assert "Events" not in report.checks
    assert (report.status("@ada"), "@bo" in report.checks) == ("note", False), "whoever suspended it knows"


def change(url: str, *statements: str) -> None:
    """Run these statements in the database."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as connection:
            for each in statements:
                connection.execute(each)
    else:
        with psycopg.connect(url, autocommit=True) as connection:
            for each in statements:
                connection.execute(each.encode())


def test_dead_events_need_a_person(run: Run, database_url: str) -> None:
    """What an agent failed at again and again waits for a person."""
    asyncio.run(make_world(database_url))
    new = "INSERT INTO events (agent_id, id, type, state, created_at) SELECT id, '{0}', 'timer', '{1}', 0 FROM agents"
    change(database_url, f"{new.format('a', 'dead')} WHERE status = 'active'", new.format("b", "done"))
    report = Report(run, DATABASE_URL=database_url)
    assert (report.well, report.status("Events"), report.status("@bo")) == (False, "problem", "problem")
    assert report.said("Events").startswith("3 dead events of 3 agents")
    assert report.said("@bo") == "It has set 1 message aside."
    assert report.checks["@bo"]["advice"] == "`denizen agents retry bo` has it try again at once."


async def make_troubled_world(url: str) -> None:
    """One agent with a key that was rejected, one with a model that nobody knows, one with a tool that is not here, one
    that a person waits for although it could think, one that is well."""
    clock = ManualClock()
    async with Runtime(url, clock=clock) as denizen:
        noor = await denizen.people.create("Noor")
        models = {"Ada": "demo", "Bo": "nobody:knows", "Cy": "demo", "Di": "demo", "Ed": "demo"}
        agents = {
            name: await denizen.agents.create(name, model=model, tools=["no_such_tool"] if name == "Cy" else ())
            for name, model in models.items()
        }

        def reject_key(tx: Tx) -> None:
            parking.park(tx, agents["Ada"].id, "key", provider="OpenAI")

        await denizen.db.write(reject_key)
        await denizen.spaces.post(await denizen.spaces.create("Two", [noor, agents["Di"]]), noor, "Hello?")


def test_every_agent_is_looked_at(run: Run, database_url: str) -> None:
    """What keeps each from thinking here, and who waits for it: all of that needs a person."""
    asyncio.run(make_troubled_world(database_url))
    report = Report(run, DATABASE_URL=database_url)
    assert not report.well
    assert {name: report.status(name) for name in ("@ada", "@bo", "@cy", "@di")} == dict.fromkeys(
        ("@ada", "@bo", "@cy", "@di"), "problem"
    )
    assert report.said("@ada").startswith("OpenAI rejected the API key of Ada.")
    assert report.said("@bo").startswith("Bo cannot use the model nobody:knows")
    assert "no_such_tool" in report.said("@cy")
    assert report.said("@di").startswith("1 message of people waits for it, the oldest for ")
    assert "@ed" not in report.checks
    assert "Thinking" not in report.checks


def test_the_server_that_runs_is_asked_whether_agents_can_think(run: Run, environ: dict[str, str]) -> None:
    """It may have other tools and keys than this process: what it says counts."""
    home = Path(environ["DENIZEN_HOME"])
    home.mkdir()
    (home / "token").write_text("dz_owner")
    trouble = made(AgentTrouble, cause="tool", text="Ada cannot use one of its tools here.")
    ada = made(AgentHealth, handle="ada", waiting=0, dead=0, needs_a_person=True, trouble=trouble)
    told = {"ok": True} | made(HealthOut, version=__version__, agents=[ada]).model_dump(mode="json")
    with neighbour(json.dumps(told).encode()) as port:
        report = Report(run, DENIZEN_PORT=str(port))
    assert (report.well, report.status("Server"), report.status("@ada")) == (False, "ok", "problem")
    assert report.said("@ada") == "Ada cannot use one of its tools here."


def test_a_model_is_probed_if_asked_for(run: Run, database_url: str) -> None:
    """The demo model answers; nothing else is asked."""
    asyncio.run(make_world(database_url))
    result = run("doctor", "--probe", "--json", DATABASE_URL=database_url)
    told = {each["check"]: each for each in json.loads(result.stdout)["checks"]}
    assert result.exit_code == 0, result.stdout
    assert told["@ada"]["status"] == "note"


def test_how_far_lives_are_embedded_is_told(run: Run, database_url: str) -> None:
    """Only where agents should recall by meaning; vectors of another embedder do not count."""
    asyncio.run(make_world(database_url))
    new = "INSERT INTO recalls (agent_id, passages, embedder, embedded) SELECT id, 8, '{0}', {1} FROM agents"
    change(database_url, new.format("openai:small", 5))
    assert "Recall" not in Report(run, DATABASE_URL=database_url).checks
    report = Report(run, DATABASE_URL=database_url, DENIZEN_EMBEDDER="openai:small")
    assert report.status("Recall") == "note"
    assert report.said("Recall") == "By meaning, with openai:small: 20 of 32 passages."
    assert (
        Report(run, DATABASE_URL=database_url, DENIZEN_EMBEDDER="openai:large")
        .said("Recall")
        .endswith(": 0 of 32 passages.")
    )
    change(database_url, "UPDATE recalls SET embedded = passages")
    assert Report(run, DATABASE_URL=database_url, DENIZEN_EMBEDDER="openai:small").status("Recall") == "ok"


def test_awake_agents_and_living_processes_are_counted(run: Run, database_url: str) -> None:
    """By the same clock as their leases."""
    asyncio.run(make_world(database_url))
    later = 2**62
    change(
        database_url,
        f"UPDATE leases SET holder = 'somebody', until = {later} "
        "WHERE agent_id = (SELECT min(id) FROM agents WHERE status = 'active')",
        f"INSERT INTO instances (id, seen_at) VALUES ('somebody', {later}), ('long gone', 0)",
    )
    report = Report(run, DATABASE_URL=database_url)
    assert report.said("Agents") == "4 agents: 1 awake, 2 asleep, 1 suspended."
    assert report.said("Instances") == "1 process alive."


def revision_of(url: str) -> str:
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            return connection.execute("SELECT version_num FROM alembic_version").fetchone()[0]
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        assert row is not None
        return row[0]


def test_an_older_schema_is_told_and_left_alone(run: Run, database_url: str) -> None:
    """Asking is no upgrade."""
    if database_url.startswith("sqlite"):
        migrate_sqlite(Path(database_url.removeprefix("sqlite:///")), to=REVISIONS[0])
    else:
        migrate_postgresql(database_url, to=REVISIONS[0])
    report = Report(run, DATABASE_URL=database_url)
    assert (report.well, report.status("Schema")) == (True, "note")
    assert report.said("Schema") == f"It is {REVISIONS[0]}; this Denizen writes {HEAD}."
    assert revision_of(database_url) == REVISIONS[0]


def test_a_newer_schema_is_a_problem(run: Run, database_url: str) -> None:
    """This Denizen would refuse to open it."""
    asyncio.run(make_world(database_url))
    change(database_url, "UPDATE alembic_version SET version_num = '9999'")
    report = Report(run, DATABASE_URL=database_url)
    assert (report.well, report.status("Schema")) == (False, "problem")
    assert "9999, from a newer Denizen" in report.said("Schema")
    assert "Agents" not in report.checks


def test_an_empty_postgresql_stays_empty(run: Run, postgres_url: str) -> None:
    report = Report(run, DATABASE_URL=postgres_url)
    assert (report.well, report.said("Schema")) == (True, "The database is empty.")
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (0,)


def test_a_server_that_is_away_is_told_without_its_password(run: Run) -> None:
    report = Report(
        run, DATABASE_URL="postgresql://ada:hunter2@127.0.0.1:1/x", REDIS_URL="redis://:hunter2@127.0.0.1:1"
    )
    assert (report.status("Database"), report.status("Redis")) == ("problem", "problem")
    assert "cannot be reached" in report.said("Database")
    assert "hunter2" not in json.dumps(report.checks)


def test_a_file_that_is_no_database_is_told(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "denizen.db"
    path.write_text("Dear diary, " * 1_000)
    report = Report(run, DATABASE_URL=f"sqlite:///{path}")
    assert (report.well, report.status("Database")) == (False, "problem")
    assert path.read_text().startswith("Dear diary")


def test_a_damaged_database_is_told(run: Run, sqlite_url: str) -> None:
    """The file opens, and yet part of it is gone."""
    asyncio.run(make_world(sqlite_url))
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    with closing(sqlite3.connect(path)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'entities'").fetchone()
        (page_size,) = connection.execute("PRAGMA page_size").fetchone()
    with path.open("r+b") as file:
        file.seek((page - 1) * page_size)
        file.write(b"\xff" * page_size)
    report = Report(run, DATABASE_URL=sqlite_url)
    assert not report.well
    assert "broken" in json.dumps(report.checks)


def test_a_file_in_use_says_by_whom_and_asking_leaves_nothing_behind(run: Run, sqlite_url: str) -> None:
    """Two processes may use it; whoever looks for the other one is told its number."""
    asyncio.run(make_world(sqlite_url))
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    program = (
        "import sqlite3, sys\n"
        "connection = sqlite3.connect(sys.argv[1])\n"
        "connection.execute('SELECT count(*) FROM agents').fetchone()\n"
        "print('open', flush=True)\n"
        "sys.stdin.read()\n"
    )
    arguments = [sys.executable, "-c", program, str(path)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        assert Report(run, DATABASE_URL=sqlite_url).said("Database").endswith(f"open in process {other.pid}.")
        other.communicate("")
    assert Report(run, DATABASE_URL=sqlite_url).said("Database").endswith("not in use.")
    assert [each.name for each in path.parent.iterdir() if each.name.startswith("denizen.db")] == ["denizen.db"]


def test_a_locked_file_is_told(run: Run, sqlite_url: str) -> None:
    """Another program that keeps everyone out is named as the reason."""
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("CREATE TABLE t (x)")
        other.execute("BEGIN EXCLUSIVE")
        report = Report(run, DATABASE_URL=sqlite_url)
    assert report.status("Database") == "problem"
    assert "Another program holds the database" in report.said("Database")


def test_a_temporary_database_is_noted(run: Run) -> None:
    assert "forgotten" in Report(run, DATABASE_URL="sqlite://").said("Database")


def test_redis_is_asked_for_its_version(run: Run, redis_url: str) -> None:
    """Only where one is configured."""
    report = Report(run, REDIS_URL=redis_url)
    assert report.status("Redis") == "ok"
    assert report.said("Redis").startswith(("Redis ", "Valkey "))
    assert "Redis" not in Report(run).checks


def test_a_redis_that_has_stopped_is_told(run: Run, redis_server: Server) -> None:
    redis_server.stop()
    assert Report(run, REDIS_URL=redis_server.url).status("Redis") == "problem"


def test_the_model_is_told_with_the_reason(run: Run) -> None:
    """And what its provider needs, where that is missing."""
    assert Report(run).status("Model") == "ok"
    missing = Report(run, DENIZEN_MODEL="openai:gpt-5.2")
    assert (missing.well, missing.status("Model")) == (False, "problem")
    assert "OPENAI_API_KEY" in missing.said("Model")
    assert Report(run, DENIZEN_MODEL="openai:gpt-5.2", OPENAI_API_KEY="sk-hunter2hunter2").status("Model") == "ok"


def test_a_key_in_dotenv_counts(run: Run) -> None:
    """It is handed to the provider's library, as `denizen up` does."""
    Path(".env").write_text("OPENAI_API_KEY=sk-hunter2hunter2\n")
    report = Report(run, DENIZEN_MODEL="openai:gpt-5.2")
    assert report.status("Model") == "ok"
    assert "hunter2" not in json.dumps(report.checks)


class _Answering(BaseHTTPRequestHandler):
    body: ClassVar[bytes]

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@contextmanager
def neighbour(answer: bytes) -> Iterator[int]:
    """The port of a program that answers so."""
    with HTTPServer(("127.0.0.1", 0), type("Handler", (_Answering,), {"body": answer})) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (json.dumps({"status": "ok", "version": __version__}), "ok", f"Denizen {__version__} answers on "),
        (json.dumps({"status": "ok", "version": "99.0"}), "note", f"; this is {__version__}."),
        ("<html>", "problem", "Another program answers on "),
        ("[]", "problem", "Another program answers on "),
    ],
)
def test_whoever_answers_on_the_port_is_told(run: Run, body: str, status: str, said: str) -> None:
    """Our own server, one of another version, or somebody else who has taken the port."""
    with neighbour(body.encode()) as port:
        report = Report(run, DENIZEN_PORT=str(port))
    assert report.status("Server") == status
    assert said in report.said("Server")


def test_a_host_that_the_server_would_refuse_is_told(run: Run) -> None:
    assert Report(run, DENIZEN_HOST="0.0.0.0").status("Server") == "problem"


async def test_a_check_that_fails_spoils_no_other() -> None:
    """Whatever happens in it becomes its own line."""

    async def breaks() -> list[Finding]:
        raise ZeroDivisionError("postgresql://ada:hunter2@db/x")

    async def refuses() -> list[Finding]:
        raise DenizenError("Not today.")

    (broken,) = await guarded("Broken", breaks)
    assert (broken.status, broken.said) == (
        "problem",
        "The check itself failed: ZeroDivisionError: postgresql://ada:•••@db/x",
    )
    assert await guarded("Refusing", refuses) == [Finding("Refusing", "problem", "Not today.")]


async def test_a_check_that_never_ends_is_given_up() -> None:
    """Even one that blocks its thread for good."""
    blocked = threading.Event()

    def wait() -> list[Finding]:
        blocked.wait()
        return []

    (finding,) = await guarded("Slow", lambda: in_thread(wait), limit_seconds=0.01)
    assert (finding.status, finding.said) == ("problem", "No answer within 0.01 seconds.")
    blocked.set()


async def test_a_check_may_limit_only_what_it_waits_for() -> None:
    """Importing the library of a provider takes more than ten seconds on a busy machine, and nothing is wrong."""

    async def gives_up() -> list[Finding]:
        raise TimeoutError

    (finding,) = await guarded("Model", gives_up, limit_seconds=None)
    assert (finding.status, finding.said) == ("problem", "No answer within 10 seconds.")
