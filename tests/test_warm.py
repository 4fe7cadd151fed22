"""A process that was forked behaves as one that was started."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests import warm
from tests.servers import free_port


@pytest.mark.parametrize("arguments", [["--version"], ["no-such-command"], ["config", "--json"]])
def test_it_says_and_ends_as_a_real_start_does(arguments: list[str], tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "DENIZEN_HOME": str(tmp_path / "home"), "NO_COLOR": "1", "COLUMNS": "90"}
    started, forked = [
        subprocess.run([*command, *arguments], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
        for command in ([sys.executable, "-m", "denizen"], warm.denizen())
    ]
    assert (forked.returncode, forked.stdout, forked.stderr) == (started.returncode, started.stdout, started.stderr)
    assert forked.stdout + forked.stderr


def test_a_start_imports_nothing_of_ours_anew(tmp_path: Path) -> None:
    """Otherwise each of the processes that the tests start pays for it again."""
    environ = {
        "HOME": str(tmp_path),
        "DENIZEN_HOME": str(tmp_path / "home"),
        "DENIZEN_PORT": str(free_port()),
        "DENIZEN_MODEL": "demo",
        warm.TELL_IMPORTS: str(tmp_path / "imported"),
    }
    with subprocess.Popen(
        [*warm.denizen(), "up"], cwd=tmp_path, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        assert any("is up" in line for line in process.stdout)
        process.terminate()
        process.communicate()
    imported = (tmp_path / "imported").read_text().split()
    assert [name for name in imported if name.startswith(("denizen", "pydantic_ai"))] == []


def test_killed_it_takes_the_other_with_it(tmp_path: Path) -> None:
    port = free_port()
    environ = {"HOME": str(tmp_path), "DENIZEN_HOME": str(tmp_path / "home"), "DENIZEN_PORT": str(port)}
    with subprocess.Popen(
        [*warm.denizen(), "up"], cwd=tmp_path, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        assert any("is up" in line for line in process.stdout)
        process.kill()
        process.communicate()  # to the end of what the other writes
    with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
        pass
