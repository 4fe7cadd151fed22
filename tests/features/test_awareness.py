"""Awareness during a cycle."""

from __future__ import annotations

from typing import Any

from denizen import call, reply, tool
from denizen.cycles.settings import CycleSettings
from denizen.models.scripted import Turn
from denizen.models.tokens import estimate
from tests.cycles.test_awareness import LATER, interrupted
from tests.world import World, as_text

URGENT = "Stop! Wrong dataset. Use the Q3 data instead."


async def interrupted_by(world: World, arrive: Any, *turns: Turn, **cycle: Any):
    """Ada, whose tool `work` lets something arrive, and the last message of each of her requests.

    `arrive` gets Noor, the space of the two, and Ada.
    """

    @tool
    async def work() -> str:
        """Work."""
        await arrive(noor, hall, ada)
        return "worked"

    script = turns or (call("work"), reply("Done."), "Worked.", reply("Noted."), "Noted the news.")
    ada = await world.agent("Ada", *script, tools=[work], cycle=cycle)
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "Work!", hall)
    await world.run()
    return ada, hall, [as_text(request[-1]) for request in world.model(ada).requests]


def test_previews_and_urgent_events_are_the_default() -> None:
    """By default an agent is told urgent events in full and sees a preview of the others.

    Docs: cycles.md
    """
    assert CycleSettings().awareness == "combined"


async def test_the_first_step_has_the_inbox_and_no_preview(world: World) -> None:
    """The first step of a cycle has the inbox itself; new events are looked for before each later step.

    Docs: cycles.md
    """
    _, last = await interrupted(world, None, LATER)
    assert ["PREVIEW" in each for each in last[:3]] == [False, True, True]


async def test_a_preview_has_the_space_the_sender_and_the_first_words(world: World) -> None:
    """A preview has one line for each waiting event: the space, the sender and the first 50 characters.

    Docs: cycles.md
    """
    _, last = await interrupted(world, None, LATER)
    assert last[1].splitlines()[-3:-1] == [
        "user: [INBOX PREVIEW — 1 new event waiting]",
        f'  [Hall] Noor: "{LATER[:50]}..."',
    ]


async def test_a_preview_says_when_the_events_are_handled(world: World) -> None:
    """A preview says that the events are read in full in the next cycle, and that one may change the current task.

    Docs: cycles.md
    """
    _, last = await interrupted(world, None, LATER)
    assert last[1].splitlines()[-1] == (
        "(You will read these in full in your next cycle. If one changes what you are doing now, adapt to it.)"
    )


async def test_a_preview_costs_about_fifty_tokens_an_event(world: World) -> None:
    """A preview costs about 50 tokens for an event, however long its text is.

    Docs: cycles.md
    """
    _, last = await interrupted(world, None, LATER * 100)
    assert estimate(last[1]) < 100


async def test_a_preview_shows_events_of_services_and_timers(world: World) -> None:
    """A preview shows events that come from no space too: those of services, plans and timers.

    Docs: cycles.md
    """

    async def arrive(_noor: Any, _hall: Any, ada: Any) -> None:
        await world.denizen.agents.trigger(ada, "Jira", text="A new issue")

    _, _, last = await interrupted_by(world, arrive)
    assert '  [Service] Jira: "A new issue"\n' in last[1]


async def test_a_preview_of_many_events_counts_the_rest(world: World) -> None:
    """A preview lists 20 events and counts the others.

    Docs: cycles.md
    Differs: a flood of events would otherwise fill the request.
    """

    async def arrive(noor: Any, hall: Any, _ada: Any) -> None:
        for number in range(25):
            await world.say(noor, f"Number {number}", hall)

    _, _, last = await interrupted_by(world, arrive)
    assert "[INBOX PREVIEW — 25 new events waiting]\n" in last[1]
    assert '"Number 19"\n  … and 5 more\n' in last[1]


async def test_a_preview_is_not_remembered(world: World) -> None:
    """A preview is part of one request only: it is not stored, and is not repeated when the event was read.

    Docs: cycles.md
    """
    ada, last = await interrupted(world, None, LATER)
    assert not any("PREVIEW" in each for each in await world.history(ada))
    assert not any("PREVIEW" in each for each in last[3:])


async def test_a_previewed_event_is_handled_in_the_next_cycle(world: World) -> None:
    """An event that was only previewed is read in full in the next cycle, which begins at once.

    Docs: cycles.md
    """
    ada, _ = await interrupted(world, None, LATER)
    assert LATER in await world.newest_inbox(ada)
    assert [each.summary for each in await world.cycles(ada)] == ["Worked.", "Noted the news."]


