"""Being alive: statuses, suspension, death, warmth, shutting down, and that only one process thinks for an agent."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage
from sqlalchemy import literal_column, update

from denizen import ManualClock, call, failpoints, reply, scripted, skip, tool
from denizen.agents import registry
from denizen.agents.pace import Pace
from denizen.agents.registry import Agent
from denizen.bus.port import Frame
from denizen.bus.streams import agent_topic
from denizen.consciousness import lease as leases
from denizen.errors import InvalidInput, ModelOverloaded, ModelRejected, NotFound
from denizen.ids import AgentId, new_id
from denizen.memory.settings import MemoryOptions
from denizen.models.scripted import Info, Turn
from denizen.storage.database import Tx, statement
from denizen.storage.postgresql import PostgresqlDatabase
from denizen.storage.schema import agents
from tests.world import UNHURRIED, Waiting, World, in_a_hall, listening, open_world


class Held:
    """A turn that begins and goes on only when it is let."""

    def __init__(self, then: Turn = "unreachable") -> None:
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()
        self._then = then

    async def __call__(self, _messages: list[ModelMessage], _info: Info) -> Turn:
        self.begun.set()
        await self.go_on.wait()
        return self._then


async def until(true: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while not await true():  # each look is a read of the database, so that others get their turn
            pass


async def is_held(world: World, agent: Agent) -> bool:
    return await world.denizen.db.read(leases.is_held, agent.id)


# Status


async def test_an_agent_sleeps_unless_it_thinks(world: World):
    """ "Thinking…" stayed on the screen after an error elsewhere."""
    held = Held(ModelRejected("no"))
    ada, noor, hall = await in_a_hall(world, held)
    assert await world.denizen.agents.status(ada) == "sleeping"
    await world.say(noor, "Hi", hall)
    assert await world.denizen.agents.status(ada) == "sleeping"
    async with world.denizen.living():
        await held.begun.wait()
        assert await world.denizen.agents.status(ada) == "alive"
        held.go_on.set()
        await world.run()
        assert await world.denizen.agents.status(ada) == "sleeping"


async def test_alive_expires_with_the_lease(ready_url: str):
    """Nobody thinks for ever: if the process is gone, its lease runs out, and what people see says so."""
    async with open_world(ready_url) as world, open_world(ready_url) as gone:
        held = Held()
        ada, noor, hall = await in_a_hall(gone, held)
        await gone.say(noor, "Hi", hall)
        async with gone.denizen.living():
            await held.begun.wait()
            assert await world.denizen.agents.status(ada) == "alive"
            world.clock.advance(31)
            assert await world.denizen.agents.status(ada) == "sleeping"
            held.go_on.set()


async def test_a_suspended_agent_hears_everything_and_thinks_nothing(world: World):
    ada, noor, hall = await in_a_hall(world, reply("I am back."), "Came back.")
    await world.denizen.agents.suspend(ada)
    await world.say(noor, "Hi", hall)
    await world.run()
    assert await world.denizen.agents.status(ada) == "suspended"
    assert await world.inbox(ada) == ["Hi"]

    await world.denizen.agents.resume(ada)
    await world.run()
    assert await world.denizen.agents.status(ada) == "sleeping"
    assert await world.transcript(hall) == ["Noor: Hi", "Ada: I am back."]


async def test_suspended_in_the_middle_of_a_thought_and_resumed_it_repeats_nothing(world: World):
    held = Held(reply("This is thought in vain."))
    ada, noor, hall = await in_a_hall(world, reply("One moment."), held, reply("Done."), "Helped Noor.")
    await world.say(noor, "Help!", hall)
    async with world.denizen.living():
        await held.begun.wait()
        await world.denizen.agents.suspend(ada)
        assert await world.denizen.agents.status(ada) == "suspended"
        held.go_on.set()
        await world.run()
        assert await world.transcript(hall) == ["Noor: Help!", "Ada: One moment."]
        assert await world.waiting(ada) == [Waiting("Help!", "taken")]

        await world.denizen.agents.resume(ada)
        await world.run()

    assert await world.transcript(hall) == ["Noor: Help!", "Ada: One moment.", "Ada: Done."]
    assert (await world.history(ada))[1:] == [
        'response: send_message {"text":"One moment."}',
        'results: send_message → {"success":true,"messageId":"<Hall 2>"}',
        'response: send_message {"text":"Done."}',
        'results: send_message → {"success":true,"messageId":"<Hall 3>"}',
        "response: Helped Noor.",
    ]


@pytest.mark.parametrize("said", [0, 1])
async def test_being_suspended_again_and_again_is_no_failure(world: World, said: int):
    """Interrupted work is not failed work, whether something was said before or not."""
    holds = [Held() for _ in range(6)]
    ada, noor, hall = await in_a_hall(world, *[reply("One moment.")] * said, *holds, reply("Done."), "Helped Noor.")
    await world.say(noor, "Help!", hall)
    async with world.denizen.living():
        for held in holds:
            await held.begun.wait()
            await world.denizen.agents.suspend(ada)
            held.go_on.set()
            await world.run()
            await world.denizen.agents.resume(ada)
        await world.run()
    assert await world.transcript(hall) == ["Noor: Help!", *["Ada: One moment."] * said, "Ada: Done."]
    assert await world.endings(ada) == [(1, "acted", "answered", "Helped Noor.")]


async def test_a_deleted_agent_is_dead_and_its_past_stays(world: World):
    ada, noor, hall = await in_a_hall(world, reply("Hello."), "Greeted Noor.")
    await world.say(noor, "Hi", hall)
    await world.run()
    past = await world.history(ada)

    await world.denizen.agents.delete(ada)
    await world.say(noor, "Ada?", hall)
    await world.run()

    assert await world.denizen.agents.status(ada) == "dead"
    assert await world.inbox(ada) == []
    assert await world.history(ada) == past
    assert await world.transcript(hall) == ["Noor: Hi", "Ada: Hello.", "Noor: Ada?"]
    for change in (world.denizen.agents.delete, world.denizen.agents.suspend, world.denizen.agents.resume):
        with pytest.raises(NotFound):
            await change(ada)


async def test_deleting_an_agent_ends_its_open_cycle_with_a_note(world: World):
    """Every call has its result, so that whoever reads this past can."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    @tool
    async def dig() -> str:
        """Dig for a long time."""
        begun.set()
        await go_on.wait()
        return "gold"

    ada, noor, hall = await in_a_hall(world, [reply("Digging."), call("dig")], tools=[dig])
    await world.say(noor, "Dig!", hall)
    async with world.denizen.living():
        await begun.wait()
        await world.denizen.agents.delete(ada)
        go_on.set()
        await world.run()

    assert (await world.history(ada))[1:] == [
        'response: send_message {"text":"Digging."}\ndig {}',
        'results: send_message → {"success":true,"messageId":"<Hall 2>"}\ndig → Not finished: this agent was deleted.',
        "note: [NOTE] This agent was deleted. Its last cycle ended here.",
    ]
    (cycle,) = await world.cycles(ada)
    assert (cycle.number, cycle.outcome, cycle.stop_reason, cycle.summary, cycle.steps) == (
        1,
        "failed",
        "deleted",
        "Deleted.",
        1,
    )
    assert await world.waiting(ada) == []
    assert await world.denizen.agents.status(ada) == "dead"


