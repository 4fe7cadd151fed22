"""Writes messages that are about to be removed to a file. When this returns, the file is on the disk, whatever happens.

The file is named by the first of its messages: when an archive was written and the messages were not removed, because
the process died, the next try replaces it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final

from denizen import failpoints
from denizen.ids import SpaceId
from denizen.portability import exporting
from denizen.storage.database import Database

WRITTEN: Final = "archive.written"
"""The point at which an archive is complete, and its messages are still there."""


async def archive(db: Database, folder: Path, space_id: SpaceId, first: int, last: int) -> Path:
    """Write the messages from number `first` to `last` to a file of this folder; returns it."""
    path = folder / space_id / f"{first:012d}.jsonl"
    await _write(path, exporting.archive_lines(db, space_id, first, last))
    failpoints.reach(WRITTEN)
    return path


async def _write(path: Path, lines: AsyncGenerator[str]) -> None:
    unfinished = path.with_suffix(".unfinished")
    file = await asyncio.to_thread(_open, unfinished)
    try:
        async for line in lines:
            await asyncio.to_thread(os.write, file, line.encode())
        await asyncio.to_thread(os.fsync, file)
    finally:
        os.close(file)
    await asyncio.to_thread(_settle, unfinished, path)


def _open(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)


def _settle(unfinished: Path, path: Path) -> None:
    unfinished.replace(path)
    # Otherwise a crash of the machine could leave the name of neither.
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
