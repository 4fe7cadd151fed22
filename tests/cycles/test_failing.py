"""What happens when a thought fails: tried again, undone without a trace, or kept open and taken up again."""

from __future__ import annotations

import asyncio

import pytest
from pydantic_ai.messages import ModelMessage
from sqlalchemy import update

from denizen import Agent, Space, call, reply, scripted, tool
from denizen.errors import ModelError, ModelOverloaded, ModelRejected, ModelUnreachable
from denizen.inbox.delivery import INTERRUPTED_AT_MOST
from denizen.models.request import retry_delay
from denizen.models.scripted import Info, Turn
from denizen.storage.database import Tx, statement
from denizen.storage.schema import cycles
from tests.world import UNHURRIED, JumpingClock, Waiting, World, in_a_hall, open_world

# Asking again


@pytest.mark.parametrize(
    "error", [ModelOverloaded("busy"), ModelUnreachable("no route"), ModelOverloaded(retry_after=20)]
)
async def test_a_model_that_fails_in_passing_is_asked_again_within_the_cycle(ready_sqlite_url: str, error: ModelError):
    """Three errors in a row cost only waiting: longer each time, and as long as the provider asks for."""
    clock = JumpingClock()
    async with open_world(ready_sqlite_url, clock=clock, pace=UNHURRIED) as world:
        ada, noor, hall = await in_a_hall(world, error, error, error, reply("Hello."), "Greeted Noor.")
        await world.say(noor, "Hi", hall)
        await world.run()

        assert await world.transcript(hall) == ["Noor: Hi", "Ada: Hello."]
        assert clock.waits == [retry_delay(error, attempt, key=ada.id) for attempt in (1, 2, 3)]
        first = 2 if isinstance(error, ModelOverloaded) else 0.5
        for doubled, wait in enumerate(clock.waits):
            least = error.retry_after or first * 2**doubled
            assert least <= wait <= least * 1.25
        assert await world.waiting(ada) == []
        assert await world.ledger(ada) == [("usage", None), ("usage", None)]


async def test_the_fourth_failure_is_believed(ready_sqlite_url: str):
    clock = JumpingClock()
    async with open_world(ready_sqlite_url, clock=clock, pace=UNHURRIED) as world:
        ada, noor, hall = await in_a_hall(world, *[ModelOverloaded("busy")] * 4)
        await world.say(noor, "Hi", hall)
        await world.run()

        assert len(clock.waits) == 3
        assert await world.waiting(ada) == [Waiting("Hi", "pending", 1, 1)]
        assert await world.ledger(ada) == [("failure", "busy")]


@pytest.mark.parametrize("error", [ModelRejected("too long"), ValueError("a defect")])
async def test_what_would_fail_again_is_not_asked_again(ready_sqlite_url: str, error: Exception):
    clock = JumpingClock()
    async with open_world(ready_sqlite_url, clock=clock, pace=UNHURRIED) as world:
        ada, noor, hall = await in_a_hall(world, error, reply("Hello."), "Greeted Noor.")
        await world.say(noor, "Hi", hall)
        await world.run()

        assert clock.waits == []
        assert len(world.model(ada).requests) == 1
        assert await world.waiting(ada) == [Waiting("Hi", "pending", 1, 1)]


# Undone


async def test_a_failed_cycle_without_effects_leaves_no_trace_but_the_ledger(world: World):
    """Failed cycles left orphan user messages elsewhere, which piled up."""
    ada, noor, hall = await in_a_hall(
        world,
        reply("Hello."),
        "Greeted Noor.",
        call("read_messages"),
        ModelRejected("no"),
        call("read_messages"),
        ModelRejected("no"),
        reply("Sorry, what?"),
        "Asked Noor again.",
    )
    await world.say(noor, "Hi", hall)
    await world.run()
    before = await world.history(ada)

    await world.say(noor, "How are you?", hall)
    await world.run()
    assert await world.history(ada) == before
    assert await world.waiting(ada) == [Waiting("How are you?", "pending", 1, 1)]
    assert await world.denizen.agents.status(ada) == "sleeping"
    await world.run_after(1)
    assert await world.history(ada) == before
    await world.run_after(4)

    assert await world.transcript(hall) == ["Noor: Hi", "Ada: Hello.", "Noor: How are you?", "Ada: Sorry, what?"]
    assert await world.history(ada) == [
        *before,
        (
            "inbox: [INBOX - 1 new event]\n"
            "Now: Monday 2026-01-05 09:00 UTC\n"
            "\n"
            '1. [Space "Hall" | spaceId: <Hall>] Noor (human): "How are you?"\n'
            "   → received 5.0s ago"
        ),
        'response: send_message {"text":"Sorry, what?"}',
        'results: send_message → {"success":true,"messageId":"<Hall 4>"}',
        "response: Asked Noor again.",
    ]
    assert [entry.seq for entry in await world.denizen.minds.log(ada)] == list(range(1, 9))
    assert await world.endings(ada) == [
        (1, "acted", "answered", "Greeted Noor."),
        (2, "acted", "answered", "Asked Noor again."),
    ]
    failures = [line for line in await world.ledger(ada) if line[0] == "failure"]
    assert failures == [("failure", "no")] * 2


