"""An instance that is known to be gone is not waited for: its lock is free, or the clock was set back since."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from denizen import ManualClock, call, tool
from denizen.agents import instance_lock
from denizen.agents.instance_lock import InstanceLock, Neighbours
from denizen.agents.registry import Agent
from denizen.api.wiring import free_leases_of
from denizen.consciousness import lease as leases
from denizen.errors import LeaseLost, ModelKeyRejected
from denizen.models.scripted import reply, scripted
from denizen.spaces.directory import Space
from denizen.storage.database import Tx
from tests.world import UNHURRIED, World, open_world

ROOT = Path(__file__).parents[2]


@contextmanager
def process_with_lock(folder: Path, instance: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that holds the lock, and another that it has started. Both end with this."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.agents.lock_holder", folder, instance],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_lock_says_whether_its_process_lives(tmp_path: Path) -> None:
    """Also while a program that it has started goes on."""
    mine = InstanceLock(tmp_path, "mine")
    mine.hold()
    with process_with_lock(tmp_path, "other") as process:
        assert mine.look() == Neighbours(alive=frozenset({"other"}))
        process.kill()
        process.wait()
        assert mine.look() == Neighbours(gone=frozenset({"other"}))
    mine.remove("other")
    assert mine.look() == Neighbours()
    mine.release()
    assert list(tmp_path.iterdir()) == []


def test_a_lock_of_another_boot_or_machine_says_nothing(tmp_path: Path) -> None:
    """A network file system may keep the locks of one machine from another, where everyone would seem to be gone."""
    (tmp_path / "other.lock").write_text("another boot")
    assert InstanceLock(tmp_path, "mine").look() == Neighbours()


def test_without_locks_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that cannot be written, or a system that does not say which boot this is."""
    (tmp_path / "file").touch()
    hindered = InstanceLock(tmp_path / "file", "mine")
    hindered.hold()
    assert hindered.look() == Neighbours()
    hindered.release()
    monkeypatch.setattr(instance_lock, "BOOT_FILE", tmp_path / "nothing")
    unsupported = InstanceLock(tmp_path, "mine")
    unsupported.hold()
    assert unsupported.look() == Neighbours()
    unsupported.release()


async def asked_of(world: World, holder: str) -> tuple[Agent, Space]:
    """An agent that has something to do, and lives in this instance."""
    ada = await world.agent("Ada", reply("Here I am."), "Answered.")
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.denizen.db.write(leases.appear, holder, leases.LEASE_SECONDS)
    assert await world.denizen.db.write(leases.acquire, ada.id, holder) is not None
    await world.say(noor, "Are you there?", hall)
    return ada, hall


async def answers(world: World, hall: Space) -> bool:
    """Whether the agent has answered, once this world has done all that it may."""
    await world.run()
    return await world.denizen.spaces.transcript(hall) == ["Noor: Are you there?", "Ada: Here I am."]


async def test_a_clock_that_was_set_back_makes_nobody_wait_for_longer_than_a_lease(ready_url: str) -> None:
    """The lease of the dead ended in 630 seconds, by a clock that had been wrong."""
    async with open_world(ready_url) as before:
        _, hall = await asked_of(before, "dead")
        assert not await answers(before, hall)
    clock = ManualClock()
    clock.advance(-600)
    async with open_world(ready_url, clock=clock) as world:
        world.denizen.models.register("python:ada", scripted(reply("Here I am."), "Answered."))
        async with world.denizen.living():
            assert not await answers(world, hall)
            world.clock.advance(31)
            assert await answers(world, hall)


@pytest.mark.parametrize(
    "turns",
    [
        [RuntimeError("oh"), reply("Here I am."), "Answered."],
        [reply("Here I am."), RuntimeError("oh"), "Answered."],
        [ModelKeyRejected("401"), reply("Here I am."), "Answered."],
    ],
    ids=["event", "open cycle", "parked"],
)
async def test_what_was_put_off_before_the_clock_was_set_back_does_not_wait_for_the_old_time(
    ready_url: str, turns: list[Any]
) -> None:
    """It was to be tried again in a second, or within the hour, by a clock that was a day ahead."""
    async with open_world(ready_url) as world:
        ada = await world.agent("Ada", *turns)
        noor = await world.person("Noor")
        hall = await world.space("Hall", noor, ada)
        async with world.denizen.living() as residents:
            await world.say(noor, "Are you there?", hall)
            await residents.run_until_idle()
            assert await world.cycles(ada) == []
            world.clock.advance(-86_400)
            await residents.run_until_idle()
            assert await world.cycles(ada) == []
            await residents.look_back()
            await residents.run_until_idle()
        assert [each.outcome for each in await world.cycles(ada)] == ["acted"]
        assert await world.denizen.spaces.transcript(hall) == ["Noor: Are you there?", "Ada: Here I am."]