async def test_an_agent_that_is_not_there_is_not_found(world: World):
    nobody = AgentId(new_id())
    for ask in (
        world.denizen.agents.status,
        world.denizen.agents.get,
        world.denizen.agents.suspend,
        world.denizen.agents.delete,
        world.denizen.agents.edit,
    ):
        with pytest.raises(NotFound):
            await ask(nobody)


# Definition


async def test_an_edit_changes_what_it_names_and_nothing_else(world: World):
    ada = await world.agent("Ada", instructions="Be brief.", cycle={"max_steps": 3})
    edited = await world.denizen.agents.edit(ada, instructions="Be kind.")
    assert (edited.definition.instructions, edited.definition.cycle.max_steps, edited.version) == ("Be kind.", 3, 2)
    assert await world.denizen.agents.get(ada) == edited


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"cycle": {"max_steps": 0}}, "cycle.max_steps"),
        ({"window": {"max_tokens": 10}}, "window.max_tokens"),
        ({"colour": "blue"}, "colour"),
        ({"instructions": "x" * 200_000}, "instructions"),
        ({"model": ""}, "model"),
        ({"cycle": {"silent_reply": "shout"}}, "cycle.silent_reply"),
    ],
)
async def test_a_wrong_definition_is_refused_with_the_name_of_the_field(
    small_world: World, wrong: dict[str, Any], told: str
):
    ada = await small_world.agent("Ada")
    with pytest.raises(InvalidInput, match=told):
        await small_world.denizen.agents.edit(ada, **wrong)
    given: dict[str, Any] = {"model": "python:ada", **wrong}
    with pytest.raises(InvalidInput, match=told):
        await small_world.denizen.agents.create("Bee", **given)
    assert (await small_world.denizen.agents.get(ada)).version == 1


