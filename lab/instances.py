"""`denizen up` in processes of their own, forked from one that has rehearsed it."""

from __future__ import annotations

import asyncio
import ctypes
import io
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final

from tests.servers import free_port

START_SECONDS: Final = 120
PR_SET_PDEATHSIG: Final = 1


class Nursery:
    """A process that has rehearsed `denizen up` and forks others that live it."""

    def __init__(self, model_port: int, environment: Mapping[str, str] | None = None) -> None:
        """Start it, in that environment. It blocks for as long as the rehearsal takes."""
        # The server does not inherit our path, and would silently go without what it cannot find.
        own = {
            "PYTHONPATH": os.pathsep.join(filter(None, [str(Path.cwd()), *sys.path])),
            "LAB_MODEL_PORT": str(model_port),
            "LAB_REHEARSAL_PORT": str(free_port()),
            **(environment or {}),
        }
        self._server: Any = forkserver.ForkServer()
        self._server.set_forkserver_preload(["lab._rehearsal"])
        before = {name: os.environ.get(name) for name in own}
        os.environ.update(own)
        try:
            self._server.ensure_running()
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
        # It takes requests when the rehearsal is over. Whoever asks earlier is held up, and with it the model's own
        # loop.
        self.fork(_do_nothing, (), "nobody").join()

    def fork(self, target: Callable[..., None], arguments: tuple[Any, ...], name: str) -> BaseProcess:
        process = _CONTEXT.Process(target=target, args=arguments, name=name, daemon=True)
        forkserver.connect_to_new_process = _connect
        token = _SERVER.set(self._server)
        try:
            process.start()
        finally:
            _SERVER.reset(token)
        return process


_CONTEXT: Final = multiprocessing.get_context("forkserver")
_SERVER: Final[ContextVar[Any]] = ContextVar("server")
_connect_to_usual: Final = forkserver.connect_to_new_process


def _connect(fds: Sequence[int]) -> tuple[int, int]:
    """Python knows one server that forks; each nursery has its own. Others still use the one that Python knows."""
    server = _SERVER.get(None)
    return _connect_to_usual(fds) if server is None else server.connect_to_new_process(fds)


def _do_nothing() -> None:
    pass


_prctl = ctypes.CDLL(None).prctl


def _die_with_parent() -> None:
    """Whoever kills the laboratory kills its servers too."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _be_denizen(
    environment: Mapping[str, str], log: str, arguments: list[str], fatal: float | None, slow: float
) -> None:
    """The whole life of such a process. `fatal` chooses a point, from 0 to 1, at which it kills itself; each commit
    takes up to `slow` seconds longer.
    """
    from denizen import failpoints
    from denizen.cli.main import main
    from lab._rehearsal import POINTS

    _die_with_parent()
    # Each is given the end of a pipe by which the process that forks notices that the laboratory has ended. Whoever
    # keeps it open keeps that process running, and with it, all the others.
    alive: Any = forkserver._forkserver._forkserver_alive_fd  # type: ignore[attr-defined]  # noqa: SLF001
    os.close(alive)
    output = os.open(log, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "wb", closefd=False), line_buffering=True, write_through=True)
    sys.stderr = io.TextIOWrapper(io.FileIO(2, "wb", closefd=False), line_buffering=True, write_through=True)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(environment["HOME"])
    sys.argv = ["denizen", *arguments]
    if fatal is not None:
        at = fatal * len(POINTS)
        failpoints.arm(POINTS[int(at)], lambda: os.kill(os.getpid(), signal.SIGKILL), after=int((at - int(at)) * 4))
    for each in POINTS if slow else ():
        if each.startswith("commit:"):
            failpoints.arm(each, lambda: time.sleep(random.uniform(0, slow)))
    main()


class _Program:
    """A program that was not forked by us, with the face of a process that was."""

    def __init__(self, command: Sequence[str], variables: Mapping[str, str], folder: Path, log: Path) -> None:
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                env=variables,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                preexec_fn=_die_with_parent,
            )
        self.pid = self._process.pid
        self.sentinel = os.pidfd_open(self.pid)

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def join(self) -> None:
        self._process.wait()

    @property
    def exitcode(self) -> int | None:
        return self._process.poll()


@dataclass
class Instance:
    """One process, which can be killed and started again on its port; what it logs is kept."""

    name: str
    folder: Path
    environment: dict[str, str]
    nursery: Nursery
    command: Sequence[str] = ()
    """What to run instead of a forked `denizen up`: another version."""
    port: int = field(default_factory=free_port)
    process: BaseProcess | _Program | None = None
    judged: int = 0
    """How much of its log has been looked at."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def log(self) -> Path:
        return self.folder / "log"

    @property
    def variables(self) -> dict[str, str]:
        return {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(self.folder),
            "COLUMNS": "200",
            "DENIZEN_HOME": str(self.home),
            "DENIZEN_PORT": str(self.port),
            "DENIZEN_LOG_FORMAT": "json",
            # Nobody here has a certificate, and to read those of the machine was a third of what a server did.
            "SSL_CERT_DIR": str(self.folder),
            **self.environment,
        }

    def start(self, *, fatal: float | None = None, slow: float = 0.0) -> None:
        """It begins to run; `fatal` and `slow` as above."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.command:
            self.process = _Program(self.command, self.variables, self.folder, self.log)
            return
        self.process = self._forked(["up"], fatal, slow)

    def run(self, *arguments: str) -> BaseProcess:
        """Another command in the same home; its output is in the log as well."""
        return self._forked([*arguments])

    def _forked(self, arguments: list[str], fatal: float | None = None, slow: float = 0.0) -> BaseProcess:
        given = (self.variables, str(self.log), arguments, fatal, slow)
        return self.nursery.fork(_be_denizen, given, self.name)

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.is_alive()

    def signal(self, number: signal.Signals) -> None:
        if self.alive:
            assert self.process is not None
            assert self.process.pid is not None
            with suppress(ProcessLookupError):  # it has ended just now
                os.kill(self.process.pid, number)

    async def ended(self, seconds: float = START_SECONDS) -> int:
        """Its exit status."""
        assert self.process is not None
        await ended(self.process, seconds)
        code = self.process.exitcode
        assert code is not None, f"{self.name} did not end within {seconds:g} seconds"
        return code

    async def kill(self) -> None:
        if self.process is not None:
            self.signal(signal.SIGKILL)
            await self.ended()

    def new_log(self) -> str:
        """What it has logged since this was last asked."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as file:
            file.seek(self.judged)
            new = file.read()
        self.judged += len(new)
        return new.decode(errors="replace")


async def ended(process: BaseProcess | _Program, seconds: float | None) -> None:
    """Wait until the process has ended, or for so long."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(process.sentinel, over.set)
    try:
        async with asyncio.timeout(seconds):
            await over.wait()
    except TimeoutError:
        return
    finally:
        loop.remove_reader(process.sentinel)
    process.join()
