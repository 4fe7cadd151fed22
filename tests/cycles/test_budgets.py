"""What agents may use: kept before each model call, settled after it; and how one rests that may use no more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage
from sqlalchemy import func, select

from denizen import Runtime, call, forever, reply, scripted, skip, tool
from denizen.agents.registry import Agent
from denizen.bus.port import Frame
from denizen.bus.streams import agent_topic
from denizen.checker import check_database
from denizen.consciousness import lease as leases
from denizen.consciousness.lease import Lease
from denizen.consciousness.window import budget
from denizen.cycles import budgets, ledger
from denizen.cycles.budgets import Allowance, Amount, BudgetRest, BudgetSettings, Limit, Refusal
from denizen.cycles.ledger import Charge
from denizen.errors import InvalidInput, PriceUnknown
from denizen.ids import CycleId, new_id
from denizen.inbox import statuses
from denizen.memory import asking
from denizen.models.location import LOCAL_PATIENCE
from denizen.models.prices import Price
from denizen.models.scripted import Info, Turn
from denizen.reflection import thinking
from denizen.spaces.directory import Space
from denizen.storage.database import Tx, statement
from denizen.storage.schema import call_reservations, spending
from tests.world import UNHURRIED, JumpingClock, Waiting, World, open_world

DAY = 86_400
UNTIL_MIDNIGHT = 15 * 3_600  # the world begins at nine
RESTS = (
    "The budget of Ada for today is used up. "
    "Your message is kept. Ada answers after 00:00 UTC, or when an admin raises the limit."
)
A_CENT_A_TOKEN = Price(Decimal(0), Decimal(10_000))
ROOMY = {"output_tokens": 256}
"""So that a reservation is not much more than what a short answer costs."""


async def shown(world: World, space: Space) -> list[str]:
    return [each.text for each in await world.denizen.db.read(statuses.of_space, space.id)]


async def taken(world: World, agent: Agent) -> Lease:
    lease = await world.denizen.db.write(leases.acquire, agent.id, "test")
    assert lease is not None
    return lease


async def spend(world: World, agent: Agent, tokens: int, micros: int = 0) -> None:
    charge = Charge("m", tokens, 0, 0, 0, micros)
    await world.denizen.db.write(ledger.enter, agent.id, CycleId(new_id()), "usage", charge)


async def reserve(world: World, lease: Lease, under: Allowance, tokens: int = 0, micros: int = 0) -> Refusal | None:
    return await world.denizen.db.write(budgets.reserve, lease, under, Amount(tokens, micros))


def own(agent: Agent, **limits: Any) -> Allowance:
    return Allowance(agent.entity.organization_id, BudgetSettings(**limits), shared=False)


# Limits


@pytest.mark.parametrize(
    "limits",
    [{"tokens_per_day": 100}, {"tokens": 100}, {"dollars_per_day": Decimal("0.0001")}, {"dollars": Decimal("0.0001")}],
)
async def test_a_limit_may_be_reached_but_not_passed(world: World, limits: dict[str, Any]):
    ada = await world.agent("Ada")
    lease = await taken(world, ada)
    await spend(world, ada, 60, 60)
    assert await reserve(world, lease, own(ada, **limits), 40, 40) is None
    refused = await reserve(world, lease, own(ada, **limits), 41, 41)
    assert refused is not None
    assert refused.scope == ("agent:day" if "day" in next(iter(limits)) else "agent:total")


async def test_yesterdays_spending_counts_for_life_and_not_for_today(world: World):
    ada = await world.agent("Ada")
    lease = await taken(world, ada)
    await spend(world, ada, 90)
    world.clock.advance(DAY)
    assert await reserve(world, lease, own(ada, tokens_per_day=100), 100) is None
    assert await reserve(world, lease, own(ada, tokens=100), 11) == Refusal("agent:total", None)


async def test_who_has_used_up_both_rests_for_the_longer(world: World):
    ada = await world.agent("Ada")
    lease = await taken(world, ada)
    refused = await reserve(world, lease, own(ada, tokens_per_day=10, tokens=10), 11)
    assert refused == Refusal("agent:total", None)


async def test_a_day_ends_at_midnight_utc(world: World):
    ada = await world.agent("Ada")
    lease = await taken(world, ada)
    refused = await reserve(world, lease, own(ada, tokens_per_day=10), 11)
    assert refused is not None
    assert refused.until == world.clock.now() + UNTIL_MIDNIGHT * 1_000_000


async def kept(world: World) -> list[tuple[Any, ...]]:
    every = statement(
        select(call_reservations.c.tokens, call_reservations.c.cost_micros)
        .where(call_reservations.c.tokens > 0)
        .order_by(call_reservations.c.payer_id, call_reservations.c.call)
    )
    return await world.denizen.db.read(lambda tx: tx.all(every))


async def test_what_others_have_kept_counts_until_it_is_settled(world: World):
    ada, ben = await world.agent("Ada"), await world.agent("Ben")
    await world.denizen.budgets.set(tokens_per_day=100)
    both = [Allowance(ada.entity.organization_id, None, shared=True)] * 2
    hers, his = await taken(world, ada), await taken(world, ben)
    assert await reserve(world, hers, both[0], 60) is None
    midnight = world.clock.now() + UNTIL_MIDNIGHT * 1_000_000
    assert await reserve(world, his, both[1], 41) == Refusal("organization:day", midnight, for_now=True)
    assert await reserve(world, his, both[1], 101) == Refusal("organization:day", midnight, for_now=False)
    assert await reserve(world, his, both[1], 40) is None
    # Keeping anew replaces what was kept.
    assert await reserve(world, hers, both[0], 50) is None
    assert sorted(await kept(world)) == [(40, 0), (50, 0)]
    await world.denizen.db.write(
        ledger.enter, ada.id, CycleId(new_id()), "usage", Charge("m", 5, 5, 0, 0, None, reserved=True)
    )
    assert await kept(world) == [(40, 0)]
    assert await reserve(world, his, both[1], 90) is None
    assert await reserve(world, his, both[1], 91) == Refusal("organization:day", midnight)


async def beside(world: World, agent: Agent, under: Allowance, tokens: int) -> str | Refusal:
    return await world.denizen.db.write(budgets.reserve_beside, agent.id, under, Amount(tokens))


async def test_calls_beside_a_cycle_and_the_cycle_count_each_other(world: World):
    """Each has a reservation of its own; whoever comes last finds what the others leave."""
    ada, ben = await world.agent("Ada"), await world.agent("Ben")
    await world.denizen.budgets.set(tokens_per_day=100)
    under = Allowance(ada.entity.organization_id, BudgetSettings(tokens_per_day=90), shared=True)
    hers, his = await taken(world, ada), await taken(world, ben)
    midnight = world.clock.now() + UNTIL_MIDNIGHT * 1_000_000
    assert await reserve(world, hers, under, 60) is None
    assert await beside(world, ada, under, 31) == Refusal("agent:day", midnight, for_now=True)
    first, second = await beside(world, ada, under, 20), await beside(world, ada, under, 10)
    assert isinstance(first, str)
    assert isinstance(second, str)
    assert sorted(await kept(world)) == [(10, 0), (20, 0), (60, 0)]
    assert await reserve(world, hers, under, 61) == Refusal("agent:day", midnight, for_now=True)
    assert await reserve(world, hers, under, 60) is None
    assert await beside(world, ben, under, 11) == Refusal("organization:day", midnight, for_now=True)
    assert await reserve(world, his, under, 11) == Refusal("organization:day", midnight, for_now=True)
    await world.denizen.db.write(budgets.release_call, ada.id, first)
    await world.denizen.db.write(budgets.release_call, ada.id, second)
    assert await kept(world) == [(60, 0)]
    assert await reserve(world, his, under, 40) is None


async def test_a_cycle_that_pays_leaves_the_reservations_of_other_calls(world: World):
    ada = await world.agent("Ada")
    under = own(ada, tokens_per_day=100)
    lease = await taken(world, ada)
    assert await reserve(world, lease, under, 60) is None
    assert isinstance(await beside(world, ada, under, 30), str)
    paid = Charge("m", 5, 5, 0, 0, None, reserved=True)
    await world.denizen.db.write(ledger.enter, ada.id, CycleId(new_id()), "usage", paid)
    assert await kept(world) == [(30, 0)]
    assert await reserve(world, lease, under, 61) is not None
    await world.denizen.db.write(ledger.settle, ada.id)
    assert await kept(world) == [(30, 0)]


@pytest.mark.parametrize("seconds", [budgets.LONGEST_CALL_SECONDS, -600])
async def test_what_a_dead_process_has_reserved_beside_a_cycle_is_void_after_a_while(world: World, seconds: int):
    """Also where the clock is set back meanwhile. No lease is needed: the agent may be asleep."""
    ada = await world.agent("Ada")
    under = own(ada, tokens_per_day=100)
    assert isinstance(await beside(world, ada, under, 100), str)
    assert await beside(world, ada, under, 1) is not None
    lease = await taken(world, ada)
    refused = await reserve(world, lease, under, 1)
    assert refused is not None
    assert refused.for_now
    world.clock.advance(seconds)
    assert await reserve(world, lease, under, 60) is None
    assert isinstance(await beside(world, ada, under, 40), str)


def test_no_call_beside_a_cycle_takes_longer_than_its_reservation_holds():
    longest = max(asking.LONGEST_SECONDS, thinking.SECONDS * LOCAL_PATIENCE)
    assert longest <= budgets.LONGEST_CALL_SECONDS <= budgets.PATIENCE_SECONDS


async def test_calls_beside_a_cycle_that_reserve_at_once_do_not_pass_the_limit_of_their_agent(world: World):
    """On PostgreSQL they come on several connections; a limit of the organization is not needed for that."""
    ada = await world.agent("Ada")
    under = own(ada, tokens_per_day=50)
    lease = await taken(world, ada)
    answers = await asyncio.gather(
        *(beside(world, ada, under, 10) for _ in range(12)), reserve(world, lease, under, 10)
    )
    granted = [each for each in answers if not isinstance(each, Refusal)]
    assert len(granted) == 5
    assert await kept(world) == [(10, 0)] * 5


@pytest.mark.parametrize("how", ["run out", "taken over"])
async def test_what_a_dead_process_has_kept_is_free_when_its_lease_is(world: World, how: str):
    ada, ben = await world.agent("Ada"), await world.agent("Ben")
    await world.denizen.budgets.set(tokens_per_day=100)
    under = Allowance(ada.entity.organization_id, None, shared=True)
    assert await reserve(world, await taken(world, ada), under, 100) is None
    his = await taken(world, ben)
    assert await reserve(world, his, under, 1) is not None
    world.clock.advance(31)
    if how == "taken over":
        assert await world.denizen.db.write(leases.acquire, ada.id, "another") is not None
    assert await reserve(world, his, under, 100) is None


async def test_a_call_that_was_cut_off_keeps_nothing_from_others(ready_url: str):
    """Between the reservation and its settlement the process ends: the message waits, and the room is free."""
    begun = asyncio.Event()

    async def never(_messages: Any, _info: Any) -> Any:
        begun.set()
        await asyncio.Event().wait()

    async with open_world(ready_url, pace=replace(UNHURRIED, grace_seconds=0)) as world:
        ada, ben = await world.agent("Ada", never), await world.agent("Ben")
        noor = await world.person("Noor")
        hall = await world.space("Hall", noor, ada)
        await world.denizen.budgets.set(tokens_per_day=100_000)
        await world.say(noor, "Hello", hall)
        async with world.denizen.living():
            await begun.wait()
        assert len(await kept(world)) == 2  # the call, and the last step
        under = Allowance(ada.entity.organization_id, None, shared=True)
        assert await reserve(world, await taken(world, ben), under, 100_000) is None
        await world.denizen.db.write(ledger.settle, ben.id)

        await world.restart(ada=scripted(reply("Here."), "Done."))
        await world.run()
        assert await world.transcript(hall) == ["Noor: Hello", "Ada: Here."]
        assert await kept(world) == []


# Thinking within limits


async def one_in_a_hall(world: World, *turns: Any, **options: Any):
    ada = await world.agent("Ada", *turns, window=ROOMY, **options)
    noor = await world.person("Noor")
    return ada, noor, await world.space("Hall", noor, ada)


async def test_only_where_something_is_limited_room_is_kept_once_for_each_model_call(world: World):
    """Without limits thinking takes no transaction more than ever."""
    _, noor, hall = await one_in_a_hall(world, reply("Hi."), "Done.", reply("Hi."), "Done.")
    db, names = world.denizen.db, list[str]()
    writing = db.write

    def write(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        names.append(fn.__name__)
        return writing(fn, *args, **kwargs)

    db.write = write  # pyright: ignore[reportAttributeAccessIssue]
    kept_for: list[int] = []
    for tokens_per_day in (None, 10_000_000):
        await world.denizen.budgets.set(tokens_per_day=tokens_per_day)
        names.clear()
        await world.say(noor, "Hello", hall)
        await world.run()
        kept_for.append(names.count("reserve"))
        assert names.count("end_cycle") == 1
    assert kept_for == [0, 2]
    assert await kept(world) == []


async def test_what_was_used_is_counted_by_day_agent_and_model(world: World):
    ada, noor, hall = await one_in_a_hall(world, reply("Hi."), "Done.", skip("no"))
    ben = await world.agent("Ben", skip("not mine"), skip("not mine"))
    await world.denizen.spaces.join(hall, ben)
    await world.say(noor, "Hello", hall)
    await world.run()
    world.clock.advance(DAY)
    await world.say(noor, "Hello", hall)
    await world.run()
    used = await world.denizen.budgets.spending(ada)
    assert [(str(each.day), each.model, each.calls) for each in used] == [
        ("2026-01-05", "python:ada", 2),
        ("2026-01-06", "python:ada", 1),
    ]
    cycle = (await world.cycles(ada))[0]
    assert (used[0].input_tokens, used[0].output_tokens) == (cycle.input_tokens, cycle.output_tokens)
    assert {each.agent_id for each in await world.denizen.budgets.spending()} == {ada.id, ben.id}
    assert {str(each.day) for each in await world.denizen.budgets.spending(days=1)} == {"2026-01-06"}
    totals = statement(select(func.sum(spending.c.calls)))
    assert [int(row[0]) for row in await world.denizen.db.read(lambda tx: tx.all(totals))] == [5]


async def spent_out(world: World, *turns: Any, **budget: Any):
    """An agent whose budget for today is used up, and a person who writes to it."""
    ada, noor, hall = await one_in_a_hall(world, *turns, budget=budget or {"tokens_per_day": 50_000})
    await spend(world, ada, 49_990)
    return ada, noor, hall


async def test_what_was_used_while_the_clock_was_a_year_ahead_is_not_of_today(world: World):
    """An agent that rested until the midnight after that day would have rested for a year."""
    ada, noor, hall = await one_in_a_hall(world, reply("Here."), "Said so.", budget={"tokens_per_day": 50_000})
    world.clock.advance(365 * DAY)
    await spend(world, ada, 49_990)
    await world.say(noor, "Are you there?", hall)
    await world.run()
    assert await world.denizen.budgets.resting(ada) is not None
    world.clock.advance(-365 * DAY)
    await world.run()
    assert await world.denizen.budgets.resting(ada) is None
    assert await world.transcript(hall) == ["Noor: Are you there?", "Ada: Here."]


async def test_a_refused_cycle_is_undone_and_the_agent_rests_until_the_next_day(world: World):
    """Nothing of what people wrote is lost, and each space in which somebody waits shows it, without a message."""
    ada, noor, hall = await spent_out(world, "All read.")
    await world.denizen.agents.edit(ada, cycle={"silent_reply": "ignore"})
    bert = await world.person("Bert")
    garden = await world.space("Garden", noor, bert, ada)
    await world.say(noor, "Are you there?", hall)
    await world.run()
    assert await world.denizen.agents.status(ada) == "suspended"
    midnight = world.clock.now() + UNTIL_MIDNIGHT * 1_000_000
    assert await world.denizen.budgets.resting(ada) == BudgetRest("agent:day", midnight)
    assert await world.transcript(hall) == ["Noor: Are you there?"]
    assert await shown(world, hall) == [RESTS]
    assert world.model(ada).requests == []
    assert (await world.waiting(ada))[0] == Waiting("Are you there?", "pending")

    await world.say(noor, "Hello?", hall)
    await world.say(bert, "@ada, who waters the roses?", garden)
    await world.run()
    await world.run()
    assert await world.transcript(hall) == ["Noor: Are you there?", "Noor: Hello?"]
    assert await world.transcript(garden) == ["Bert: @ada, who waters the roses?"]
    assert [await shown(world, each) for each in (hall, garden)] == [[RESTS], [RESTS]]

    await world.run_after(UNTIL_MIDNIGHT - 1)
    assert await world.denizen.agents.status(ada) == "suspended"
    await world.run_after(1)
    assert await world.denizen.agents.status(ada) == "sleeping"
    assert await world.denizen.budgets.resting(ada) is None
    inbox = await world.newest_inbox(ada)
    for text in ("Are you there?", "Hello?", "who waters the roses?", "so you rested"):
        assert text in inbox
    assert [cycle.number for cycle in await world.cycles(ada)] == [1]
    assert await world.waiting(ada) == []
    assert await check_database(world.denizen.db) == []


async def test_with_the_floor_one_the_next_agent_answers_for_one_whose_budget_is_used_up(world: World):
    ada, noor, hall = await spent_out(world)
    ben = await world.agent("Ben", reply("Ada is out of budget; I am here."), "Answered.")
    await world.denizen.spaces.join(hall, ben)
    await world.denizen.spaces.set_floor(hall, "one")
    await world.say(noor, "Hello", hall)
    await world.run()
    assert await world.denizen.agents.status(ada) == "suspended"
    assert await world.transcript(hall) == ["Noor: Hello", "Ben: Ada is out of budget; I am here."]
    assert await shown(world, hall) == []
    assert await check_database(world.denizen.db) == []


async def test_a_cycle_under_way_ends_as_far_as_it_got(world: World):
    """What it was asked and did not answer is told as well."""
    ada, noor, hall = await one_in_a_hall(world, "Let me see.", budget={"tokens_per_day": 100_000})

    def look(_messages: Any, _info: Any) -> Any:
        from denizen import call

        return call("read_entry", entry="cycles")

    async def look_and_spend(messages: Any, info: Any) -> Any:
        await spend(world, ada, 99_000)
        return look(messages, info)

    world.denizen.models.register("python:ada", scripted(look_and_spend))
    await world.say(noor, "What did you do yesterday?", hall)
    await world.run()
    assert [(outcome, why) for _, outcome, why, _ in await world.endings(ada)] == [("acted", "budget")]
    assert await world.transcript(hall) == ["Noor: What did you do yesterday?"]
    [told] = await world.denizen.db.read(statuses.of_space, hall.id)
    assert (told.text, told.retry_at) == (RESTS, world.clock.now() + UNTIL_MIDNIGHT * 1_000_000)
    assert await world.denizen.agents.status(ada) == "suspended"
    assert await kept(world) == []
    assert await check_database(world.denizen.db) == []


async def test_the_last_step_is_reserved_from_the_first_call_to_the_end_of_the_cycle(world: World):
    """Nobody else can use its room meanwhile: neither while the model is asked, nor while a tool runs."""
    reserved: list[tuple[str, int]] = []

    async def note(when: str) -> None:
        reserved.append((when, len(await kept(world))))

    @tool
    async def look() -> str:
        """Look."""
        await note("tool")
        return "nothing"

    async def decide(_messages: list[ModelMessage], info: Info) -> Turn:
        forced = (info.settings or {}).get("tool_choice") == ["send_message"]
        await note("last step" if forced else "step")
        return reply("I am still looking.") if forced else call("look")

    ada, noor, hall = await one_in_a_hall(
        world,
        model=forever(decide),
        tools=[look],
        cycle={"max_steps": 2},
        budget={"tokens_per_day": 1_000_000},
    )
    await world.say(noor, "Where is it?", hall)
    await world.run()
    assert await world.transcript(hall) == ["Noor: Where is it?", "Ada: I am still looking."]
    assert reserved == [("step", 2), ("tool", 1), ("step", 2), ("tool", 1), ("last step", 1)]
    assert await kept(world) == []
    assert await world.denizen.agents.status(ada) == "sleeping"


async def test_what_is_reserved_for_the_last_step_is_refused_to_others(world: World):
    """So the cycle can answer when it reaches its limit, though the budget is used up by then."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def decide(_messages: list[ModelMessage], info: Info) -> Turn:
        if (info.settings or {}).get("tool_choice") == ["send_message"]:
            return reply("I am still looking.")
        begun.set()
        await go_on.wait()
        return call("read_messages")

    ada, noor, hall = await one_in_a_hall(world, model=forever(decide), cycle={"max_steps": 1})
    ben = await world.agent("Ben")
    await world.denizen.budgets.set(tokens_per_day=100_000)
    under = Allowance(ada.entity.organization_id, None, shared=True)
    async with world.denizen.living() as residents:
        await world.say(noor, "Where is it?", hall)
        await begun.wait()
        rest = 100_000 - sum(tokens for tokens, _ in await kept(world))
        his = await taken(world, ben)
        assert await reserve(world, his, under, rest + 1) is not None
        assert await reserve(world, his, under, rest) is None
        go_on.set()
        await residents.run_until_idle()
    assert await world.transcript(hall) == ["Noor: Where is it?", "Ada: I am still looking."]


