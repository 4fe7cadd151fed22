"""Starting `tests.storage.writing` in a process of its own."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

ROOT = Path(__file__).parents[2]


async def start(url: str, *arguments: str) -> Process:
    """A running process; its input can be written, its output read."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.storage.writing", url, *arguments),
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        stdin=PIPE,
        stdout=PIPE,
    )


async def tell(process: Process, line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{line}\n".encode())
    await process.stdin.drain()


async def hear(process: Process) -> str:
    """The next line it prints."""
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().strip()


async def finish(process: Process) -> None:
    """It has ended by itself, without an error."""
    await process.communicate(b"")  # which closes its input
    assert process.returncode == 0
