"""Findings of a check-up: one line each, with advice if something is wrong. A failing check does not affect others."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeVar

from denizen.errors import DenizenError
from denizen.masking import masked

T = TypeVar("T")

Status = Literal["ok", "note", "problem"]
"""All is well; worth knowing; a person must act."""

LIMIT_SECONDS: Final = 10.0
"""The time limit of a check."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    check: str
    status: Status
    said: str
    advice: str = ""
    """What to do about it."""


async def guarded(
    check: str, run: Callable[[], Awaitable[list[Finding]]], limit_seconds: float | None = LIMIT_SECONDS
) -> list[Finding]:
    """Runs the check; returns a problem if it fails or exceeds the time limit. With None, the check itself sets
    `LIMIT_SECONDS` to what it waits for."""
    try:
        async with asyncio.timeout(limit_seconds):
            return await run()
    except TimeoutError:
        said = f"No answer within {limit_seconds or LIMIT_SECONDS:g} seconds."
        return [Finding(check, "problem", said, "Check what it waits for.")]
    except DenizenError as error:
        return [Finding(check, "problem", masked(str(error)))]
    except Exception as error:  # noqa: BLE001
        # Whatever goes wrong in one check, the others still run.
        return [Finding(check, "problem", masked(f"The check itself failed: {type(error).__name__}: {error}"))]


async def in_thread(fn: Callable[[], T]) -> T:
    """Runs `fn` in a daemon thread, which nobody waits for when the program ends."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def settle(outcome: T | BaseException) -> None:
        if answer.done():
            return  # The time limit was faster.
        if isinstance(outcome, BaseException):
            answer.set_exception(outcome)
        else:
            answer.set_result(outcome)

    def run() -> None:
        try:
            outcome: T | BaseException = fn()
        except BaseException as error:  # noqa: BLE001  it is raised where the answer is awaited
            outcome = error
        try:
            loop.call_soon_threadsafe(settle, outcome)
        except RuntimeError:
            pass  # The loop has ended meanwhile: nobody needs the result any more.

    threading.Thread(target=run, name="check", daemon=True).start()
    return await answer


def is_there(path: Path) -> bool:
    """Whether this user can see it; a file in a folder that may not be entered counts as missing."""
    try:
        return path.exists()
    except OSError:
        return False


def may_write(path: Path) -> bool:
    """Whether this user may write to it and, if it is a folder, into it."""
    needed = os.W_OK | os.X_OK if path.is_dir() else os.W_OK
    return os.access(path, needed, effective_ids=os.access in os.supports_effective_ids)


def counted(number: int, one: str, many: str | None = None) -> str:
    """`1 agent`, `2 agents`."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