@pytest.mark.parametrize(("last_step", "reserved"), [(40, [(60, 0), (40, 0)]), (41, [(60, 0)])])
async def test_a_call_is_made_also_where_there_is_no_room_for_a_last_step(
    world: World, last_step: int, reserved: list[tuple[int, int]]
):
    ada = await world.agent("Ada")
    lease, under = await taken(world, ada), own(ada, tokens_per_day=100)
    assert await world.denizen.db.write(budgets.reserve, lease, under, Amount(60), Amount(last_step)) is None
    assert await kept(world) == reserved


async def test_what_was_kept_for_a_call_that_failed_is_free_again(world: World):
    ada, noor, hall = await one_in_a_hall(world, RuntimeError("oh"), budget={"tokens_per_day": 100_000})
    await world.say(noor, "Hello", hall)
    async with world.denizen.living() as residents:
        await residents.run_until_idle()
        assert await kept(world) == []
    assert [(each.state, each.attempts) for each in await world.waiting(ada)] == [("pending", 1)]


async def test_triage_is_paid_from_the_same_budget(world: World):
    ada, noor, hall = await one_in_a_hall(
        world, budget={"tokens_per_day": 30_000}, cycle={"triage": {"model": "sieve"}}
    )
    sieve = scripted(skip("lunch"), name="sieve")
    world.denizen.models.register("sieve", sieve)
    await world.denizen.spaces.join(hall, await world.person("Bert"))
    await world.say(noor, "Bert, lunch?", hall)
    await world.run()
    assert await world.ledger(ada) == [("skip", "triage: lunch")]
    assert await kept(world) == []
    used = sum(each.input_tokens + each.output_tokens for each in await world.denizen.budgets.spending(ada))
    await spend(world, ada, 30_000 - used)
    await world.say(noor, "Bert, coffee?", hall)
    await world.run()
    assert len(sieve.requests) == 1
    assert await world.denizen.budgets.resting(ada) is not None
    assert (await world.transcript(hall))[-1] == "Noor: Bert, coffee?"


