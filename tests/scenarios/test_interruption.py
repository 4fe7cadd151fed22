"""Scenario 3: someone interrupts an agent in the middle of its work, and it changes course without starting anew."""

from __future__ import annotations

from denizen import call, reply, scripted, tool
from tests.world import World


async def test_an_urgent_correction_reaches_the_agent_between_two_steps(world: World):
    """It does not finish with the wrong data, and the correction belongs to the cycle it corrected."""

    @tool
    async def read_data(quarter: str) -> str:
        """Read the figures of a quarter."""
        if quarter == "Q2":
            world.clock.advance(0.5)
            await world.say(husam, "Stop! Wrong dataset. Use the Q3 data instead.", project)
        return f"figures of {quarter}"

    thinking = scripted(
        call("read_data", quarter="Q2"),
        call("read_data", quarter="Q3"),
        reply("Here is the report on Q3."),
        "Reported on Q3 for Husam, who corrected the dataset.",
    )
    ada = await world.agent("Ada", model=thinking, tools=[read_data])
    husam = await world.person("Husam")
    project = await world.space("Project", husam, ada)

    await world.say(husam, "Report on the data, please.", project)
    await world.run()

    assert await world.transcript(project) == [
        "Husam: Report on the data, please.",
        "Husam: Stop! Wrong dataset. Use the Q3 data instead.",
        "Ada: Here is the report on Q3.",
    ]
    assert (await world.history(ada))[2:5] == [
        "results: read_data → figures of Q2",
        (
            "update: [MID-CYCLE UPDATE - 1 new event]\n"
            "\n"
            '1. [Space "Project" | spaceId: <Project> | urgent] Husam (human): '
            '"Stop! Wrong dataset. Use the Q3 data instead."\n'
            "   → received just now"
        ),
        'response: read_data {"quarter":"Q3"}',
    ]
    assert [each.summary for each in await world.cycles(ada)] == [
        "Reported on Q3 for Husam, who corrected the dataset."
    ]
    assert await world.waiting(ada) == []
