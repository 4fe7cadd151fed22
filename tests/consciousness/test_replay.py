"""Any past request can be built again exactly as the model was sent it."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from pydantic_ai.tools import ToolDefinition
from sqlalchemy import bindparam, select, update

from denizen import call, reply, scripted, skip, tool
from denizen.errors import InvalidInput
from denizen.models.prices import Price
from denizen.storage.database import Tx, select_where, statement, values
from denizen.storage.schema import log
from denizen.tools.prebuilt import PREBUILT
from denizen.tools.tool import Toolbox
from tests.consciousness.past import bare, eventful_life, number_of
from tests.properties.house import everything
from tests.world import World, as_text, open_world


async def test_every_request_of_a_life_is_rebuilt_as_it_was_sent(world: World) -> None:
    """Messages, tools and settings; through previews, updates, reminders, phases, restarts and compaction."""
    past = await eventful_life(world)
    model, seen = past.model, set[str]()
    count = 0
    for cycle in await world.cycles(past.ada):
        for rebuilt in await world.denizen.minds.replay(past.ada, cycle.number):
            number = number_of(rebuilt.response)
            assert bare(rebuilt.messages) == bare(model.requests[number])
            info = model.infos[number]
            assert json.dumps(list(map(sent, rebuilt.tools))) == json.dumps(list(map(sent, info.definitions)))
            assert {name: value for name, value in rebuilt.settings.items() if value != "auto"} == info.settings
            assert rebuilt.model == "python:ada"
            assert as_text(rebuilt.messages[-rebuilt.present]).startswith("[INBOX - ")
            assert rebuilt.has_note == as_text(rebuilt.messages[-1]).startswith(("[PHASE]", "[INBOX PREVIEW"))
            seen |= {as_text(each)[:8] for each in rebuilt.messages}
            seen.add("strict" if len(rebuilt.tools) == 3 else "free")
            count += 1
    assert count == len(model.requests) - 1, "but for the skipped cycle, every request is kept"
    assert {"[INBOX P", "[MID-CYC", "[REMINDE", "strict", "free"} <= seen
    assert any(each.startswith(("[COMPACT", "[EARLIER")) for each in seen)


async def test_requests_whose_past_was_shortened_in_the_middle_of_a_cycle_are_rebuilt(small_world: World) -> None:
    """What the agent reads now needs the room of what it has read before."""

    @tool(effect=False)
    def read_page() -> str:
        """Read a page."""
        return "a long page " * 250

    window = {"max_tokens": Toolbox([*PREBUILT]).tokens + 5_000, "min_recent_cycles": 1}
    turns = [call("read_page"), call("read_page"), call("read_page"), reply("Read."), "Done."]
    ada = await small_world.agent("Ada", *turns * 3, tools=[read_page], window=window)
    noor = await small_world.person("Noor")
    hall = await small_world.space("Hall", noor, ada)
    for _ in range(3):
        await small_world.say(noor, "Read.", hall)
        await small_world.run()
    rebuilt = [
        each
        for cycle in await small_world.cycles(ada)
        for each in await small_world.denizen.minds.replay(ada, cycle.number)
    ]
    requests = small_world.model(ada).requests
    assert [bare(each.messages) for each in rebuilt] == [bare(each) for each in requests]
    made_of = await small_world.denizen.db.read(lambda tx: values(tx, _made_of, agent_id=ada.id))
    assert any("shortened" in json.loads(each) for each in made_of)


_made_of = select_where(log, "request", "agent_id", log.c.kind == "response")


def sent(tool: ToolDefinition) -> object:
    """What a provider is told of a tool."""
    return tool.name, tool.description, tool.parameters_json_schema


async def test_one_step_is_rebuilt_alone(small_world: World) -> None:
    past = await eventful_life(small_world)
    whole = await small_world.denizen.minds.replay(past.ada, 2)
    for step, rebuilt in enumerate(whole):
        (alone,) = await small_world.denizen.minds.replay(past.ada, 2, step=step)
        assert (alone.step, bare(alone.messages), alone.response) == (step, bare(rebuilt.messages), rebuilt.response)
    assert whole[0].results is not None
    assert as_text(whole[0].results).startswith("work → worked")
    assert whole[-1].results is None


async def test_what_is_not_kept_is_said(small_world: World) -> None:
    """A skipped cycle has no number; the error says why nothing is there."""
    ada = await small_world.agent("Ada", skip("not for me"), reply("Hello."), "Greeted.")
    noor, bert = await small_world.person("Noor"), await small_world.person("Bert")
    hall = await small_world.space("Hall", noor, bert, ada)
    with pytest.raises(InvalidInput, match="no cycle 1 of this agent: it has lived none yet"):
        await small_world.denizen.minds.replay(ada, 1)
    for _ in range(2):
        await small_world.say(noor, "Hello!", hall)
        await small_world.run()
    assert len(await small_world.denizen.minds.replay(ada, 1)) == 2
    with pytest.raises(InvalidInput, match=r"its cycles are 1 to 1. Of a cycle that was skipped.*nothing is kept"):
        await small_world.denizen.minds.replay(ada, 2)
    with pytest.raises(InvalidInput, match="no step 2: its steps are 0 to 1"):
        await small_world.denizen.minds.replay(ada, 1, step=2)
    with pytest.raises(InvalidInput, match="`step` is too small"):
        await small_world.denizen.minds.replay(ada, 1, step=-1)


async def test_another_model_is_asked_the_same_and_nothing_happens(world: World) -> None:
    """It is sent what the first was sent; its calls are not run, and not one row of the database changes."""
    past = await eventful_life(world)
    other = scripted(
        [reply("Quite otherwise."), reply("And more.")], "Answered Noor. #1", "Something else.", name="other"
    )
    world.denizen.models.register("other", other)
    before, said = await world.denizen.db.read(everything), await world.transcript(past.hall)
    first, second = await world.denizen.minds.rethink(past.ada, 1, model="other")
    (third,) = await world.denizen.minds.rethink(past.ada, 2, model="other", step=1)
    assert await world.denizen.db.read(everything) == before
    assert await world.transcript(past.hall) == said
    for again, asked, info in zip((first, second, third), other.requests, other.infos, strict=True):
        number = number_of(again.asked.response)
        assert bare(asked) == bare(past.model.requests[number])
        assert (info.tools, info.settings) == (past.model.infos[number].tools, past.model.infos[number].settings)
    assert first.difference[:3] == ["--- python:ada", "+++ other", "@@ -1,2 +1,4 @@"]
    assert "+    text: Quite otherwise." in first.difference
    assert second.difference == []
    assert (third.model, third.dollars) == ("other", 0)


async def test_what_asking_again_cost_is_told(ready_sqlite_url: str) -> None:
    prices = {"other": Price(input=Decimal(1_000_000), output=Decimal(0))}
    async with open_world(ready_sqlite_url, prices=prices) as world:
        past = await eventful_life(world)
        world.denizen.models.register("other", scripted("Yes."))
        (again,) = await world.denizen.minds.rethink(past.ada, 1, model="other", step=0)
        assert again.dollars == again.response.usage.input_tokens > 0


_set_request = statement(
    update(log)
    .where(log.c.agent_id == bindparam("agent"), log.c.kind == "response")
    .values(request=bindparam("new_request"))
)
_request = statement(select(log.c.request).where(log.c.agent_id == bindparam("agent_id"), log.c.kind == "response"))


def _lose_tools(tx: Tx, agent_id: str) -> None:
    row = tx.one(_request, agent_id=agent_id)
    assert row is not None
    tx.run(_set_request, agent=agent_id, new_request=json.dumps(json.loads(row[0]) | {"tools": "gone"}))


async def test_without_its_tools_a_request_is_shown_but_not_asked_again(small_world: World) -> None:
    ada = await small_world.agent("Ada", "Nothing to say.", cycle={"silent_reply": "ignore"})
    noor = await small_world.person("Noor")
    await small_world.say(noor, "Hello!", await small_world.space("Hall", noor, ada))
    await small_world.run()
    await small_world.denizen.db.write(_lose_tools, ada.id)
    (rebuilt,) = await small_world.denizen.minds.replay(ada, 1)
    assert (rebuilt.tools, rebuilt.tools_kept) == ((), False)
    with pytest.raises(InvalidInput, match="were not stored"):
        await small_world.denizen.minds.rethink(ada, 1, model="demo")


async def test_the_results_of_the_last_step_are_told_though_nothing_was_said_after_them(small_world: World) -> None:
    ada = await small_world.agent("Ada", call("read_entry", entry="inbox"), cycle={"max_steps": 1})
    await small_world.denizen.agents.trigger(ada, "bell")
    await small_world.run()
    (rebuilt,) = await small_world.denizen.minds.replay(ada, 1)
    assert rebuilt.results is not None
    assert as_text(rebuilt.results).startswith("read_entry → ")