async def test_its_plans_wait_with_it(world: World):
    ada, noor, hall = await spent_out(world, "Done.", "Done.", "Done.")
    await world.denizen.plans.set_timer(ada, "Look at the oven", after="1h")
    await world.say(noor, "Hello", hall)
    await world.run()
    await world.run_after(2 * 3_600)
    assert [plan.state for plan in await world.denizen.plans.list(ada)] == ["held"]
    await world.run_after(UNTIL_MIDNIGHT)
    assert "Look at the oven" in str(world.model(ada).requests)


async def test_raising_its_budget_lets_an_agent_go_on(world: World):
    ada, noor, hall = await spent_out(world, reply("Here."), "Done.")
    await world.say(noor, "Hello", hall)
    await world.run()
    await world.denizen.agents.edit(ada, instructions="Be brief.")
    assert await world.denizen.agents.status(ada) == "suspended"
    await world.denizen.agents.edit(ada, budget={"tokens_per_day": 40_000})
    assert await world.denizen.agents.status(ada) == "suspended"
    await world.denizen.agents.edit(ada, budget={"tokens_per_day": 500_000})
    await world.run()
    assert (await world.transcript(hall))[-1] == "Ada: Here."


async def test_raising_the_organizations_budget_lets_its_agents_go_on(world: World):
    ada, noor, hall = await one_in_a_hall(world, reply("Here."), "Done.")
    await spend(world, ada, 100)
    await world.denizen.budgets.set(tokens=101)
    await world.say(noor, "Hello", hall)
    await world.run()
    assert await shown(world, hall) == [
        "The organization's budget is used up. Your message is kept. Ada answers when an admin raises the limit."
    ]
    await world.run_after(3 * DAY)
    assert await world.denizen.agents.status(ada) == "suspended"
    await world.denizen.budgets.set(tokens=1_000_000)
    assert await world.denizen.budgets.get() == BudgetSettings(tokens=1_000_000)
    await world.run()
    assert (await world.transcript(hall))[-1] == "Ada: Here."
    await world.denizen.budgets.set()
    assert await world.denizen.budgets.get() is None


