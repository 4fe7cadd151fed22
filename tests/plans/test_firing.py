"""Plans reach the inbox exactly once: late, after a crash, with several instances, and whatever the clock does."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import bindparam, select, update

from denizen import ManualClock, Runtime, call, forever, reply, scripted, skip
from denizen.agents.registry import Agent
from denizen.checker import check_database
from denizen.clock import moment
from denizen.errors import NotFound
from denizen.inbox.delivery import Delivery, deliver
from denizen.plans import firing
from denizen.plans.firing import fire_due, outlook, reckon_again
from denizen.plans.schedule import describe
from denizen.storage.database import Statement, Tx, statement
from denizen.storage.schema import agents, events, messages, plans
from tests.world import UNHURRIED, World, open_world

HOUR = 3600


async def fire(world: World) -> None:
    """What is due is delivered, and nobody thinks."""
    while await world.denizen.db.write(fire_due):
        pass


async def arrived(world: World, agent: Agent) -> list[tuple[str, str, int]]:
    """What came to the agent's inbox: type, text, seconds late."""
    waiting = await world.denizen.minds.inbox(agent)
    return [(each.type, each.text, each.payload["late_seconds"]) for each in waiting]  # pyright: ignore[reportReturnType]


async def next_runs(world: World, agent: Agent) -> list[str]:
    return [moment(plan.next_run).strftime("%m-%d %H:%M") for plan in await world.denizen.plans.list(agent)]


async def test_nothing_fires_before_its_time_and_everything_once_at_its_time(world: World):
    ada = await world.agent("Ada")
    await world.denizen.plans.set(ada, "Report", "Write the report.", cron="0 10 * * *")
    await world.denizen.plans.set(ada, "Dentist", "Go to the dentist.", at="2026-01-05T10:00")
    timer = await world.denizen.plans.set_timer(ada, "Tea is ready.", after="1 hour")
    await fire(world)
    world.clock.advance(HOUR - 0.000001)
    await fire(world)
    assert await arrived(world, ada) == []

    world.clock.advance(0.000001)
    await fire(world)
    await fire(world)
    assert sorted(await arrived(world, ada)) == [
        ("plan_trigger", "Go to the dentist.", 0),
        ("plan_trigger", "Write the report.", 0),
        ("timer", "Tea is ready.", 0),
    ]
    assert timer.id not in [plan.id for plan in await world.denizen.plans.list(ada)]
    assert await next_runs(world, ada) == ["01-06 10:00"]


async def test_what_is_overdue_at_the_start_fires_once_late_and_says_by_how_much(ready_url: str):
    """One-shot plans overdue at start were marked done without firing elsewhere."""
    async with open_world(ready_url) as world:
        ada = await world.agent("Ada", "Did all three.")
        await world.denizen.plans.set_timer(ada, "Tea is ready.", after="5 minutes")
        await world.denizen.plans.set(ada, "Dentist", "Go to the dentist.", after="2 hours")
        await world.denizen.plans.set(ada, "Round", "Look around.", cron="*/10 * * * *")
        await world.close()
        world.clock.advance(24 * HOUR)
        await world.open()
        await world.run()
        assert await world.history(ada) == [
            await inbox_of(world, ada),
            "response: Did all three.",
        ]
        assert await next_runs(world, ada) == ["01-06 09:10"]
        assert await world.waiting(ada) == []


async def inbox_of(world: World, agent: Agent) -> str:
    timer, plan = await ids_of_events(world, agent)
    dentist, round_ = plan
    return (
        "inbox: [INBOX - 3 new events]\n"
        "Now: Tuesday 2026-01-06 09:00 UTC\n"
        "Your next plans: Round at 2026-01-06 09:10 UTC\n"
        "\n"
        f"1. [Timer | timerId: {timer}] Your reminder:\n   > Tea is ready.\n"
        "   → received just now, 23 h late\n"
        "\n"
        f'2. [Plan "Round" | planId: {round_}] Your plan:\n   > Look around.\n'
        "   → received just now, 23 h late\n"
        "\n"
        f'3. [Plan "Dentist" | planId: {dentist}] Your plan:\n   > Go to the dentist.\n'
        "   → received just now, 22 h late\n"
        "\n"
        "Handle these in any order. First see which are urgent and which belong together."
    )


async def ids_of_events(world: World, agent: Agent) -> tuple[str, tuple[str, str]]:
    rows = await world.denizen.db.read(_fired, agent.id)
    timer = next(id for id, text in rows if "Tea" in text)
    dentist = next(id for id, text in rows if "dentist" in text)
    round_ = next(id for id, text in rows if "Look" in text)
    return timer.split(":")[1], (dentist.split(":")[1], round_.split(":")[1])


