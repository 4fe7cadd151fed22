"""When a cycle ends: by itself, or because it has gone on long enough; and how it is summed up."""

from __future__ import annotations

from decimal import Decimal

import pytest
from pydantic_ai.messages import ModelMessage

from denizen import call, forever, reply, skip, tool
from denizen.checker import check_deeply
from denizen.errors import InvalidInput
from denizen.models.prices import Price
from denizen.models.scripted import Info, Turn
from tests.world import World, as_text, open_world


def restless(_messages: list[ModelMessage], info: Info) -> Turn:
    """Says something at every step, for ever."""
    return reply(f"And {info.number}.")


async def restless_in_a_hall(world: World, **options):
    ada = await world.agent("Ada", model=forever(restless), **options)
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "Count", hall)
    await world.run()
    return ada, hall


async def test_a_cycle_has_a_greatest_number_of_steps(world: World):
    """And one that ends without last words is summed up by what it did: it vanished at compaction elsewhere."""
    ada, hall = await restless_in_a_hall(world, cycle={"max_steps": 3})
    assert await world.transcript(hall) == ["Noor: Count", "Ada: And 0.", "Ada: And 1.", "Ada: And 2."]
    assert await world.endings(ada) == [
        (1, "acted", "max_steps", 'Sent 3 messages to "Hall". (No summary was written.)')
    ]
    assert [each.steps for each in await world.cycles(ada)] == [3]
    assert (await world.history(ada))[-1] == 'results: send_message → {"success":true,"messageId":"<Hall 4>"}'
    assert await world.waiting(ada) == []


async def test_a_cycle_may_add_only_so_many_tokens(world: World):
    """The past does not count: only what this cycle wrote and read anew."""
    ada, hall = await restless_in_a_hall(world, cycle={"token_budget": 500, "max_steps": 1000})
    (_, outcome, reason, _) = (await world.endings(ada))[0]
    assert (outcome, reason) == ("acted", "token_budget")
    spent = [entry.tokens for entry in await world.denizen.minds.log(ada)]
    assert sum(spent[:-2]) < 500 <= sum(spent)

    steps = (await world.cycles(ada))[0].steps
    await world.say(await world.denizen.people.find("noor"), "Count", hall)
    await world.run()
    assert abs((await world.cycles(ada))[1].steps - steps) <= 1


@pytest.mark.parametrize("named", ["python:ada", "scripted:scripted", "scripted"])
async def test_a_cycle_may_cost_only_so_much(ready_sqlite_url: str, named: str):
    """No peer had a cap on spending."""
    price = Price(input=Decimal(0), output=Decimal(1_000_000))  # a dollar for each token written
    async with open_world(ready_sqlite_url, prices={named: price}) as world:
        ada, hall = await restless_in_a_hall(world, cycle={"max_dollars": Decimal(20)})
        (cycle,) = await world.cycles(ada)
        assert cycle.stop_reason == "max_dollars"
        assert cycle.cost_micros == cycle.output_tokens * 1_000_000
        assert cycle.cost_micros >= 20_000_000
        assert cycle.cost_micros * (cycle.steps - 1) / cycle.steps < 20_000_000
        assert len(await world.transcript(hall)) == 1 + cycle.steps


async def test_without_a_known_price_money_is_no_limit(small_world: World):
    ada, _ = await restless_in_a_hall(small_world, cycle={"max_dollars": Decimal("0.000001"), "max_steps": 4})
    assert [each.stop_reason for each in await small_world.cycles(ada)] == ["max_steps"]


async def test_several_kinds_of_effects_are_all_in_the_derived_summary(world: World):
    @tool
    async def water_plants() -> str:
        """Water the plants."""
        return "done"

    ada = await world.agent(
        "Ada", [call("water_plants"), call("water_plants"), reply("Watered.")], "", tools=[water_plants]
    )
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "The plants!", hall)
    await world.run()
    assert await world.endings(ada) == [
        (1, "acted", "answered", 'Called "water_plants" 2 times. Sent a message to "Hall". (No summary was written.)')
    ]


# Skip


async def test_skip_stops_at_once_and_its_siblings_do_not_run(world: World):
    called: list[str] = []

    @tool
    async def ring() -> str:
        """Ring the bell."""
        called.append("rung")
        return "rung"

    ada = await world.agent("Ada", [reply("Hello!"), call("ring"), skip("not mine"), reply("Bye!")], tools=[ring])
    noor, bert = await world.person("Noor"), await world.person("Bert")
    hall = await world.space("Hall", noor, bert, ada)
    await world.say(noor, "Bert?", hall)
    await world.run()

    assert called == []
    assert await world.transcript(hall) == ["Noor: Bert?"]
    assert await world.history(ada) == []
    assert await world.cycles(ada) == []
    assert await world.waiting(ada) == []
    assert await world.ledger(ada) == [("skip", "not mine")]


async def test_skip_after_only_looking_leaves_no_trace_either(world: World):
    ada = await world.agent("Ada", call("read_messages"), skip("seen"), window={"result_characters": 500})
    noor, bert = await world.person("Noor"), await world.person("Bert")
    hall = await world.space("Hall", noor, bert, ada)
    await world.say(noor, "Bert? " * 200, hall)
    await world.run()
    assert await world.history(ada) == []
    assert await world.ledger(ada) == [("usage", None), ("skip", "seen")]
    # What it had read was too long for the window, and kept whole elsewhere.
    assert await world.denizen.db.read(check_deeply) == []


