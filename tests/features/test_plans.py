"""Goals, memories, plans and timers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from denizen import call, reply, scripted
from denizen.agents.registry import Agent
from denizen.clock import moment
from denizen.errors import InvalidInput
from denizen.models.scripted import Turn
from tests.scenarios import test_proactive
from tests.world import World

HOUR = 3600


async def asked(world: World, *turns: Turn, **options: Any):
    """Noor asks Ada something in a space of the two."""
    ada, noor = await world.agent("Ada", *turns, **options), await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "Please", hall)
    await world.run()
    return ada, noor, hall


async def next_runs(world: World, ada: Agent) -> list[datetime]:
    return [moment(plan.next_run) for plan in await world.denizen.plans.list(ada)]


async def test_an_agent_sets_a_timer_and_is_woken_by_it(world: World) -> None:
    """An agent sets a timer and sleeps; when the time has come, it is woken with its own reminder.

    Docs: plans.md
    """
    turns = [call("set_timer", after="1 hour", reason="Look at the server."), reply("I will.")], "Promised."
    ada, _, _ = await asked(world, *turns, "Looked at the server.")
    await world.run_after(HOUR - 1)
    assert len(await world.cycles(ada)) == 1
    await world.run_after(1)
    assert "Your reminder:\n   > Look at the server.\n" in await world.newest_inbox(ada)
    assert [each.summary for each in await world.cycles(ada)] == ["Promised.", "Looked at the server."]


async def test_an_agent_acts_without_being_asked(world: World) -> None:
    """An agent checks something every hour, warns people when it finds a problem, and sets the next timer.

    Docs: plans.md
    """
    await test_proactive.test_a_server_watcher_looks_every_hour_and_speaks_up_when_it_must(world)


async def test_an_agent_makes_a_recurring_plan(world: World) -> None:
    """An agent makes a plan that recurs by a cron expression, with an instruction for each time.

    Docs: plans.md
    """
    plan = call("set_timer", name="Daily Report", reason="Write the report.", cron="0 9 * * *")
    ada, _, _ = await asked(world, [plan, reply("Done.")], "Planned it.", "Reported.", "Reported again.")
    for _ in range(2):
        await world.run_after(24 * HOUR)
    assert '[Plan "Daily Report" | planId: ' in await world.newest_inbox(ada)
    assert "Your plan:\n   > Write the report.\n" in await world.newest_inbox(ada)
    assert [each.summary for each in await world.cycles(ada)] == ["Planned it.", "Reported.", "Reported again."]


async def test_a_person_makes_a_plan_for_an_agent(world: World) -> None:
    """The owner of an agent makes plans for it: recurring, once at a time, or once after a delay.

    Docs: plans.md
    """
    ada, plans = await world.agent("Ada"), world.denizen.plans
    await plans.set(ada, "Report", "Write it.", cron="0 17 * * FRI")
    await plans.set(ada, "Dentist", "Go there.", at="2026-01-06T10:00")
    await plans.set(ada, "Tea", "Drink it.", after="3 minutes")
    assert await next_runs(world, ada) == [
        datetime(2026, 1, 5, 9, 3, tzinfo=UTC),
        datetime(2026, 1, 6, 10, tzinfo=UTC),
        datetime(2026, 1, 9, 17, tzinfo=UTC),
    ]


async def test_the_next_plans_are_shown_with_their_times(world: World) -> None:
    """An agent sees when its next plans and timers are due.

    Docs: plans.md
    """
    ada = await world.agent("Ada", "Read it.")
    await world.denizen.plans.set(ada, "Daily Report", "Write it.", cron="0 9 * * *")
    await world.denizen.agents.trigger(ada, "CI", text="Hello")
    await world.run()
    assert (await world.newest_inbox(ada)).splitlines()[2] == "Your next plans: Daily Report at 2026-01-06 09:00 UTC"


async def test_the_next_time_of_a_plan_is_current(world: World) -> None:
    """After a recurring plan has run, its next time is shown.

    Docs: plans.md
    """
    ada = await world.agent("Ada", "Reported.", "Read it.")
    await world.denizen.plans.set(ada, "Daily Report", "Write it.", cron="0 9 * * *")
    await world.run_after(24 * HOUR)
    assert await next_runs(world, ada) == [datetime(2026, 1, 7, 9, tzinfo=UTC)]


async def test_an_agent_lists_and_deletes_its_plans(world: World) -> None:
    """An agent lists its plans, and deletes one by setting it without an instruction.

    Docs: tools.md
    """
    turns = call("read_entry", entry="plans"), [call("set_timer", name="Report", reason=""), reply("Gone.")], "Deleted."
    ada, noor = await world.agent("Ada", *turns), await world.person("Noor")
    await world.denizen.plans.set(ada, "Report", "Write it.", cron="0 9 * * *")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "No more reports", hall)
    await world.run()
    assert '"name":"Report","schedule":"recurring, cron: 0 9 * * *, UTC"' in (await world.history(ada))[2]
    assert await world.denizen.plans.list(ada) == []


async def test_plans_have_a_time_zone(world: World) -> None:
    """A plan runs in the time zone of its agent, or in its own.

    Docs: plans.md
    """
    ada = await world.agent("Ada", zone="Europe/Berlin")
    await world.denizen.plans.set(ada, "Here", "Write it.", cron="0 12 * * *")
    await world.denizen.plans.set(ada, "There", "Write it.", cron="0 12 * * *", zone="America/New_York")
    assert [each.hour for each in await next_runs(world, ada)] == [11, 17]


async def test_a_plan_survives_a_restart_and_fires_once(world: World) -> None:
    """Plans outlive the process. One that was due while the server was down fires once, and says how late it is.

    Docs: plans.md
    """
    ada = await world.agent("Ada")
    await world.denizen.plans.set(ada, "Report", "Write it.", cron="0 10 * * *")
    await world.close()
    world.clock.advance(49 * HOUR + 60)
    await world.open()
    await world.restart(ada=scripted("Reported late."))
    await world.run()
    assert (await world.newest_inbox(ada)).endswith("→ received just now, 2 days late")
    assert len(await world.cycles(ada)) == 1


async def test_plans_of_a_suspended_agent_wait(world: World) -> None:
    """Plans of a suspended agent wait, and fire once when it is resumed.

    Docs: plans.md
    """
    ada = await world.agent("Ada", "Reported.")
    await world.denizen.plans.set(ada, "Report", "Write it.", cron="0 * * * *")
    await world.denizen.agents.suspend(ada)
    await world.run_after(5 * HOUR)
    assert world.model(ada).requests == []
    await world.denizen.agents.resume(ada)
    await world.run()
    assert len(await world.cycles(ada)) == 1


async def test_a_heartbeat_wakes_an_agent_regularly(world: World) -> None:
    """The definition of an agent can have a heartbeat, with hours and days.

    Docs: plans.md
    """
    heartbeat = {"every_minutes": 30, "active_from": "09:00", "active_until": "12:00"}
    ada = await world.agent("Ada", *["Looked around."] * 9, heartbeat=heartbeat)
    for _ in range(8):
        await world.run_after(HOUR / 2)
    assert len(await world.cycles(ada)) == 5  # at half past nine, ten, …, half past eleven


async def test_an_agent_sets_its_goals(world: World) -> None:
    """An agent sets goals with a priority, and marks them as done; they are in its system prompt.

    Docs: plans.md
    """
    turns = (
        call("set_goals", text="Complete the Q4 analysis", priority="high"),
        call("set_goals", goal=1, status="done"),
    )
    ada, _, _ = await asked(world, *turns, reply("Done."), "Completed it.")
    (found,) = await world.denizen.goals.list(ada)
    assert (found.text, found.priority, found.status) == ("Complete the Q4 analysis", "high", "done")


async def test_an_agent_sets_its_memories(world: World) -> None:
    """An agent keeps facts as memories, each with a key; an empty text deletes one.

    Docs: plans.md
    """
    kept, gone = {"Sarah": "Prefers charts.", "Q4": "Due Feb 28."}, {"Q4": ""}
    turns = call("set_memories", memories=kept), call("set_memories", memories=gone), reply("Noted."), "Noted it."
    ada, _, _ = await asked(world, *turns)
    assert [(each.key, each.text) for each in await world.denizen.notes.list(ada)] == [("Sarah", "Prefers charts.")]


async def test_its_own_changes_are_not_told_again(world: World) -> None:
    """What an agent has set itself is in its history; it is not told of it as a change.

    Docs: plans.md
    """
    turns = [call("set_goals", text="Help Noor"), reply("I will.")], "Promised.", reply("Yes."), "Said yes."
    ada, noor, hall = await asked(world, *turns)
    await world.say(noor, "Really?", hall)
    await world.run()
    assert "[CHANGES]" not in await world.newest_inbox(ada)


async def test_a_wrong_time_is_refused(world: World) -> None:
    """A time that cannot be read is refused, and says what a time looks like; a model can try again.

    Docs: plans.md
    """
    ada, _, _ = await asked(world, call("set_timer", after="soon", reason="Look."), reply("When?"), "Asked when.")
    assert "soon" in (await world.history(ada))[2]
    with pytest.raises(InvalidInput):
        await world.denizen.plans.set(ada, "Report", "Write it.", cron="every day")
    assert await world.denizen.plans.list(ada) == []
