"""Tasks under leases: a lost lease cancels its task, a failed renewal cancels nothing, and a stop waits a while."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from denizen import ManualClock
from denizen.agents.pace import Pace
from denizen.errors import StorageError
from denizen.leased_tasks import LeasedTasks, let_go

LEASE_SECONDS = 30


@dataclass
class Job:
    epoch: int | None = 1
    task: asyncio.Task[None] | None = None
    may_end: asyncio.Event = field(default_factory=asyncio.Event)


class Jobs:
    """Leased jobs whose renewals the test decides."""

    def __init__(self, grace_seconds: float = 0) -> None:
        self.clock = ManualClock()
        self.held: dict[str, int] | Exception = {}
        self.renewed, self.swept = asyncio.Semaphore(0), asyncio.Semaphore(0)
        self.tasks: LeasedTasks[str, Job] = LeasedTasks(
            "jobs",
            self.clock,
            renew=self._renew,
            sweep=self._sweep,
            pace=Pace(lease_seconds=LEASE_SECONDS, grace_seconds=grace_seconds),
        )

    async def _renew(self) -> dict[str, int]:
        self.renewed.release()
        if isinstance(self.held, Exception):
            raise self.held
        return self.held

    async def _sweep(self) -> None:
        self.swept.release()
        raise RuntimeError("A row that nobody expected.")

    def begin(self, key: str) -> Job:
        job = Job()
        self.tasks.begin(key, job, self._run(key, job), name=key)
        return job

    async def _run(self, key: str, job: Job) -> None:
        try:
            await job.may_end.wait()
        finally:
            self.tasks.end(key, job)

    async def renew(self) -> None:
        await self.clock.sleeper(LEASE_SECONDS / 3)
        self.clock.advance(LEASE_SECONDS / 3)
        await self.renewed.acquire()


async def test_a_lost_lease_cancels_its_task_and_no_other() -> None:
    jobs = Jobs()
    await jobs.tasks.open()
    lost, kept, newer = jobs.begin("lost"), jobs.begin("kept"), jobs.begin("newer")
    unleased = jobs.begin("unleased")
    unleased.epoch = None
    jobs.held = {"kept": 1, "newer": 2}
    await jobs.renew()
    assert lost.task is not None
    await asyncio.wait([lost.task])
    assert lost.task.cancelled()
    assert set(jobs.tasks.running) == {"kept", "newer", "unleased"}
    for job in (kept, newer, unleased):
        job.may_end.set()
    await jobs.tasks.stop()


async def test_a_failed_renewal_cancels_nothing_and_is_tried_again() -> None:
    jobs = Jobs()
    await jobs.tasks.open()
    job = jobs.begin("kept")
    for jobs.held in (StorageError("The database is gone."), RuntimeError("A defect."), {"kept": 1}, {}):
        assert not job.task or not job.task.done()
        await jobs.renew()
    assert job.task is not None
    await asyncio.wait([job.task])
    assert job.task.cancelled()
    await jobs.tasks.stop()


async def test_a_sweep_follows_a_hint_also_after_one_that_failed() -> None:
    jobs = Jobs()
    await jobs.tasks.open()
    for _ in range(2):
        jobs.tasks.hint()
        await jobs.swept.acquire()
    await jobs.tasks.stop()


async def test_a_stop_waits_for_tasks_until_somebody_is_in_a_hurry() -> None:
    jobs = Jobs(grace_seconds=3_600)
    await jobs.tasks.open()
    done, slow = jobs.begin("done"), jobs.begin("slow")
    stopping = asyncio.ensure_future(jobs.tasks.stop())
    assert done.task is not None
    assert slow.task is not None
    done.may_end.set()
    await done.task
    assert not slow.task.done()
    jobs.tasks.hurry()
    await stopping
    assert slow.task.cancelled()
    assert jobs.tasks.running == {}


async def test_a_stop_within_less_than_the_grace_cancels_earlier() -> None:
    """What stops last has what is left of the time, also if that is nothing."""
    jobs = Jobs(grace_seconds=3_600)
    await jobs.tasks.open()
    slow = jobs.begin("slow")
    await jobs.tasks.stop(within=-1)
    assert slow.task is not None
    assert slow.task.cancelled()


async def test_a_stop_cancels_at_once_what_only_waits_to_try_again() -> None:
    """Whether it waits already or begins to, and also if it waits in a task of its own."""
    jobs = Jobs(grace_seconds=3_600)
    await jobs.tasks.open()
    early, late = Job(), Job()

    async def try_again(key: str, job: Job) -> None:
        try:
            await job.may_end.wait()
            await asyncio.ensure_future(jobs.tasks.pause(job, 1))
        finally:
            jobs.tasks.end(key, job)

    for key, job in (("early", early), ("late", late)):
        jobs.tasks.begin(key, job, try_again(key, job), name=key)
    early.may_end.set()
    await jobs.clock.sleeper(1)
    asyncio.get_running_loop().call_soon(late.may_end.set)
    await jobs.tasks.stop()
    assert [job.task is not None and job.task.cancelled() for job in (early, late)] == [True, True]


async def test_letting_go_finishes_although_its_task_is_cancelled() -> None:
    written = asyncio.Event()
    may_write = asyncio.Event()

    async def write() -> None:
        await may_write.wait()
        written.set()

    ending = asyncio.ensure_future(let_go(write()))
    await asyncio.sleep(0)
    ending.cancel()
    await asyncio.wait([ending])
    may_write.set()
    await written.wait()


async def test_letting_go_reports_that_the_database_is_gone() -> None:
    async def write() -> None:
        raise StorageError("The database is gone.")

    assert await let_go(write()) is False
