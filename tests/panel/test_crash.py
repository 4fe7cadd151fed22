"""A process that dies in the middle of a round: only the unfinished advisors are asked again, and nobody twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from denizen import ManualClock, Runtime
from denizen.errors import LeaseLost
from denizen.models.scripted import forever
from denizen.panel import claims
from denizen.panel.claims import Outcome
from tests.crash.killing import ended, processes
from tests.panel.dying import ask_and_die
from tests.panel.test_rounds import a_panel, answered, echoing, voices
from tests.world import UNHURRIED, World, as_text


@pytest.mark.parametrize(
    ("point", "after", "seconds", "locks"),
    [
        pytest.param("committed:take", 0, 31, "elsewhere", id="take, its lease has run out"),
        pytest.param("commit:end_reply", 1, 31, "elsewhere", id="end_reply, its lease has run out"),
        pytest.param("commit:end_reply", 1, -600, "elsewhere", id="end_reply, the clock was set back"),
        pytest.param("commit:end_reply", 1, 0, "instances", id="end_reply, its lock is free"),
    ],
)
def test_killed_in_the_middle_of_a_round(
    ready_url: str, tmp_path: Path, point: str, after: int, seconds: int, locks: str
) -> None:
    journal = tmp_path / "asked"
    child = processes().Process(target=ask_and_die, args=(ready_url, journal, point, after), daemon=True)
    child.start()
    assert ended(child) == 42
    asked_before = Counter(journal.read_text().split()) if journal.exists() else Counter[str]()
    asyncio.run(_goes_on(ready_url, asked_before, seconds, tmp_path / locks))


async def _goes_on(url: str, asked_before: Counter[str], seconds: int, locks: Path) -> None:
    model = forever(lambda messages, _: f"{_who(as_text(messages[0]))} after.")
    clock = ManualClock()
    clock.advance(seconds)
    async with Runtime(url, clock=clock, models={"m": model}, lock_folder=locks) as denizen:
        noor = await denizen.people.find("noor")
        [panel] = await denizen.panels.list(noor)
        [before] = await denizen.rounds.list(panel)
        done = {each.name for each in before.spoken if each.state == "done"}
        async with denizen.living():
            await denizen.run_until_idle()
            if seconds < 0:
                clock.advance(31)
                await denizen.run_until_idle()
        [now] = await denizen.rounds.list(panel)
        assert now.state == "complete"
        assert {each.name: each.text for each in now.spoken} == {
            name: f"{name} before." if name in done else f"{name} after." for name in "ABCD"
        }
    assert {_who(as_text(request[0])) for request in model.requests} == set("ABCD") - done
    assert len(model.requests) == 4 - len(done)
    assert done <= set(asked_before)


def _who(system: str) -> str:
    return system.partition("You are ")[2].partition(".")[0]


async def test_what_a_former_holder_still_says_is_void(world: World) -> None:
    """Its lease has run out, another instance has answered: it is not written, and the round is not disturbed."""
    asked, may_go_on = asyncio.Event(), asyncio.Event()

    async def slow(*_: object) -> str:
        asked.set()
        await may_go_on.wait()
        return "Too late."

    world.denizen.models.register("m", forever(slow))
    noor = await world.person("Noor")
    panel = await world.denizen.panels.create("Board", [noor], advisors=["Seth"], model="m", total_seconds=3_600)
    async with world.denizen.living():
        begun = await world.denizen.panels.ask(panel, noor, "Well?")
        await asked.wait()
        [old] = await world.denizen.db.read(claims.held_by, world.denizen.instance)
        # As if it had been away for longer than its lease, without noticing.
        later = ManualClock()
        later.advance(100)
        quick = forever(lambda *_: "In time.")
        async with Runtime(world.url, clock=later, models={"m": quick}, pace=UNHURRIED) as other:
            await other.run_until_idle()
            now = await other.rounds.get(begun)
        assert (now.state, now.spoken[0].text, now.spoken[0].epoch) == ("complete", "In time.", 2)
        may_go_on.set()
        await world.run()
    assert old[1] == begun.spoken[0].voice
    assert (await world.denizen.rounds.get(begun)).spoken[0].text == "In time."
    claim = claims.Claim(*old[:2], "reply", 1, world.denizen.instance, panel.id, panel.organization_id)
    with pytest.raises(LeaseLost):
        await world.denizen.db.write(claims.end_reply, claim, Outcome("Too late."))


async def test_an_earlier_attempt_of_the_same_process_ends_nothing(small_unhurried_world: World) -> None:
    """Only the epoch tells it from the attempt that is under way: the holder is the same."""
    world, me = small_unhurried_world, small_unhurried_world.denizen.instance
    noor, panel = await a_panel(world, voices(echoing), "Seth")
    asked = await world.denizen.panels.ask(panel, noor, "Well?")
    write = world.denizen.db.write
    [work] = await write(claims.take, me, 60, 10)
    earlier = work.claim
    now = await write(claims.begin_again, earlier)
    assert (now.holder, now.epoch) == (earlier.holder, earlier.epoch + 1)
    with pytest.raises(LeaseLost):
        await write(claims.end_reply, earlier, Outcome("Of the first attempt."))
    with pytest.raises(LeaseLost):
        await write(claims.begin_again, earlier)
    await write(claims.hand_back, earlier)
    assert [each.state for each in (await world.denizen.rounds.get(asked)).spoken] == ["running"]
    await write(claims.end_reply, now, Outcome("Of the second."))
    assert await answered(world, asked) == {"Seth": "Of the second."}
