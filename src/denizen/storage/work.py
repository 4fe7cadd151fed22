"""Jobs for the database threads, and the way of their results back to the event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from denizen.errors import DiskFull, OutcomeUnknown
from denizen.storage.database import Announce, Announcement, Tx
from denizen.storage.heads import Head
from denizen.telemetry.logs import get_logger

log = get_logger(__name__)


class Job:
    """One call of `write` or `read`: the function, its result, and the caller that waits for it."""

    __slots__ = ("announcements", "args", "called", "error", "fn", "future", "heads", "kwargs", "result", "then")

    def __init__(
        self,
        fn: Callable[..., Any],
        args: Any,
        kwargs: Any,
        future: asyncio.Future[Any],
        then: Callable[[], None] | None = None,
    ) -> None:
        self.fn = fn
        self.args = args
        self.kwargs = kwargs
        self.future = future
        self.announcements: list[Announcement] = []
        self.heads: list[Head] = []
        """The heads of chains that it has advanced."""
        self.called: list[str] = []
        """The keys of the stand-by writes that it has called up."""
        self.then = then
        """Called on the loop when it is done, after what the writes before it announced, before what later ones did."""
        self.result: Any = None
        self.error: BaseException | None = None

    @property
    def name(self) -> str:
        """The function's name, which failpoints refer to."""
        return getattr(self.fn, "__name__", type(self.fn).__name__)

    def run(self, tx: Tx) -> None:
        """Runs the function and keeps its result. Its errors are raised."""
        self.result = self.fn(tx, *self.args, **self.kwargs)

    def fail(self, error: BaseException) -> None:
        self.error = error
        # After an unknown outcome they are kept: what was written may be there, and a hint too many is harmless.
        if not isinstance(error, OutcomeUnknown):
            self.announcements = []


FULL_SECONDS: Final = 60.0
"""For so long after a write failed because the disk is full, it counts as full: smaller writes may succeed."""


class FullDisk:
    """Whether writes fail because the disk is full."""

    def __init__(self) -> None:
        self._at: float | None = None

    def note(self, written: Sequence[Job]) -> None:
        """Takes in how these writes ended. Called on a database thread."""
        if any(isinstance(job.error, DiskFull) for job in written):
            self._at = time.monotonic()

    def __bool__(self) -> bool:
        return self._at is not None and time.monotonic() < self._at + FULL_SECONDS


def hand_back(loop: asyncio.AbstractEventLoop, announce: Announce, jobs: Sequence[Job]) -> None:
    """Called on a database thread: makes `loop` announce what `jobs` committed, or may have, then wakes their callers.

    The loop announces, not the callers, because a caller may have been cancelled.
    """
    try:
        loop.call_soon_threadsafe(_finish, announce, jobs)
    except RuntimeError:
        # The loop was closed while we wrote: nobody is left to tell. What was committed stays.
        log.debug("event loop closed before its writes were reported", writes=len(jobs))


def _finish(announce: Announce, jobs: Sequence[Job]) -> None:
    announcements: list[Announcement] = []
    for job in jobs:
        announcements += job.announcements
        if job.then is not None:
            _announce_all(announce, announcements)
            announcements = []
            job.then()
    _announce_all(announce, announcements)
    for job in jobs:
        if job.future.done():  # Cancelled meanwhile.
            continue
        if job.error is None:
            job.future.set_result(job.result)
        else:
            job.future.set_exception(job.error)


def _announce_all(announce: Announce, announcements: Sequence[Announcement]) -> None:
    if announcements:
        try:
            announce(announcements)
        except Exception:
            # Announcements are hints. The callers must learn of their commits even if one fails.
            log.exception("announcing failed", announcements=len(announcements))
