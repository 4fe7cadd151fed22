"""Scenario 4: two agents talk to each other and to a person, each with a mind of its own."""

from __future__ import annotations

import pytest

from denizen import reply
from denizen.spaces.directory import FLOORS, Floor
from tests.world import World


@pytest.mark.parametrize("floor", FLOORS)
async def test_two_agents_work_out_a_spec_for_a_person(world: World, floor: Floor):
    """A person asks one agent, which asks another, hears the answer, and reports."""
    pat = await world.agent(
        "Pat",
        reply("I'll draft the spec. @eli, what's the technical complexity?"),
        "Asked Eli about dark mode for Husam.",
        reply("Here's the spec: dark mode toggle (2 days, Eli confirmed), 3.5 days in total."),
        "Sent Husam the spec for dark mode.",
    )
    eli = await world.agent(
        "Eli",
        reply("Medium complexity, about 2 days."),
        "Told Pat: 2 days.",
    )
    husam = await world.person("Husam")
    planning = await world.space("Planning", husam, pat, eli, floor=floor)
    await world.denizen.spaces.set_attention(planning, eli, "mentions")

    await world.say(husam, "@pat I need a feature spec for dark mode", planning)
    await world.run()

    assert await world.transcript(planning) == [
        "Husam: @pat I need a feature spec for dark mode",
        "Pat: I'll draft the spec. @eli, what's the technical complexity?",
        "Eli: Medium complexity, about 2 days.",
        "Pat: Here's the spec: dark mode toggle (2 days, Eli confirmed), 3.5 days in total.",
    ]
    assert await world.history(pat) == [
        (
            "inbox: [INBOX - 1 new event]\n"
            "Now: Monday 2026-01-05 09:00 UTC\n"
            "\n"
            '1. [Space "Planning" | spaceId: <Planning> | mentions you] Husam (human): '
            '"@pat I need a feature spec for dark mode"\n'
            "   → received just now"
        ),
        """response: send_message {"text":"I'll draft the spec. @eli, what's the technical complexity?"}""",
        'results: send_message → {"success":true,"messageId":"<Planning 2>"}',
        "response: Asked Eli about dark mode for Husam.",
        (
            "inbox: [INBOX - 1 new event]\n"
            "Now: Monday 2026-01-05 09:00 UTC\n"
            "\n"
            '1. [Space "Planning" | spaceId: <Planning>] Eli (agent): "Medium complexity, about 2 days."\n'
            "   → received just now"
        ),
        (
            'response: send_message {"text":"Here\'s the spec: dark mode toggle (2 days, Eli confirmed), '
            '3.5 days in total."}'
        ),
        'results: send_message → {"success":true,"messageId":"<Planning 4>"}',
        "response: Sent Husam the spec for dark mode.",
    ]
    assert await world.history(eli) == [
        (
            "inbox: [INBOX - 1 new event]\n"
            "Now: Monday 2026-01-05 09:00 UTC\n"
            "\n"
            '1. [Space "Planning" | spaceId: <Planning> | mentions you] Pat (agent): '
            "\"I'll draft the spec. @eli, what's the technical complexity?\"\n"
            "   → received just now"
        ),
        'response: send_message {"text":"Medium complexity, about 2 days."}',
        'results: send_message → {"success":true,"messageId":"<Planning 3>"}',
        "response: Told Pat: 2 days.",
    ]
