"""`denizen up` as a person starts it: what it says when it can, and when it cannot."""

from __future__ import annotations

import os
import pty
import re
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from denizen import Runtime
from denizen.access import tokens
from denizen.cli.up import token_name
from denizen.spaces.handles import check_name
from tests import warm
from tests.cli.conftest import Run
from tests.fresh import ROOT, started, until
from tests.servers import free_port

UP = [sys.executable, "-m", "denizen", "up"]
"""A real start. Where that is not the point, it is a warm one."""


@pytest.fixture
def refused(run: Run) -> Callable[..., str]:
    """What a start that cannot succeed says on stderr, in one line."""

    def ask(**environment: str) -> str:
        ended = run("up", COLUMNS="400", **environment)
        assert ended.exit_code == 1, ended.stderr
        assert "Traceback" not in ended.stderr
        return ended.stderr.strip()

    return ask


def test_a_taken_port_is_told_with_what_to_do(refused: Callable[..., str], tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = refused(DENIZEN_PORT=str(port))
    assert str(port) in said
    assert "DENIZEN_PORT" in said
    assert not (tmp_path / "home").exists(), "nothing is made before the port is sure"


def test_a_folder_that_cannot_be_written_is_told_with_what_to_do(refused: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = refused(DENIZEN_HOME=str(tmp_path / "file" / "home"), DENIZEN_PORT="0")
    assert "cannot write to its folder" in said
    assert "DENIZEN_HOME" in said


def test_a_broken_configuration_is_told_with_its_place_and_the_nearest_name(refused: Callable[..., str]) -> None:
    Path("denizen.toml").write_text("prot = 9000\n")
    said = refused()
    assert "denizen.toml" in said
    assert "port" in said
    assert "settings_invalid" in said


def test_a_broken_file_of_tools_is_told_with_its_line(refused: Callable[..., str]) -> None:
    Path("kitchen.py").write_text("import denizen\n\n1 / 0\n")
    said = refused(DENIZEN_TOOLS="kitchen.py,nope.py", DENIZEN_PORT="0", DENIZEN_MODEL="demo")
    assert (
        f"kitchen.py cannot be loaded: ZeroDivisionError: division by zero ({Path('kitchen.py').resolve()}, line 3)."
        in said
    )
    assert "there is no file" in said
    assert "settings_invalid" in said


def test_a_host_beyond_this_machine_is_refused_unless_it_is_safe(refused: Callable[..., str], tmp_path: Path) -> None:
    """With what to do, and before anything is made."""
    said = refused(DENIZEN_HOST="0.0.0.0", DENIZEN_PORT="0")
    for expected in ("tls.certificate", "trusted_proxy", "loopback", "settings_invalid"):
        assert expected in said
    files = {"DENIZEN_TLS__CERTIFICATE": "nothing.pem", "DENIZEN_TLS__KEY": "nothing.pem"}
    said = refused(DENIZEN_PORT="0", **files)
    assert "nothing.pem for HTTPS is not there" in said
    assert not (tmp_path / "home").exists()


SECRET = re.compile(r"dz[a-z]?_[\w-]{20,}")
"""A secret of ours as it stands in a text."""


@pytest.mark.timeout(900)
def test_a_start_says_where_to_go_and_sigterm_drains(tmp_path: Path) -> None:
    """The second start finds everything as it was; what was asked last is answered in the end."""
    home = tmp_path / "home"
    with started(UP, ROOT, home) as house:
        until(lambda: "denizen login" in house.output.read_text(), 100)
        said = house.output.read_text()
        address = f"http://127.0.0.1:{house.port}"
        for expected in ("is up", address, "Ada, Bo", "Lobby", "demo", "[budget]"):
            assert expected in said
        private = next(space for space in house.get("/api/spaces")["spaces"] if space["name"].endswith("Ada"))
        house.post(f"/api/spaces/{private['id']}/messages", {"text": "Hello!"})
        os.killpg(house.process.pid, signal.SIGTERM)
        assert house.process.wait(timeout=100) == 0
    assert "Stopped. Everything is saved." in house.output.read_text()

    before = len(house.output.read_text())
    with started(UP, ROOT, home) as house:
        until(lambda: "is up" in house.output.read_text()[before:], 100)
        answered = until(lambda: said if len(said := house.said(private["id"])) > 1 else None, 100)
        assert [line.split(":")[0] for line in answered][1:] == ["Ada"]


@pytest.mark.timeout(900)
def test_a_start_tells_that_the_key_of_the_model_is_missing(tmp_path: Path) -> None:
    """Not only when somebody waits for an answer. With the key of the organization, nothing is missing."""
    home, settings = tmp_path / "home", {"DENIZEN_MODEL": "openai:gpt-5", "COLUMNS": "300"}
    missing = "needs the API key OPENAI_API_KEY. Add it under Administration › Keys"
    said: list[str] = []
    for _ in range(2):
        with started([*warm.denizen(), "up"], ROOT, home, settings=settings) as house:
            until(lambda: "denizen login" in house.output.read_text(), 100)
            said.append(house.output.read_text())
            command = [*warm.denizen(), "secrets", "set", "OPENAI_API_KEY"]
            environment = os.environ | {"DENIZEN_HOME": str(home)}
            subprocess.run(command, input="sk-of-the-organization", text=True, check=True, env=environment)
        house.output.unlink()
    assert [missing in each for each in said] == [True, False]


@pytest.mark.timeout(900)
def test_without_a_terminal_no_secret_is_in_the_output_or_the_logs(tmp_path: Path) -> None:
    """The output of a service ends in a journal. It says where the token is kept and what prints a link to sign in.
    Everything is logged here, and secrets of every kind are made and used."""
    home = tmp_path / "home"
    command = [*warm.denizen(), "-v", "up"]
    with started(command, ROOT, home) as house:
        until(lambda: "denizen login" in house.output.read_text(), 100)
        assert "kept in" in house.output.read_text()
        private = {each.name: stat.S_IMODE(each.stat().st_mode) for each in home.iterdir()}
        assert {mode & 0o077 for mode in private.values()} == {0}, private
        assert "denizen.db-wal" in private
        made = house.post("/api/tokens", {"name": "Backup"})["secret"]
        link = house.post("/api/logins", {})["secret"]
        assert SECRET.fullmatch(made)
        assert SECRET.fullmatch(link)
        house.post("/api/session", {"secret": link})
        house.get(f"/api/spaces?token={made}&link={link}")
    said = house.output.read_text()
    assert "Stopped" in said
    assert SECRET.findall(said) == []


@pytest.mark.timeout(900)
def test_in_a_terminal_a_first_start_shows_the_token_and_every_start_a_link(tmp_path: Path) -> None:
    home = tmp_path / "home"
    said = up_in_a_terminal(home)
    token = (home / "token").read_text().strip()
    assert token in said
    assert re.search(r"http://127\.0\.0\.1:\d+/login#dzl_[\w-]{43}\s", said)
    again = up_in_a_terminal(home)
    assert token not in again
    assert re.search(r"/login#dzl_[\w-]{43}\s", again)


def up_in_a_terminal(home: Path) -> str:
    """What `denizen up` prints to a terminal until it has said hello; it has stopped afterwards."""
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb", buffering=0) as screen:
        environ = {"PATH": os.environ["PATH"], "HOME": str(home.parent), "DENIZEN_HOME": str(home)}
        environ |= {"DENIZEN_PORT": str(free_port()), "DENIZEN_MODEL": "demo", "TERM": "dumb", "COLUMNS": "200"}
        process = subprocess.Popen([*warm.denizen(), "up"], cwd=ROOT, env=environ, stdout=theirs, stderr=theirs)
        os.close(theirs)
        said = b""
        while b"makes another" not in said:
            said += screen.read(4096)
        process.send_signal(signal.SIGTERM)
        try:
            while more := screen.read(4096):
                said += more
        except OSError:
            pass  # Linux tells the end of a terminal so
        assert process.wait(timeout=100) == 0
    return said.decode()


async def test_a_new_token_of_a_folder_replaces_the_one_before(tmp_path: Path, ready_sqlite_url: str) -> None:
    """A start with an emptied folder makes a token for the owner: the one that was lost opens nothing any more.
    Tokens of another instance on the same database, and those that people made, stay."""
    async with Runtime(ready_sqlite_url) as denizen:
        noor = await denizen.people.create("Noor")
        here, there = token_name(tmp_path / "here"), token_name(tmp_path / "there")
        _, own = await denizen.db.write(tokens.create, noor.id, "command line")
        secrets = [(await denizen.db.write(tokens.replace_named, noor.id, name))[1] for name in (here, there, here)]
        found = [await denizen.db.read(tokens.find, secret) is not None for secret in (own, *secrets)]
    assert found == [True, False, True, True]


def test_the_name_of_a_folders_token_is_one_that_tokens_may_have() -> None:
    for home in (Path("/h"), Path("/" + "long/" * 60 + "end"), Path("/odd\nname\udcff")):
        assert check_name(token_name(home)) == token_name(home)
    assert token_name(Path("/" + "long/" * 60 + "end")).endswith("long/end")


def test_other_commands_find_the_port_of_the_running_server(run: Run, environ: dict[str, str], tmp_path: Path) -> None:
    """Which may not be the configured one. When it has ended, or was killed, the settings say where it would be."""
    home, configured = Path(environ["DENIZEN_HOME"]), f"http://127.0.0.1:{environ['DENIZEN_PORT']}"

    def printed() -> str:
        return run("login").stdout.partition("/login#")[0]

    command = [*warm.denizen(), "up", "--port", "0"]
    with started(command, ROOT, home, settings={"DENIZEN_MODEL": "demo"}, finds_port=True) as house:
        running = f"http://127.0.0.1:{house.port}"
        assert running != configured
        assert printed() == running
        assert f"answers on {running}" in run("doctor").stdout
        assert "Ada" in run("chat", "@ada", "--once", "Hello").stdout
    assert printed() == configured
    (home / "address").write_text(f"http://127.0.0.1:{free_port()}\n")
    assert printed() == configured, "nothing answers there"
    assert list(tmp_path.glob("home/address")) != []