async def test_skip_after_an_effect_ends_the_cycle_as_what_it_was(world: World):
    """What was said cannot be unsaid; and no call stays without its result, or the provider refuses ever after."""
    ada = await world.agent("Ada", reply("Hello."), [skip("done"), reply("Bye.")], reply("Yes?"), "Answered.")
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "Hi", hall)
    await world.run()

    assert await world.transcript(hall) == ["Noor: Hi", "Ada: Hello."]
    assert (await world.history(ada))[1:] == [
        'response: send_message {"text":"Hello."}',
        'results: send_message → {"success":true,"messageId":"<Hall 2>"}',
        'response: skip {"reason":"done"}\nsend_message {"text":"Bye."}',
        "results: skip → The cycle ends here.\nsend_message → Not run: the cycle was skipped.",
    ]
    assert await world.endings(ada) == [(1, "acted", "skipped", 'Sent a message to "Hall". (No summary was written.)')]
    await world.say(noor, "Ada?", hall)
    await world.run()
    assert await world.transcript(hall) == ["Noor: Hi", "Ada: Hello.", "Noor: Ada?", "Ada: Yes?"]


# Silence


async def silent(
    world: World, *turns: Turn, silent_reply: str = "nudge", text: str = "How much is 2+2?", others: int = 0
):
    ada = await world.agent("Ada", *turns, cycle={"silent_reply": silent_reply})
    noor = await world.person("Noor")
    more = [await world.person(f"Other {number}") for number in range(others)]
    hall = await world.space("Hall", noor, ada, *more)
    await world.say(noor, text, hall)
    await world.run()
    return ada, hall


@pytest.mark.parametrize("silent_reply", ["nudge", "deliver"])
async def test_in_company_nobody_waits_for_an_agent_that_was_not_mentioned(world: World, silent_reply: str):
    ada, hall = await silent(world, "Noted.", silent_reply=silent_reply, others=1)
    assert await world.transcript(hall) == ["Noor: How much is 2+2?"]
    assert len(world.model(ada).requests) == 1


async def test_in_company_whoever_mentions_the_agent_waits(world: World):
    ada, hall = await silent(world, "Four.", reply("4"), "Answered.", text="@ada 2+2?", others=1)
    assert await world.transcript(hall) == ["Noor: @ada 2+2?", "Ada: 4"]
    assert any("[REMINDER]" in as_text(entry.message) for entry in await world.denizen.minds.log(ada))


async def test_nobody_waits_for_an_answer_to_an_agent_or_a_service(world: World):
    ada = await world.agent("Ada", "Noted.", "Noted.")
    bee = await world.agent("Bee")
    hall = await world.space("Hall", bee, ada)
    await world.say(bee, "@ada hello", hall)
    await world.run()
    await world.denizen.agents.trigger(ada, "alarm", text="beep")
    await world.run()
    assert len(world.model(ada).requests) == 2


async def test_an_answer_by_effect_without_words_is_no_answer(world: World):
    """Only what was said in a space is an answer: looking something up is none."""
    _ada, hall = await silent(world, call("read_messages"), "Looked it up.", reply("4"), "Answered.")
    assert await world.transcript(hall) == ["Noor: How much is 2+2?", "Ada: 4"]


async def test_a_cycle_may_take_only_so_long_by_the_clock_on_the_wall(world: World):
    @tool(effect=False)
    async def wait() -> str:
        """Wait."""
        world.clock.advance(40)
        return "waited"

    ada = await world.agent("Ada", model=forever(lambda *_: call("wait")), tools=[wait], cycle={"max_seconds": 100})
    await world.denizen.agents.trigger(ada, "alarm", text="Wait")  # nobody waits for an answer: there is no last step
    await world.run()
    assert [(each.stop_reason, each.steps) for each in await world.cycles(ada)] == [("max_seconds", 3)]


async def test_a_cycle_can_end_when_every_event_has_been_answered(world: World):
    """`responded_to_all`: as many messages sent as there were events."""
    ada = await world.agent("Ada", model=forever(restless), cycle={"stop_when": ["responded_to_all"]})
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    for text in ("One", "Two", "Three"):
        await world.say(noor, text, hall)
    await world.run()
    assert (await world.transcript(hall))[3:] == ["Ada: And 0.", "Ada: And 1.", "Ada: And 2."]
    assert [each.stop_reason for each in await world.cycles(ada)] == ["responded_to_all"]


async def test_a_cycle_can_end_by_a_function_of_ones_own(ready_sqlite_url: str):
    async with open_world(ready_sqlite_url, stops={"two_messages": lambda spent: spent.sent >= 2}) as world:
        ada, hall = await restless_in_a_hall(world, cycle={"stop_when": ["two_messages"]})
        assert (await world.transcript(hall))[1:] == ["Ada: And 0.", "Ada: And 1."]
        assert [each.stop_reason for each in await world.cycles(ada)] == ["two_messages"]


async def test_a_function_that_this_runtime_does_not_have_is_named(small_world: World):
    with pytest.raises(InvalidInput, match=r"stops by functions that this runtime does not have: midnight"):
        await restless_in_a_hall(small_world, cycle={"stop_when": ["midnight"]})