async def test_the_owner_has_the_last_word(world: World):
    """What an owner suspends stays so when the day comes; what an owner resumes is awake, until it is refused again."""
    ada, noor, hall = await spent_out(world, reply("Here."), "Done.")
    await world.say(noor, "Hello", hall)
    await world.run()
    await world.denizen.agents.suspend(ada)
    await world.run_after(UNTIL_MIDNIGHT + 1)
    assert await world.denizen.agents.status(ada) == "suspended"
    await world.denizen.agents.resume(ada)
    await world.run()
    assert (await world.transcript(hall))[-1] == "Ada: Here."


async def test_an_agent_is_told_once_when_most_of_it_is_used(world: World):
    """And people see it."""
    ada, noor, hall = await one_in_a_hall(
        world,
        *[each for said in ("One.", "Two.", "Three.", "Four.", "Five.") for each in (reply(said), "Done.")],
        budget={"tokens_per_day": 100_000, "dollars": Decimal(5)},
    )
    await spend(world, ada, 82_000, 4_100_000)
    async with world.denizen.bus.subscribe(agent_topic(ada.id), limit=1_000) as frames:
        for _ in range(2):
            await world.say(noor, "Hello", hall)
            await world.run()
        world.denizen.bus.publish(agent_topic(ada.id), {"type": "that was all"})
        told: list[Any] = []
        async for frame in frames:
            assert isinstance(frame, Frame)
            if frame.payload["type"] == "that was all":
                break
            if frame.payload["type"] == "agent.budget":
                told.append((frame.payload["scope"], frame.payload["used"]))
    assert told == [("agent:total", 0.82), ("agent:day", 0.82)]
    inbox = await world.newest_inbox(ada)
    assert (
        "You have used 82 % of your budget ($4.10 of $5.00). When it is used up, you rest until it is raised." in inbox
    )
    assert "You have used 82 % of your budget for today (82,000 of 100,000 tokens)." in inbox
    await world.say(noor, "Hello", hall)
    await world.run()
    assert "budget" not in await world.newest_inbox(ada)

    # The next day has a budget of its own; of the total nothing new is to be told.
    world.clock.advance(DAY)
    await spend(world, ada, 82_000)
    for _ in range(2):
        await world.say(noor, "Hello", hall)
        await world.run()
    inbox = await world.newest_inbox(ada)
    assert "You have used 82 % of your budget for today" in inbox
    assert "of your budget (" not in inbox


