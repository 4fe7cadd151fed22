"""The conformance suite with a service in this process."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import cast

import pytest

from denizen.bridges.port import IncomingMessage, Writer
from denizen.bridges.running import DEFECT_TRIES
from denizen.bridges.sending import LONGEST_PAUSE_SECONDS
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


async def test_a_message_that_always_ends_in_a_defect_holds_up_its_room_for_a_while_only(
    bay: World, harbour: Harbour
) -> None:
    """It is kept as if it were refused, its space is told, and it can be sent again when the defect is mended."""
    pier = await build(bay, harbour)
    harbour.defects = DEFECT_TRIES
    await pier.say("One")
    await pier.say("Two")
    for _ in range(DEFECT_TRIES - 1):
        await pier.run_after(LONGEST_PAUSE_SECONDS)
    assert (harbour.said, await pier.notices()) == ([], [])
    await pier.run_after(LONGEST_PAUSE_SECONDS)
    assert harbour.said == [f"{ROOM}: Noor: Two"]
    (notice,) = await pier.notices()
    assert "could not deliver a message" in notice
    assert (await bay.denizen.bridges.get(pier.bridge)).backlog.failed == 1
    await bay.denizen.bridges.retry(pier.bridge)
    await pier.run()
    assert harbour.said == [f"{ROOM}: Noor: Two", f"{ROOM}: Noor: One"]


async def test_an_event_that_always_ends_in_a_defect_holds_up_the_rooms_for_a_while_only(
    bay: World, harbour: Harbour
) -> None:
    """Then it is left out, and the space of its room is told."""
    pier = await build(bay, harbour)
    odd = IncomingMessage("odd", Writer("@eve:harbour", "Eve"), cast("str", None))
    await harbour.write(ROOM, "Eve", "One")
    harbour.add(ROOM, odd)
    harbour.add(ROOM, replace(odd, id="odd too"))
    await harbour.write(ROOM, "Eve", "Two")
    async with bay.denizen.living():
        await pier.run()
        for _ in range(2 * DEFECT_TRIES - 1):
            await pier.run_after(LONGEST_PAUSE_SECONDS)
        assert await pier.lines() == ["Eve: One"]
        await pier.run_after(LONGEST_PAUSE_SECONDS)
    assert await pier.lines() == ["Eve: One", "Eve: Two"]
    assert len([each for each in await pier.notices() if "could not take in something" in each]) == 2
    assert (await bay.denizen.bridges.get(pier.bridge)).bridge.error is None