async def test_an_instance_is_gone_after_its_own_lease_seconds_and_not_after_the_default(ready_url: str) -> None:
    """With long leases an instance is seen less often: others took over its calls while it was alive."""
    begun: list[str] = []

    @tool(background=True, on_crash="retry")
    async def build() -> str:
        """Build it."""
        begun.append("build")
        if len(begun) == 1:
            await asyncio.Event().wait()
        return "Built."

    async with open_world(ready_url, pace=replace(UNHURRIED, lease_seconds=300)) as world:
        turns = call("build"), reply("Building."), "Waiting.", reply("It is built."), "Told Noor."
        ada = await world.agent("Ada", *turns, tools=[build])
        noor = await world.person("Noor")
        hall = await world.space("Hall", noor, ada)
        async with world.denizen.living():
            await world.say(noor, "Build", hall)
            while not await world.cycles(ada) or not begun:
                pass
        first = world.denizen.instance
        await world.denizen.db.write(leases.appear, first, 300)  # it is cut off, not gone
        await world.restart(ada=world.model(ada))
        world.clock.advance(100)
        async with world.denizen.living() as residents:
            await residents.run_until_idle()
            assert first in residents._peers
            assert len(begun) == 1
        world.clock.advance(201)
        await world.run()
        assert len(begun) == 2
        assert await world.transcript(hall) == ["Noor: Build", "Ada: Building.", "Ada: It is built."]


async def test_an_instance_whose_clock_is_ahead_and_that_is_seen_again_lives(ready_url: str) -> None:
    """The clock was set back for both, or the other is ahead: whoever is seen again and again is not gone."""
    ahead = ManualClock()
    ahead.advance(600)
    async with open_world(ready_url, clock=ahead) as other, open_world(ready_url) as world:
        _, hall = await asked_of(other, "other")
        async with world.denizen.living():
            for _ in range(3):
                assert not await answers(world, hall)
                ahead.advance(20)
                await other.denizen.db.write(leases.appear, "other", leases.LEASE_SECONDS)
                world.clock.advance(20)


async def test_an_instance_whose_lock_is_held_lives_whatever_the_clock_says(ready_url: str, tmp_path: Path) -> None:
    with process_with_lock(tmp_path, "other"):
        async with open_world(ready_url, lock_folder=tmp_path) as world:
            _, hall = await asked_of(world, "other")
            world.clock.advance(-600)
            async with world.denizen.living():
                assert not await answers(world, hall)
                world.clock.advance(60)
                assert not await answers(world, hall)


async def test_an_instance_whose_lock_is_free_is_taken_over_at_once(ready_url: str, tmp_path: Path) -> None:
    """No time passes here: the lease of the dead would last for ever."""
    with process_with_lock(tmp_path, "other") as process:
        async with open_world(ready_url, lock_folder=tmp_path) as world:
            _, hall = await asked_of(world, "other")
            assert not await answers(world, hall)
            process.kill()
            process.wait()
            assert await answers(world, hall)
            assert not (tmp_path / "other.lock").exists()
            assert "other" not in await world.denizen.db.write(leases.appear, "anyone", leases.LEASE_SECONDS)


async def test_who_was_taken_for_gone_is_refused(world: World) -> None:
    """The epoch stays, and nobody holds the lease: the fence lets nobody through."""
    ada, _ = await asked_of(world, "other")

    def write_as_before(tx: Tx) -> None:
        leases.fence(tx, leases.Lease(ada.id, "other", leases.epoch_of(tx, ada.id)))

    await world.denizen.db.write(write_as_before)
    await world.denizen.db.write(free_leases_of, "other")
    with pytest.raises(LeaseLost):
        await world.denizen.db.write(write_as_before)
