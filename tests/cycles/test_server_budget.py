"""The daily limit of a server: there from the first start, over all organizations, in dollars and in tokens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from denizen import forever, reply, scripted
from denizen.agents.files import DefinitionFile, read
from denizen.agents.registry import Agent
from denizen.cycles import budgets, ledger
from denizen.cycles.budgets import BudgetSettings, Refusal
from denizen.cycles.ledger import Charge
from denizen.cycles.server_budget import ServerBudget, ServerCall, used_today
from denizen.errors import BudgetSpent, NotFound, PriceUnknown
from denizen.ids import CycleId, new_id
from denizen.inbox import statuses
from denizen.models.prices import Price, Usage
from denizen.models.scripted import ScriptedModel
from tests.databases import with_tables
from tests.portability.files import written
from tests.world import World, open_world

PRICED = {"python:ada": Price(Decimal(1), Decimal(1))}
RESTS = (
    "The daily limit of this server is used up. "
    "Your message is kept. Ada answers after 00:00 UTC, or when an admin raises the limit."
)


def from_a_provider(*turns: Any) -> ScriptedModel:
    """A scripted model that counts as one of a provider, not as one of ours."""
    model = scripted(*turns)
    model._provider_name = "acme"
    return model


@asynccontextmanager
async def limited(url: str, prices: dict[str, Price] | None = None, **limits: Any) -> AsyncGenerator[World]:
    async with open_world(url, server_budget=BudgetSettings(**limits), prices=prices or {}) as world:
        yield world


async def spend(world: World, agent: Agent, tokens: int = 0, micros: int = 0) -> None:
    charge = Charge("acme:m", tokens, 0, 0, 0, micros)
    await world.denizen.db.write(ledger.enter, agent.id, CycleId(new_id()), "usage", charge)


async def asked(world: World, agent: Agent, text: str = "Hello") -> list[str]:
    """What the agent says to this, and what the space shows then."""
    noor = await world.denizen.people.create(f"Noor {new_id()[-6:]}")
    home = await world.denizen.spaces.create("Home", [noor, agent])
    await world.say(noor, text, home)
    await world.run()
    shown = await world.denizen.db.read(statuses.of_space, home.id)
    return [line.partition(": ")[2] for line in await world.transcript(home)][1:] + [each.text for each in shown]


async def test_past_the_token_limit_the_space_shows_so_and_the_agent_goes_on_the_next_day(ready_url: str) -> None:
    async with limited(ready_url, tokens_per_day=200_000) as world:
        ada = await world.agent("Ada", model=from_a_provider(reply("Hello."), "Greeted.", reply("Hello."), "Greeted."))
        assert await asked(world, ada) == ["Hello."]
        await spend(world, ada, tokens=190_000)
        world.clock.advance(30)  # what is used elsewhere is looked at every half minute
        assert await asked(world, ada) == [RESTS]
        world.clock.advance(86_400)
        await world.run()
        assert len(world.model(ada).requests) == 4


async def test_it_counts_all_organizations_together(ready_url: str) -> None:
    async with limited(ready_url, tokens_per_day=200_000) as world:
        bo = await world.agent("Bo")
        other = await world.denizen.organizations.create("Other")
        ada = await world.agent("Ada", model=from_a_provider(), organization=other)
        await spend(world, bo, tokens=199_000)
        noor = await world.denizen.people.create("Noor", organization=other)
        home = await world.denizen.spaces.create("Home", [noor, ada], organization=other)
        await world.say(noor, "Hello", home)
        await world.run()
        assert await world.transcript(home) == ["Noor: Hello"]
        assert [each.text for each in await world.denizen.db.read(statuses.of_space, home.id)] == [RESTS]


async def test_dollars_stop_only_models_with_a_known_price(ready_url: str) -> None:
    """Where nobody knows what a model costs, the limit in tokens is there for it."""
    async with limited(ready_url, PRICED, dollars_per_day=Decimal(1)) as world:
        ada = await world.agent("Ada", model=from_a_provider())
        bo = await world.agent("Bo", model=from_a_provider(reply("Hello."), "Greeted."))
        await spend(world, ada, micros=999_999)
        assert await asked(world, ada) == [RESTS]
        assert await asked(world, bo) == ["Hello."]


async def test_built_in_models_are_not_limited(ready_url: str) -> None:
    async with limited(ready_url, tokens_per_day=10) as world:
        ada = await world.agent("Ada", model=scripted(reply("Hello."), "Greeted."))
        assert await asked(world, ada) == ["Hello."]


async def test_a_start_with_a_higher_limit_lets_agents_go_on(ready_sqlite_url: str) -> None:
    async with limited(ready_sqlite_url, tokens_per_day=200_000) as world:
        ada = await world.agent("Ada", model=from_a_provider(reply("Here."), "Answered."))
        await spend(world, ada, tokens=199_000)
        assert await asked(world, ada) == [RESTS]
        world._options["server_budget"] = BudgetSettings(tokens_per_day=1_000_000)
        await world.restart()
        await world.run()
        assert len(world.model(ada).requests) == 2


async def test_far_from_the_limit_nothing_is_read_or_written_for_it(ready_sqlite_url: str) -> None:
    """The first look is kept for half a minute, however many calls are made."""
    async with limited(ready_sqlite_url, tokens_per_day=10_000_000_000) as world:
        model = forever(lambda *_: "Nothing to say.")
        model._provider_name = "acme"
        ada = await world.agent("Ada", model=model, cycle={"silent_reply": "ignore"})
        budget = world.denizen.server_budget
        assert budget is not None
        await asked(world, ada)
        read_at = budget._read_at
        await asked(world, ada)
        assert budget._read_at == read_at
        world.clock.advance(30)
        await asked(world, ada)
        assert budget._read_at > read_at


async def test_what_was_used_today_is_added_up(ready_url: str) -> None:
    async with limited(ready_url, tokens_per_day=10_000_000) as world:
        ada = await world.agent("Ada")
        await spend(world, ada, tokens=100, micros=7)
        world.clock.advance(86_400)
        await spend(world, ada, tokens=30, micros=2)
        used = await world.denizen.db.read(used_today)
        assert (used.tokens, used.micros) == (30, 2)


async def agents_that_call(world: World, used: int, count: int = 8) -> list[Agent]:
    """Agents that are about to make a call; so much has been used today."""
    agents = [await world.agent(f"Agent {number}", model=from_a_provider()) for number in range(count)]
    await spend(world, agents[0], tokens=used)
    return agents


async def begin_call(world: World, agent: Agent, budget: ServerBudget) -> ServerCall | None:
    """A call of 10,000 tokens that is under way as long as this is held; None: it was refused."""
    db, most = world.denizen.db, Usage(9_000, 1_000)
    call = await budget.begin(db, world.clock, "acme:m", from_a_provider(), most)
    under = call.allowance(None, agent.entity.organization_id)
    if under is None:
        return call
    refused = await db.write(budgets.reserve_beside, agent.id, under, call.need)
    return None if isinstance(refused, Refusal) else call


def a_budget(tokens: int) -> ServerBudget:
    return ServerBudget(BudgetSettings(tokens_per_day=tokens), {})


@pytest.mark.parametrize(("used", "granted"), [(0, 8), (10_000, 8), (45_000, 5), (60_000, 4), (95_000, 0)])
async def test_calls_at_once_do_not_pass_it(ready_url: str, used: int, granted: int) -> None:
    """Whether they begin before half of it is used or after: eight calls of 10,000 tokens, and a limit of 100,000."""
    async with open_world(ready_url) as world:
        agents, budget = await agents_that_call(world, used), a_budget(100_000)
        calls = await asyncio.gather(*(begin_call(world, each, budget) for each in agents))
        assert len([each for each in calls if each is not None]) == granted


async def test_calls_that_began_before_the_last_look_still_count(ready_url: str) -> None:
    """A call may take longer than half a minute: until it is paid, it counts. When it is, what it did use counts."""
    async with open_world(ready_url) as world:
        agents, budget = await agents_that_call(world, 0), a_budget(100_000)
        long_calls = [await begin_call(world, each, budget) for each in agents[:4]]
        await spend(world, agents[0], tokens=50_000)
        world.clock.advance(31)
        later = [await begin_call(world, each, budget) for each in agents[4:]]
        assert [each is not None for each in later] == [True, False, False, False]
        long_calls.clear()
        assert await begin_call(world, agents[5], budget) is not None


async def test_each_further_instance_passes_it_by_half_at_most(ready_url: str) -> None:
    """Two more instances begin as much as they can while they believe that nothing is used."""
    async with open_world(ready_url) as world:
        agents, budgets_of_instances = await agents_that_call(world, 0, 20), [a_budget(100_000) for _ in range(3)]
        calls: list[ServerCall] = []
        for agent in agents:
            for budget in budgets_of_instances:
                call = await begin_call(world, agent, budget)
                calls += [] if call is None else [call]
        assert 100_000 < sum(each.need.tokens for each in calls) <= 200_000


async def test_calls_of_panels_and_of_triage_are_under_it(ready_url: str) -> None:
    async with limited(ready_url, tokens_per_day=200_000) as world:
        model = from_a_provider(*["Never said."] * 5)
        world.denizen.models.register("m", model)
        ada = await world.agent("Ada", model=from_a_provider(), cycle={"triage": {"model": "m"}})
        noor = await world.person("Noor")
        panel = await world.denizen.panels.create("Board", [noor], advisors=["Seth"], model="m")
        await spend(world, ada, tokens=199_999)
        turn = await world.denizen.panels.ask(panel, noor, "Hello?")
        home = await world.space("Home", noor, ada, await world.agent("Bo"))
        await world.say(noor, "Hello all", home)
        await world.run()
        assert [each.error_code for each in (await world.denizen.rounds.get(turn)).replies] == ["budget_spent"]
        with pytest.raises(BudgetSpent):
            await world.denizen.advisors.suggest(panel, "Tea")
        assert model.requests == []


BO = """
name: Bo
model: python:bo
budget: {dollars_per_day: 5}
"""


@pytest.mark.parametrize("dry_run", [False, True])
async def test_a_file_with_a_budget_in_dollars_without_a_price_is_refused(ready_sqlite_url: str, dry_run: bool) -> None:
    """As when it is set in any other way. The error names the agent: a file may define several."""
    async with limited(ready_sqlite_url, PRICED) as world:
        world.denizen.models.register("python:bo", from_a_provider())
        with pytest.raises(PriceUnknown, match="The agent @bo: The price of the model 'python:bo' is unknown"):
            await world.denizen.agents.apply(read([DefinitionFile("bo.yaml", BO)]), dry_run=dry_run)
        with pytest.raises(NotFound):
            await world.denizen.people.find("bo")
        await world.denizen.agents.apply(
            read([DefinitionFile("bo.yaml", BO.replace("dollars_per_day: 5", "tokens: 5"))])
        )
        with pytest.raises(PriceUnknown, match="@bo"):
            await world.denizen.agents.apply(read([DefinitionFile("bo.yaml", BO)]))


async def test_a_price_that_became_unknown_does_not_hinder_a_file_that_leaves_the_budget_as_it_is(
    ready_sqlite_url: str,
) -> None:
    async with limited(ready_sqlite_url, PRICED) as world:
        world.denizen.models.register("python:bo", scripted())
        await world.denizen.agents.apply(read([DefinitionFile("bo.yaml", BO)]))
        world.denizen.models.register("python:bo", from_a_provider())
        changes = await world.denizen.agents.apply(read([DefinitionFile("bo.yaml", f"{BO}instructions: Be brief.")]))
        assert [each.action for each in changes] == ["changed"]


async def test_an_imported_agent_with_a_budget_in_dollars_without_a_price_is_taken_in_with_a_warning(
    ready_sqlite_url: str, tmp_path: Path
) -> None:
    """A file of another house cannot be changed. It is parked when it is to think, and says why."""
    async with limited(ready_sqlite_url, PRICED) as world:
        ada = await world.agent("Ada", model=from_a_provider(), budget={"dollars_per_day": Decimal(5)})
        file = await written(world.denizen.agents.export(ada), tmp_path / "ada.jsonl")
        assert (await world.denizen.organizations.import_file(file, handle="eve")).unpriced == ()
    async with limited(with_tables(tmp_path / "other.db")) as other:
        other.denizen.models.register("python:ada", from_a_provider())
        made = await other.denizen.organizations.import_file(file)
        assert (made.handle, made.unpriced) == ("ada", ("python:ada",))


async def test_a_budget_in_dollars_without_a_price_is_refused_when_it_is_set(ready_sqlite_url: str) -> None:
    """Before, it silenced the agent for ever."""
    dollars = {"dollars_per_day": Decimal(5)}
    async with limited(ready_sqlite_url, PRICED, tokens_per_day=10_000_000) as world:
        unpriced = from_a_provider()
        with pytest.raises(PriceUnknown, match="The price of the model 'python:bo' is unknown"):
            await world.denizen.agents.create("Bo", model=unpriced, budget=dollars)
        bo = await world.agent("Bo", model=unpriced)
        with pytest.raises(PriceUnknown, match="Set a budget in tokens"):
            await world.denizen.agents.edit(bo, budget=dollars)
        with pytest.raises(PriceUnknown):
            await world.denizen.budgets.set(dollars_per_day=5)
        assert await world.denizen.budgets.get() is None
        await world.denizen.agents.edit(bo, budget={"tokens_per_day": 1000})
        ada = await world.agent("Ada", model=from_a_provider(), budget=dollars)
        assert ada.definition.budget is not None
