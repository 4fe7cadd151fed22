"""Restarts, crashes and several processes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from sqlalchemy import update

from denizen import Runtime, call, reply, scripted, skip, tool
from denizen.agents.residents import Pace
from denizen.checker import check_database
from denizen.errors import ModelRejected, NotFound
from denizen.ids import MessageId, new_id
from denizen.models.scripted import Turn
from denizen.spaces.directory import Space
from denizen.storage.copying import back_up
from denizen.storage.database import Tx, statement
from denizen.storage.schema import messages
from tests.agents import test_life
from tests.agents.test_life import Held, in_a_hall, until
from tests.crash.conftest import founded, once  # noqa: F401  fixtures
from tests.crash.killing import KILLED
from tests.crash.towns import SCENARIO, Founded
from tests.scenarios.test_restart import Stuck
from tests.world import Waiting, World, open_world

AT_ONCE = Pace(grace_seconds=0)
"""Does not wait for running cycles when the server stops: they are cut off, as by a crash."""


async def cut_off(world: World, *turns: Turn):
    """Ada, who was cut off while her model thought about what to do after these turns."""
    stuck = Stuck()
    ada, noor, hall = await in_a_hall(world, *turns, stuck)
    await world.say(noor, "Help!", hall)
    async with world.denizen.living():
        await stuck.begun.wait()
    return ada, noor, hall


async def test_a_message_that_waits_is_answered_after_a_restart(world: World) -> None:
    """After a restart, agents with waiting events are woken at once.

    Docs: crashes.md
    """
    _, noor, hall = await in_a_hall(world)
    await world.say(noor, "Are you there?", hall)
    await world.restart(ada=scripted(reply("Still here."), "Told Noor."))
    await world.run()
    assert (await world.transcript(hall))[-1] == "Ada: Still here."


async def test_an_agent_without_events_sleeps_after_a_restart(world: World) -> None:
    """After a restart, agents without events sleep: nothing is loaded, and no model is called.

    Docs: agents.md
    """
    ada, _, _ = await in_a_hall(world)
    await world.restart()
    await world.run()
    assert await world.denizen.agents.status(ada) == "sleeping"
    assert (await world.denizen.minds.inspect(ada)).holder is None
    assert world.model(ada).requests == []


async def test_a_cycle_continues_at_its_step_after_a_crash() -> None:
    """A cycle that a crash interrupts continues at the step it had reached: nothing is said or asked twice.

    Docs: crashes.md
    """
    async with open_world("sqlite://", pace=AT_ONCE) as world:
        ada, _, hall = await cut_off(world, reply("One moment."))
        world.denizen.models.register("python:ada", scripted(reply("Done."), "Helped Noor."))
        await world.run()
        assert (await world.transcript(hall))[1:] == ["Ada: One moment.", "Ada: Done."]
        assert await world.endings(ada) == [(1, "acted", "answered", "Helped Noor.")]


async def test_events_of_an_interrupted_cycle_are_not_lost() -> None:
    """Events that a cycle had taken when the process crashed are not lost.

    Docs: crashes.md
    Differs: no recovery is needed. An event ends only in the transaction that ends its cycle.
    """
    async with open_world("sqlite://", pace=AT_ONCE) as world:
        ada, _, _ = await cut_off(world)
        assert [each.text for each in await world.waiting(ada)] == ["Help!"]
        world.denizen.models.register("python:ada", scripted(reply("Here."), "Helped Noor."))
        await world.run()
        assert await world.waiting(ada) == []


@pytest.mark.parametrize("founded", ["sqlite"], indirect=True)
def test_a_killed_process_loses_nothing(founded: Founded, tmp_path: Path) -> None:  # noqa: F811
    """A process that is killed in the middle of its work loses nothing and does nothing twice.

    Docs: crashes.md
    """
    with founded.copy(tmp_path / "town") as town:
        assert town.live(SCENARIO, kill=("tool.called", 1)) == KILLED
        assert town.live(SCENARIO) == 0
        assert town.verdict().wrong == []


async def test_an_outside_tool_is_not_called_twice_after_a_crash() -> None:
    """If the process died during a call of an outside tool, the tool is not called again: the model is told that the
    outcome is unknown.

    Docs: tools.md
    """
    stuck, called = Held(), list[str]()

    @tool
    async def pay() -> str:
        """Pay."""
        called.append("pay")
        stuck.begun.set()
        await stuck.go_on.wait()
        return "paid"

    async with open_world("sqlite://", pace=AT_ONCE) as world:
        ada, noor, hall = await in_a_hall(world, call("pay"), reply("I do not know."), "Told Noor.", tools=[pay])
        await world.say(noor, "Pay!", hall)
        async with world.denizen.living():
            await stuck.begun.wait()
        await world.run()
        assert called == ["pay"]
        assert "unknown" in (await world.history(ada))[2]


async def test_a_failed_cycle_leaves_no_trace(world: World) -> None:
    """If a cycle fails before it has changed anything, it is undone, and its events wait for the next try.

    Docs: cycles.md
    """
    ada, noor, hall = await in_a_hall(world, ModelRejected("no"), reply("Yes."), "Answered.")
    await world.say(noor, "Hello", hall)
    await world.run()
    assert (await world.history(ada), await world.waiting(ada)) == ([], [Waiting("Hello", "pending", 1, 1)])
    await world.run_after(1)
    assert (await world.transcript(hall))[-1] == "Ada: Yes."


async def test_an_event_that_always_fails_is_set_aside(world: World) -> None:
    """After five failures, with longer and longer pauses, an event is set aside and listed.

    Docs: inbox.md
    """
    ada, noor, hall = await in_a_hall(world, *[ModelRejected("no")] * 5)
    await world.say(noor, "Hm?", hall)
    for seconds in (0, 1, 4, 15, 60):
        assert await world.denizen.minds.dead_events(ada) == []
        await world.run_after(seconds)
    assert [each.text for each in await world.denizen.minds.dead_events(ada)] == ["Hm?"]


async def test_an_event_that_was_set_aside_is_tried_again(world: World) -> None:
    """A person can put an event that was set aside back into the inbox.

    Docs: inbox.md
    """
    ada, noor, hall = await in_a_hall(world, *[ModelRejected("no")] * 5, reply("Now I see."), "Answered.")
    posted = await world.say(noor, "Hm?", hall)
    for seconds in (0, 1, 4, 15, 60):
        await world.run_after(seconds)
    await world.denizen.minds.requeue(ada, posted.id)
    await world.run()
    assert (await world.transcript(hall))[-1] == "Ada: Now I see."


async def test_a_message_is_posted_once(world: World) -> None:
    """A client that posts again with the same id, because it got no answer, posts one message.

    Docs: spaces.md
    """
    ada, noor, hall = await in_a_hall(world)
    id = MessageId(new_id())
    for _ in range(2):
        await world.say(noor, "Hello", hall, id=id)
    assert (await world.transcript(hall), await world.inbox(ada)) == (["Noor: Hello"], ["Hello"])


async def test_nothing_is_sent_again_after_restarts(world: World) -> None:
    """However often a server is restarted, what was answered is not answered again.

    Docs: crashes.md
    """
    _, noor, hall = await in_a_hall(world, reply("Hello."), "Greeted Noor.")
    await world.say(noor, "Hi", hall)
    await world.run()
    for _ in range(3):
        await world.restart(ada=scripted())
        await world.run()
    assert await world.transcript(hall) == ["Noor: Hi", "Ada: Hello."]


async def test_a_running_cycle_is_finished_before_the_server_stops(world: World) -> None:
    """A server that is told to stop lets running cycles finish; what waits is answered after the next start.

    Docs: agents.md
    """
    held = Held(reply("Just in time."))
    ada, noor, hall = await in_a_hall(world, held, "Answered.")
    await world.say(noor, "One", hall)
    async with world.denizen.living():
        await held.begun.wait()
        await world.say(noor, "Two", hall)
        held.go_on.set()
    assert (await world.transcript(hall))[2:] == ["Ada: Just in time."]
    assert await world.inbox(ada) == ["Two"]


async def test_one_process_runs_an_agent(ready_url: str) -> None:
    """Several processes on one database share the agents: each agent is run by one process at a time.

    Docs: crashes.md
    Differs: the lock is a lease in the database, checked with each write. A lock in Redis could expire unnoticed while
    its holder still writes.
    """
    async with open_world(ready_url) as one, open_world(ready_url, clock=one.clock) as two:
        held = Held(reply("It is I."))
        _, noor, hall = await in_a_hall(one, held, "Answered.")
        two.denizen.models.register("python:ada", scripted(reply("No, it is I!"), "Answered."))
        await one.say(noor, "Who is there?", hall)
        async with one.denizen.living():
            await held.begun.wait()
            await two.run()
            held.go_on.set()
            await one.run()
        assert (await one.transcript(hall))[1:] == ["Ada: It is I."]


async def test_another_process_takes_over_after_thirty_seconds(ready_url: str) -> None:
    """A process that no longer answers loses its agents after 30 seconds; another one takes over.

    Docs: crashes.md
    """
    async with open_world(ready_url, pace=AT_ONCE) as gone, open_world(ready_url) as world:
        held = Held()
        _, noor, hall = await in_a_hall(gone, held)
        world.denizen.models.register("python:ada", scripted(reply("I took over."), "Answered."))
        await gone.say(noor, "Hello?", hall)
        async with gone.denizen.living():
            await held.begun.wait()
            world.clock.advance(29)
            await world.run()
            assert len(await world.transcript(hall)) == 1
            world.clock.advance(2)
            await world.run()
        assert (await world.transcript(hall))[1:] == ["Ada: I took over."]


async def test_a_process_that_was_away_cannot_write(ready_url: str) -> None:
    """A process that was frozen and comes back cannot write for an agent that another process has taken over.

    Docs: crashes.md
    """
    async with open_world(ready_url) as frozen, open_world(ready_url) as fresh:
        too_late, in_time = Held(reply("Too late.")), Held(reply("Done."))
        _, noor, hall = await in_a_hall(frozen, too_late, "Helped Noor.")
        fresh.denizen.models.register("python:ada", scripted(in_time, "Helped Noor."))
        await frozen.say(noor, "Help!", hall)
        async with frozen.denizen.living():
            await too_late.begun.wait()
            fresh.clock.advance(31)
            async with fresh.denizen.living():
                await in_time.begun.wait()
                too_late.go_on.set()
                await frozen.run()
                in_time.go_on.set()
                await fresh.run()
        assert (await fresh.transcript(hall))[1:] == ["Ada: Done."]


async def test_a_lost_wake_up_delays_and_loses_nothing(ready_url: str) -> None:
    """If a wake-up signal is lost, for example because Redis is down, a sweep finds the event.

    Docs: bus.md
    """
    async with open_world(ready_url) as world, open_world(ready_url, clock=world.clock) as other:
        _, noor, hall = await in_a_hall(world, reply("Yes."), "Answered.")
        async with world.denizen.living():
            await world.run()
            await other.denizen.spaces.post(hall, noor, "Ada?")  # this process hears nothing of it
            world.clock.advance(2)
            await until(lambda: answered(world, hall))


async def answered(world: World, hall: Space) -> bool:
    return "Ada: Yes." in await world.transcript(hall)


async def test_the_database_can_be_checked(world: World) -> None:
    """A check reads the whole database and names everything that contradicts the guarantees.

    Docs: crashes.md
    """
    _, noor, hall = await in_a_hall(world, reply("Hi."), "Greeted.", skip("nothing more"))
    for text in ("Hello", "Bye"):
        await world.say(noor, text, hall)
        await world.run()
    assert await check_database(world.denizen.db) == []


async def test_a_changed_text_is_found(world: World) -> None:
    """A message or log entry that something other than Denizen has changed is found by its digest.

    Docs: check.md
    """
    _, noor, hall = await in_a_hall(world, reply("Hi."), "Greeted.")
    await world.say(noor, "Hello", hall)
    await world.run()
    await world.denizen.db.write(_change_text)
    assert [each.invariant for each in await check_database(world.denizen.db)] == [2]


def _change_text(tx: Tx) -> None:
    tx.run(statement(update(messages).where(messages.c.text == "Hello").values(text="Hullo")))


async def test_a_database_that_is_older_than_it_was_is_noticed(tmp_path: Path) -> None:
    """A lost write-ahead log, or an older file in the place of the database, is told at the start.

    Docs: storage.md
    """
    url, older = f"sqlite:///{tmp_path}/denizen.db", tmp_path / "older"
    async with Runtime(url) as denizen:
        noor = await denizen.people.create("Noor")
        hall = await denizen.spaces.create("Hall", [noor])
        back_up(url, older)
        await denizen.spaces.post(hall, noor, "Hello")
    shutil.copyfile(older, tmp_path / "denizen.db")
    async with Runtime(url) as denizen:
        assert "is older than it was: 1 message in 1 space" in (denizen.db.missing or "")


async def test_a_deleted_agent_is_dead(world: World) -> None:
    """A deleted agent gets no events and is not woken.

    Docs: agents.md
    Differs: its history stays, for the people who talked with it. `forget` removes it.
    """
    ada, noor, hall = await in_a_hall(world, reply("Hello."), "Greeted Noor.")
    await world.say(noor, "Hi", hall)
    await world.run()
    await world.denizen.agents.delete(ada)
    await world.say(noor, "Ada?", hall)
    await world.run()
    assert await world.denizen.agents.status(ada) == "dead"
    assert (await world.inbox(ada), len(await world.history(ada))) == ([], 4)
    with pytest.raises(NotFound):
        await world.denizen.agents.resume(ada)


async def test_deleting_an_agent_ends_what_it_is_doing(world: World) -> None:
    """An agent that is deleted while it thinks stops; its last cycle ends with a note.

    Docs: agents.md
    """
    await test_life.test_deleting_an_agent_ends_its_open_cycle_with_a_note(world)