_events = statement(
    select(events.c.id, events.c.payload).where(events.c.agent_id == bindparam("agent_id")).order_by(events.c.number)
)
_hops = statement(select(messages.c.text, messages.c.hop).order_by(messages.c.seq))


def _fired(tx: Tx, agent_id: str) -> list[tuple[str, str]]:
    return [(row[0], row[1] or "") for row in tx.all(_events, agent_id=agent_id)]


def _sent(tx: Tx) -> list[tuple[str, int]]:
    return [(row[0], row[1]) for row in tx.all(_hops)]


async def test_two_instances_fire_one_plan_once(ready_postgres_url: str):
    """Both find it due; the transaction lets one of them through."""
    clock = ManualClock()
    async with Runtime(ready_postgres_url, clock=clock) as one, Runtime(ready_postgres_url, clock=clock) as other:
        ada = await one.agents.create("Ada", model=forever(lambda _messages, _info: skip()))
        agents = [ada, *[await one.agents.create(f"Bee {n}", model=scripted()) for n in range(5)]]
        for agent in agents:
            await one.plans.set(agent, "Round", "Look around.", cron="*/10 * * * *")
            await other.plans.set_timer(agent, "Tea.", after="10 minutes")
        for _ in range(3):
            clock.advance(600)
            await asyncio.gather(*[each.db.write(fire_due) for each in (one, other) * 4])
        for agent in agents:
            fired = [id.split(":")[0] for id, _ in await one.db.read(_fired, agent.id)]
            assert sorted(fired) == ["plan", "plan", "plan", "timer"]


async def test_two_living_instances_wake_an_agent_once_for_one_plan(ready_postgres_url: str):
    """Whoever thinks for it, it thinks once."""
    clock = ManualClock()
    thoughts: list[str] = []

    def decide(_messages: Any, _info: Any) -> str:
        thoughts.append("thought")
        return "Looked around."

    models = {"python:ada": forever(decide)}
    async with (
        Runtime(ready_postgres_url, clock=clock, models=models, pace=UNHURRIED) as one,
        Runtime(ready_postgres_url, clock=clock, models=models, pace=UNHURRIED) as other,
    ):
        ada = await one.agents.create("Ada", model=models["python:ada"])
        await one.plans.set(ada, "Dentist", "Go to the dentist.", after="1 hour")
        clock.advance(HOUR)
        async with one.living(), other.living():
            await one.run_until_idle()
            await other.run_until_idle()
            while not await one.minds.cycles(ada):
                await one.run_until_idle()
                await other.run_until_idle()
        assert len(thoughts) == 1
        assert await one.plans.list(ada) == []


@pytest.mark.parametrize("point", ["commit:fire_due", "committed:fire_due"])
async def test_a_crash_around_the_commit_neither_loses_nor_doubles(
    point: str, ready_url: str, broken: Callable[[str], None]
):
    async with open_world(ready_url) as world:
        ada = await world.agent("Ada")
        await world.denizen.plans.set(ada, "Round", "Look around.", cron="0 * * * *")
        await world.denizen.plans.set_timer(ada, "Tea is ready.", after="1 hour")
        world.clock.advance(HOUR)
        broken(point)
        with pytest.raises(Exception, match="died"):
            await world.denizen.db.write(fire_due)
    async with open_world(ready_url, clock=world.clock) as world:
        await fire(world)
        assert sorted(await arrived(world, ada)) == [("plan_trigger", "Look around.", 0), ("timer", "Tea is ready.", 0)]
        assert await next_runs(world, ada) == ["01-05 11:00"]


async def test_a_timer_does_not_wait_for_a_slow_sweep(world: World):
    """The instance that set it wakes for it, by the clock."""
    await world.close()
    world._options["pace"] = UNHURRIED
    await world.open()
    done = asyncio.Event()

    def decide(said: Any, _info: Any) -> Any:
        if "Tea is ready." in str(said[-1]):
            done.set()
            return "Had tea."
        return call("set_timer", after="5 seconds", reason="Tea is ready.") if len(said) == 2 else "Set a timer."

    ada = await world.agent("Ada", model=forever(decide))
    async with world.denizen.living():
        await world.denizen.agents.trigger(ada, "kettle", text="on")
        await world.run()
        await world.clock.sleeper(5)
        world.clock.advance(4)
        await world.run()
        assert not done.is_set()
        world.clock.advance(1)
        await done.wait()