async def test_a_model_whose_work_is_cancelled_has_failed(small_world: World):
    """Nobody has told the agent to stop: taken for an interruption, it would be asked for ever."""
    ada, noor, hall = await in_a_hall(small_world, asyncio.CancelledError(), reply("Hello."), "Greeted Noor.")
    await small_world.say(noor, "Hi", hall)
    await small_world.run()
    assert await small_world.waiting(ada) == [Waiting("Hi", "pending", 1, 1)]
    await small_world.run_after(1)
    assert await small_world.transcript(hall) == ["Noor: Hi", "Ada: Hello."]


async def test_an_error_with_any_text_at_all_can_be_written_down(world: World):
    ada, noor, hall = await in_a_hall(world, ModelRejected("a\0b \ud83d"))
    await world.say(noor, "Hi", hall)
    await world.run()
    assert await world.ledger(ada) == [("failure", "a\ufffdb \ufffd")]
    assert await world.waiting(ada) == [Waiting("Hi", "pending", 1, 1)]


# Kept open


async def test_a_failure_after_an_effect_resumes_at_its_last_step(world: World):
    """Nothing is said twice, no completed model call is repeated, and the agent goes on in mid-thought."""
    ada, noor, hall = await in_a_hall(
        world, reply("One moment."), ModelRejected("no"), ModelRejected("no"), reply("Done."), "Helped Noor."
    )
    await world.say(noor, "Help!", hall)
    await world.run()
    half = [
        (
            "inbox: [INBOX - 1 new event]\n"
            "Now: Monday 2026-01-05 09:00 UTC\n"
            "\n"
            '1. [Space "Hall" | spaceId: <Hall>] Noor (human): "Help!"\n'
            "   → received just now"
        ),
        'response: send_message {"text":"One moment."}',
        'results: send_message → {"success":true,"messageId":"<Hall 2>"}',
    ]
    assert await world.history(ada) == half
    assert await world.waiting(ada) == [Waiting("Help!", "taken")]
    assert await world.denizen.agents.status(ada) == "sleeping"

    await world.run_after(0.9)
    assert len(world.model(ada).requests) == 2
    await world.run_after(0.1)
    assert len(world.model(ada).requests) == 3
    await world.run_after(3.9)
    assert len(world.model(ada).requests) == 3
    await world.run_after(0.1)

    assert await world.transcript(hall) == ["Noor: Help!", "Ada: One moment.", "Ada: Done."]
    assert await world.history(ada) == [
        *half,
        'response: send_message {"text":"Done."}',
        'results: send_message → {"success":true,"messageId":"<Hall 3>"}',
        "response: Helped Noor.",
    ]
    assert await world.endings(ada) == [(1, "acted", "answered", "Helped Noor.")]
    assert await world.waiting(ada) == []


async def test_what_arrives_while_a_cycle_waits_to_be_resumed_is_read_after_it(world: World):
    ada, noor, hall = await in_a_hall(
        world, reply("One moment."), ModelRejected("no"), "Helped Noor.", reply("Yes?"), "Answered Noor."
    )
    await world.say(noor, "Help!", hall)
    await world.run()
    await world.say(noor, "Hello?", hall)
    await world.run()
    assert len(world.model(ada).requests) == 2
    await world.run_after(1)
    assert await world.transcript(hall) == ["Noor: Help!", "Ada: One moment.", "Noor: Hello?", "Ada: Yes?"]
    assert [summary for *_, summary in await world.endings(ada)] == ["Helped Noor.", "Answered Noor."]


async def test_a_cycle_that_cannot_be_finished_ends_with_an_honest_note(world: World):
    """Five failures since the last progress: what was done stays, and the agent knows what was not."""
    ada, noor, hall = await in_a_hall(world, reply("One moment."), *[ModelRejected("no")] * 5)
    await world.say(noor, "Help!", hall)
    for seconds in (0, 1, 4, 15):
        await world.run_after(seconds)
        assert await world.waiting(ada) == [Waiting("Help!", "taken")]
        assert await world.cycles(ada) == []
    await world.run_after(60)

    assert (await world.history(ada))[1:] == [
        'response: send_message {"text":"One moment."}',
        'results: send_message → {"success":true,"messageId":"<Hall 2>"}',
        "note: [NOTE] This cycle was cut short: no. What is recorded above was done; nothing else was.",
    ]
    assert await world.endings(ada) == [(1, "failed", "failed", 'Sent a message to "Hall". (No summary was written.)')]
    assert await world.waiting(ada) == []
    assert await world.transcript(hall) == ["Noor: Help!", "Ada: One moment."]


