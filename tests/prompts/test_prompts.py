"""The texts that models read, whole, as golden files: whoever changes a word sees where it is read, and by whom.

To write the files anew after a change: `DENIZEN_WRITE_PROMPTS=1 pytest tests/prompts`; then read the difference.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from denizen import call, reply, scripted
from denizen.agents.registry import Agent
from denizen.panel import voting
from denizen.panel.context import Persona, context, system_prompt
from denizen.panel.phases import DEFAULT_PHASES, stage_at
from denizen.reflection.state import StateOfMind
from tests.panel.test_context import THREE, asked
from tests.world import World, as_text

GOLDEN = Path(__file__).parent


def check(name: str, blocks: Sequence[str]) -> None:
    """The text is that of the golden file."""
    text = "\n\n════\n\n".join(blocks) + "\n"
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("DENIZEN_WRITE_PROMPTS"):
        file.write_text(text, "utf-8")
    assert text == file.read_text("utf-8")


async def request(world: World, agent: Agent, number: int = -1) -> list[str]:
    """One request of the agent, message by message."""
    return await world.named([as_text(message) for message in world.model(agent).requests[number]])


async def test_the_first_request_of_an_agent(small_world: World) -> None:
    world = small_world
    noor = await world.person("Noor")
    ada = await world.agent("Ada", reply("I cook."), "Told Noor.", instructions="You cook for everyone.")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "What do you do?", hall)
    await world.run()
    check("agent", await request(world, ada, 0))


async def test_the_first_request_of_an_agent_with_a_small_model(small_world: World) -> None:
    world = small_world
    noor = await world.person("Noor")
    ada = await world.agent("Ada", reply("I cook."), instructions="You cook for everyone.", profile="small")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "What do you do?", hall)
    await world.run()
    tools = [f"{each.name}: {each.description}" for each in world.model(ada).infos[0].definitions]
    check("small", [*await request(world, ada, 0), "\n".join(tools)])


async def test_a_request_of_an_agent_that_plans_remembers_and_is_told_of_changes(small_world: World) -> None:
    world = small_world
    noor, bert = await world.person("Noor"), await world.person("Bert")
    made: list[Any] = [
        call("set_timer", after="2 minutes", reason="Ask Noor\nabout the soup."),
        call("set_goals", text="Learn to bake."),
        call("set_memories", memories=[{"key": "salt", "text": "Noor eats no salt."}]),
        reply("I will."),
        "Planned.",
    ]
    ada = await world.agent("Ada", *made, reply("How is the soup?"), "Asked Noor.", instructions="You cook.")
    hall = await world.space("Hall", noor, ada)
    await world.denizen.agents.trigger(ada, "oven", text="The oven is hot.", data={"celsius": 200})
    await world.say(noor, "Remind me of the soup.", hall)
    await world.run()
    await world.denizen.spaces.join(hall, bert)
    await world.run_after(120)
    check("busy", [re.sub(r"timerId: [0-9a-f-]+", "timerId: <timer>", (await request(world, ada, 5))[-1])])


async def test_a_request_after_compaction(small_world: World) -> None:
    world = small_world
    noor = await world.person("Noor")
    turns = [turn for n in range(40) for turn in (reply(f"Answer {n}. " + "word " * 150), f"Told Noor about {n}.")]
    ada = await world.agent("Ada", model=scripted(*turns), window={"max_tokens": 5_000, "min_recent_cycles": 1})
    hall = await world.space("Hall", noor, ada)
    for number in range(14):
        await world.say(noor, f"Question {number}? " + "why " * 100, hall)
        await world.run()
    check("compacted", (await request(world, ada))[:2])


def test_a_request_of_an_advisor_whose_add_on_mood_and_phase_disagree() -> None:
    mood = StateOfMind("patient", "novice").line()
    profile = f"Be brief. Answer in one to three sentences.\n\nIn this conversation {mood}. This sets the tone only."
    stage = stage_at(DEFAULT_PHASES, 2)
    prompt = system_prompt("Martin Buber", "You look for the encounter.", stage.instructions, profile=profile)
    shown = context(
        Persona("buber", prompt), THREE[:1], asked(2, "And now?"), characters=9_000, reference_characters=900
    )
    check("advisor", [f"{line.role}: {line.text}" for line in shown])


def test_a_request_of_an_advisor_to_vote() -> None:
    prompt = system_prompt("Martin Buber", "", "")
    shown = context(
        Persona("buber", prompt),
        [],
        asked(1, "Shall we open it?"),
        characters=9_000,
        reference_characters=900,
        task=voting.task("Open it?"),
    )
    check("vote", [f"{line.role}: {line.text}" for line in shown])
