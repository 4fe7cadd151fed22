"""What agents used, day by day, and what they may use, over HTTP."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from denizen.agents.registry import Agent
from denizen.cycles import ledger
from denizen.cycles.ledger import Charge
from denizen.ids import CycleId, new_id
from denizen.spaces.directory import Entity
from tests.server.conftest import House

DAY = 86_400
NOTHING = {
    "calls": 0,
    "input_tokens": 0,
    "output_tokens": 0,
    "cache_read_tokens": 0,
    "cache_write_tokens": 0,
    "cached_share": None,
    "dollars": 0.0,
    "unpriced_calls": 0,
}


async def spend(house: House, agent: Agent, model: str, tokens: int, micros: int, cached: int = 0) -> None:
    charge = Charge(model, tokens, 10, cached, 5, micros)
    await house.world.denizen.db.write(ledger.enter, agent.id, CycleId(new_id()), "usage", charge)


async def usage(house: House, who: Entity, **query: Any) -> Any:
    answer = await house.call("GET", "/api/usage", who, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def outcome(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


@pytest.fixture
async def noor(house: House) -> Entity:
    return await house.world.person("Noor")


@pytest.fixture
async def agents(house: House, noor: Entity) -> tuple[Agent, Agent]:
    """Ada and Bee, who used something on Monday and on Wednesday, and others who are none of our business."""
    world = house.world
    elsewhere = await world.denizen.organizations.create("Elsewhere")
    home = noor.organization_id
    ada, bee = await world.agent("Ada", organization=home), await world.agent("Bee", organization=home)
    theirs = await world.agent("Their", organization=elsewhere)
    await spend(house, ada, "small", 100, 2_000, cached=50)
    await spend(house, ada, "small", 100, 2_000)
    await spend(house, bee, "small", 300, 1_000)
    await spend(house, theirs, "small", 9_999, 9_999)
    world.clock.advance(2 * DAY)
    await spend(house, ada, "large", 1_000, 500_000, cached=1_000)
    return ada, bee


async def test_each_day_has_its_place(house: House, noor: Entity, agents: tuple[Agent, Agent]) -> None:
    told = await usage(house, noor, since="2026-01-04", until="2026-01-08")

    assert (told["since"], told["until"], told["groups"], told["others"]) == ("2026-01-04", "2026-01-08", [], 0)
    assert [each["day"] for each in told["days"]] == [f"2026-01-0{day}" for day in range(4, 9)]
    assert [each["calls"] for each in told["days"]] == [0, 3, 0, 1, 0]
    assert told["days"][2] == {"day": "2026-01-06", **NOTHING}
    assert told["days"][1] == {
        "day": "2026-01-05",
        "calls": 3,
        "input_tokens": 500,
        "output_tokens": 30,
        "cache_read_tokens": 50,
        "cache_write_tokens": 15,
        "cached_share": 0.1,
        "dollars": 0.005,
        "unpriced_calls": 0,
    }
    assert (told["total"]["calls"], told["total"]["dollars"], told["total"]["cached_share"]) == (4, 0.505, 0.7)


async def test_agents_and_models_are_told_apart_the_dearest_first(
    house: House, noor: Entity, agents: tuple[Agent, Agent]
) -> None:
    ada, bee = agents
    week = {"since": "2026-01-05", "until": "2026-01-07"}
    by_agent = await usage(house, noor, by="agent", **week)
    by_model = await usage(house, noor, by="model", **week)
    of_bee = await usage(house, noor, by="model", agent="@bee", **week)
    one = await usage(house, noor, by="agent", limit=1, **week)

    def told(answer: Any) -> list[tuple[str, str, list[int]]]:
        return [(each["key"], each["name"], [day["calls"] for day in each["days"]]) for each in answer["groups"]]

    assert told(by_agent) == [(ada.id, "Ada", [2, 0, 1]), (bee.id, "Bee", [1, 0, 0])]
    assert told(by_model) == [("large", "large", [0, 0, 1]), ("small", "small", [3, 0, 0])]
    assert told(of_bee) == [("small", "small", [1, 0, 0])]
    assert (of_bee["total"]["calls"], by_agent["total"]["calls"]) == (1, 4)
    assert (told(one), one["others"]) == ([(ada.id, "Ada", [2, 0, 1])], 1)
    await house.call("DELETE", "/api/agents/@ada", noor)
    assert told(await usage(house, noor, by="agent", **week)) == told(by_agent), "what is spent is spent"


async def test_calls_without_a_known_price_are_counted_and_do_not_count_as_free(
    house: House, noor: Entity, agents: tuple[Agent, Agent]
) -> None:
    ada, bee = agents
    await spend(house, bee, "openai:gpt-unheard-of", 700, 0)
    await spend(house, ada, "demo", 700, 0)
    week = {"since": "2026-01-05", "until": "2026-01-07"}
    by_model = await usage(house, noor, by="model", **week)
    by_agent = await usage(house, noor, by="agent", **week)

    unpriced = {each["name"]: each["unpriced_calls"] for each in [*by_model["groups"], *by_agent["groups"]]}
    assert unpriced == {"large": 0, "small": 0, "openai:gpt-unheard-of": 1, "demo": 0, "Ada": 0, "Bee": 1}
    assert (by_model["total"]["unpriced_calls"], by_model["total"]["dollars"]) == (1, 0.505)
    mind = (await house.call("GET", f"/api/agents/{bee.id}/mind", noor)).json()
    assert mind["today"]["unpriced_calls"] == 1


async def test_what_panels_used_is_part_of_it(house: House, noor: Entity, agents: tuple[Agent, Agent]) -> None:
    """By day and by model; by agent, each panel under its own name."""
    denizen, week = house.world.denizen, {"since": "2026-01-05", "until": "2026-01-07"}
    panel = await denizen.panels.create("Board", [noor], advisors=["Seth"], organization=noor.organization_id)
    await denizen.db.write(ledger.enter_for_panel, panel.id, Charge("small", 7, 3, 0, 0, 9_000_000))

    by_agent = await usage(house, noor, by="agent", **week)
    assert [(each["key"], each["name"], each["kind"], each["calls"]) for each in by_agent["groups"]] == [
        (panel.id, "Board", "panel", 1),
        (agents[0].id, "Ada", "agent", 3),
        (agents[1].id, "Bee", "agent", 1),
    ]
    assert [day["calls"] for day in by_agent["groups"][0]["days"]] == [0, 0, 1]
    assert (by_agent["total"]["calls"], by_agent["total"]["dollars"]) == (5, 9.505)
    assert [each["calls"] for each in (await usage(house, noor, by="model", **week))["groups"]] == [4, 1]
    assert (await usage(house, noor, agent="@bee", **week))["total"]["calls"] == 1
    told = await denizen.budgets.spending(organization=noor.organization_id)
    assert [(each.panel_id, each.calls) for each in told if each.agent_id is None] == [(panel.id, 1)]


async def test_without_dates_the_last_thirty_days_are_told(
    house: House, noor: Entity, agents: tuple[Agent, Agent]
) -> None:
    told = await usage(house, noor)
    assert (told["since"], told["until"], len(told["days"])) == ("2025-12-09", "2026-01-07", 30)


@pytest.mark.parametrize(
    "query",
    [
        {"since": "2026-01-05", "until": "2026-01-04"},
        {"since": "2024-01-01", "until": "2026-01-01"},
        {"since": "yesterday"},
        {"by": "hour"},
        {"limit": 51},
    ],
    ids=["backwards", "too long", "no date", "by hour", "too many"],
)
async def test_what_cannot_be_told(small_house: House, query: dict[str, Any]) -> None:
    noor = await small_house.world.person("Noor")
    answer = await small_house.call("GET", "/api/usage", noor, params=query)
    assert outcome(answer) == (422, "invalid_input")


@pytest.mark.parametrize("until", ["0001-01-01", "9999-12-31"])
async def test_the_ends_of_time_are_days_as_well(small_house: House, until: str) -> None:
    noor = await small_house.world.person("Noor")
    assert (await usage(small_house, noor, until=until))["until"] == until


async def test_a_budget_is_set_seen_and_lifted(house: House, noor: Entity, agents: tuple[Agent, Agent]) -> None:
    path = "/api/organization/budget"
    first = await house.call("GET", path, noor)
    put = await house.call("PUT", path, noor, json={"dollars_per_day": 0.1, "tokens": 1_000_000})
    seen = await house.call("GET", path, noor)
    lifted = await house.call("PUT", path, noor, json={})

    nothing = {"dollars_per_day": None, "tokens_per_day": None, "dollars": None, "tokens": None}
    assert first.json()["limits"] == lifted.json()["limits"] == nothing
    assert put.status_code == 200, put.text
    assert put.json() == seen.json()
    assert seen.json()["limits"] == nothing | {"dollars_per_day": 0.1, "tokens": 1_000_000}
    assert (seen.json()["today"]["calls"], seen.json()["today"]["dollars"]) == (1, 0.5)
    for wrong in ({"dollars_per_day": 0}, {"tokens": 1.5}, {"dolars": 3}, {"dollars": "NaN"}, {"tokens": 2**60}):
        assert outcome(await house.call("PUT", path, noor, json=wrong)) == (422, "invalid_input")
    assert (await house.world.denizen.budgets.get(noor.organization_id)) is None


async def test_an_agent_that_rests_goes_on_when_the_budget_is_raised(house: House, noor: Entity) -> None:
    ada = await house.world.agent("Ada", "Saw it.", window={"output_tokens": 256})
    path = "/api/organization/budget"
    await house.call("PUT", path, noor, json={"tokens": 10})
    await house.world.denizen.agents.trigger(ada, "Test")
    await house.world.run()
    rests = (await house.call("GET", "/api/agents/@ada", noor)).json()
    assert (rests["status"], rests["resting"]) == ("suspended", {"scope": "organization:total", "until": None})

    await house.call("PUT", path, noor, json={"tokens": 10_000_000})
    await house.world.run()

    rests = (await house.call("GET", "/api/agents/@ada", noor)).json()
    assert (rests["status"], rests["resting"], rests["cycles"]) == ("sleeping", None, 1)


async def test_money_is_for_admins(house: House, noor: Entity, agents: tuple[Agent, Agent]) -> None:
    mia = await house.world.person("Mia", organization=noor.organization_id)
    for method, path, body in [
        ("GET", "/api/usage", {}),
        ("GET", "/api/organization/budget", {}),
        ("PUT", "/api/organization/budget", {"json": {"tokens": 1}}),
    ]:
        assert outcome(await house.call(method, path, mia, **body)) == (403, "not_allowed")
    assert await house.world.denizen.budgets.get(noor.organization_id) is None
