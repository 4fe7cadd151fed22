"""What an agent is told of what arrives while it works."""

from __future__ import annotations

import pytest

from denizen import call, reply, scripted, skip, tool
from tests.world import World

PREVIEW = (
    "[INBOX PREVIEW — 1 new event waiting]\n"
    '  [Hall] Noor: "By the way, the deadline moved to Friday afternoon..."\n'
    "(You will read these in full in your next cycle. If one changes what you are doing now, adapt to it.)"
)
LATER = "By the way, the deadline moved to Friday afternoon, not Thursday."


async def interrupted(world: World, awareness: str | None, text: str, **options):
    """An agent to whom something is said while its first tool runs, and the last message of each of its requests."""

    @tool
    async def work() -> str:
        """Work."""
        await world.say(noor, text, hall, **options)
        return "worked"

    model = scripted(call("work"), reply("Done."), "Worked.", reply("Noted."), "Noted the news.")
    cycle = {} if awareness is None else {"cycle": {"awareness": awareness}}
    ada = await world.agent("Ada", model=model, tools=[work], **cycle)
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "Work!", hall)
    await world.run()
    assert (await world.transcript(hall))[-1] in ("Ada: Noted.", "Ada: Done.")
    return ada, [request[-1] for request in await world.prompts(ada)]


@pytest.mark.parametrize("awareness", ["preview", "combined", None])
async def test_what_is_not_urgent_is_shown_in_a_line_at_the_end_of_each_request(world: World, awareness: str | None):
    """It waits for the next cycle, and the preview is in no other request and not in the log."""
    ada, last = await interrupted(world, awareness, LATER)
    assert [PREVIEW in each for each in last] == [False, True, True, False, False]
    assert not any("PREVIEW" in each for each in await world.history(ada))
    prompts = await world.prompts(ada)
    assert [sum("INBOX PREVIEW" in each for each in request) for request in prompts] == [0, 1, 1, 0, 0]
    assert LATER in (await world.newest_inbox(ada))


@pytest.mark.parametrize("awareness", ["none", "urgent"])
async def test_without_previews_what_is_not_urgent_is_seen_in_the_next_cycle(world: World, awareness: str):
    ada, last = await interrupted(world, awareness, LATER)
    assert not any("PREVIEW" in each for each in last)
    assert len(await world.cycles(ada)) == 2


@pytest.mark.parametrize("awareness", ["urgent", "combined"])
async def test_what_is_urgent_is_told_whole_and_belongs_to_the_cycle(world: World, awareness: str):
    """What the model saw is what is stored; the event is not handled once more."""
    ada, last = await interrupted(world, awareness, LATER, urgent=True)
    assert "[MID-CYCLE UPDATE - 1 new event]" in last[1]
    assert LATER in last[1]
    assert sum(each.startswith("update: ") for each in await world.history(ada)) == 1
    assert len(await world.cycles(ada)) == 1
    assert await world.waiting(ada) == []


async def test_with_all_everything_is_told_whole_and_belongs_to_the_cycle(world: World):
    ada, last = await interrupted(world, "all", LATER)
    assert "[MID-CYCLE UPDATE - 1 new event]" in last[1]
    assert LATER in last[1]
    assert not any("PREVIEW" in each for each in last)
    assert len(await world.cycles(ada)) == 1
    assert await world.waiting(ada) == []


@pytest.mark.parametrize("awareness", ["none", "preview"])
async def test_without_injection_what_is_urgent_waits_for_the_next_cycle(world: World, awareness: str):
    ada, _ = await interrupted(world, awareness, LATER, urgent=True)
    assert not any(each.startswith("update: ") for each in await world.history(ada))
    assert len(await world.cycles(ada)) == 2


async def test_an_update_survives_a_restart_with_its_cycle(world: World):
    """Mid-cycle events were not part of what was stored, and vanished, elsewhere."""

    @tool
    async def work() -> str:
        """Work."""
        await world.say(noor, "Stop, use the other one.", hall)
        return "worked"

    ada = await world.agent("Ada", call("work"), RuntimeError("the process is about to die"), tools=[work])
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "Work!", hall)
    await world.run()
    assert any("Stop, use the other one." in each for each in await world.history(ada))

    await world.restart(ada=scripted(reply("I used the other one."), "Did as told."))
    await world.run_after(61)
    assert (await world.transcript(hall))[-1] == "Ada: I used the other one."
    assert len(await world.cycles(ada)) == 1
    assert await world.waiting(ada) == []


async def test_an_event_that_has_failed_twice_does_not_interrupt_another_cycle(world: World):
    """It is tried alone, so that it harms nobody else."""

    @tool
    async def work() -> str:
        """Work."""
        world.clock.advance(61)
        await world.say(noor, "By the way.", hall)
        return "worked"

    bad = "Stop, you poison."
    rejected = [RuntimeError("it chokes"), RuntimeError("it chokes")]
    ada = await world.agent(
        "Ada", *rejected, call("work"), reply("Done."), "Worked.", skip("bad"), skip("seen"), tools=[work]
    )
    noor = await world.person("Noor")
    hall, attic = await world.space("Hall", noor, ada), await world.space("Attic", noor, ada)
    await world.say(noor, bad, attic)
    await world.run()
    await world.run_after(1)
    await world.say(noor, "Work!", hall)
    await world.run()
    assert not any(each.startswith("update: ") for each in await world.history(ada))
    assert (await world.transcript(hall))[-1] == "Ada: Done."
    assert await world.waiting(ada) == []
    assert [reason for _, _, reason, _ in await world.endings(ada)] == ["answered", "skipped", "skipped"]