def test_the_share_is_that_of_the_limit_which_is_nearer():
    limit = Limit("organization:day", tokens=1_000, micros=5_000_000)
    assert limit.share(Amount(100, 4_500_000)) == 0.9
    assert budgets.warning(limit, Amount(100, 4_500_000)) == (
        "Your organization has used 90 % of its budget for today ($4.50 of $5.00, 100 of 1,000 tokens). "
        "When it is used up, you rest until 00:00 UTC."
    )


# Prices


async def test_a_budget_in_dollars_needs_to_know_what_the_model_costs(small_world: World):
    world = small_world

    class Foreign(type(scripted())):  # a model of no price list
        @property
        def system(self) -> str:
            return "nowhere"

    ada, noor, hall = await one_in_a_hall(world, budget={"dollars_per_day": 5})
    model = scripted(reply("Hi."), "Done.")
    model.__class__ = Foreign
    world.denizen.models.register("python:ada", model)
    await world.say(noor, "Hello", hall)
    with pytest.raises(PriceUnknown, match=r"'python:ada' is unknown.*budget in tokens.*\[prices\]"):
        await world.run()
    assert await world.inbox(ada) == ["Hello"]
    world.denizen.prices = {"python:ada": A_CENT_A_TOKEN}
    await world.run()
    assert (await world.transcript(hall))[-1] == "Ada: Hi."


