"""`denizen up` as a person starts it: what it says when it can, and when it cannot."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.fresh import ROOT, started, until

UP = [sys.executable, "-m", "denizen", "up"]


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


@pytest.mark.timeout(900)
def test_a_start_says_where_to_go_and_the_token_once_and_sigterm_drains(tmp_path: Path) -> None:
    """The second start finds everything as it was and shows no token; what was asked last is answered in the end."""
    home = tmp_path / "home"
    with started(UP, ROOT, home) as house:
        until(lambda: "denizen login" in house.output.read_text(), 100)
        said = house.output.read_text()
        address = f"http://127.0.0.1:{house.port}"
        for expected in ("is up", address, "Ada, Bo", "Lobby", "demo", "[budget]", house.token):
            assert expected in said
        assert re.search(rf"http://127\.0\.0\.1:{house.port}/login#dzl_[\w-]{{43}}\s", said)
        private = next(space for space in house.get("/api/spaces")["spaces"] if space["name"].endswith("Ada"))
        house.post(f"/api/spaces/{private['id']}/messages", {"text": "Hello!"})
        os.killpg(house.process.pid, signal.SIGTERM)
        assert house.process.wait(timeout=100) == 0
    assert "Stopped. Everything is saved." in house.output.read_text()

    before = len(house.output.read_text())
    with started(UP, ROOT, home) as house:
        until(lambda: "is up" in house.output.read_text()[before:], 100)
        assert house.token not in house.output.read_text()[before:]
        answered = until(lambda: said if len(said := house.said(private["id"])) > 1 else None, 100)
        assert [line.split(":")[0] for line in answered][1:] == ["Ada"]
