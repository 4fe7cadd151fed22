"""Starts the process that reads one file (`jailed`), and ends it when it takes too long or writes too much.

A parser that is killed, by its limits or by its own mistake, means that the file is unreadable: never an error here.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from asyncio import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

WALL_SECONDS: Final = 60.0
"""After this time the process and whatever it started are killed."""
CPU_SECONDS: Final = 20
MOST_OUTPUT: Final = 32 * 1024**2
AT_ONCE: Final = 2
"""How many files are read at the same time in this process."""
_PROGRAM: Final = str(Path(__file__).with_name("jailed.py"))
_ENVIRONMENT: Final = {"LANG": "C.UTF-8", "PATH": os.defpath, "PYTHONDONTWRITEBYTECODE": "1"}
"""Nothing of ours: there are keys in it."""


@dataclass(frozen=True, slots=True)
class JailOutput:
    """What came out of the jail."""

    told: dict[str, Any]
    payload: bytes = b""

    @property
    def trouble(self) -> str | None:
        """Why the file could not be read."""
        found = self.told.get("trouble")
        return None if found is None else str(found)


Load = Callable[[], Awaitable[bytes]]
"""Reads the bytes of a file."""

_slots: dict[asyncio.AbstractEventLoop, asyncio.Semaphore] = {}


def _slot() -> asyncio.Semaphore:
    """The semaphore of this event loop; those of closed loops are removed."""
    loop = asyncio.get_running_loop()
    for old in [each for each in _slots if each.is_closed()]:
        del _slots[old]
    return _slots.setdefault(loop, asyncio.Semaphore(AT_ONCE))


async def run(
    task: str,
    argument: str,
    data: bytes | Load,
    *,
    wall_seconds: float = WALL_SECONDS,
    cpu_seconds: int = CPU_SECONDS,
) -> JailOutput:
    """Run the program on these bytes. Whatever happens to it, there is an answer.

    `data` that has to be loaded is loaded when the turn of this file has come: those that wait hold nothing in memory.
    """
    async with _slot():
        content = data if isinstance(data, bytes) else await data()
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            _PROGRAM,
            task,
            argument,
            str(cpu_seconds),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=_ENVIRONMENT,
            cwd="/",
        )
        try:
            async with asyncio.timeout(wall_seconds):
                written = await _exchange(process, content)
        except TimeoutError:
            return JailOutput({"trouble": "it takes too long to read"})
        finally:
            # Also when this task is cancelled. The group is killed first: then the process can be waited for.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            await asyncio.shield(process.wait())
    return _answer(written)


async def _exchange(process: subprocess.Process, data: bytes) -> bytes | None:
    """Write the file, and read what comes back; None if that is too much."""
    assert process.stdin is not None
    assert process.stdout is not None
    feeding = asyncio.ensure_future(_feed(process.stdin, data))
    try:
        written = bytearray()
        while piece := await process.stdout.read(256 * 1024):
            written += piece
            if len(written) > MOST_OUTPUT:
                return None
        return bytes(written)
    finally:
        feeding.cancel()


async def _feed(stdin: asyncio.StreamWriter, data: bytes) -> None:
    # It may die before it has read everything.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        stdin.write(data)
        await stdin.drain()
        stdin.close()


def _answer(written: bytes | None) -> JailOutput:
    if written is None:
        return JailOutput({"trouble": "it is too large"})
    line, newline, payload = written.partition(b"\n")
    if not newline:
        return JailOutput({"trouble": "it is damaged, or needs too much memory or time"})
    return JailOutput(json.loads(line), payload)
