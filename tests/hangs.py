"""A test that hangs ends, whatever holds it, and its failure says what every task was waiting for.

pytest-timeout decides how long a test may take. Its own alarm rings once and fails the test as an assertion does: what
catches that, or does the same again, hangs on for ever. Hypothesis replays a failing example, and a task keeps what is
raised in it until somebody asks. This alarm raises what nothing catches by mistake, rings again until the test with its
teardown is over, and ends the process if that does not help: under xdist another worker goes on with the other tests.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from types import FrameType
from typing import Any, Final, NamedTuple

import pytest
from pytest_timeout import is_debugging

again_seconds = 60.0
"""A test that still runs so long after an alarm hears the next."""
TRIES: Final = 3
"""After so many alarms the process ends."""


class TestHangs(BaseException):
    """The test took longer than it may. No `Exception`, so that neither it nor Hypothesis takes it for a failure."""

    __test__ = False  # nothing for pytest to collect


class Limit(NamedTuple):
    """As pytest-timeout gives it."""

    timeout: float
    method: str
    func_only: bool
    disable_debugger_detection: bool


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Limit) -> bool:
    """Instead of the alarm that pytest-timeout would set."""
    rung, is_ringing = 0, False

    def ring(_number: int, _frame: FrameType | None) -> None:
        nonlocal rung, is_ringing
        if is_ringing or (is_debugging() and not settings.disable_debugger_detection):
            return
        is_ringing = True
        rung += 1
        what = f"{item.nodeid} takes longer than {settings.timeout:g} seconds (alarm {rung} of {TRIES})."
        told = "\n".join([what, *stacks()])
        if rung < TRIES:
            is_ringing = False
            raise TestHangs(told)
        capture: Any = item.config.pluginmanager.getplugin("capturemanager")
        capture.stop_global_capturing()
        os.write(2, f"\n{told}\nThis process ends: the alarms before did not end the test.\n".encode())
        os._exit(1)

    signal.signal(signal.SIGALRM, ring)
    # Repeated by the kernel: one that rings just before this thread begins to wait for a lock is heard with the next.
    signal.setitimer(signal.ITIMER_REAL, settings.timeout, again_seconds)
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_cancel_timer() -> bool:
    """pytest-timeout asks for this when a test has failed, before its teardown, which may hang as well."""
    return True


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol() -> Iterator[None]:
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def stacks() -> Iterator[str]:
    """Where each thread is, and where each task of each loop waits."""
    names = {each.ident: each.name for each in threading.enumerate()}
    for thread, frame in sys._current_frames().items():
        yield f"\nThread {names.get(thread, thread)}:"
        yield "".join(traceback.format_stack(frame)).rstrip()
    for loop in _running_loops():
        for task in sorted(asyncio.all_tasks(loop), key=asyncio.Task.get_name):
            yield f"\n{task!r}"
            yield from _awaiting(task.get_coro())


def _running_loops() -> list[asyncio.AbstractEventLoop]:
    # Of each object only its type: some pretend to be of another class, and do much when they are asked.
    found = [each for each in gc.get_objects() if issubclass(type(each), asyncio.AbstractEventLoop)]
    return [each for each in found if each.is_running()]


def _awaiting(waiting: Any) -> Iterator[str]:
    """The lines of a task, from its first function to the one that waits."""
    while waiting is not None:
        # Of a coroutine, a generator or an asynchronous generator; what is at the end is none of them.
        kind = next((each for each in ("cr", "gi", "ag") if hasattr(waiting, f"{each}_frame")), None)
        if kind is None:
            return
        if (frame := getattr(waiting, f"{kind}_frame")) is not None:
            yield "".join(traceback.format_stack(frame, 1)).rstrip()
        waiting = getattr(waiting, "gi_yieldfrom" if kind == "gi" else f"{kind}_await")