# Warmth


async def test_an_agent_stays_warm_for_a_while_and_then_lets_go(world: World):
    ada, noor, hall = await in_a_hall(world, *[reply("Yes."), "Answered."] * 2)
    async with world.denizen.living():
        await world.say(noor, "one", hall)
        await world.run()
        assert await is_held(world, ada)
        first = await world.denizen.db.read(leases.epoch_of, ada.id)

        world.clock.advance(25)
        await world.say(noor, "two", hall)
        await world.run()
        assert await world.denizen.db.read(leases.epoch_of, ada.id) == first

        world.clock.advance(60)
        await until(lambda: _not(is_held(world, ada)))
    assert await world.transcript(hall) == ["Noor: one", "Ada: Yes.", "Noor: two", "Ada: Yes."]


async def _not(asked: Awaitable[bool]) -> bool:
    return not await asked


async def test_whoever_let_go_is_woken_like_anyone_who_sleeps(world: World):
    ada, noor, hall = await in_a_hall(world, *[reply("Yes."), "Answered."] * 2)
    async with world.denizen.living():
        await world.say(noor, "one", hall)
        await world.run()
        world.clock.advance(61)
        await until(lambda: _not(is_held(world, ada)))
        await world.say(noor, "two", hall)
        await world.run()
    assert await world.transcript(hall) == ["Noor: one", "Ada: Yes.", "Noor: two", "Ada: Yes."]


async def test_a_message_wakes_a_living_house_without_waiting_for_a_sweep(world: World):
    """The clock stands still, so no sweep comes: the hint alone wakes."""
    _ada, noor, hall = await in_a_hall(world, reply("Yes."), "Answered.")
    async with world.denizen.living():
        await world.say(noor, "Ada?", hall)
        await until(lambda: _has(world.transcript(hall), "Ada: Yes."))


async def _has(asked: Awaitable[list[str]], line: str) -> bool:
    return line in await asked


@pytest.mark.parametrize(
    ("options", "cycle"),
    [
        ({}, {}),
        ({"memory": MemoryOptions()}, {}),
        ({"presets": Path("missing", "presets.json")}, {}),
        ({}, {"triage": {"skip_when": {"shorter_than": 10}}}),
    ],
    ids=["plain", "with memory", "with profiles", "with triage"],
)
async def test_whoever_rests_has_its_cycle_opened_in_the_commit_of_the_message(
    ready_sqlite_url: str, options: dict[str, Any], cycle: dict[str, Any]
):
    """One commit less: the message, its event and the open cycle are durable together."""
    async with open_world(ready_sqlite_url, **options) as world:
        held = Held("Answered.")
        ada, noor, hall = await in_a_hall(world, reply("Yes."), "Answered.", held, cycle=cycle)
        async with world.denizen.living():
            await world.say(noor, "one", hall)
            await world.run()
            before = world.denizen.db.commits
            await world.say(noor, "two", hall)
            assert world.denizen.db.commits == before + 1
            assert await world.waiting(ada) == [Waiting("two", "taken")]
            await held.begun.wait()
            held.go_on.set()
            await world.run()


async def test_so_it_is_where_triage_has_just_skipped_what_was_said(ready_sqlite_url: str):
    async with open_world(ready_sqlite_url) as world:
        held = Held("Answered.")
        ada, noor, hall = await in_a_hall(
            world, reply("Yes."), "Answered.", held, cycle={"triage": {"skip_when": {"shorter_than": 10}}}
        )
        await world.denizen.spaces.join(hall, await world.person("Bert"))
        async with world.denizen.living():
            await world.say(noor, "@ada Are you there?", hall)
            await world.run()
            await world.say(noor, "Morning!", hall)
            await world.run()
            assert ("skip", "triage: rule") in await world.ledger(ada)
            before = world.denizen.db.commits
            await world.say(noor, "@ada And now?", hall)
            assert world.denizen.db.commits == before + 1
            assert await world.waiting(ada) == [Waiting("@ada And now?", "taken")]
            await held.begun.wait()
            held.go_on.set()
            await world.run()


