"""Scenario 1: a simple question and its answer."""

from __future__ import annotations

from denizen import reply
from tests.world import World


async def test_a_question_is_answered_and_the_agent_sleeps_again(world: World):
    """An agent that sleeps is woken by a message, answers it once, remembers all of it, and sleeps."""
    ada = await world.agent("Ada", reply("4"), "Answered Husam's sum.")
    husam = await world.person("Husam")
    kitchen = await world.space("Kitchen", husam, ada)
    assert await world.denizen.agents.status(ada) == "sleeping"

    await world.say(husam, "What's 2+2?", kitchen)
    await world.run()

    assert await world.transcript(kitchen) == ["Husam: What's 2+2?", "Ada: 4"]
    assert await world.history(ada) == [
        (
            "inbox: [INBOX - 1 new event]\n"
            "Now: Monday 2026-01-05 09:00 UTC\n"
            "\n"
            '1. [Space "Kitchen" | spaceId: <Kitchen>] Husam (human): "What\'s 2+2?"\n'
            "   → received just now"
        ),
        'response: send_message {"text":"4"}',
        'results: send_message → {"success":true,"messageId":"<Kitchen 2>"}',
        "response: Answered Husam's sum.",
    ]
    assert await world.endings(ada) == [(1, "acted", "answered", "Answered Husam's sum.")]
    assert await world.inbox(ada) == []
    assert await world.denizen.agents.status(ada) == "sleeping"


async def test_the_next_question_is_answered_with_the_first_in_mind(world: World):
    """What the model is sent grows by what is new; everything before it is as it was."""
    ada = await world.agent("Ada", reply("4"), "Answered Husam's sum.", reply("5"), "Answered another sum.")
    husam = await world.person("Husam")
    kitchen = await world.space("Kitchen", husam, ada)

    await world.say(husam, "What's 2+2?", kitchen)
    await world.run()
    await world.say(husam, "And one more?", kitchen)
    world.clock.advance(2.5)
    await world.run()

    first, *_, last = await world.prompts(ada)
    assert last == [
        *first,
        'model: send_message {"text":"4"}',
        'tool: send_message → {"success":true,"messageId":"<Kitchen 2>"}',
        "model: Answered Husam's sum.",
        (
            "user: [INBOX - 1 new event]\n"
            "Now: Monday 2026-01-05 09:00 UTC\n"
            "\n"
            '1. [Space "Kitchen" | spaceId: <Kitchen>] Husam (human): "And one more?"\n'
            "   → received 2.5s ago"
        ),
        'model: send_message {"text":"5"}',
        'tool: send_message → {"success":true,"messageId":"<Kitchen 4>"}',
    ]
    assert await world.transcript(kitchen) == [
        "Husam: What's 2+2?",
        "Ada: 4",
        "Husam: And one more?",
        "Ada: 5",
    ]
