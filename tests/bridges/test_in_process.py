"""The conformance suite with a service in this process."""

from __future__ import annotations

import asyncio

import pytest

from tests.bridges.conformance import ROOM, BridgeSuite, Service, build
from tests.bridges.in_process import Harbour
from tests.bridges.status_suite import StatusSuite
from tests.world import World


class TestHarbour(StatusSuite, BridgeSuite):
    @pytest.fixture
    def service(self, harbour: Harbour) -> Service:
        return harbour


async def test_who_waits_for_a_slow_room_does_not_read_all_the_time(bay: World, harbour: Harbour) -> None:
    pier = await build(bay, harbour)
    harbour.slow.add(ROOM)
    await pier.say("Here")
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(pier.run())
        await harbour.held.wait()
        for _ in range(100):
            await pier.lines()
        harbour.released.set()
    assert harbour.said == [f"{ROOM}: Noor: Here"]
    assert harbour.reads < 20