async def test_a_turn_waits_for_postgresql_a_dozen_times(ready_postgres_url: str):
    """A message in, two model calls and a tool call: what is written, and what is read together, is one round trip."""
    async with open_world(ready_postgres_url) as world:
        ada, noor, hall = await in_a_hall(world, *[reply("Yes."), "Answered."] * 3)
        async with world.denizen.living(), world.denizen.bus.subscribe(agent_topic(ada.id)) as life:
            for said in ("one", "two"):
                await world.say(noor, said, hall)
                await world.run()
            db = world.denizen.db
            assert isinstance(db, PostgresqlDatabase)
            before, slept = db.round_trips, 0
            await world.say(noor, "three", hall)
            async for frame in life:
                slept += isinstance(frame, Frame) and frame.payload.get("status") == "sleeping"
                if slept == 3:
                    break
            assert db.round_trips - before <= 12


async def test_messages_that_come_together_all_reach_whoever_rests(ready_url: str):
    """The clock stands still, so no sweep comes: whatever the first of them opens, no hint is lost."""
    async with open_world(ready_url) as world:
        heard = list[str]()

        def read(messages: list[ModelMessage], _info: Info) -> Turn:
            heard.append(str(messages[-1]))
            return skip()

        _ada, noor, hall = await in_a_hall(world, *[read] * 60)
        async with world.denizen.living():
            for turn in range(20):
                await asyncio.gather(*(world.say(noor, f"{turn}-{number}.", hall) for number in range(3)))
                names = [f"{turn}-{number}." for number in range(3)]
                await until(lambda names=names: _all_in(names, heard))


async def _all_in(names: list[str], texts: list[str]) -> bool:
    await asyncio.sleep(0)
    return all(any(name in text for text in texts) for name in names)


async def test_a_message_is_posted_although_its_agent_was_taken_over_while_it_rested(ready_sqlite_url: str):
    """The cycle that would have been opened with it is refused; the message stays, and the new holder reads it."""
    async with open_world(ready_sqlite_url) as world, open_world(ready_sqlite_url, clock=world.clock) as other:
        ada, noor, hall = await in_a_hall(world, *[reply("Yes."), "Answered."] * 2)
        async with world.denizen.living():
            await world.say(noor, "one", hall)
            await world.run()
            await other.denizen.db.write(leases.seize, ada.id)
            await world.say(noor, "two", hall)
            await world.run()
        assert await world.transcript(hall) == ["Noor: one", "Ada: Yes.", "Noor: two", "Ada: Yes."]


async def test_a_sweep_finds_what_hints_missed(ready_url: str):
    """Losing every hint delays work and loses none: another process delivers, and nobody tells this one."""
    async with open_world(ready_url) as world, open_world(ready_url, clock=world.clock) as other:
        _ada, noor, hall = await in_a_hall(world, reply("Yes."), "Answered.")
        async with world.denizen.living():
            await other.denizen.spaces.post(hall, noor, "Ada?")
            assert await world.transcript(hall) == ["Noor: Ada?"]
            world.clock.advance(2)
            await until(lambda: _has(world.transcript(hall), "Ada: Yes."))


async def test_running_until_idle_does_not_wait_for_what_is_put_off(world: World):
    ada, noor, hall = await in_a_hall(world, ModelRejected("no"), reply("Yes."), "Answered.")
    await world.say(noor, "Ada?", hall)
    await world.run()
    await world.run()
    assert await world.waiting(ada) == [Waiting("Ada?", "pending", 1, 1)]
    assert len(world.model(ada).requests) == 1


# Shutting down


async def test_a_cycle_under_way_is_finished_when_the_house_closes_and_the_rest_waits(world: World):
    held = Held(reply("Just in time."))
    ada, noor, hall = await in_a_hall(world, held, "Answered.", skip())
    await world.say(noor, "one", hall)
    async with world.denizen.living():
        await held.begun.wait()
        await world.say(noor, "two", hall)
        asyncio.get_running_loop().call_soon(held.go_on.set)
    assert await world.transcript(hall) == ["Noor: one", "Noor: two", "Ada: Just in time."]
    assert await world.endings(ada) == [(1, "acted", "answered", "Answered.")]
    assert await world.waiting(ada) == [Waiting("two", "pending")]
    assert not await is_held(world, ada)


