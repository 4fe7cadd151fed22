"""A clock that a test moves: only as far as someone waits for it, and not before someone does."""

from __future__ import annotations

import asyncio

from denizen import ManualClock
from denizen.clock import SECOND


async def test_it_skips_to_whoever_wakes_next_and_no_further() -> None:
    clock, passed = ManualClock(), list[float]()
    start = clock.now()
    sleeping = [asyncio.ensure_future(clock.sleep(seconds)) for seconds in (7.3, 0.1, 100)]
    await clock.sleeper(0.1)
    while clock.skip(10):
        passed.append((clock.now() - start) / SECOND)
    assert passed == [0.1, 7.3]
    await asyncio.gather(*sleeping[:2])
    assert not sleeping[2].done()
    assert clock.skip(100)
    await sleeping[2]
    assert not clock.skip(1_000_000)


async def test_who_does_not_wait_any_more_is_not_waited_for() -> None:
    clock, arrived = ManualClock(), asyncio.Event()
    waiting = asyncio.ensure_future(clock.wait(arrived, 5))
    await clock.sleeper(5)
    arrived.set()
    assert await waiting
    await asyncio.sleep(0)
    assert not clock.skip(5)


async def test_one_waits_until_someone_sleeps_who_wakes_soon_enough() -> None:
    clock = ManualClock()
    seen = asyncio.ensure_future(clock.sleeper(2))
    long = asyncio.ensure_future(clock.sleep(3))
    await clock.sleeper(3)
    assert not seen.done()
    short = asyncio.ensure_future(clock.sleep(2))
    await seen
    assert clock.skip(2)
    await short
    assert clock.skip(1)
    await long