async def test_the_plans_of_a_suspended_agent_wait_and_then_run_once_late(world: World):
    ada = await world.agent("Ada")
    await world.denizen.plans.set(ada, "Round", "Look around.", cron="0 * * * *")
    await world.denizen.plans.set_timer(ada, "Tea is ready.", after="30 minutes")
    await world.denizen.agents.suspend(ada)
    await world.denizen.plans.set(ada, "Dentist", "Go to the dentist.", after="1 hour")
    world.clock.advance(5 * HOUR)
    await fire(world)
    assert await arrived(world, ada) == []
    seen = await world.denizen.db.read(outlook)
    assert seen.nearest is None  # what is held is not even looked at

    await world.denizen.agents.resume(ada)
    await fire(world)
    assert sorted(await arrived(world, ada)) == [
        ("plan_trigger", "Go to the dentist.", 4 * HOUR),
        ("plan_trigger", "Look around.", 4 * HOUR),
        ("timer", "Tea is ready.", 9 * HOUR // 2),
    ]
    assert await next_runs(world, ada) == ["01-05 15:00"]


async def test_a_deleted_agent_plans_nothing_any_more(world: World):
    ada = await world.agent("Ada", heartbeat={"every_minutes": 10})
    await world.denizen.plans.set_timer(ada, "Tea is ready.", after="30 minutes")
    await world.denizen.agents.delete(ada)
    world.clock.advance(HOUR)
    await fire(world)
    assert await arrived(world, ada) == []
    assert await world.denizen.plans.list(ada) == []
    with pytest.raises(NotFound):
        await world.denizen.plans.set_timer(ada, "Tea is ready.", after="30 minutes")


async def test_nothing_due_costs_no_write(world: World):
    ada = await world.agent("Ada")
    await world.denizen.plans.set(ada, "Round", "Look around.", cron="0 * * * *")
    await world.run()
    writes = world.denizen.db.writes
    async with world.denizen.living() as residents:
        living = world.denizen.db.writes
        for _ in range(5):
            await residents.sweep()
        assert world.denizen.db.writes == living
    assert living - writes == 1  # the instance appears


# Hops


async def test_what_a_timer_leads_to_is_one_hop_further_than_what_it_was_set_for(world: World):
    """A chain of agents cannot begin anew by setting timers: the timer has the hop of the cycle that set it."""
    later = call("set_timer", after="1 minute", reason="Answer Bee.")
    bee = await world.agent("Bee", reply("@ada what do you think?"), "Asked Ada.", skip())
    ada = await world.agent("Ada", skip(), later, "Later.")
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, bee)
    await world.denizen.spaces.join(hall, ada, attention="mentions")
    await world.restart(
        ada=scripted(later, "Later.", [call("enter_space", space_id=hall.id), reply("Yes.")], "Told Bee.")
    )
    await world.say(noor, "Ask Ada", hall)
    await world.run()
    assert [plan.hop for plan in await world.denizen.plans.list(ada)] == [1]
    await world.run_after(60)
    assert await world.denizen.db.read(_sent) == [("Ask Ada", 0), ("@ada what do you think?", 1), ("Yes.", 2)]


async def test_what_a_person_plans_begins_a_chain(world: World):
    ada = await world.agent("Ada")
    assert (await world.denizen.plans.set_timer(ada, "Tea.", after="1 hour")).hop == 0


# Heartbeats


async def test_a_heartbeat_beats_in_its_hours_only(world: World):
    """Idle heartbeats burned $248 elsewhere: there are hours and days for them."""
    ada = await world.agent(
        "Ada",
        model=forever(lambda _messages, _info: skip()),
        zone="Europe/Berlin",
        heartbeat={
            "every_minutes": 60,
            "active_from": "09:00",
            "active_until": "12:00",
            "weekdays": ["Mon", "Tue"],
            "instruction": "Look around.",
        },
    )
    # Monday, nine in UTC, is ten in Berlin.
    beats: list[str] = []
    for _ in range(4 * 48):
        world.clock.advance(HOUR / 4)
        await fire(world)
        new = len(await world.denizen.db.read(_fired, ada.id)) - len(beats)
        beats += [moment(world.clock.now()).strftime("%a %H:%M")] * new
    assert beats == ["Mon 10:00", "Tue 08:00", "Tue 09:00", "Tue 10:00"]
    await world.run()
    assert await world.cycles(ada) == []  # it skipped, which leaves no trace