async def test_what_costs_nothing_may_have_a_budget_in_dollars(small_world: World):
    _, noor, hall = await one_in_a_hall(small_world, reply("Hi."), "Done.", budget={"dollars": 1})
    await small_world.say(noor, "Hello", hall)
    await small_world.run()
    assert (await small_world.transcript(hall))[-1] == "Ada: Hi."


@pytest.mark.parametrize("wrong", [{"dollars_per_day": 0}, {"dolars": 1}, {"tokens": -1}])
async def test_a_budget_that_is_none_is_refused(small_world: World, wrong: dict[str, Any]):
    with pytest.raises(InvalidInput, match="budget"):
        await small_world.denizen.agents.create("Ada", budget=wrong)


async def test_an_organizations_budget_is_checked_too(small_world: World):
    with pytest.raises(InvalidInput, match="dollars_per_day"):
        await small_world.denizen.budgets.set(dollars_per_day=-1)


# Together


async def test_of_many_who_keep_room_at_once_only_as_many_get_it_as_there_is(world: World):
    """On PostgreSQL they come on several connections, and the organization's row lets one after the other through."""
    agents = [await world.agent(f"A{number}") for number in range(12)]
    held = [await taken(world, agent) for agent in agents]
    await world.denizen.budgets.set(tokens_per_day=50)
    under = Allowance(agents[0].entity.organization_id, None, shared=True)
    for _ in range(10):
        answers = await asyncio.gather(*(reserve(world, lease, under, 10) for lease in held))
        assert answers.count(None) == 5
        assert await kept(world) == [(10, 0)] * 5
        for agent in agents:
            await world.denizen.db.write(ledger.settle, agent.id)


