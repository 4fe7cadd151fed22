"""`denizen inspect`: one page about an agent, drawn for people and told to programs."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from denizen import Runtime, reply, scripted
from denizen.agents.inspection import Inspection
from denizen.cli.home import make_home
from denizen.cli.inspect import show
from denizen.cli.main import app
from denizen.cycles.budgets import BudgetSettings
from denizen.first_start import set_up_home
from denizen.models.prices import Price
from denizen.models.tokens import estimate_message
from denizen.server.shapes.minds import mind_out
from denizen.settings.loading import load
from tests.consciousness.past import eventful_life
from tests.world import World, open_world

pytestmark = pytest.mark.usefixtures("ready_home")

Run = Callable[..., Result]


def drawn(found: Inspection, width: int) -> list[str]:
    out = io.StringIO()
    show(Console(width=width, file=out, highlight=False), mind_out(found))
    return out.getvalue().splitlines()


async def test_the_window_is_told_as_the_next_request_would_be(world: World) -> None:
    """Layer for layer; the tokens are those that the last request was estimated at, and what came after."""
    past = await eventful_life(world)
    found = await world.denizen.minds.inspect(past.ada)
    window = found.window
    assert (found.status, found.cycle_count, window.limit) == ("sleeping", 26, 9_500)
    assert window.layers > 0
    assert window.first_cycle is not None
    assert window.recent_cycles == 26 - window.first_cycle + 1
    assert window.used + window.free == window.limit
    last = await world.denizen.minds.replay(past.ada, 26)
    added = [entry.tokens for entry in (await world.denizen.minds.log(past.ada))[-1:]]
    asked = past.model.requests[-1]
    assert window.self + window.layers + window.recent == sum(map(estimate_message, asked)) + sum(added)
    assert window.tools == len(json.dumps([_tool(each) for each in last[-1].tools], ensure_ascii=False)) // 4


def _tool(each: Any) -> dict[str, Any]:
    return {"name": each.name, "description": each.description, "parameters": each.parameters_json_schema}


async def test_everything_about_an_agent_is_there(ready_sqlite_url: str) -> None:
    """Inbox by lane, dead events, goals, notes, plans, budget, what it used and what its cycles were."""
    prices = {"python:ada": Price(input=Decimal(1), output=Decimal(2))}
    async with open_world(ready_sqlite_url, prices=prices) as world:
        past = await eventful_life(world)
        await world.denizen.agents.edit(past.ada, budget={"dollars_per_day": Decimal(5)})
        await world.denizen.notes.set(past.ada, "tea", "Noor takes milk.")
        await world.denizen.plans.set(past.ada, "standup", "Ask what is up.", cron="0 9 * * *")
        await world.say(past.noor, "One more thing.", past.hall)
        await world.say(past.noor, "Stop!", past.hall, urgent=True)
        found = await world.denizen.minds.inspect(past.ada)
        urgent, normal = found.lanes
        assert [(lane.name, lane.waiting, [each.text for each in lane.first]) for lane in (urgent, normal)] == [
            ("urgent", 1, ["Stop!"]),
            ("normal", 1, ["One more thing."]),
        ]
        assert [each.text for each in found.goals] == ["Be kind."]
        assert [(each.key, each.text) for each in found.notes] == [("tea", "Noor takes milk.")]
        assert [each.name for each in found.plans] == ["standup"]
        assert found.budget == BudgetSettings(dollars_per_day=Decimal(5))
        cycles = await world.cycles(past.ada)
        assert [each.record.number for each in found.cycles] == [*range(26, 16, -1)]
        assert [each.usage.input for each in found.cycles] == [each.input_tokens for each in reversed(cycles[-10:])]
        assert found.today == found.week
        assert found.today.calls == len(past.model.requests)
        assert found.today.cost_micros > sum(each.cost_micros for each in cycles) > 0
        assert found.today.cached_share == 0
        world.clock.advance(86_400)
        tomorrow = await world.denizen.minds.inspect(past.ada)
        assert (tomorrow.today.calls, tomorrow.week) == (0, found.week)


async def test_who_holds_an_agent_is_told_while_it_thinks(small_world: World) -> None:
    seen: list[Inspection] = []

    async def look(_messages: Any, _info: Any) -> str:
        seen.append(await small_world.denizen.minds.inspect(ada))
        return "Looked."

    ada = await small_world.agent("Ada", look, cycle={"silent_reply": "ignore"})
    noor = await small_world.person("Noor")
    await small_world.say(noor, "Hello!", await small_world.space("Hall", noor, ada))
    await small_world.run()
    (found,) = seen
    assert (found.status, found.holder) == ("alive", small_world.denizen.instance)
    assert found.window.open > 0
    assert [(lane.name, lane.waiting, lane.taken) for lane in found.lanes] == [("urgent", 0, 0), ("normal", 0, 1)]
    assert "held by" in drawn(found, 80)[0]
    assert any("1 being handled" in line for line in drawn(found, 80))


@pytest.mark.parametrize("width", [80, 100, 160])
async def test_it_is_drawn_within_the_width_there_is(small_world: World, width: int) -> None:
    past = await eventful_life(small_world)
    await small_world.say(past.noor, "A long story. " * 50, past.hall)
    found = await small_world.denizen.minds.inspect(past.ada)
    lines = drawn(found, width)
    assert max(map(len, lines)) <= width
    bars = {line.split()[0]: line.count("█") for line in lines if "█" in line}
    assert bars["recent"] > bars["tools"] > bars["self"] >= 1
    assert not any("\x1b" in line for line in lines), "plain where it is no terminal"
    for title in ("Window", "Inbox", "Goals", "Used", "Last cycles"):
        assert any(line.startswith(title) for line in lines)


async def test_an_agent_that_has_not_lived_is_drawn_too(small_world: World) -> None:
    found = await small_world.denizen.minds.inspect(await small_world.agent("Ada"))
    assert (found.window.used, found.window.recent_cycles, found.cycles) == (0, 0, ())
    assert any("100,000" in line for line in drawn(found, 80))


def test_the_commands_work_while_the_house_is_lived_in(environ: dict[str, str]) -> None:
    """Another process has the database open and thinks: what is committed is seen, and nothing is disturbed."""

    async def live() -> tuple[dict[str, Any], Result, Result]:
        settings = load().settings
        make_home(settings)
        model = scripted(reply("Hello."), "Greeted.", reply("Yes."), "Agreed.")
        async with Runtime(settings.database_url, models={"mine": model}) as denizen:
            world = await set_up_home(denizen, "Noor")
            ada = await denizen.people.find("ada", organization=world.owner.organization_id)
            await denizen.agents.edit(ada.id, model="mine")
            room = await denizen.spaces.create("Room", [world.owner, ada])
            async with denizen.living():
                await denizen.spaces.post(room, world.owner, "Hello!")
                await denizen.run_until_idle()
                told, shown, forked = [
                    await asyncio.to_thread(CliRunner().invoke, app, arguments)
                    for arguments in (
                        ["inspect", "@ada", "--json"],
                        ["replay", "@ada", "--cycle", "1"],
                        ["fork", "@ada", "--handle", "twin"],
                    )
                ]
                await denizen.spaces.post(room, world.owner, "Are you there?")
                await denizen.run_until_idle()
                assert [each.summary for each in await denizen.minds.cycles(ada.id)] == ["Greeted.", "Agreed."]
            return json.loads(told.stdout), shown, forked

    told, shown, forked = asyncio.run(live())
    assert (told["handle"], told["cycles"], told["last_cycles"][0]["summary"]) == ("ada", 1, "Greeted.")
    assert (shown.exit_code, forked.exit_code) == (0, 0)


def test_json_has_everything(environ: dict[str, str], run: Run) -> None:
    told = json.loads(run("inspect", "@ada", "--json").stdout)
    assert told["status"] == "sleeping"
    assert set(told) == {
        "id", "handle", "name", "model", "at", "status", "holder", "held_until", "resting", "cycles", "window", "inbox",
        "dead", "goals", "notes", "plans", "stances", "waiting_calls", "budget", "organization_budget", "today",
        "seven_days",
        "last_cycles",
    }  # fmt: skip
    refused = run("inspect", "@nobody")
    assert (refused.exit_code, refused.stderr) == (1, "There is no agent '@nobody'. [not_found]\n")