async def test_a_heartbeat_is_changed_with_its_agent(world: World):
    ada = await world.agent("Ada", heartbeat={"every_minutes": 60})
    first = await world.denizen.plans.list(ada)
    await world.denizen.agents.edit(ada, instructions="Be kind.")
    assert await world.denizen.plans.list(ada) == first
    await world.denizen.agents.edit(ada, heartbeat={"every_minutes": 20})
    assert await next_runs(world, ada) == ["01-05 09:20"]
    await world.denizen.agents.edit(ada, heartbeat=None)
    assert await world.denizen.plans.list(ada) == []


# Clocks


async def test_a_plan_goes_by_the_clocks_of_its_zone_through_a_change(ready_url: str):
    clock = ManualClock(datetime(2026, 3, 28, 0, 0, tzinfo=UTC))
    async with open_world(ready_url, clock=clock) as world:
        ada = await world.agent("Ada", zone="Europe/Berlin")
        await world.denizen.plans.set(ada, "Night", "Look around.", cron="30 2 * * *")
        ran: list[str] = []
        for _ in range(3 * 96):
            await fire(world)
            new = len(await world.denizen.db.read(_fired, ada.id)) - len(ran)
            ran += [moment(clock.now()).strftime("%d %H:%M")] * new
            clock.advance(900)
        assert ran == ["28 01:30", "29 01:00", "30 00:30"]


async def test_a_clock_put_back_neither_repeats_nor_stops_a_plan(ready_url: str):
    """A clock that was years ahead for a moment does not keep a plan waiting for years."""
    async with open_world(ready_url) as world:
        ada = await world.agent("Ada")
        await world.denizen.plans.set(ada, "Round", "Look around.", cron="0 * * * *")
        await world.denizen.plans.set_timer(ada, "Tea is ready.", after="90 minutes")
        world.clock.advance(HOUR)
        await fire(world)

        world.clock.advance(10 * 366 * 24 * HOUR)
        await fire(world)
        world.clock.advance(-10 * 366 * 24 * HOUR)
        assert (await world.denizen.db.read(outlook)).displaced
        async with world.denizen.living() as residents:
            await residents.sweep()
        assert not (await world.denizen.db.read(outlook)).displaced
        assert await next_runs(world, ada) == ["01-05 11:00"]

        for _ in range(2):
            world.clock.advance(HOUR)
            await fire(world)
        # Ten o'clock, the one at eleven that the wrong clock brought, and twelve: each once.
        fired = [id.split(":")[2] for id, _ in await world.denizen.db.read(_fired, ada.id) if id.startswith("plan")]
        assert [moment(int(at)).strftime("%H:%M") for at in fired] == ["10:00", "11:00", "12:00"]


async def test_a_delay_is_counted_again_when_the_clock_was_set_back_and_a_time_is_kept(ready_url: str):
    """Who asked for "in one minute" would have waited for as long as the clock was ahead. A time stays that time."""
    async with open_world(ready_url) as world:
        ada = await world.agent("Ada")
        await world.denizen.plans.set_timer(ada, "Tea is ready.", after="1 minute")
        await world.denizen.plans.set_timer(ada, "Call Noor.", at="2026-01-05T10:00")
        await world.denizen.plans.set(ada, "Dentist", "Go to the dentist.", after="90 minutes")
        world.clock.advance(-2 * HOUR)
        async with world.denizen.living() as residents:
            await residents.sweep()
        assert not (await world.denizen.db.read(outlook)).displaced
        assert await next_runs(world, ada) == ["01-05 07:01", "01-05 08:30", "01-05 10:00"]
        dentist = next(plan for plan in await world.denizen.plans.list(ada) if plan.name == "Dentist")
        assert describe(dentist.schedule) == "once, at 2026-01-05 08:30 UTC"

        # It is set back once more, when one of them has been fired: what is over does not come again.
        world.clock.advance(60)
        await fire(world)
        world.clock.advance(-HOUR)
        assert await world.denizen.db.write(reckon_again) == 1
        assert await next_runs(world, ada) == ["01-05 07:31", "01-05 10:00"]
        for _ in range(5):
            world.clock.advance(HOUR)
            await fire(world)
        assert [(kind, text) for kind, text, _ in await arrived(world, ada)] == [
            ("timer", "Tea is ready."),
            ("plan_trigger", "Go to the dentist."),
            ("timer", "Call Noor."),
        ]


async def test_a_small_step_back_is_waited_out(world: World):
    ada = await world.agent("Ada")
    await world.denizen.plans.set(ada, "Round", "Look around.", cron="* * * * *")
    world.clock.advance(60)
    await fire(world)
    world.clock.advance(-50)
    assert await world.denizen.db.write(reckon_again) == 0
    for _ in range(11):
        world.clock.advance(10)
        await fire(world)
    assert len(await arrived(world, ada)) == 2