async def test_a_correction_ends_the_work_early(world: World) -> None:
    """An agent that sees a correction in the preview can stop its work, and handle it in the next cycle.

    Docs: cycles.md
    """

    async def arrive(noor: Any, hall: Any, _ada: Any) -> None:
        await world.say(noor, "Actually, leave it. I changed my mind.", hall)

    def decide(messages: list[Any], _info: Any) -> Turn:
        changed = "Actually, leave it." in as_text(messages[-1])
        return reply("I stopped.") if changed else call("work")

    turns: list[Turn] = [call("work"), decide, "Stopped early.", reply("All right."), "Left it."]
    ada, hall, _ = await interrupted_by(world, arrive, *turns)
    assert [each.steps for each in await world.cycles(ada)] == [3, 2]
    assert (await world.transcript(hall))[2:] == ["Ada: I stopped.", "Ada: All right."]


async def test_an_urgent_event_changes_the_course_of_a_cycle(world: World) -> None:
    """An urgent event reaches the agent between two steps: it goes on with the new task, in the same cycle.

    Docs: cycles.md
    """

    async def arrive(noor: Any, hall: Any, _ada: Any) -> None:
        await world.say(noor, URGENT, hall)

    turns: list[Turn] = [call("work"), reply("Here is Q3."), "Reported on Q3 after a correction."]
    ada, hall, _ = await interrupted_by(world, arrive, *turns)
    assert await world.transcript(hall) == ["Noor: Work!", f"Noor: {URGENT}", "Ada: Here is Q3."]
    assert [each.summary for each in await world.cycles(ada)] == ["Reported on Q3 after a correction."]


async def test_the_format_of_an_update(world: World) -> None:
    """Urgent events come in the format of the inbox, under `[MID-CYCLE UPDATE]`.

    Docs: cycles.md
    """
    ada, _ = await interrupted(world, None, URGENT)
    (update,) = [each for each in await world.history(ada) if each.startswith("update: ")]
    assert update == (
        "update: [MID-CYCLE UPDATE - 1 new event]\n\n"
        f'1. [Space "Hall" | spaceId: <Hall> | urgent] Noor (human): "{URGENT}"\n'
        "   → received just now"
    )


async def test_an_urgent_event_is_read_once(world: World) -> None:
    """An urgent event that was told during a cycle belongs to it: it is stored there and does not come again.

    Docs: cycles.md
    """
    ada, _ = await interrupted(world, None, URGENT)
    assert len(await world.cycles(ada)) == 1
    assert await world.inbox(ada) == []
    assert sum(URGENT in each for each in await world.history(ada)) == 1


async def test_urgent_events_and_previews_together(world: World) -> None:
    """If both arrive, the urgent event is told in full and the other is previewed, before the same step.

    Docs: cycles.md
    Differs: both, not only the urgent one. The agent sees all that waits before it decides.
    """

    async def arrive(noor: Any, hall: Any, _ada: Any) -> None:
        await world.say(noor, "By the way", hall)
        await world.say(noor, URGENT, hall)

    ada, _, _ = await interrupted_by(world, arrive)
    *_, update, preview = (as_text(each) for each in world.model(ada).requests[1])
    assert URGENT in update
    assert '[Hall] Noor: "By the way"' in preview


async def test_previews_only(world: World) -> None:
    """With `preview`, urgent events are previewed too, and wait for the next cycle.

    Docs: cycles.md
    """
    _, last = await interrupted(world, "preview", URGENT)
    assert f'  [Hall | urgent] Noor: "{URGENT[:50]}"' in last[1]
    assert "[INBOX - 1 new event]" in last[3]


async def test_urgent_events_only(world: World) -> None:
    """With `urgent`, only urgent events are told during a cycle; there are no previews.

    Docs: cycles.md
    """
    _, last = await interrupted(world, "urgent", LATER)
    assert not any(LATER[:20] in each for each in last[:3])
    assert LATER in last[3]


async def test_an_event_that_is_ignored_stays(world: World) -> None:
    """An agent may ignore a preview and finish its work: the event stays in its inbox.

    Docs: cycles.md
    """

    async def arrive(noor: Any, hall: Any, _ada: Any) -> None:
        await world.say(noor, "Hello again", hall)

    ada, hall, _ = await interrupted_by(world, arrive, call("work"), reply("Done."), "Worked.", reply("Hm."), "Read.")
    assert (await world.transcript(hall))[2] == "Ada: Done."
    assert "Hello again" in await world.newest_inbox(ada)