def chatty(_messages: Any, info: Any) -> Any:
    return reply("And again.") if info.number % 3 else "Done."


def total(tx: Tx) -> int:
    row = tx.one(statement(select(func.coalesce(func.sum(spending.c.cost_micros), 0))))
    assert row is not None
    return int(row[0])


async def test_agents_that_think_at_once_never_pass_the_limit_of_their_organization(ready_url: str):
    """Six agents, two processes where there is a server. Three may think at once; the others wait for them.

    In the end all of it is used but what one call may cost, and everyone rests.
    """
    count, limit, one_call = 6, 40_000_000, (256 + 1) * 50_000
    prices = {f"python:a{number}": Price(Decimal(0), Decimal(50_000)) for number in range(count)}
    clock = JumpingClock()
    async with AsyncExitStack() as stack:
        world = await stack.enter_async_context(open_world(ready_url, prices=prices, clock=clock, pace=UNHURRIED))
        agents = [await world.agent(f"A{number}", model=forever(chatty), window=ROOMY) for number in range(count)]
        noor = await world.person("Noor")
        hall = await world.space("Hall", noor, *agents)
        await world.denizen.budgets.set(dollars=Decimal(limit) / 1_000_000)
        houses = [world.denizen]
        if ready_url.startswith("postgresql"):
            models = {agent.definition.model: forever(chatty) for agent in agents}
            other = Runtime(ready_url, clock=clock, models=models, prices=prices, pace=UNHURRIED)
            houses.append(await stack.enter_async_context(other))
        for _ in range(40):
            await world.say(noor, "@a0 @a1 @a2 @a3 @a4 @a5, talk", hall)
            await asyncio.gather(*(house.run_until_idle() for house in houses))
            used = await world.denizen.db.read(total)
            assert used <= limit
            if {await world.denizen.agents.status(agent) for agent in agents} == {"suspended"}:
                break
        else:
            pytest.fail("the budget is never used up")
        assert used > limit - one_call
        assert await kept(world) == []
        assert await check_database(world.denizen.db) == []


