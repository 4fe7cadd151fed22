"""Which model answers: by rule or by a function of the owner's, for a cycle or for each step."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from denizen import StepContext, forever, reply, scripted
from denizen.errors import InvalidInput, ModelUnknown
from denizen.models.prices import Price
from denizen.models.scripted import ScriptedModel
from tests.world import World, open_world

DEAR = [{"model": "big", "when": {"words": ["hard"]}}]


def thinker(name: str, *, context_tokens: int | None = None) -> ScriptedModel:
    """Answers with its name, then has done."""

    def decide(_messages: Any, info: Any) -> Any:
        return reply(f"{name}.") if info.number % 2 == 0 else "Done."

    model = forever(decide, name=name)
    model._context_tokens = context_tokens  # pyright: ignore[reportPrivateUsage]
    return model


async def house_of_two(world: World, **options: Any):
    """An agent that thinks with `small`, in a hall with a person; `big` is there too."""
    world.denizen.models.register("small", thinker("small"))
    world.denizen.models.register("big", thinker("big"))
    ada = await world.denizen.agents.create("Ada", model="small", **options)
    noor = await world.person("Noor")
    return ada, noor, await world.space("Hall", noor, ada)


async def asked_models(world: World, agent: Any) -> list[str]:
    """The model of each response, as its request is kept."""
    log = await world.denizen.minds.log(agent)
    return [json.loads(entry.request)["model"] for entry in log if entry.request]


async def test_the_first_rule_that_applies_chooses_else_the_agents_own_model(world: World):
    """Charges and the stored request name the model that was really asked."""
    ada, noor, hall = await house_of_two(world, cycle={"routing": DEAR})
    for text in ("An easy one", "A hard one"):
        await world.say(noor, text, hall)
        await world.run()
    assert await world.transcript(hall) == ["Noor: An easy one", "Ada: small.", "Noor: A hard one", "Ada: big."]
    assert await asked_models(world, ada) == ["small", "small", "big", "big"]
    assert [(each.model, each.calls) for each in await world.denizen.budgets.spending(ada)] == [
        ("big", 2),
        ("small", 2),
    ]


async def test_a_cycle_keeps_its_model_whatever_a_function_says_later():
    seen: list[StepContext] = []

    def by_step(situation: StepContext) -> str:
        seen.append(situation)
        return "big" if situation.step == 0 else "small"

    async with open_world("sqlite://", routes={"by_step": by_step}) as world:
        route = {"by": "by_step", "among": ["big", "small"]}
        ada, noor, hall = await house_of_two(world, cycle={"routing": [route]})
        await world.say(noor, "Hello", hall)
        await world.run()
        assert await asked_models(world, ada) == ["big", "big"]
    (situation,) = seen
    assert (situation.step, situation.calls, [event.text for event in situation.events]) == (0, (), ["Hello"])


async def test_a_model_may_be_chosen_for_each_step():
    """From a certain step on, or by a function that sees what was done."""
    routes = {"after_sending": lambda now: "big" if now.called("send_message") else "small"}
    for routing in (
        [{"model": "big", "from_step": 1}],
        [{"by": "after_sending", "among": ["big", "small"]}],
    ):
        async with open_world("sqlite://", routes=routes) as world:
            ada, noor, hall = await house_of_two(world, cycle={"routing": routing, "routing_per": "step"})
            await world.say(noor, "Hello", hall)
            await world.run()
            assert (await asked_models(world, ada))[:2] == ["small", "big"]


def _fails(_situation: StepContext) -> str:
    raise RuntimeError("no idea")


@pytest.mark.parametrize("function", [_fails, lambda _: "huge", lambda _: None])
async def test_a_function_that_fails_leaves_the_agent_its_own_model(function: Any):
    async with open_world("sqlite://", routes={"chooser": function}) as world:
        route = {"by": "chooser", "among": ["big"]}
        ada, noor, hall = await house_of_two(world, cycle={"routing": [route]})
        await world.say(noor, "Hello", hall)
        await world.run()
        assert set(await asked_models(world, ada)) == {"small"}


async def test_a_resumed_cycle_goes_on_with_the_model_it_began_with(ready_url: str):
    """The first stored response says which; its function is not asked again."""
    asked: list[int] = []

    def once(situation: StepContext) -> str:
        asked.append(situation.step)
        return "big" if len(asked) == 1 else "small"

    async with open_world(ready_url, routes={"once": once}) as world:
        route = {"by": "once", "among": ["big", "small"]}
        ada, noor, hall = await house_of_two(world, cycle={"routing": [route]})
        world.denizen.models.register("big", scripted(reply("Half."), RuntimeError("cut off"), name="big"))
        await world.say(noor, "Hello", hall)
        await world.run()
        assert await asked_models(world, ada) == ["big"]

        await world.restart()
        world.denizen.models.register("small", thinker("small"))
        world.denizen.models.register("big", scripted("And whole.", name="big"))
        await world.run_after(5)
        assert await world.endings(ada) == [(1, "acted", "answered", "And whole.")]
        assert await asked_models(world, ada) == ["big", "big"]
        assert asked == [0]


async def test_each_model_is_charged_at_its_own_price(ready_sqlite_url: str):
    prices = {"small": Price(Decimal(0), Decimal(1)), "big": Price(Decimal(0), Decimal(1_000_000))}
    async with open_world(ready_sqlite_url, prices=prices) as world:
        ada, noor, hall = await house_of_two(world, cycle={"routing": DEAR})
        await world.say(noor, "A hard one", hall)
        await world.run()
        (used,) = await world.denizen.budgets.spending(ada)
        assert (used.model, used.cost_micros) == ("big", used.output_tokens * 1_000_000)


async def test_default_in_a_route_is_what_the_house_uses(small_world: World):
    small_world.denizen.server_models.configured = "big"
    ada, noor, hall = await house_of_two(small_world, cycle={"routing": [{"model": "default"}]})
    await small_world.say(noor, "Hello", hall)
    await small_world.run()
    assert await asked_models(small_world, ada) == ["big", "big"]


async def test_what_a_route_needs_is_missed_at_once(small_world: World):
    """And not when it first applies."""
    ada, noor, hall = await house_of_two(small_world, cycle={"routing": [{"by": "nobody", "among": ["big"]}]})
    await small_world.say(noor, "Hello", hall)
    with pytest.raises(InvalidInput, match=r"nobody.*Runtime\(routes"):
        await small_world.run()
    await small_world.denizen.agents.edit(ada, cycle={"routing": [{"model": "gone", "when": {"words": ["never"]}}]})
    with pytest.raises(ModelUnknown, match="gone"):
        await small_world.run()


async def test_a_request_fits_whichever_model_it_goes_to(small_world: World):
    """The window is that of the smallest."""
    ada, _, _ = await house_of_two(small_world, cycle={"routing": DEAR})
    small_world.denizen.models.register("big", thinker("big", context_tokens=20_000))
    _, budget = await small_world.denizen.equipment().equip(ada)
    assert budget.request + budget.output <= 20_000


@pytest.mark.parametrize(
    ("cycle", "why"),
    [
        ({"routing": [{"when": {"urgent": True}}]}, "one of the two"),
        ({"routing": [{"model": "a", "by": "b", "among": ["a"]}]}, "one of the two"),
        ({"routing": [{"by": "b"}]}, "among"),
        ({"routing": [{"model": "a", "from_step": 2}]}, "routing_per"),
    ],
)
async def test_a_route_that_leads_nowhere_is_refused(small_world: World, cycle: dict[str, object], why: str):
    with pytest.raises(InvalidInput, match=why):
        await small_world.denizen.agents.create("Ada", cycle=cycle)
