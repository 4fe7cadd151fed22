"""The conformance suite with a service in this process."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import cast

import pytest

from denizen import failpoints
from denizen.bridges.port import IncomingMessage, Writer
from denizen.bridges.receiving import RECEIVED
from denizen.bridges.registry import state_of
from denizen.bridges.running import DEFECT_TRIES
from denizen.bridges.sending import LONGEST_PAUSE_SECONDS
from tests.bridges.conformance import ROOM, BridgeSuite, Service, build, kill_once_at
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


async def test_an_event_that_always_ends_in_a_defect_holds_up_its_room_for_a_while_only(
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
    assert len([each for each in await pier.notices() if "could not receive something" in each]) == 2
    assert (await bay.denizen.bridges.get(pier.bridge)).bridge.error is None


async def test_an_event_that_ends_in_a_defect_holds_up_no_other_room(bay: World, harbour: Harbour) -> None:
    """All rooms of the bridge waited for more than an hour, until the event was left out."""
    pier = await build(bay, harbour)
    dock = await bay.space("Dock", pier.noor)
    await bay.denizen.bridges.connect(pier.bridge, dock, "dock")

    async def in_dock() -> list[str]:
        return [each.text for each in (await bay.denizen.spaces.messages(dock))[1:]]

    async with bay.denizen.living():
        await pier.run()
        joined = len(await in_dock())
        await harbour.write(ROOM, "Eve", "One")
        harbour.add(ROOM, IncomingMessage("odd", Writer("@eve:harbour", "Eve"), cast("str", None)))
        await harbour.write(ROOM, "Eve", "Two")
        await harbour.write("dock", "Mia", "Ahoy")
        await pier.run()
        assert (await in_dock())[joined:] == ["Ahoy"]
        for number in range(DEFECT_TRIES - 1):
            await harbour.write("dock", "Mia", f"Ahoy {number}")
            await harbour.write(ROOM, "Eve", f"Later {number}")
            await pier.run()
            assert (await in_dock())[-1] == f"Ahoy {number}"
            assert state_of((await bay.denizen.bridges.get(pier.bridge)).bridge, bay.clock.now()) == "failing"
            assert await pier.lines() == ["Eve: One"]
            await pier.run_after(LONGEST_PAUSE_SECONDS)
        await pier.run_after(LONGEST_PAUSE_SECONDS)
        await pier.run()
    later = [f"Eve: Later {number}" for number in range(DEFECT_TRIES - 1)]
    assert await pier.lines() == ["Eve: One", "Eve: Two", *later]
    told = [each.partition(": ")[0] for each in await pier.notices()]
    assert [each.split()[1:3] for each in told if "written there" in each] == [
        ["cannot", "read"],
        ["could", "not"],
        ["can", "read"],
    ]
    assert not any("written there" in each for each in await in_dock())
    assert (await bay.denizen.bridges.get(pier.bridge)).bridge.error is None


async def test_a_process_that_ends_while_a_room_is_held_loses_nothing(bay: World, harbour: Harbour) -> None:
    """The cursor of the room is where the first event is that is not stored."""
    pier = await build(bay, harbour)
    kill_once_at(RECEIVED)
    for text in ("One", "Two"):
        await harbour.write(ROOM, "Eve", text)
    await pier.run()
    failpoints.disarm()
    await bay.restart()
    await pier.run()
    assert await pier.lines() == ["Eve: One", "Eve: Two"]