@pytest.mark.parametrize(("awareness", "room"), [("combined", True), ("none", False)])
async def test_from_the_second_step_on_room_is_kept_for_what_may_arrive_meanwhile(
    small_world: World, awareness: str, room: bool
):
    """Before each step but the first an agent may be told of its inbox: that has to fit the budget too."""
    reserved: list[int] = []

    async def decide(_messages: list[ModelMessage], info: Info) -> Turn:
        ((tokens, _),) = await kept(small_world)
        reserved.append(tokens)
        return call("read_entry", entry="inbox") if info.number < 3 else "Looked."

    ada = await small_world.agent(
        "Ada", model=forever(decide), budget={"tokens": 1_000_000}, cycle={"awareness": awareness}
    )
    await small_world.denizen.agents.trigger(ada, "bell")
    await small_world.run()
    inbox = budget(ada.definition.window, None).inbox
    more = [after - before > inbox for before, after in pairwise(reserved)]
    assert more == [room] + [False] * (len(reserved) - 2)
    assert len(reserved) >= 3


async def test_an_agent_goes_on_when_it_was_to_and_not_before(small_world: World):
    """Whoever looked may come too late: the agent was held anew meanwhile, for longer or for good."""
    world, status = small_world, small_world.denizen.agents.status
    day, ever = await world.agent("Day"), await world.agent("Ever")
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, day)
    await world.say(noor, "Are you there?", hall)
    midnight = world.clock.now() + UNTIL_MIDNIGHT * 1_000_000
    for agent, refusal in ((day, Refusal("agent:day", midnight)), (ever, Refusal("agent:total", None))):
        await world.denizen.db.write(budgets.hold, await taken(world, agent), refusal)
    await world.denizen.db.write(budgets.go_on_if_due, day.id)
    assert await status(day) == "suspended"
    assert await shown(world, hall) == [RESTS.replace("Ada", "Day")]
    world.clock.advance(UNTIL_MIDNIGHT)
    for agent in (day, ever):
        await world.denizen.db.write(budgets.go_on_if_due, agent.id)
    assert [await status(day), await status(ever)] == ["sleeping", "suspended"]
    assert await shown(world, hall) == []
