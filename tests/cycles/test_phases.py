"""Phases: which tools may be called at which step."""

from __future__ import annotations

from typing import Any

import pytest

from denizen import call, reply, scripted, tool
from denizen.cycles.phases import FREE, OBSERVE_THINK_RESPOND, Phase, phase_at
from denizen.cycles.steps import NextStep, plan_step
from denizen.errors import InvalidInput
from denizen.tools.prebuilt import PREBUILT
from denizen.tools.tool import Toolbox
from tests.world import World, as_text


async def thinking_in(world: World, phases: object, *turns):
    @tool(effect=False)
    async def look_up() -> str:
        """Look something up."""
        return "found"

    @tool
    async def order() -> str:
        """Order something."""
        return "ordered"

    model = scripted(*turns)
    ada = await world.agent("Ada", model=model, tools=[look_up, order], cycle={"phases": phases})
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "Hello?", hall)
    await world.run()
    return ada, hall, model


def test_a_step_belongs_to_the_first_phase_that_lasts_so_long():
    first, second = Phase(until_step=1, tools=("read_messages",)), Phase(until_step=3)
    assert [phase_at((first, second), step) for step in range(4)] == [first, first, second, second]
    assert phase_at((first, second), 4) is FREE


def test_skip_is_always_allowed():
    for phase in OBSERVE_THINK_RESPOND:
        assert plan_step(phase, Toolbox(PREBUILT)).allows("skip")


def test_a_step_without_a_phase_says_what_it_is_restricted_to():
    """Whether a function chose tools, or that one has to be called."""

    def note(**decided: Any) -> str:
        return plan_step(FREE, Toolbox(PREBUILT), NextStep(**decided)).note

    assert note() == ""
    assert note(tools=["set_goals"]) == "[THIS STEP] You may call only: set_goals, skip."
    assert note(tool_choice="required") == "[THIS STEP] You may call every tool. Call one now."


async def test_observe_think_respond_forces_the_agent_to_look_first_and_only_to_answer_in_the_end(world: World):
    """Two steps to observe, five to think and act, then only communication; each request says which it is."""
    turns = [call("read_messages") for _ in range(7)]
    ada, hall, model = await thinking_in(
        world, "observe-think-respond", *turns, call("read_messages"), reply("Here."), "Answered."
    )
    assert [(info.settings or {}).get("tool_choice", "auto") for info in model.infos] == ["required"] * 2 + ["auto"] * 8
    assert len({info.tools for info in model.infos}) == 1, "all tools are always sent, so that the prefix stays"
    notes = [as_text(request[-1]) for request in model.requests]
    observe = "enter_space, read_messages, read_entry, recall, skip, look_up. Call one now."
    assert notes[:2] == [f"[PHASE OBSERVE] You may call only: {observe}"] * 2
    assert notes[2:7] == ["[PHASE THINK] You may call every tool."] * 5
    respond = "enter_space, send_message, set_memories, set_goals, skip."
    assert notes[7:] == [f"[PHASE RESPOND] You may call only: {respond}"] * 3
    refused = [each for each in await world.history(ada) if "may not be called in this step" in each]
    assert len(refused) == 1
    assert f"Allowed are: {respond}" in refused[0]
    assert await world.transcript(hall) == ["Noor: Hello?", "Ada: Here."]


async def test_a_call_outside_its_phase_is_refused_and_not_heard(world: World):
    phases = [{"until_step": 0, "tools": ["read_messages"]}]
    ada, hall, _ = await thinking_in(world, phases, reply("Too early."), reply("In time."), "Answered.")
    assert await world.transcript(hall) == ["Noor: Hello?", "Ada: In time."]
    assert "may not be called in this step" in (await world.history(ada))[2]


async def test_a_strict_phase_leaves_the_other_tools_out_of_the_request(world: World):
    phases = [{"until_step": 0, "tools": ["read_messages"], "strict": True}]
    _, _, model = await thinking_in(world, phases, call("read_messages"), reply("Here."), "Answered.")
    assert model.infos[0].tools == ("read_messages", "skip")
    assert len(model.infos[1].tools) > 2


async def test_an_unknown_preset_is_refused_with_the_names_there_are(small_world: World):
    with pytest.raises(InvalidInput, match=r"no preset 'observe'; there is observe-think-respond"):
        await small_world.agent("Ada", cycle={"phases": "observe"})
