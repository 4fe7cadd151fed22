"""Costs and telemetry."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from decimal import Decimal
from typing import Any

import pytest

from denizen import call, forever, reply, scripted, skip, tool
from denizen.cycles import ledger
from denizen.cycles.ledger import Charge
from denizen.ids import CycleId, new_id
from denizen.models.prices import Price
from denizen.models.scripted import Turn
from tests.cycles.test_alerts import alerts_of
from tests.server.conftest import served
from tests.telemetry.collector import Collector, attributes, collecting, watched
from tests.telemetry.test_metrics import read
from tests.world import World, as_text, open_world

PRICES = {"scripted": Price(Decimal(1), Decimal(4))}
"""In dollars for a million tokens that are read, and written."""


async def asked(world: World, *turns: Turn, **options: Any):
    """Noor asks Ada something in a space of the two, and Ada thinks."""
    ada, noor = await world.agent("Ada", *turns, **options), await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "Please", hall)
    await world.run()
    return ada, noor, hall


@pytest.fixture
async def priced() -> AsyncGenerator[World]:
    """A world in which the model costs something."""
    async with open_world("sqlite://", prices=PRICES) as world:
        yield world


async def test_the_tokens_and_the_cost_of_a_cycle_are_known(priced: World) -> None:
    """Every cycle has its tokens, read and written, and its cost.

    Docs: budgets.md
    """
    ada, _, _ = await asked(priced, reply("Hi."), "Greeted Noor.")
    (cycle,) = await priced.cycles(ada)
    assert cycle.input_tokens > cycle.output_tokens > 0
    assert cycle.cost_micros == pytest.approx(cycle.input_tokens + 4 * cycle.output_tokens, abs=2)


async def test_the_tokens_of_each_step_are_known(world: World) -> None:
    """The tokens of every step are stored with it.

    Docs: replay.md
    """
    ada, _, _ = await asked(world, reply("Hi."), "Greeted Noor.")
    steps = await world.denizen.minds.replay(ada, 1)
    (cycle,) = await world.cycles(ada)
    assert len(steps) == 2
    assert sum(each.response.usage.output_tokens for each in steps) == cycle.output_tokens
    assert sum(each.response.usage.input_tokens for each in steps) == cycle.input_tokens


async def test_the_usage_of_an_agent_is_added_up(priced: World) -> None:
    """What an agent has used is added up by day and model: calls, tokens and dollars.

    Docs: budgets.md
    """
    ada, noor, hall = await asked(priced, reply("Hi."), "Greeted Noor.", reply("Hi."), "Greeted Noor.")
    await priced.say(noor, "Again", hall)
    await priced.run()
    (day,) = await priced.denizen.budgets.spending(ada)
    cycles = await priced.cycles(ada)
    assert (day.calls, day.cost_micros) == (4, sum(each.cost_micros for each in cycles))
    assert (day.input_tokens, day.output_tokens) == (
        sum(each.input_tokens for each in cycles),
        sum(each.output_tokens for each in cycles),
    )


async def test_a_cycle_stops_at_a_price(priced: World) -> None:
    """A cycle stops when it has cost a certain amount.

    Docs: cycles.md
    """
    ada, _, _ = await asked(priced, model=forever(lambda *_: call("read_messages")), cycle={"max_dollars": "0.004"})
    assert [each.stop_reason for each in await priced.cycles(ada)] == ["max_dollars"]


async def test_a_budget_limits_what_an_agent_uses(world: World) -> None:
    """A daily budget stops an agent before it is exceeded; the space shows why, and the message is kept.

    Docs: budgets.md
    """
    ada, _, hall = await asked(world, reply("Hi."), "Greeted Noor.", budget={"tokens_per_day": 1_000})
    (status,) = await world.denizen.spaces.statuses(hall)
    assert status.text.startswith("The budget of Ada for today is used up. Your message is kept.")
    assert (world.model(ada).requests, (await world.inbox(ada))[0]) == ([], "Please")


async def test_an_agent_continues_when_there_is_budget_again(world: World) -> None:
    """On the next day an agent continues by itself.

    Docs: budgets.md
    """
    turns = reply("Hi."), reply("I am back."), "Answered the next day."
    ada, noor, hall = await asked(world, *turns, budget={"tokens_per_day": 10_000})
    await world.say(noor, "And now?", hall)
    await world.run()
    assert (await world.denizen.agents.status(ada), len(world.model(ada).requests)) == ("suspended", 1)
    await world.run_after(86_400)
    assert (await world.transcript(hall))[-1] == "Ada: I am back."


async def test_an_expensive_cycle_is_an_alert(priced: World) -> None:
    """The owner of an agent is alerted when a cycle costs more than an amount.

    Docs: consciousness.md
    """
    ada = await priced.agent("Ada", reply("Hi."), "Greeted Noor.", cycle={"alert_dollars": "0.000001"})
    assert await alerts_of(priced, ada, "Hello") == ["dear_cycle"]


async def test_a_smaller_window_costs_less(world: World) -> None:
    """The size of the window limits what a cycle reads.

    Docs: consciousness.md
    """
    read_by: dict[int, int] = {}
    for size in (6_000, 20_000):
        ada = await world.agent(
            f"Ada {size}",
            *[turn for _ in range(12) for turn in (reply("a" * 1_500), "Answered.")],
            window={"max_tokens": size},
        )
        noor = await world.person(f"Noor {size}")
        hall = await world.space("Hall", noor, ada)
        for _ in range(12):
            await world.say(noor, "b" * 1_500, hall)
            await world.run()
        read_by[size] = (await world.cycles(ada))[-1].input_tokens
    assert read_by[6_000] < read_by[20_000] / 1.5


async def test_a_request_begins_like_the_one_before(world: World) -> None:
    """Every request begins like the one before it, so that a provider that caches prompts charges little for it.

    Docs: consciousness.md
    """
    turns = [turn for number in range(3) for turn in (reply(f"{number}"), f"Said {number}.")]
    ada, noor, hall = await asked(world, *turns)
    for _ in range(2):
        await world.say(noor, "Again", hall)
        await world.run()
    first, *_, last = await world.prompts(ada)
    assert last[: len(first)] == first


async def test_any_past_request_can_be_shown_again(world: World) -> None:
    """Any past request of an agent can be shown exactly as it was sent.

    Docs: replay.md
    """
    ada, _, _ = await asked(world, reply("Hi."), "Greeted Noor.")
    steps = await world.denizen.minds.replay(ada, 1)
    rebuilt = [[as_text(each) for each in step.messages] for step in steps]
    assert rebuilt == [[as_text(each) for each in request] for request in world.model(ada).requests]


async def test_a_past_request_can_be_sent_to_another_model(world: World) -> None:
    """A past request can be sent to another model, to compare the answers; the agent does not notice.

    Docs: replay.md
    """
    ada, _, hall = await asked(world, reply("Hi."), "Greeted Noor.")
    world.denizen.models.register("other", scripted(reply("Hello!")))
    (again,) = await world.denizen.minds.rethink(ada, 1, model="other", step=0)
    assert again.difference[-1] == "+    text: Hello!"
    assert len(await world.transcript(hall)) == 2


async def traced(collector: Collector, **options: Any) -> None:
    """The collector receives a cycle with a tool, and a skipped one."""

    @tool
    async def weather(city: str) -> str:
        """The weather."""
        return f"Sunny in {city}."

    telemetry = watched(collector, **options)
    async with open_world("sqlite://", telemetry=telemetry, prices=PRICES) as world:
        turns = call("weather", city="Oslo"), reply("Sunny."), "Told Noor."
        ada, noor = await world.agent("Ada", *turns, skip("for Bert"), tools=[weather]), await world.person("Noor")
        hall = await world.space("Hall", noor, await world.person("Bert"), ada)
        for text in ("@ada, the weather?", "Bert?"):
            await world.say(noor, text, hall)
            await world.run()
    await telemetry.aclose()


async def test_every_cycle_is_a_trace() -> None:
    """Every cycle is a trace of OpenTelemetry, with the agent, the number of the cycle, the events and the window.

    Docs: telemetry.md
    """
    async with collecting() as collector:
        await traced(collector)
    told = [attributes(each) for each in collector.named("invoke_agent")]
    assert [(each["gen_ai.agent.name"], each.get("denizen.cycle.number")) for each in told] == [
        ("ada", 1),
        ("ada", None),
    ]
    assert [(each["denizen.inbox.events"], each["denizen.cycle.outcome"]) for each in told] == [
        (1, "acted"),
        (1, "skipped"),
    ]
    assert all(each["denizen.window.tokens"] > 0 for each in told)


async def test_every_step_and_every_call_is_a_span() -> None:
    """Below the trace of a cycle, every step and every call of a tool is a span of its own.

    Docs: telemetry.md
    """
    async with collecting() as collector:
        await traced(collector)
    cycle = collector.named("invoke_agent")[0]
    below = [each.name for each in collector.spans if each.parent_span_id == cycle.span_id]
    steps = ["chat scripted", "execute_tool weather", "chat scripted", "execute_tool send_message", "chat scripted"]
    assert below == steps


async def test_a_span_of_a_step_says_how_fast_the_model_is() -> None:
    """The span of a step has its tokens, the time to the first chunk, and the tokens per second.

    Docs: telemetry.md
    """
    async with collecting() as collector:
        await traced(collector)
    told = attributes(collector.named("chat")[0])
    assert told["gen_ai.usage.output_tokens"] > 0
    assert told["gen_ai.response.time_to_first_chunk"] >= 0
    assert told["denizen.tokens_per_second"] > 0


async def test_arguments_and_results_are_traced_if_you_want() -> None:
    """Spans have the arguments and results of calls only if you turn it on.

    Docs: telemetry.md
    Differs: by default they have not. Traces are read by more people than a space is.
    """
    found: list[Any] = []
    for content in (False, True):
        async with collecting() as collector:
            await traced(collector, content=content)
        told = attributes(collector.named("execute_tool weather")[0])
        found.append((told.get("gen_ai.tool.call.arguments"), told.get("gen_ai.tool.call.result")))
    assert found[0] == (None, None)
    assert "Oslo" in found[1][0]
    assert "Sunny in Oslo." in found[1][1]


async def test_metrics_are_counted() -> None:
    """Metrics in the format of Prometheus count cycles, skips, steps, tokens, costs, calls and the size of windows.

    Docs: telemetry.md
    """
    async with collecting() as collector:
        telemetry = watched(collector)
        async with open_world("sqlite://", telemetry=telemetry, prices=PRICES) as world, served(world) as server:
            _, noor, _ = await asked(world, reply("Hi."), "Greeted Noor.")
            text = (await server.call("GET", "/metrics", noor)).text
        await telemetry.aclose()
    found = read(text)
    assert (found["denizen_cycles_total", "acted"], found["denizen_steps_total", "python"]) == (1, 2)
    assert found["denizen_tokens_total", "python", "input"] > 0
    assert found["denizen_cost_dollars_total", "python"] > 0
    assert found["denizen_window_tokens_count",] == 1


async def test_calls_with_an_unknown_price_are_not_shown_as_free(world: World) -> None:
    """Usage counts the calls whose price is unknown, and the web client says so instead of $0.00.

    Docs: budgets.md
    """
    noor, ada = await world.person("Noor"), await world.agent("Ada")
    charge = Charge("openai:gpt-unheard-of", 700, 10, cost_micros=None)
    await world.denizen.db.write(ledger.enter, ada.id, CycleId(new_id()), "usage", charge)
    async with served(world) as house:
        total = (await house.call("GET", "/api/usage", noor)).json()["total"]
    assert (total["calls"], total["unpriced_calls"], total["dollars"]) == (1, 1, 0.0)


async def test_the_size_of_the_database_is_known_by_organization(world: World) -> None:
    """How much of the database an organization uses, and how fast that grows, is shown to its admins.

    Docs: storage.md
    """
    _, noor, hall = await asked(world, reply("Hi."), "Greeted Noor.")
    async with served(world) as house:
        path = "/api/organization/size"
        await house.call("GET", path, noor)
        for _ in range(50):
            await world.denizen.spaces.post(hall, noor, "A long story. " * 500)
        world.clock.advance(86_400)
        told = (await house.call("GET", f"{path}?all_organizations=true", noor)).json()
    assert told["bytes_per_day"] > 0
    assert told["bytes"] <= told["database_bytes"]