@pytest.mark.parametrize("said", [0, 1])
async def test_a_cycle_that_was_cut_off_too_often_loses_nothing(small_world: World, said: int):
    """One that has changed nothing is undone, and its events wait; only one that has is closed with a note."""
    world = small_world
    ada, hall = await _killed_in_a_cycle(world, INTERRUPTED_AT_MOST, said=bool(said))
    if said:
        assert await world.waiting(ada) == []
        assert (await world.history(ada))[-1].startswith("note: [NOTE] This cycle was cut short: it was cut off too")
    else:
        assert await world.transcript(hall) == ["Noor: Hi", "Ada: Here I am."]
        assert ("failure", "it was cut off too often") in await world.ledger(ada)


async def test_whoever_is_killed_many_times_in_a_cycle_still_finishes_it(small_world: World):
    """That its process ends is not the fault of the cycle. After five times it was closed, and nobody was answered."""
    world = small_world
    ada, hall = await _killed_in_a_cycle(world, INTERRUPTED_AT_MOST - 1, said=True)
    assert await world.transcript(hall) == ["Noor: Hi", "Ada: One moment.", "Ada: Here I am."]
    assert await world.endings(ada) == [(1, "acted", "answered", "Answered Noor.")]


async def _killed_in_a_cycle(world: World, times: int, *, said: bool) -> tuple[Agent, Space]:
    """In the second step of a cycle, a process has died so often; then one lived."""
    begun, died = asyncio.Event(), asyncio.Event()

    async def die(_messages: list[ModelMessage], _info: Info) -> Turn:
        begun.set()
        await died.wait()
        return "Unreachable."

    first = reply("One moment.") if said else call("read_entry", entry="plans")
    ada, noor, hall = await in_a_hall(world, first, die, reply("Here I am."), "Answered Noor.")
    await world.say(noor, "Hi", hall)
    async with world.denizen.living():
        await begun.wait()
        world.denizen.hurry()
    await world.denizen.db.write(_as_if_it_had_died, times - 1)
    await world.restart()
    await world.run()
    return ada, hall


def _as_if_it_had_died(tx: Tx, times: int) -> None:
    """So often; it was not handed back, so it has died once more when it is taken up."""
    tx.run(statement(update(cycles).where(cycles.c.number.is_(None)).values(interruptions=times, handed_back=0)))


async def test_the_summary_of_a_cycle_that_was_taken_up_again_names_every_space_it_spoke_in(world: World):
    ada = await world.agent("Ada")
    noor = await world.person("Noor")
    hall, attic = await world.space("Hall", noor, ada), await world.space("Attic", noor, ada)
    await world.restart(
        ada=scripted(
            reply("Here."),
            ModelRejected("no"),
            [call("enter_space", space_id=attic.id), reply("There."), reply("There!")],
            "",
        )
    )
    await world.say(noor, "Where are you?", hall)
    await world.run()
    await world.run_after(1)
    assert await world.endings(ada) == [
        (1, "acted", "answered", 'Sent a message to "Hall". Sent 2 messages to "Attic". (No summary was written.)')
    ]


async def test_progress_begins_the_count_of_failures_anew(world: World):
    failures = [ModelRejected("no")] * 4
    ada, noor, hall = await in_a_hall(
        world, reply("One."), *failures, reply("Two."), *failures, reply("Three."), "Counted."
    )
    await world.say(noor, "Count", hall)
    for seconds in (0, 1, 4, 15, 60, 1, 4, 15, 60):
        await world.run_after(seconds)
    assert await world.transcript(hall) == ["Noor: Count", "Ada: One.", "Ada: Two.", "Ada: Three."]
    assert await world.endings(ada) == [(1, "acted", "answered", "Counted.")]


async def test_after_an_outside_tool_was_called_nothing_is_undone(world: World):
    """Whether it changed anything is not ours to know."""
    called: list[int] = []

    @tool
    async def order_pizza() -> str:
        """Order a pizza."""
        called.append(1)
        return "ordered"

    _ada, noor, hall = await in_a_hall(
        world,
        call("order_pizza"),
        ModelRejected("no"),
        reply("Pizza is coming."),
        "Ordered pizza.",
        tools=[order_pizza],
    )
    await world.say(noor, "Hungry", hall)
    await world.run()
    await world.run_after(1)
    assert called == [1]
    assert await world.transcript(hall) == ["Noor: Hungry", "Ada: Pizza is coming."]
