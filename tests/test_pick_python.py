"""Which Python `make` makes .venv with (`requirements/pick_python.py`)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from requirements import pick_python


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine without any Python."""
    monkeypatch.setattr(pick_python, "FOLDERS", ())
    monkeypatch.setattr(sys, "argv", ["pick_python.py"])
    monkeypatch.setenv("PATH", str(tmp_path))
    return Machine(tmp_path)


class Machine:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def install(self, name: str, seconds: str) -> str:
        """A Python that takes this long; `too old` is one that cannot run Denizen."""
        told = f"echo {seconds}" if seconds != "too old" else "exit 1"
        path = self._folder / name
        path.write_text(f"#!/bin/sh\n{told}\n")
        path.chmod(0o755)
        return str(path)


def picked(capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    pick_python.main()
    told = capsys.readouterr()
    return told.out.strip(), told.err.strip()


def test_it_is_python3_if_no_other_is_much_faster(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    usual = machine.install("python3", "0.10")
    machine.install("python3.12", "0.09")
    assert picked(capsys) == (usual, "")


def test_a_much_faster_python_is_used_and_told(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    usual = machine.install("python3", "0.15")
    other = machine.install("python3.11", "0.10")
    machine.install("python3.13", "0.11")
    path, told = picked(capsys)
    assert path == other
    assert told == f"Using {other}: it is 1.5 times as fast as {usual}.\n`make PYTHON=python3` uses python3."


def test_an_old_python3_is_passed_over(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    usual = machine.install("python3", "too old")
    other = machine.install("python3.14", "0.2")
    assert picked(capsys) == (other, f"Using {other}: {usual} is older than 3.11, or has no venv.")


def test_a_python_that_is_named_is_used_even_if_others_are_faster(
    machine: Machine, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.install("python3", "0.01")
    named = machine.install("mine", "0.2")
    monkeypatch.setattr(sys, "argv", ["pick_python.py", named])
    assert picked(capsys) == (named, "")


def test_without_a_python_that_will_do_it_says_what_is_needed(machine: Machine) -> None:
    machine.install("python3", "too old")
    with pytest.raises(SystemExit, match=r"needs CPython 3\.11 or newer.*make PYTHON=/path/to/python3"):
        pick_python.main()


def test_the_work_is_timed_in_a_process_of_each() -> None:
    assert 0 < (pick_python.seconds(sys.executable) or 0) < 60
    assert pick_python.seconds("/nowhere/python3") is None


def test_it_runs_as_make_calls_it() -> None:
    command = [sys.executable, pick_python.__file__, sys.executable]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == sys.executable
