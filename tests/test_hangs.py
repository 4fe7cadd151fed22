"""A test that hangs fails, and says where."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.fresh import ROOT

REPLAYED = """
import asyncio
from hypothesis import given, strategies as st

async def wait_for_what_never_comes():
    await asyncio.Event().wait()

async def live():
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(wait_for_what_never_comes(), name="the one that hangs")

@given(st.integers())
def test_hangs(number):
    asyncio.run(live())

def test_next():
    pass
"""

IN_TEARDOWN = """
import threading
import pytest

@pytest.fixture
def hanging():
    yield
    threading.Event().wait()

def test_fails(hanging):
    assert False, "as it should"

def test_next():
    pass
"""

IN_A_TASK = """
import asyncio

async def busy():
    while True:
        await asyncio.sleep(0)
        sum(range(20_000))

async def live():
    kept = asyncio.create_task(busy())
    await asyncio.Event().wait()  # what is raised in the other task is kept there, and nobody asks

def test_hangs():
    asyncio.run(live())
"""

CATCHES_ALL = """
import threading

def test_hangs():
    while True:
        try:
            threading.Event().wait()
        except BaseException:
            pass

def test_next():
    pass
"""


def run(
    folder: Path, tests: str, *arguments: str, seconds: float = 1, again_seconds: float = 60
) -> subprocess.CompletedProcess[str]:
    """Run these tests as ours are run, but each may take only so long."""
    (folder / "conftest.py").write_text(
        "from tests import hangs\n"
        "from tests.hangs import pytest_runtest_protocol, pytest_timeout_cancel_timer, pytest_timeout_set_timer\n"
        f"hangs.again_seconds = {again_seconds}\n"
    )
    (folder / "pytest.ini").write_text(
        f"[pytest]\npythonpath = {ROOT}\nasyncio_default_fixture_loop_scope = function\n"
    )
    (folder / "test_some.py").write_text(tests)
    plugins = ["-p", "no:schemathesis", "-p", "no:valkey"]
    command = [sys.executable, "-m", "pytest", *plugins, f"--timeout={seconds}", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_what_hangs_under_hypothesis_is_not_replayed_and_its_tasks_are_listed(tmp_path: Path) -> None:
    ran = run(tmp_path, REPLAYED, "-n0")
    assert "1 failed, 1 passed" in ran.stdout, ran.stdout + ran.stderr
    # Where CI is set, pytest repeats the whole failure in its summary.
    told, *_ = [each for each in ran.stdout.split("<Task ") if "name='the one that hangs'" in each]
    assert "wait_for=<Future pending" in told
    assert "in wait_for_what_never_comes" in told


def test_a_teardown_that_hangs_after_a_failure_fails_too(tmp_path: Path) -> None:
    ran = run(tmp_path, IN_TEARDOWN, "-n0", seconds=5)  # time enough for the failure to be told
    assert "1 failed, 1 passed, 1 error" in ran.stdout, ran.stdout + ran.stderr


def test_an_alarm_that_a_task_swallows_is_repeated(tmp_path: Path) -> None:
    ran = run(tmp_path, IN_A_TASK, "-n0", again_seconds=5)
    assert "1 failed" in ran.stdout, ran.stdout + ran.stderr


def test_a_test_that_nothing_ends_ends_its_worker_and_another_goes_on(tmp_path: Path) -> None:
    ran = run(tmp_path, CATCHES_ALL, "-n1", again_seconds=1)
    assert "1 failed, 1 passed" in ran.stdout, ran.stdout + ran.stderr
    assert "crashed while running 'test_some.py::test_hangs'" in ran.stdout
    assert "takes longer than 1 seconds (alarm 3 of 3)" in ran.stderr
    assert "threading.Event().wait()" in ran.stderr
