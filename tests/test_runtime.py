"""The door to everything in Python: opening, organizations, triggers, and clear errors where something is missing."""

from __future__ import annotations

import re
from collections.abc import Awaitable
from typing import Any

import pytest

from denizen import Runtime, reply, scripted, skip, tool
from denizen.errors import InvalidInput, ModelUnknown, NotFound, OutcomeUnknown
from denizen.ids import AgentId, new_id
from denizen.storage.database import Database
from denizen.tools.prebuilt import PREBUILT
from tests.world import Waiting, World, as_text, open_world


async def test_a_house_in_a_few_lines():
    """What the first page of the documentation promises: no set-up, no key, no file to clean up."""
    async with Runtime() as denizen:
        ada = await denizen.agents.create("Ada", model=scripted(reply("Hello, Noor."), "Greeted Noor."))
        noor = await denizen.people.create("Noor")
        kitchen = await denizen.spaces.create("Kitchen", [noor, ada])
        await denizen.spaces.post(kitchen, noor, "Hello!")
        await denizen.run_until_idle()
        assert await denizen.spaces.transcript(kitchen) == ["Noor: Hello!", "Ada: Hello, Noor."]


async def test_a_transcript_is_whole_however_long(small_world: World):
    noor = await small_world.person("Noor")
    hall = await small_world.space("Hall", noor)
    for number in range(1_003):
        await small_world.denizen.spaces.post(hall, noor, str(number))
    assert await small_world.denizen.spaces.transcript(hall) == [f"Noor: {number}" for number in range(1_003)]


async def test_a_runtime_that_is_not_open_says_how_to_open_it():
    with pytest.raises(InvalidInput, match="async with Runtime"):
        await Runtime().people.create("Noor")


def any_value(value: Any) -> Any:
    """A value whose type nobody checks, as in a script."""
    return value


async def test_mistakes_of_a_newcomer_are_told_in_their_own_words(small_world: World):
    """They ended in an AttributeError or a TypeError somewhere inside, or in nothing at all."""
    denizen = small_world.denizen
    noor = await small_world.person("Noor")
    hall = await small_world.space("Hall", noor)

    def weather(city: str) -> str:
        return f"Sunny in {city}."

    mistakes: list[tuple[Awaitable[Any], str]] = [
        (
            denizen.spaces.post(any_value(denizen.spaces.create("Den")), noor, "Hi"),
            "Put `await` before the call of Spaces",
        ),
        (denizen.spaces.create("Den", [any_value(None)]), "None was given in place of an agent, person, space"),
        (denizen.spaces.create("Den", any_value(noor)), "`members` is of the type Entity. Give a list"),
        (denizen.spaces.create("Den", any_value("noor")), "`members` is of the type str. Give a list"),
        (denizen.spaces.create(any_value(None)), "`name` is None. Give a string."),
        (denizen.spaces.post(hall, noor, any_value(b"Hi")), "`text` is of the type bytes. Give a string."),
        (denizen.people.create(any_value(3)), "`name` is of the type int. Give a string."),
        (denizen.agents.create("Ada", model=any_value(3)), "`model` is of the type int"),
        (denizen.agents.create("Ada", tools=any_value("weather")), "`tools` is of the type str. Give a list"),
        (
            denizen.agents.create("Ada", tools=[any_value(weather)]),
            "weather is not a tool. Decorate a function with `@tool`",
        ),
        (denizen.agents.create("Ada", **any_value({"instruction": "x"})), "did you mean 'instructions'?"),
        (
            denizen.agents.create("Ada", cycle=any_value({"max_step": 3})),
            "cycle.max_step: there is no such field; did you",
        ),
    ]
    for mistake, told in mistakes:
        with pytest.raises(InvalidInput, match=re.escape(told)):
            await mistake
    with pytest.raises(InvalidInput, match="weather is not a tool"):
        Runtime(tools=[any_value(weather)])
    for nowhere in ("Hall", noor.id):
        with pytest.raises(NotFound, match="There is no space"):
            await denizen.spaces.transcript(any_value(nowhere))


async def test_agents_live_once_at_a_time(small_world: World):
    async with small_world.denizen.living():
        with pytest.raises(InvalidInput, match="already"):
            async with small_world.denizen.living():
                pass
    async with small_world.denizen.living():
        pass


# Organizations


async def test_without_an_organization_there_is_one_home(world: World):
    noor = await world.person("Noor")
    ada = await world.agent("Ada")
    hall = await world.space("Hall", noor, ada)
    assert noor.organization_id == ada.entity.organization_id == hall.organization_id
    await world.restart()
    assert (await world.person("Bert")).organization_id == noor.organization_id


async def test_with_several_organizations_one_has_to_be_named(world: World):
    here = await world.denizen.organizations.create("Here")
    assert (await world.person("Noor")).organization_id == here.id
    there = await world.denizen.organizations.create("There")
    with pytest.raises(InvalidInput, match="several organizations"):
        await world.person("Bert")
    with pytest.raises(InvalidInput, match="several organizations"):
        await world.space("Hall")
    assert (await world.person("Bert", organization=there)).organization_id == there.id
    assert (await world.person("Cleo", organization=there.id)).organization_id == there.id
    with pytest.raises(NotFound):
        await world.person("Dora", organization=new_id())