@pytest.mark.parametrize("said", [0, 1])
async def test_a_cycle_that_is_handed_back_again_and_again_is_no_failure(ready_url: str, said: int):
    async with open_world(ready_url, pace=Pace(grace_seconds=0)) as world:
        holds = [Held() for _ in range(6)]
        ada, noor, hall = await in_a_hall(world, *[reply("One moment.")] * said, *holds, reply("Done."), "Helped.")
        await world.say(noor, "Help!", hall)
        for held in holds:
            async with world.denizen.living():
                await held.begun.wait()
            assert not await is_held(world, ada)
            assert [(each.attempts, each.seconds) for each in await world.waiting(ada)] == [(0, 0)]
        await world.run()
        assert await world.transcript(hall) == ["Noor: Help!", *["Ada: One moment."] * said, "Ada: Done."]
        assert await world.endings(ada) == [(1, "acted", "answered", "Helped.")]


async def test_whoever_drains_begins_nothing_and_says_so(world: World):
    held = Held(reply("Just in time."))
    ada, noor, hall = await in_a_hall(world, held, "Answered.", skip())
    bee = await world.agent("Bee", reply("Too early."))
    attic = await world.space("Attic", noor, bee)
    await world.say(noor, "one", hall)
    async with world.denizen.living() as residents:
        await held.begun.wait()
        assert await world.denizen.missing() == []
        draining = asyncio.ensure_future(world.denizen.drain())
        await until(lambda: _lacks(world, "draining"))
        await world.say(noor, "two", hall)
        await world.say(noor, "Anyone?", attic)
        await residents.sweep()
        held.go_on.set()
        await draining
        assert await world.transcript(hall) == ["Noor: one", "Noor: two", "Ada: Just in time."]
        assert await world.waiting(ada) == [Waiting("two", "pending")]
        assert await world.waiting(bee) == [Waiting("Anyone?", "pending")]
        assert not await is_held(world, ada)


async def _lacks(world: World, what: str) -> bool:
    return what in await world.denizen.missing()


@pytest.mark.parametrize("early", [False, True])
async def test_whoever_is_hurried_hands_back_at_once_what_it_was_doing(ready_url: str, early: bool):
    """Only the hurry ends the grace."""
    async with open_world(ready_url, pace=Pace(grace_seconds=1_000_000)) as world:
        held = Held()
        ada, noor, hall = await in_a_hall(world, reply("One moment."), held, reply("Done."), "Helped.")
        await world.say(noor, "Help!", hall)
        async with world.denizen.living():
            await held.begun.wait()
            if early:
                world.denizen.hurry()
            else:
                asyncio.get_running_loop().call_soon(world.denizen.hurry)
            await world.denizen.drain()
            assert not await is_held(world, ada)
        await world.restart()
        await world.run()
        assert await world.transcript(hall) == ["Noor: Help!", "Ada: One moment.", "Ada: Done."]
        assert await world.endings(ada) == [(1, "acted", "answered", "Helped.")]


@pytest.mark.parametrize("early", [False, True])
async def test_a_stop_does_not_wait_for_an_agent_that_waits_to_ask_its_model_again(ready_url: str, early: bool):
    """Nothing would be finished in that time. Its cycle is handed back, which counts as no attempt."""
    async with open_world(ready_url, pace=replace(UNHURRIED, grace_seconds=1_000_000)) as world:
        held = Held(ModelOverloaded("busy"))
        ada, noor, hall = await in_a_hall(world, reply("One moment."), held, reply("Done."), "Helped.")
        await world.say(noor, "Help!", hall)
        async with world.denizen.living():
            await held.begun.wait()
            if early:
                asyncio.get_running_loop().call_soon(held.go_on.set)
            else:
                held.go_on.set()
                await world.clock.sleeper(3)
            await world.denizen.drain()
            assert not await is_held(world, ada)
        await world.restart()
        await world.run()
        assert await world.transcript(hall) == ["Noor: Help!", "Ada: One moment.", "Ada: Done."]
        assert await world.endings(ada) == [(1, "acted", "answered", "Helped.")]
        assert "failure" not in [kind for kind, _ in await world.ledger(ada)]


