"""What the laboratory waits for: how much of the time counts on a machine with other work to do."""

from __future__ import annotations

import asyncio
import os

import pytest

from lab import waiting
from lab.waiting import children, counted, happens, queued

SECOND = 10**9


def test_time_counts_while_no_thread_waits_for_a_processor() -> None:
    assert counted(1.0, {"a": 5 * SECOND}, {"a": 5 * SECOND}) == 1.0
    assert counted(1.0, {"a": 5 * SECOND}, {"a": 5 * SECOND + SECOND // 2}) == 0.5


def test_threads_that_wait_at_the_same_time_take_no_more_than_what_passed() -> None:
    """They were added up: with four that waited, the time that was left grew, and a stall would never have ended."""
    assert counted(1.0, {"a": 0, "b": 0}, {"a": SECOND, "b": SECOND}) == 0.0


def test_a_thread_that_has_ended_gives_no_time_back_and_a_new_one_counts() -> None:
    """The last that a process had waited was taken off when it was killed, so that people seemed to wait too long."""
    assert counted(1.0, {"killed": 90 * SECOND}, {"started": SECOND // 4}) == 0.75


def test_while_we_stand_still_ourselves_no_time_counts() -> None:
    assert counted(45.0, {}, {}) == 1.0


async def test_what_never_happens_is_given_up_and_what_happens_is_not() -> None:
    assert await happens(asyncio.sleep(0), 0.01, lambda: [os.getpid()])
    assert not await happens(asyncio.Event().wait(), 0.01, list[int])


async def test_seconds_that_do_not_count_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "counted", lambda *_: 0.001)
    monkeypatch.setattr(waiting, "TICK_SECONDS", 0.01)
    told: list[float] = []
    assert not await happens(asyncio.Event().wait(), 0.02, list[int], told.append)
    assert len(told) >= 3


def test_the_kernel_is_asked_about_every_thread_of_processes_that_run() -> None:
    assert f"/proc/{os.getpid()}/task/{os.getpid()}" in queued([os.getpid()])
    assert queued([2**30]) == {}
    assert children(2**30) == []
    assert os.getpid() in children(os.getppid())