# Triggers


async def test_a_trigger_tells_an_agent_what_happened_outside(world: World):
    ada = await world.agent("Ada", "Noted the build.")
    await world.denizen.agents.trigger(ada, "ci", {"build": 7, "ok": False}, text="The build broke")
    world.clock.advance(90)
    await world.run()
    assert await world.history(ada) == [
        (
            "inbox: [INBOX - 1 new event]\n"
            "Now: Monday 2026-01-05 09:01 UTC\n"
            "\n"
            '1. [Service "ci"]\n'
            "   | The build broke\n"
            '   | {"build":7,"ok":false}\n'
            "   → received 1 min ago"
        ),
        "response: Noted the build.",
    ]


async def test_triggering_again_with_the_same_id_is_triggering_once(world: World):
    ada, bee = await world.agent("Ada", skip()), await world.agent("Bee", skip())
    for agent in (ada, ada, bee):
        await world.denizen.agents.trigger(agent, "ci", id="build-7")
    await world.run()
    await world.denizen.agents.trigger(ada, "ci", id="build-7")
    await world.run()
    assert [len(world.model(each).requests) for each in (ada, bee)] == [1, 1]


async def test_nobody_can_be_triggered_who_is_not_there(world: World):
    with pytest.raises(NotFound):
        await world.denizen.agents.trigger(AgentId(new_id()), "ci")


# What is missing


async def test_an_unknown_model_is_a_clear_error_and_the_events_wait(world: World):
    ada = await world.denizen.agents.create("Ada", model="no-such-model")
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "Hi", hall)

    with pytest.raises(ModelUnknown, match="no-such-model"):
        await world.run()
    assert await world.waiting(ada) == [Waiting("Hi", "pending")]
    assert await world.denizen.agents.status(ada) == "sleeping"

    world.denizen.models.register("no-such-model", scripted(reply("Hello."), "Greeted Noor."))
    await world.run()
    assert await world.transcript(hall) == ["Noor: Hi", "Ada: Hello."]


async def test_one_agent_without_a_model_does_not_hold_the_others(world: World):
    lost = await world.denizen.agents.create("Lost", model="no-such-model")
    ada = await world.agent("Ada", reply("Hello."), "Greeted Noor.")
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada, lost)
    await world.say(noor, "Hi", hall)
    with pytest.raises(ModelUnknown, match="no-such-model"):
        await world.run()
    assert await world.transcript(hall) == ["Noor: Hi", "Ada: Hello."]


async def test_tools_that_a_new_process_does_not_have_are_a_clear_error(ready_url: str):
    @tool
    async def dig() -> str:
        """Dig."""
        return "gold"

    async with open_world(ready_url) as world:
        ada = await world.agent("Ada", model=scripted(), tools=[dig])
        noor = await world.person("Noor")
        hall = await world.space("Hall", noor, ada)
        await world.say(noor, "Dig", hall)

    models = {"python:ada": scripted(reply("Gold!"), "Dug.")}
    async with Runtime(ready_url, clock=world.clock, models=models) as denizen:
        with pytest.raises(InvalidInput, match=r"@ada uses tools that this runtime does not have: dig\."):
            await denizen.run_until_idle()
        assert [event.text for event in await denizen.minds.inbox(ada)] == ["Dig"]
    async with Runtime(ready_url, clock=world.clock, models=models, tools=[dig]) as denizen:
        await denizen.run_until_idle()
        assert await denizen.spaces.transcript(hall) == ["Noor: Dig", "Ada: Gold!"]


async def test_a_tool_given_by_name_is_found_by_its_name(small_world: World):
    @tool
    async def dig() -> str:
        """Dig."""
        return "gold"

    ada = await small_world.agent("Ada", skip(), tools=[dig])
    bee = await small_world.denizen.agents.create("Bee", model=scripted(skip()), tools=["dig"])
    assert ada.definition.tools == bee.definition.tools == ("dig",)
    await small_world.denizen.agents.trigger(ada, "bell")
    await small_world.run()
    assert small_world.model(ada).infos[0].tools == (*(each.name for each in PREBUILT), "dig")
    assert as_text(small_world.model(ada).requests[0][-1]).endswith('1. [Service "bell"] ""\n   → received just now')


class Forgetful:
    """The real database, whose connection breaks while the first write commits: it happened, and nobody hears."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._breaks = True

    def __getattr__(self, name: str):
        return getattr(self._db, name)

    async def write(self, fn, /, *args, **kwargs):
        done = await self._db.write(fn, *args, **kwargs)
        if self._breaks:
            self._breaks = False
            raise OutcomeUnknown
        return done


async def test_a_post_whose_outcome_is_unknown_is_posted_once(world: World, monkeypatch: pytest.MonkeyPatch):
    """It is tried again under the same id: the message stands once, and so does its event."""
    noor = await world.person("Noor")
    ada = await world.agent("Ada", reply("Yes."), "Answered.")
    hall = await world.space("Hall", noor, ada)
    with monkeypatch.context() as patch:
        patch.setattr(world.denizen, "_db", Forgetful(world.denizen.db))
        posted = await world.say(noor, "Ada?", hall)
    assert posted.seq == 1
    await world.run()
    assert await world.transcript(hall) == ["Noor: Ada?", "Ada: Yes."]
