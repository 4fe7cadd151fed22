"""Work in forked processes: each has all that this one has imported and collected, and changes nothing of it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest

HANGS: Final = "it hangs"
DIED: Final = "the process died"


@dataclass(frozen=True, slots=True)
class Job:
    """What a process does, and how many seconds it may take."""

    name: Any
    do: Callable[[], Any]
    seconds: float


def forked(jobs: Iterable[Job], workers: int) -> Iterator[tuple[Any, Any]]:
    """The name and the result of each job, as it is done; `HANGS` or `DIED` if it has none."""
    todo, running = iter(jobs), dict[Connection, _Child]()
    while True:
        while len(running) < workers and (job := next(todo, None)) is not None:
            child = _Child(job)
            running[child.told] = child
        if not running:
            return
        ready = wait(list(running), timeout=1)
        for told, child in list(running.items()):
            if told in ready or time.monotonic() > child.until:
                del running[told]
                yield child.name, child.end()


class _Child:
    def __init__(self, job: Job) -> None:
        self.name, self.until = job.name, time.monotonic() + job.seconds
        self._folder = TemporaryDirectory(prefix="mutant-")
        forking = multiprocessing.get_context("fork")
        self.told, telling = forking.Pipe(duplex=False)
        self._process: BaseProcess = forking.Process(target=_work, args=(job.do, self._folder.name, telling))
        self._process.start()
        telling.close()

    def end(self) -> Any:
        try:
            result = self.told.recv() if self.told.poll() else HANGS
        except EOFError:
            result = DIED
        try:
            # It has a group of its own, with all that its tests have started.
            os.killpg(self._process.pid or 0, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.join()
        self.told.close()
        self._folder.cleanup()
        return result


def _work(do: Callable[[], Any], folder: str, telling: Connection) -> None:
    os.setsid()
    os.environ["PYTEST_DEBUG_TEMPROOT"] = folder
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    telling.send(do())
    os._exit(0)


def run_items(items: Sequence[pytest.Item], *, until_one_fails: bool = True) -> str | None:
    """Run these tests, which were collected before the fork, in this order; gives the first that fails."""
    first = _FirstFailure()
    items[0].config.pluginmanager.register(first)
    for at, item in enumerate(items):
        after = items[at + 1] if at + 1 < len(items) else None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        if first.failed is not None and until_one_fails:
            break
    return first.failed


class _FirstFailure:
    """A plugin of pytest that notes which test fails first."""

    def __init__(self) -> None:
        self.failed: str | None = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and self.failed is None:
            self.failed = report.nodeid
