"""Arguments as models write them: what is read generously, and what is still refused."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any

import pytest
from pydantic import Strict
from pydantic_ai.tools import ToolDefinition

from denizen import call, forever, reply, tool
from denizen.errors import InvalidInput
from denizen.tools import argument_parsing
from denizen.tools.prebuilt import PREBUILT, read_entry_tool, small_tools
from denizen.tools.recalling import recall_tool
from denizen.tools.schemas import checker
from denizen.tools.tool import AskTool
from tests.world import World, as_text

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"amount": {"type": "number"}, "days": {"type": "integer"}, "fast": {"type": "boolean"}},
    "required": ["amount"],
    "additionalProperties": False,
}


def asking(schema: dict[str, Any]) -> AskTool:
    return AskTool(ToolDefinition(name="order", parameters_json_schema=schema), checker("order", schema))


@pytest.mark.parametrize(
    ("given", "read", "left_out"),
    [
        ({"amount": "1.5", "days": " 3 ", "fast": "True"}, {"amount": 1.5, "days": 3, "fast": True}, ()),
        ('{"amount": 1, "colour": "red"}', {"amount": 1}, ("colour",)),
        ({"amount": "many"}, {"amount": "many"}, ()),
        ("[1]", "[1]", ()),
        ('{"amount": ', '{"amount": ', ()),
    ],
)
def test_numbers_in_strings_are_numbers_and_unknown_arguments_are_left_out(
    given: Any, read: Any, left_out: tuple[str, ...]
):
    assert argument_parsing.read(asking(SCHEMA), given) == (read, left_out)


def test_what_is_wrong_is_still_refused():
    with pytest.raises(InvalidInput, match="amount"):
        argument_parsing.check(asking(SCHEMA), {"amount": "many"})
    with pytest.raises(InvalidInput, match="amount"):
        argument_parsing.check(asking(SCHEMA), {"sum": 3})


def test_what_was_json_is_checked_as_json():
    """A date is a string there, also for a function that wants nothing but dates; a mapping is an object."""

    @tool
    def book(day: Annotated[date, Strict()], seats: dict[str, int]) -> str:
        """Book seats."""
        return f"{day} {seats}"

    given = '{"day": "2026-01-05", "seats": {"a": 1}, "colour": "red"}'
    assert argument_parsing.check(book, given) == {"day": date(2026, 1, 5), "seats": {"a": 1}}
    with pytest.raises(InvalidInput, match="seats: Input should be an object"):
        argument_parsing.check(book, '{"day": "2026-01-05", "seats": [1]}')


def test_a_tool_that_takes_anything_is_given_everything():
    schema = {**SCHEMA, "additionalProperties": True}
    assert argument_parsing.read(asking(schema), {"amount": 1, "colour": "red"}).left_out == ()


def test_arguments_that_the_small_profile_does_not_mention_are_taken_all_the_same():
    own = next(each for each in PREBUILT if each.name == "read_messages")
    assert argument_parsing.check(own, {"limit": "5"}).limit == 5


async def test_a_small_model_is_told_of_the_arguments_that_it_needs(world: World):
    db = world.denizen.db
    shown = {
        each.name: sorted(each.definition.parameters_json_schema["properties"])
        for each in small_tools(read_entry_tool(db), recall_tool(db, None))
    }
    assert shown == {
        "send_message": ["text"],
        "read_entry": ["entry", "offset"],
        "recall": ["query"],
        "set_timer": ["after", "reason"],
        "skip": [],
    }


async def talk(world: World, model: Any, **options: Any) -> tuple[Any, list[str], list[str]]:
    ada = await world.agent("Ada", model=model, **options)
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "Hello?", hall)
    await world.run()
    told = [line for entry in await world.history(ada) if entry.startswith("results: ") for line in entry.split("\n")]
    return ada, told, await world.transcript(hall)


async def test_a_tool_that_does_not_exist_is_told_with_the_nearest(world: World):
    turns = [call("send_mesage", text="Hi"), call("get_plans"), reply("Hi."), "Said hi."]
    _, told, _ = await talk(world, forever(lambda _messages, _info: turns.pop(0)))
    assert "There is no tool 'send_mesage'. Did you mean send_message or read_messages?" in told[0]
    assert "There is no tool 'get_plans' any more. Use read_entry(\\\"plans\\\") instead." in told[1]


async def test_the_same_failing_call_three_times_ends_in_the_last_step(world: World):
    """It went on for twenty steps, and whoever waited read nothing."""

    @tool
    def open_door(number: int) -> str:
        """Open a door."""
        raise RuntimeError("it is locked")

    def insist(messages: list[Any], _info: Any) -> Any:
        last = as_text(messages[-1])
        return reply("The door is locked.") if last.startswith("[LAST STEP]") else call("open_door", number=4)

    ada, told, transcript = await talk(world, forever(insist), tools=[open_door])
    assert len([line for line in told if "it is locked" in line]) == 3
    assert transcript == ["Noor: Hello?", "Ada: The door is locked."]
    [cycle] = await world.cycles(ada)
    assert cycle.stop_reason == "repeated_failure"


async def test_the_same_message_again_is_not_posted_until_somebody_has_spoken(world: World):
    async def again(_messages: Any, info: Any) -> Any:
        if info.number == 4:
            return "Said hello."
        if info.number == 3:
            await world.say(noor, "Pardon?", hall)
        return reply("Hello, Noor.")

    ada = await world.agent("Ada", model=forever(again), cycle={"awareness": "none"})
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "Hello?", hall)
    await world.run()
    assert (await world.transcript(hall))[:4] == [
        "Noor: Hello?",
        "Ada: Hello, Noor.",
        "Noor: Pardon?",
        "Ada: Hello, Noor.",
    ]
    told = [entry for entry in await world.history(ada) if entry.startswith("results: ")]
    assert ["was not sent again" in each for each in told[:4]] == [False, True, True, False]