class SweepersClock(ManualClock):
    """It says when the house is about to sweep again."""

    def __init__(self) -> None:
        super().__init__()
        self.sweeps: asyncio.Queue[float] = asyncio.Queue()

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        task = asyncio.current_task()
        if task is not None and task.get_name() == "agents: sweep":
            self.sweeps.put_nowait(seconds)
        return await super().wait(event, seconds)


async def test_what_is_wrong_with_one_row_does_not_end_everyones_life(ready_sqlite_url: str):
    clock = SweepersClock()
    async with open_world(ready_sqlite_url, clock=clock) as world:
        ada, noor, hall = await in_a_hall(world, reply("Still here."), "Answered.")
        ben = await world.agent("Ben")
        attic = await world.space("Attic", noor, ben)
        async with world.denizen.living():
            await world.denizen.db.write(_spoil, ben.id)
            await world.say(noor, "Hi", attic)
            clock.advance(await clock.sweeps.get())
            await clock.sweeps.get()
            await world.say(noor, "Hi", hall)
            await until(lambda: _has(world.transcript(hall), "Ada: Still here."))
        assert await world.denizen.agents.status(ada) == "sleeping"


def _spoil(tx: Tx, agent_id: AgentId) -> None:
    held = {"status": "suspended", "held_by": "agent:day", "held_until": literal_column("'no number'")}
    tx.run(statement(update(agents).where(agents.c.id == agent_id).values(**held)))


# Several processes


async def test_leases_that_a_defect_keeps_from_being_renewed_end_nobodys_life(small_world: World):
    """It ended the renewal, and with that all the lives of the process, which went on as if it had none."""
    world = small_world
    _, noor, hall = await in_a_hall(world, reply("Here."), "Answered.", reply("Still here."), "Answered.")
    async with world.denizen.living():
        await world.say(noor, "Hi", hall)
        await world.run()
        with failpoints.recording() as passed:
            failpoints.arm("commit:renew", Defect())
            try:
                while passed.count("commit:renew") < 2:
                    world.clock.advance(10)
                    await world.denizen.db.read(leases.epoch_of, AgentId(""))
            finally:
                failpoints.disarm()
        await world.say(noor, "Still there?", hall)
        await world.run()
    assert (await world.transcript(hall))[-1] == "Ada: Still here."


class Defect:
    """Raises when it is first reached."""

    def __init__(self) -> None:
        self._reached = False

    def __call__(self) -> None:
        if not self._reached:
            self._reached = True
            raise RuntimeError("a defect")


async def test_an_agent_whose_time_zone_is_unknown_here_lives_by_utc(small_world: World):
    """Another machine knew the zone. Its owner has to name one that exists before anything else can be edited."""
    world = small_world
    ada, noor, hall = await in_a_hall(world, reply("Yes?"), "Answered.", zone="Asia/Tokyo")
    move = update(agents).values(definition=_define_in_another_zone(ada), zone="Mars/Olympus")
    await world.denizen.db.write(lambda tx: tx.run(statement(move)))
    await world.say(noor, "Hi", hall)
    await world.run()
    assert await world.transcript(hall) == ["Noor: Hi", "Ada: Yes?"]
    assert (await world.newest_inbox(ada)).splitlines()[1].endswith(" UTC")
    assert [(each.agent.name, each.status) for each in await world.denizen.db.read(_living, ada)] == [
        ("Ada", "sleeping")
    ]
    with pytest.raises(InvalidInput, match="Unknown time zone 'Mars/Olympus'"):
        await world.denizen.agents.edit(ada, instructions="Be kind.")
    await world.denizen.agents.edit(ada, zone="Europe/Berlin")


def _define_in_another_zone(agent: Agent) -> str:
    return agent.definition.model_dump_json(exclude_defaults=True).replace("Asia/Tokyo", "Mars/Olympus")


def _living(tx: Tx, agent: Agent) -> list[registry.AgentListing]:
    return registry.living_after(tx, agent.entity.organization_id, "", limit=10)