async def test_a_plan_whose_zone_is_unknown_here_runs_a_last_time_and_says_so(world: World):
    """Another machine may have known it."""
    ada = await world.agent("Ada")
    plan = await world.denizen.plans.set(ada, "Round", "Look around.", cron="0 * * * *", zone="Asia/Tokyo")
    await world.denizen.db.write(_move_to, plan.id, "Mars/Olympus")
    world.clock.advance(HOUR)
    await fire(world)
    assert [event.text for event in await world.denizen.minds.inbox(ada)] == [
        "Look around.",
        (
            "The plan \"Round\" will not run again: Unknown time zone 'Mars/Olympus'. "
            'Use a name such as "Europe/Berlin" or "UTC". Set it again or delete it.'
        ),
    ]
    assert [plan.state for plan in await world.denizen.plans.list(ada)] == ["failed"]
    await world.denizen.plans.set(ada, "Round", "Look around.", cron="0 * * * *")
    assert [plan.state for plan in await world.denizen.plans.list(ada)] == ["waiting"]


_set_schedule = statement(update(plans).where(plans.c.id == bindparam("plan")).values(schedule=bindparam("new")))


def _move_to(tx: Tx, plan_id: str, zone: str, cron: str = "0 * * * *") -> None:
    tx.run(_set_schedule, plan=plan_id, new=f'{{"kind":"cron","expression":"{cron}","zone":"{zone}"}}')


async def test_a_plan_that_cannot_be_reckoned_does_not_keep_the_others_from_running(small_world: World):
    """All that are due are brought in by one transaction: one bad row would have stopped every plan of the house."""
    world = small_world
    ada, bert = await world.agent("Ada"), await world.agent("Bert")
    plan = await world.denizen.plans.set(ada, "Round", "Look around.", cron="0 * * * *")
    await world.denizen.plans.set(bert, "Round", "Look here.", cron="0 * * * *")
    await world.denizen.db.write(_move_to, plan.id, "UTC", "hourly")
    world.clock.advance(HOUR)
    await fire(world)
    assert [event.text for event in await world.denizen.minds.inbox(bert)] == ["Look here."]
    assert [event.text for event in await world.denizen.minds.inbox(ada)] == [
        "Look around.",
        'The plan "Round" will not run again: Its schedule cannot be read. Set it again or delete it.',
    ]


async def test_many_plans_due_at_once_all_fire(small_world: World):
    """More than one transaction brings in."""
    world = small_world
    agents = [await world.denizen.agents.create(f"Bee {n}", model=scripted()) for n in range(6)]
    for agent in agents:
        for n in range(40):
            await world.denizen.plans.set_timer(agent, f"Timer {n}", after=f"{n + 1} seconds")
    world.clock.advance(60)
    async with world.denizen.living():
        pass
    for agent in agents:
        assert len(await world.denizen.db.read(_fired, agent.id)) == 40


# What the checker says


async def test_the_checker_finds_a_timer_that_could_go_off_twice_and_plans_of_the_dead(world: World):
    ada = await world.agent("Ada")
    timer = await world.denizen.plans.set_timer(ada, "Tea.", after="1 hour")
    assert await check_database(world.denizen.db) == []
    fired = Delivery(ada.id, f"timer:{timer.id}:{timer.next_run}", "timer", timer.next_run)
    await world.denizen.db.write(deliver, [fired])
    await world.denizen.db.write(_kill, ada.id)
    assert [each.sentence for each in await check_database(world.denizen.db)] == [
        "A timer has gone off, and waits to go off again.",
        "A dead agent has a plan.",
    ]


_set_dead = statement(update(agents).where(agents.c.id == bindparam("agent")).values(status="dead"))


def _kill(tx: Tx, agent_id: str) -> None:
    tx.run(_set_dead, agent=agent_id)


@pytest.mark.parametrize(
    ("query", "index"),
    [
        (firing._nearest, "ix_plans_due"),
        (firing._due, "ix_plans_due"),
        (firing._latest_reckoned, "ix_plans_reckoned"),
        (firing._displaced, "ix_plans_reckoned"),
    ],
)
async def test_what_is_due_is_found_by_its_index_alone(small_world: World, query: Statement, index: str):
    """However many plans there are, only those that are due are touched."""
    path = small_world.url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path)) as connection:
        parameters = dict.fromkeys(re.findall(r":(\w+)", query.sqlite), 1)
        rows = connection.execute(f"EXPLAIN QUERY PLAN {query.sqlite}", parameters).fetchall()
    assert [f"USING INDEX {index}" in row[3] or f"USING COVERING INDEX {index}" in row[3] for row in rows] == [True]
