"""Scenario 7: the house is closed in the middle and opened again."""

from __future__ import annotations

from denizen import call, reply, scripted
from denizen.agents.pace import Pace
from tests.world import Stuck, open_world


async def test_an_agent_goes_on_where_it_was_when_the_house_was_closed(ready_url: str):
    """What was said stays said, what was not finished is finished, and what came meanwhile is read next."""
    async with open_world(ready_url, pace=Pace(grace_seconds=0)) as world:
        stuck = Stuck()
        ada = await world.agent("Ada", model=scripted(reply("One moment."), stuck))
        husam = await world.person("Husam")
        kitchen = await world.space("Kitchen", husam, ada)

        await world.say(husam, "Can you look into it?", kitchen)
        async with world.denizen.living():
            await stuck.begun.wait()
            assert await world.denizen.agents.status(ada) == "alive"
        await world.say(husam, "No hurry.", kitchen)
        await world.restart(
            ada=scripted(reply("Done: it was the fuse."), "Found the fuse.", call("skip", reason="nothing to add"))
        )
        assert await world.denizen.agents.status(ada) == "sleeping"
        await world.run()

        assert await world.transcript(kitchen) == [
            "Husam: Can you look into it?",
            "Ada: One moment.",
            "Husam: No hurry.",
            "Ada: Done: it was the fuse.",
        ]
        assert await world.history(ada) == [
            (
                "inbox: [INBOX - 1 new event]\n"
                "Now: Monday 2026-01-05 09:00 UTC\n"
                "\n"
                '1. [Space "Kitchen" | spaceId: <Kitchen>] Husam (human): "Can you look into it?"\n'
                "   → received just now"
            ),
            'response: send_message {"text":"One moment."}',
            'results: send_message → {"success":true,"messageId":"<Kitchen 2>"}',
            'response: send_message {"text":"Done: it was the fuse."}',
            'results: send_message → {"success":true,"messageId":"<Kitchen 4>"}',
            "response: Found the fuse.",
            (
                "inbox: [INBOX - 1 new event]\n"
                "Now: Monday 2026-01-05 09:00 UTC\n"
                "\n"
                '1. [Space "Kitchen" | spaceId: <Kitchen>] Husam (human): "No hurry."\n'
                "   → received just now"
            ),
            'response: skip {"reason":"nothing to add"}',
            "results: skip → The cycle ends here.",
        ]
        assert await world.endings(ada) == [
            (1, "acted", "answered", "Found the fuse."),
            (2, "acted", "skipped", 'Read what Husam wrote in "Kitchen" and did not reply: nothing to add'),
        ]
        assert await world.waiting(ada) == []


async def test_a_message_that_nobody_had_begun_to_think_about_is_answered_after_a_restart(ready_url: str):
    """A restart drops nothing that waits in an inbox."""
    async with open_world(ready_url) as world:
        ada = await world.agent("Ada", reply("Still here."), "Told Noor.")
        noor = await world.person("Noor")
        kitchen = await world.space("Kitchen", noor, ada)

        await world.say(noor, "Are you there?", kitchen)
        await world.restart()
        await world.run()

        assert await world.transcript(kitchen) == ["Noor: Are you there?", "Ada: Still here."]


async def test_a_thought_cut_off_before_its_first_answer_begins_anew(ready_url: str):
    """Nothing had been answered, so nothing is kept; the message is read together with what came meanwhile."""
    async with open_world(ready_url, pace=Pace(grace_seconds=0)) as world:
        stuck = Stuck()
        ada = await world.agent("Ada", model=scripted(stuck))
        noor = await world.person("Noor")
        kitchen = await world.space("Kitchen", noor, ada)

        await world.say(noor, "Hello?", kitchen)
        async with world.denizen.living():
            await stuck.begun.wait()
        await world.say(noor, "Anyone?", kitchen)
        await world.restart(ada=scripted(reply("Hello, Noor."), "Greeted Noor."))
        await world.run()

        assert await world.transcript(kitchen) == ["Noor: Hello?", "Noor: Anyone?", "Ada: Hello, Noor."]
        assert [each.split("\n")[0] for each in await world.history(ada)] == [
            "inbox: [INBOX - 2 new events]",
            'response: send_message {"text":"Hello, Noor."}',
            'results: send_message → {"success":true,"messageId":"<Kitchen 3>"}',
            "response: Greeted Noor.",
        ]