async def test_taking_a_lease_does_not_wait_for_a_transaction_that_holds_it(ready_postgres_url: str):
    """That transaction may belong to a process that was stopped, and whoever waits for it does nothing else."""
    async with open_world(ready_postgres_url) as world:
        ada, _, _ = await in_a_hall(world)
        suspended, go_on = asyncio.Event(), threading.Event()
        loop = asyncio.get_running_loop()

        def suspend(tx: Tx) -> None:
            registry.suspend(tx, ada.id)
            loop.call_soon_threadsafe(suspended.set)
            assert go_on.wait(60)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(world.denizen.db.write(suspend))
            await suspended.wait()
            assert await world.denizen.db.write(leases.acquire, ada.id, "elsewhere") is None
            assert await world.denizen.db.read(leases.is_free, ada.id)
            go_on.set()
        assert await world.denizen.db.write(leases.acquire, ada.id, "elsewhere") is None
        assert not await world.denizen.db.read(leases.is_free, ada.id)
        assert not await is_held(world, ada)


async def test_of_two_processes_on_one_database_only_one_thinks(ready_url: str):
    """A restart and a new message each started the agent elsewhere, and two answered."""
    async with open_world(ready_url) as one, open_world(ready_url, clock=one.clock) as two:
        held = Held(reply("It is I."))
        _ada, noor, hall = await in_a_hall(one, held, "Answered.")
        two.denizen.models.register("python:ada", scripted(reply("No, it is I!"), "Answered."))
        await one.say(noor, "Who is there?", hall)
        async with one.denizen.living():
            await held.begun.wait()
            await two.run()
            await two.denizen.spaces.post(hall, noor, "Hello?")
            await two.run()
            assert await one.transcript(hall) == ["Noor: Who is there?", "Noor: Hello?"]
            held.go_on.set()
            await until(lambda: _has(one.transcript(hall), "Ada: It is I."))
        assert "Ada: No, it is I!" not in await one.transcript(hall)


async def test_a_process_that_stood_still_too_long_finds_its_writes_refused(ready_url: str):
    """Epochs decide, not clocks: whoever was taken over from writes nothing more, even if it comes first."""
    still = ManualClock()
    async with open_world(ready_url, clock=still) as frozen, open_world(ready_url) as fresh:
        too_late, in_time = Held(reply("Too late.")), Held(reply("Done."))
        ada, noor, hall = await in_a_hall(frozen, reply("One moment."), too_late, "Helped Noor, I think.")
        fresh.denizen.models.register("python:ada", scripted(in_time, "Helped Noor."))
        await frozen.say(noor, "Help!", hall)
        async with frozen.denizen.living():
            await too_late.begun.wait()
            fresh.clock.advance(31)
            async with fresh.denizen.living():
                await in_time.begun.wait()
                too_late.go_on.set()
                await frozen.run()
                assert await fresh.transcript(hall) == ["Noor: Help!", "Ada: One moment."]
                in_time.go_on.set()
                await fresh.run()

        assert await fresh.transcript(hall) == ["Noor: Help!", "Ada: One moment.", "Ada: Done."]
        assert await fresh.endings(ada) == [(1, "acted", "answered", "Helped Noor.")]
        assert [entry.kind for entry in await fresh.denizen.minds.log(ada)] == [
            *["inbox", "response", "results"],
            *["response", "results", "response"],
        ]


@pytest.mark.parametrize("said", [0, 1])
async def test_whoever_takes_over_says_that_what_the_former_was_writing_is_void(ready_url: str, said: int):
    """Half-written text of a dead process stayed on the screen elsewhere."""
    async with open_world(ready_url) as frozen, open_world(ready_url) as fresh:
        held = Held(reply("Too late."))
        ada, noor, hall = await in_a_hall(frozen, *[reply("One moment.")] * said, held)
        await frozen.denizen.spaces.join(
            hall, await frozen.person("Bert")
        )  # in company nobody waits: a skip is no status
        fresh.denizen.models.register("python:ada", scripted(*[skip()] * 2))
        await frozen.say(noor, "Help!", hall)
        async with frozen.denizen.living(), listening(fresh, hall) as heard:
            await held.begun.wait()
            fresh.clock.advance(31)
            await fresh.run()
            frames = [frame for frame in await heard() if frame["type"].startswith("stream.")]
            held.go_on.set()
        epoch = await fresh.denizen.db.read(leases.epoch_of, ada.id)
        assert frames == [{"type": "stream.aborted", "agent": ada.id, "epoch": epoch, "id": None, "reason": "resumed"}]
