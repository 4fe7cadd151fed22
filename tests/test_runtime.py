"""The door to everything in Python: opening, organizations, triggers, and clear errors where something is missing."""

from __future__ import annotations

import inspect
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
        (denizen.spaces.create("Den", kind=any_value("chat")), "The kind of a space is one of conversation, panel"),
        (denizen.spaces.create("Den", private=any_value("no")), "`private` is of the type str. Give True or False."),
        (denizen.spaces.post(hall, noor, "Hi", metadata=any_value(1)), "`metadata` is of the type int. Give a dict"),
        (denizen.spaces.post(hall, noor, "Hi", id=any_value(1)), "`id` is of the type int. Give a string."),
        (denizen.spaces.set_retention(hall, any_value(2.5)), "`days` is of the type float. Give a whole number."),
        (denizen.rounds.get(any_value("1")), "`asked` is not a round."),
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


NUMBERS = {
    "after": 0,
    "before": 0,
    "count": 1,
    "cycle": 0,
    "days": 1,
    "first": 0,
    "limit": 1,
    "seq": 0,
    "step": 0,
}
"""The smallest number that an argument of this name can be."""
WRITES = {"set_agent_run_limit", "set_retention", "rethink"}


async def test_numbers_that_mean_nothing_are_refused(small_world: World):
    """`limit=-1` returned everything, `"5"` the fifth and later ones, and a huge one was an error of the database."""
    denizen = small_world.denizen
    noor, ada = await small_world.person("Noor"), await small_world.agent("Ada")
    hall = await small_world.space("Hall", noor, ada)
    board = await denizen.panels.create("Board", [noor], advisors=["Kai"], model="demo")
    [kai] = await denizen.advisors.list(board)
    takes: dict[str, Any] = {
        "agent": ada, "space": hall, "who": noor, "panel": board, "advisor": kai, "query": "tea", "words": "tea",
        "owners": [noor.id], "topic": "tea", "seq": 0, "cycle": 1, "text": "tea",
    }  # fmt: skip
    tried: set[str] = set()
    for subject in ("spaces", "minds", "memory", "reflection", "advisors", "rounds", "budgets"):
        for name, method in inspect.getmembers(getattr(denizen, subject), inspect.iscoroutinefunction):
            parameters = inspect.signature(method).parameters
            numbers = {each for each, its in parameters.items() if its.annotation in ("int", "int | None")}
            for wrong in NUMBERS.keys() & numbers if name not in WRITES else ():
                needed = [each for each, its in parameters.items() if its.default is its.empty]
                arguments = {each: takes[each] for each in needed}
                for value in (NUMBERS[wrong] - 1, 10**30, "5", 2.5, True):
                    with pytest.raises(InvalidInput, match=f"^`?{wrong}`?(:| is) "):
                        await method(**(arguments | {wrong: value}))
                tried.add(f"{subject}.{name} {wrong}")
    assert tried >= {"spaces.messages limit", "spaces.mark_read seq", "minds.replay cycle", "rounds.list before"}
    with pytest.raises(InvalidInput, match=re.escape("`contexts['tiny']` is of the type str. Give a whole number.")):
        Runtime(contexts=any_value({"tiny": "y"}))


async def test_what_does_not_exist_is_not_found_rather_than_empty(small_world: World):
    """A wrong id looked like an agent without a history, a space without members and so on."""
    denizen = small_world.denizen
    noor, ada = await small_world.person("Noor"), await small_world.agent("Ada")
    hall = await small_world.space("Hall", noor, ada)
    nobody: Any = "nobody"
    for reading in (
        denizen.spaces.list(nobody),
        denizen.spaces.members(nobody),
        denizen.spaces.statuses(nobody),
        denizen.spaces.search(nobody, "tea"),
        denizen.minds.inbox(nobody),
        denizen.minds.cycles(nobody),
        denizen.minds.log(nobody),
        denizen.minds.dead_events(nobody),
        denizen.minds.replay(nobody, 1),
        denizen.minds.crossings(nobody),
        denizen.calls.waiting(nobody),
        denizen.calls.list(nobody),
        denizen.calls.approvals(nobody),
        denizen.goals.list(nobody),
        denizen.notes.list(nobody),
        denizen.plans.list(nobody),
        denizen.memory.summary(nobody),
        denizen.memory.policy(nobody),
        denizen.memory.list(agent=nobody),
        denizen.memory.list(space=nobody),
        denizen.reflection.stance(nobody, hall),
        denizen.reflection.stance(ada, nobody),
        denizen.reflection.stances(nobody),
        denizen.panels.list(nobody),
        denizen.advisors.list(nobody),
        denizen.rounds.list(nobody),
        denizen.budgets.resting(nobody),
        denizen.budgets.spending(nobody),
        denizen.webhooks.list(nobody),
        denizen.bridges.addresses(nobody),
    ):
        with pytest.raises(NotFound, match="nobody"):
            await reading
    with pytest.raises(NotFound, match="There is no agent"):
        await denizen.minds.cycles(AgentId(noor.id))
    await denizen.agents.delete(ada)
    assert await denizen.minds.cycles(ada) == []


async def test_a_handle_that_nobody_has_names_the_nearest(small_world: World):
    denizen = small_world.denizen
    await small_world.person("Bert")
    noor, ada = await small_world.person("Noor"), await small_world.agent("Ada")
    await small_world.agent("Adam")
    with pytest.raises(NotFound, match=re.escape("There is no person, agent or service '@nor'. Did you mean @noor?")):
        await denizen.people.find("@Nor")
    with pytest.raises(NotFound, match=re.escape("'@zzz'.") + "$"):
        await denizen.people.find("zzz")
    await denizen.agents.delete(ada)
    with pytest.raises(NotFound, match=re.escape("Did you mean @adam?")):
        await denizen.people.find("adda")
    await denizen.people.remove(noor)
    with pytest.raises(NotFound, match=re.escape("'@nor'.") + "$"):
        await denizen.people.find("nor")


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
