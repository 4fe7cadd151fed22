"""Scenario 2: what arrives while an agent works is handled together, afterwards."""

from __future__ import annotations

from pydantic_ai.messages import ModelMessage

from denizen import call, reply, scripted, tool
from denizen.models.scripted import Info, Turn
from tests.world import World


async def test_two_messages_that_arrive_while_the_agent_works_become_one_next_cycle(world: World):
    """Nothing is thought about twice at the same time: one mind takes up both, in one thought, across two spaces."""

    @tool
    async def check_api() -> str:
        """Look whether the API is up."""
        world.clock.advance(0.3)
        await world.say(ahmad, "What about the UI?", design)
        world.clock.advance(0.1)
        await world.say(bee, "Migration done", project)
        return "healthy"

    async def answer_both(_messages: list[ModelMessage], _info: Info) -> Turn:
        return [
            call("enter_space", space_id=project.id),
            reply("Also: Bee confirmed that the migration is done!"),
            call("enter_space", space_id=design.id),
            reply("The mockup looks good."),
        ]

    thinking = scripted(
        call("check_api"),
        reply("API is healthy"),
        "Told Husam that the API is healthy.",
        answer_both,
        "Told Husam of the migration and Ahmad about the UI.",
    )
    ada = await world.agent("Ada", model=thinking, tools=[check_api])
    bee = await world.agent("Bee", *(call("skip") for _ in range(3)))
    husam, ahmad = await world.person("Husam"), await world.person("Ahmad")
    project = await world.space("Project", husam, ada, bee)
    design = await world.space("Design", ahmad, ada)

    await world.say(husam, "Check the API", project)
    await world.run()

    assert await world.transcript(project) == [
        "Husam: Check the API",
        "Bee: Migration done",
        "Ada: API is healthy",
        "Ada: Also: Bee confirmed that the migration is done!",
    ]
    assert await world.transcript(design) == ["Ahmad: What about the UI?", "Ada: The mockup looks good."]
    assert await world.history(ada) == [
        (
            "inbox: [INBOX - 1 new event]\n"
            "Now: Monday 2026-01-05 09:00 UTC\n"
            "\n"
            '1. [Space "Project" | spaceId: <Project>] Husam (human): "Check the API"\n'
            "   → received just now"
        ),
        "response: check_api {}",
        "results: check_api → healthy",
        'response: send_message {"text":"API is healthy"}',
        'results: send_message → {"success":true,"messageId":"<Project 3>"}',
        "response: Told Husam that the API is healthy.",
        (
            "inbox: [INBOX - 2 new events]\n"
            "Now: Monday 2026-01-05 09:00 UTC\n"
            "\n"
            '1. [Space "Design" | spaceId: <Design>] Ahmad (human): "What about the UI?"\n'
            "   → received just now\n"
            "\n"
            '2. [Space "Project" | spaceId: <Project>] Bee (agent): "Migration done"\n'
            "   → received just now\n"
            "\n"
            "Handle these in any order. First see which are urgent and which belong together."
        ),
        (
            'response: enter_space {"space_id":"<Project>"}\n'
            'send_message {"text":"Also: Bee confirmed that the migration is done!"}\n'
            'enter_space {"space_id":"<Design>"}\n'
            'send_message {"text":"The mockup looks good."}'
        ),
        (
            'results: enter_space → {"success":true,"spaceName":"Project"}\n'
            'send_message → {"success":true,"messageId":"<Project 4>"}\n'
            'enter_space → {"success":true,"spaceName":"Design"}\n'
            'send_message → {"success":true,"messageId":"<Design 2>"}'
        ),
        "response: Told Husam of the migration and Ahmad about the UI.",
    ]
    assert await world.endings(ada) == [
        (1, "acted", "answered", "Told Husam that the API is healthy."),
        (2, "acted", "answered", "Told Husam of the migration and Ahmad about the UI."),
    ]


async def test_three_messages_in_a_row_are_one_thought(world: World):
    """Three messages in two seconds were three runs elsewhere, each unaware of the others."""
    ada = await world.agent("Ada", reply("Hello, I am here."), "Greeted Noor.")
    noor = await world.person("Noor")
    kitchen = await world.space("Kitchen", noor, ada)

    for text in ("Hi", "Are you there?", "Ada?"):
        await world.say(noor, text, kitchen)
        world.clock.advance(1)
    await world.run()

    assert await world.transcript(kitchen) == [
        "Noor: Hi",
        "Noor: Are you there?",
        "Noor: Ada?",
        "Ada: Hello, I am here.",
    ]
    assert await world.newest_inbox(ada) == (
        "[INBOX - 3 new events]\n"
        "Now: Monday 2026-01-05 09:00 UTC\n"
        "\n"
        '1. [Space "Kitchen" | spaceId: <Kitchen>] Noor (human): "Hi"\n'
        "   → received 3.0s ago\n"
        "\n"
        '2. [Space "Kitchen" | spaceId: <Kitchen>] Noor (human): "Are you there?"\n'
        "   → received 2.0s ago\n"
        "\n"
        '3. [Space "Kitchen" | spaceId: <Kitchen>] Noor (human): "Ada?"\n'
        "   → received 1.0s ago\n"
        "\n"
        "Handle these in any order. First see which are urgent and which belong together."
    )
