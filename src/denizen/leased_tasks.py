"""Work under leases: a task for each lease that this process holds, and the two loops that look after them.

Agents that are awake and replies of advisors in progress are such work. One loop renews the leases, and cancels the
task of a lease that was lost. The other sweeps: it finds what hints missed and what dead instances held. How a lease is
claimed, renewed and released in the database is up to the caller.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from typing import Any, Final, Generic, Protocol, TypeVar

from denizen.clock import Clock
from denizen.errors import StorageError
from denizen.telemetry.logs import get_logger

log_line = get_logger(__name__)

RENEWALS_PER_LEASE: Final = 3
LET_GO_SECONDS = 5
"""How long releasing a lease in the database may take."""


class Leased(Protocol):
    """A piece of work that needs a lease."""

    task: asyncio.Task[None] | None

    @property
    def epoch(self) -> int | None:
        """The epoch of its lease; None while it has none."""
        ...


Key = TypeVar("Key")
Work = TypeVar("Work", bound=Leased)


class LeasePace(Protocol):
    """How long leases last, how often they are looked after, and how long running work may take to stop."""

    @property
    def lease_seconds(self) -> float: ...
    @property
    def sweep_seconds(self) -> float: ...
    @property
    def grace_seconds(self) -> float: ...


class LeasedTasks(Generic[Key, Work]):
    """The leased work of one kind in this process, from `open` to `stop`. Everything runs in one task group."""

    def __init__(
        self,
        kind: str,
        clock: Clock,
        *,
        renew: Callable[[], Awaitable[Mapping[Key, int]]],
        sweep: Callable[[], Awaitable[None]],
        pace: LeasePace,
    ) -> None:
        """`renew` renews every lease of this process and returns the epochs that it still holds."""
        self._kind = kind
        self._clock = clock
        self._renew, self._sweep = renew, sweep
        self._pace, self._grace_seconds = pace, pace.grace_seconds
        self.running: dict[Key, Work] = {}
        self.changed = asyncio.Event()
        """Set when a task ends; owners may set it for changes of their own."""
        self.stopping = False
        self._pausing: set[asyncio.Task[None]] = set()
        self._hinted = asyncio.Event()
        self._group = asyncio.TaskGroup()
        self._loops: list[asyncio.Task[None]] = []
        self._context = contextvars.Context()

    async def open(self, **more_loops: Coroutine[Any, Any, None]) -> None:
        """Start the loops; `more_loops` end with them."""
        await self._group.__aenter__()
        self._context = contextvars.copy_context()
        loops = {"lease renewal": self._keep_renewing(), "sweep": self._keep_sweeping(), **more_loops}
        self._loops = [self._group.create_task(each, name=f"{self._kind}: {name}") for name, each in loops.items()]

    async def stop(self, within: float | None = None) -> None:
        """Let the running tasks finish, and cancel them after the grace period, or already `within` so many seconds."""
        self.stopping = True
        if within is not None:
            self._grace_seconds = min(self._grace_seconds, max(within, 0))
        for task in self._pausing:
            task.cancel()
        tasks = [work.task for work in self.running.values() if work.task is not None]
        if tasks and self._grace_seconds > 0:
            await asyncio.wait(tasks, timeout=self._grace_seconds)
        self.cancel(self.running)
        for loop in self._loops:
            loop.cancel()
        await self._group.__aexit__(None, None, None)

    def hurry(self) -> None:
        """Make `stop`, now or later, cancel running tasks at once instead of waiting for them."""
        self._grace_seconds = 0
        if self.stopping:
            self.cancel(self.running)

    async def pause(self, work: Work, seconds: float) -> None:
        """Wait before this work tries something again. When the tasks stop, it is cancelled instead: such a task
        has nothing to finish."""
        task = work.task
        assert task is not None, "work that pauses has begun"
        if self.stopping:
            task.cancel()
        self._pausing.add(task)
        try:
            await self._clock.sleep(seconds)
        finally:
            self._pausing.discard(task)

    def hint(self) -> None:
        """Sweep soon."""
        self._hinted.set()

    def begin(self, key: Key, work: Work, task: Coroutine[Any, Any, None], *, name: str) -> None:
        """Run the work as a task of its own, outside the trace and context of the request that caused it."""
        self.running[key] = work
        work.task = self._group.create_task(task, name=name, context=self._context.copy())

    def end(self, key: Key, work: Work) -> None:
        """Forget this work, unless other work has taken its place. The last act of its task."""
        if self.running.get(key) is work:
            del self.running[key]
        self.changed.set()

    def cancel(self, keys: Iterable[Key]) -> None:
        """Cancel these tasks, if they run. A task that is already being cancelled can clean up undisturbed."""
        for key in keys:
            work = self.running.get(key)
            if work is not None and work.task is not None and not work.task.cancelling():
                work.task.cancel()

    async def _keep_renewing(self) -> None:
        while True:
            await self._clock.sleep(self._pace.lease_seconds / RENEWALS_PER_LEASE)
            # As they are now: a lease that is acquired while we renew is not among those renewed, and not lost either.
            before = {key: work.epoch for key, work in self.running.items()}
            try:
                held = await self._renew()
            except StorageError as error:
                log_line.warning("leases not renewed", of=self._kind, error=error.code)
                continue
            except Exception:  # the loop's boundary: work may go on as long as nobody takes over its lease
                log_line.exception("leases not renewed by a defect", of=self._kind)
                continue
            self.cancel(list(self._lost(before, held)))

    def _lost(self, before: Mapping[Key, int | None], held: Mapping[Key, int]) -> Iterable[Key]:
        for key, work in self.running.items():
            epoch = before.get(key)
            # Work may begin a new epoch of its own lease while we renew: a greater one is not a loss.
            if epoch is not None and epoch == work.epoch and held.get(key, -1) < epoch:
                log_line.warning("lease lost", of=self._kind, key=key)
                yield key

    async def _keep_sweeping(self) -> None:
        while True:
            await self._clock.wait(self._hinted, self._pace.sweep_seconds)
            self._hinted.clear()
            try:
                await self._sweep()
            except StorageError as error:
                log_line.warning("sweep failed", of=self._kind, error=error.code)
            except Exception:  # the loop's boundary: one bad row must not stop all work
                log_line.exception("sweep failed by a defect", of=self._kind)


async def let_go(write: Awaitable[object], seconds: float = LET_GO_SECONDS) -> bool:
    """Finish this write even if we are being cancelled. Returns False if it failed or took too long: then others
    notice by the expired lease."""
    writing = asyncio.ensure_future(write)
    writing.add_done_callback(_ignore_failure)
    try:
        async with asyncio.timeout(seconds):
            await asyncio.shield(writing)
    except (StorageError, TimeoutError):
        return False
    return True


def _ignore_failure(writing: asyncio.Future[object]) -> None:
    if not writing.cancelled():
        writing.exception()  # or asyncio would report an exception that was never retrieved
