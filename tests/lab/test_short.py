"""The laboratory in short: each of its faults once, on both databases."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WRONG = ("lost", "twice", "out_of_order", "effects_twice", "silent", "findings")


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_every_fault_once(database: str, tmp_path: Path) -> None:
    """Nothing is lost, done twice or out of order, and everyone is answered or told. What the clients saw is kept."""
    command = [sys.executable, "-m", "lab", "--database", database, "--short", "--seed", "7", "--keep", tmp_path]
    # A commit before this one may be anything; tests/deploy rolls out the same version.
    environment = {**os.environ, "LAB_OLD_VERSION": ""}
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment)
    assert ran.returncode == 0, ran.stderr
    result = json.loads(ran.stdout.splitlines()[-1])
    assert {name: result[name] for name in WRONG} == dict.fromkeys(WRONG, 0)
    assert result["lab"] == database
    assert result["acknowledged"] >= result["trials"] >= 10
    assert list(tmp_path.glob("worlds/*/history.jsonl"))


@pytest.mark.timeout(300)
def test_a_killed_laboratory_leaves_no_process(tmp_path: Path) -> None:
    """Neither the servers nor the process that forks them."""
    command = [sys.executable, "-m", "lab", "--faults", "SIGSTOP", "--trials", "100", "--seed", "1", "--keep", tmp_path]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as laboratory:
        assert laboratory.stderr is not None
        while "SIGSTOP: " not in (line := laboratory.stderr.readline()):
            assert line, "The laboratory ended before its first trial."
        processes = [os.pidfd_open(pid) for pid in _descendants(laboratory.pid)]
        assert len(processes) >= 2
        laboratory.send_signal(signal.SIGKILL)
    for process in processes:
        # A process that has ended can be read; one that goes on keeps this waiting.
        select.select([process], [], [])
        os.close(process)


@pytest.mark.timeout(300)
def test_a_laboratory_that_is_to_end_keeps_what_it_has_done(tmp_path: Path) -> None:
    """Its world comes to rest, is judged, and counts."""
    command = [sys.executable, "-m", "lab", "--faults", "SIGSTOP", "--trials", "100", "--seed", "1", "--keep", tmp_path]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as laboratory:
        assert laboratory.stderr is not None
        while "SIGSTOP: " not in (line := laboratory.stderr.readline()):
            assert line, "The laboratory ended before its first trial."
        laboratory.send_signal(signal.SIGTERM)
        said, _ = laboratory.communicate()
    assert laboratory.returncode == 0
    assert 1 <= json.loads(said)["trials"] < 100


def _descendants(pid: int) -> list[int]:
    children = [
        int(child) for task in Path(f"/proc/{pid}/task").glob("*/children") for child in task.read_text().split()
    ]
    return [each for child in children for each in (child, *_descendants(child))]
