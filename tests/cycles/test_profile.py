"""The small profile: what a model that takes little is told, chosen by itself, and fixed for an era."""

from __future__ import annotations

from typing import Any

import pytest

from denizen import call, forever, reply, tool
from denizen.consciousness.settings import profile_for
from denizen.consciousness.system_prompt import INSTRUCTIONS, RULES
from denizen.errors import ModelRejected
from denizen.models.scripted import ScriptedModel, Turn
from tests.world import World, as_text

SMALL = ("send_message", "read_entry", "recall", "set_timer", "skip")


class SmallModel(ScriptedModel):
    """A scripted model that takes only so much."""

    def __init__(self, *turns: Turn, tokens: int) -> None:
        left = iter(turns)
        super().__init__(lambda _messages, _info: next(left), name="small", chunk=12, pause=None, record=True)
        self.tokens = tokens

    @property
    def context_window(self) -> int | None:
        return self.tokens


@pytest.mark.parametrize(
    ("wanted", "context", "profile"),
    [
        ("auto", None, "normal"),
        ("auto", 16_000, "normal"),
        ("auto", 15_999, "small"),
        ("normal", 4_096, "normal"),
        ("small", 200_000, "small"),
    ],
)
def test_the_profile_follows_the_context_unless_the_owner_chooses(wanted: Any, context: int | None, profile: str):
    assert profile_for(wanted, context) == profile


async def test_a_model_that_takes_little_gets_a_short_self_and_few_tools(world: World):
    """Beside the tools of its own. It is not asked for a summary: that is made of what was said."""

    @tool
    def weather(city: str) -> str:
        """Tell the weather."""
        return f"Rain in {city}."

    model = SmallModel(call("weather", city="Bonn"), reply("It rains."), tokens=8_192)
    ada = await world.agent("Ada", model=model, tools=[weather])
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "How is the weather in Bonn?", hall)
    await world.run()
    assert await world.transcript(hall) == ["Noor: How is the weather in Bonn?", "Ada: It rains."]
    assert [info.tools for info in model.infos] == [(*SMALL, "weather")] * 2
    assert as_text(model.requests[0][0]).endswith(f"RULES:\n{RULES}")
    [cycle] = await world.cycles(ada)
    assert cycle.summary == 'Noor wrote: "How is the weather in Bonn?" Answered: "It rains."'


async def test_the_profile_is_fixed_for_an_era(world: World):
    """The self and the tools are the prefix that a provider caches: a context that was found to be smaller waits."""
    model = SmallModel(reply("One."), "Said one.", reply("Two."), "Said two.", reply("Three."), tokens=100_000)
    ada = await world.agent("Ada", model=model)
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    for text in ("one", "two", "three"):
        await world.say(noor, text, hall)
        await world.run()
        model.tokens = 8_000
        if text == "two":
            world.clock.advance(301)
    selves = [as_text(request[0]) for request in model.requests]
    assert [INSTRUCTIONS in each for each in selves] == [True] * 4 + [False]
    assert [len(info.tools) for info in model.infos] == [9] * 4 + [5]
    assert (await world.transcript(hall))[1::2] == ["Ada: One.", "Ada: Two.", "Ada: Three."]


async def test_an_owner_who_changes_the_profile_begins_a_new_era(world: World):
    ada = await world.agent("Ada", reply("One."), "Said one.", reply("Two."))
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "one", hall)
    await world.run()
    await world.denizen.agents.edit(ada, profile="small")
    await world.say(noor, "two", hall)
    await world.run()
    assert [info.tools == SMALL for info in world.model(ada).infos] == [False, False, True]


async def test_a_small_model_that_answers_one_of_two_spaces_goes_on(world: World):
    turns: list[Turn] = []
    ada = await world.agent("Ada", profile="small", model=forever(lambda _messages, _info: turns.pop(0)))
    noor, bert = await world.person("Noor"), await world.person("Bert")
    hall, attic = await world.space("Hall", noor, ada), await world.space("Attic", bert, ada)
    turns += [
        call("send_message", space_id=hall.id, text="Hello, Noor."),
        call("send_message", space_id=attic.id, text="Hello, Bert."),
    ]
    await world.say(noor, "hello", hall)
    await world.say(bert, "hello", attic)
    await world.run()
    assert (await world.transcript(hall))[-1] == "Ada: Hello, Noor."
    assert (await world.transcript(attic))[-1] == "Ada: Hello, Bert."
    assert turns == []


async def test_a_small_model_need_not_name_the_space_but_may(world: World):
    """An id takes most of the tokens of a short answer. With events from several spaces it is told to name one."""

    def to_both(*_: object) -> Turn:
        return [reply("Yes.", space_id=hall.id), reply("No.", space_id=yard.id)]

    model = SmallModel(reply("Which?"), to_both, tokens=8_192)
    ada, noor = await world.agent("Ada", model=model), await world.person("Noor")
    hall, yard = await world.space("Hall", noor, ada), await world.space("Yard", noor, ada)
    await world.say(noor, "Tea?", hall)
    await world.say(noor, "Coffee?", yard)
    await world.run()
    [send] = [each for each in model.infos[0].definitions if each.name == "send_message"]
    assert list(send.parameters_json_schema["properties"]) == ["text"]
    assert "the events come from several spaces" in as_text(model.requests[1][-1])
    assert "Name one of your spaces in space_id" in as_text(model.requests[1][-1])
    assert await world.transcript(hall) == ["Noor: Tea?", "Ada: Yes."]
    assert await world.transcript(yard) == ["Noor: Coffee?", "Ada: No."]


async def test_a_small_model_that_writes_nothing_has_to_call_a_tool_next(world: World):
    """Its server then writes the call by a grammar. A call that it is made to make is free again afterwards."""

    @tool(effect=False)
    def count_eggs() -> str:
        """Count the eggs."""
        return "14"

    model = SmallModel("<tools></tools>", call("count_eggs"), "There are 14.", tokens=8_192)
    ada, noor = await world.agent("Ada", model=model, tools=[count_eggs]), await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "How many eggs are there?", hall)
    await world.run()
    assert await world.transcript(hall) == ["Noor: How many eggs are there?", "Ada: There are 14."]
    assert [(info.settings or {}).get("tool_choice") for info in model.infos] == [None, "required", None]


async def test_a_server_that_takes_no_tool_choice_is_asked_without(world: World):
    refused = ModelRejected("tool_choice is not supported here.")
    model = SmallModel("", refused, reply("Good morning."), tokens=8_192)
    ada, noor = await world.agent("Ada", model=model), await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "Good morning!", hall)
    await world.run()
    assert await world.transcript(hall) == ["Noor: Good morning!", "Ada: Good morning."]
    assert [(info.settings or {}).get("tool_choice") for info in model.infos] == [None, "required", None]
