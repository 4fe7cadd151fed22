"""Questions to people: pauses that end by an answer, by something urgent or by time; answers that come too late."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from denizen import Runtime, call, failpoints, reply, scripted, tool
from denizen.agents.pace import Pace
from denizen.agents.registry import Agent
from denizen.bus.port import Frame
from denizen.bus.streams import agent_topic
from denizen.consciousness import lease as leases
from denizen.errors import AlreadySettled, InvalidInput, NotAllowed, NotFound
from denizen.ids import MessageId, new_id
from denizen.spaces.directory import Entity, Space
from denizen.tools import calls, running_calls
from denizen.tools.calls import NOT_YET
from denizen.tools.settings import ClientTool
from denizen.tools.tool import CallIdentity
from tests.world import World, listening, open_world


def confirm(**options: Any) -> ClientTool:
    schema = {"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]}
    return ClientTool(name="confirm", description="Ask whether you may.", parameters=schema, **options)


async def asked_in_a_hall(world: World, *turns: Any, tools: Any = None, **options: Any) -> tuple[Agent, Entity, Space]:
    ada = await world.agent("Ada", *turns, tools=[confirm()] if tools is None else tools, **options)
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "Do it", hall)
    await world.run()
    return ada, noor, hall


@asynccontextmanager
async def cycles_ending(world: World, agent: Agent) -> AsyncGenerator[Callable[[], Awaitable[None]]]:
    """Inside, await what is given to see the next cycle of the agent end."""
    async with world.denizen.bus.subscribe(agent_topic(agent.id), limit=1_000) as frames:

        async def ended() -> None:
            async for frame in frames:
                assert isinstance(frame, Frame)
                if frame.payload.get("status") == "sleeping":
                    return

        yield ended


async def results(world: World, ada: Agent) -> list[str]:
    return [text for text in await world.history(ada) if text.startswith("results: confirm")]


async def test_a_second_answer_is_refused_and_an_unknown_call_is_unknown(world: World):
    _, noor, _ = await asked_in_a_hall(world, call("confirm", what="deploy"), "Done.")
    (asked,) = await world.denizen.calls.waiting(noor)
    await world.denizen.calls.answer(asked, "yes", by=noor)
    with pytest.raises(AlreadySettled, match="has its answer already"):
        await world.denizen.calls.answer(asked, "no", by=noor)
    with pytest.raises(NotFound):
        await world.denizen.calls.answer(new_id(), "yes", by=noor)


async def test_whoever_is_not_in_the_space_neither_sees_nor_answers(world: World):
    _, noor, _ = await asked_in_a_hall(world, call("confirm", what="deploy"), "Done.")
    sam = await world.person("Sam")
    (asked,) = await world.denizen.calls.waiting(noor)
    assert await world.denizen.calls.waiting(sam) == []
    with pytest.raises(NotFound):
        await world.denizen.calls.answer(asked, "yes", by=sam)
    assert [each.id for each in await world.denizen.calls.waiting(noor)] == [asked.id]


async def test_of_many_who_answer_at_once_one_is_heard(world: World):
    ada, noor, _ = await asked_in_a_hall(world, call("confirm", what="deploy"), "Done.")
    (asked,) = await world.denizen.calls.waiting(noor)
    given = [world.denizen.calls.answer(asked, str(number), by=noor) for number in range(8)]
    outcomes = await asyncio.gather(*given, return_exceptions=True)
    heard = [each.result for each in outcomes if not isinstance(each, BaseException)]
    assert len(heard) == 1
    assert sum(isinstance(each, AlreadySettled) for each in outcomes) == 7
    await world.run()
    assert await results(world, ada) == [f"results: confirm → {heard[0]}"]


async def test_what_a_person_writes_in_the_space_answers_the_question(world: World):
    """The paused cycle goes on with the words, and the message belongs to it: it is not read a second time."""
    ada, noor, hall = await asked_in_a_hall(world, call("confirm", what="deploy"), reply("Deployed."), "Deployed.")
    await world.say(noor, "Yes, go ahead!", hall)
    await world.run()
    assert await results(world, ada) == ['results: confirm → {"answer": "Yes, go ahead!", "by": "Noor"}']
    assert await world.transcript(hall) == ["Noor: Do it", "Noor: Yes, go ahead!", "Ada: Deployed."]
    assert [ending[0] for ending in await world.endings(ada)] == [1]
    assert await world.inbox(ada) == []
    assert await world.denizen.calls.waiting(noor) == []


async def test_posting_an_answer_again_answers_once(world: World):
    """A client that repeats its request after a lost connection does not answer the next question with it."""
    ada, noor, hall = await asked_in_a_hall(
        world, call("confirm", what="deploy"), call("confirm", what="announce"), "Done."
    )
    key = MessageId(new_id())
    await world.say(noor, "Yes", hall, id=key)
    await world.run()
    await world.say(noor, "Yes", hall, id=key)
    await world.run()
    (still,) = await world.denizen.calls.waiting(noor)
    assert still.parsed_arguments == {"what": "announce"}
    assert await results(world, ada) == ['results: confirm → {"answer": "Yes", "by": "Noor"}']


async def test_a_reply_picks_the_question_and_otherwise_the_oldest_is_answered(world: World):
    ask = [call("confirm", what="one"), call("confirm", what="two")]
    ada, noor, hall = await asked_in_a_hall(world, ask, "Done.", tools=[confirm(independent=True)])
    one, two = await world.denizen.calls.waiting(noor)
    key = MessageId(new_id())
    for _ in range(2):  # again, as after a lost connection: the question is answered by then
        await world.say(noor, "No", hall, id=key, reply_to=MessageId(two.id))
        await world.run()
    assert [each.id for each in await world.denizen.calls.waiting(noor)] == [one.id]
    await world.say(noor, "Yes", hall)
    await world.run()
    assert await results(world, ada) == [
        'results: confirm → {"answer": "Yes", "by": "Noor"}\nconfirm → {"answer": "No", "by": "Noor"}'
    ]


async def test_a_message_that_mentions_only_others_is_no_answer(world: World):
    ada, noor, hall = await asked_in_a_hall(world, call("confirm", what="deploy"), reply("Still waiting."), "Waiting.")
    sam = await world.person("Sam")
    await world.denizen.spaces.join(hall, sam)
    await world.say(noor, "@sam, are you there?", hall)
    await world.run()
    assert [each.state for each in await world.denizen.calls.waiting(noor)] == ["waiting"]
    assert await results(world, ada) == [f"results: confirm → {NOT_YET}"]


async def test_words_of_an_agent_or_a_service_answer_nothing(world: World):
    """Only a person's message is an answer; another agent's ends the pause as anything that wakes does."""
    ada, noor, hall = await asked_in_a_hall(world, call("confirm", what="deploy"), reply("Still waiting."), "Waiting.")
    bo = await world.agent("Bo")
    await world.denizen.spaces.join(hall, bo)
    await world.say(bo, "Yes, go ahead!", hall)
    await world.run()
    assert await results(world, ada) == [f"results: confirm → {NOT_YET}"]
    assert [each.state for each in await world.denizen.calls.waiting(noor)] == ["waiting"]


async def test_a_message_from_elsewhere_ends_the_pause_and_the_question_stands(world: World):
    """Nobody else waits for a day because one person has not answered; the answer comes as an event."""
    ada, noor, hall = await asked_in_a_hall(
        world,
        call("confirm", what="deploy"),
        reply("I asked."),
        "Still waiting for Noor.",
        reply("Hello, Sam."),
        "Greeted Sam.",
        reply("Deployed."),
        "Deployed.",
    )
    sam = await world.person("Sam")
    theirs = await world.space("Sam and Ada", sam, ada)
    await world.say(sam, "Hello", theirs)
    await world.run()
    assert (await results(world, ada))[0] == f"results: confirm → {NOT_YET}"
    assert "Ada: Hello, Sam." in await world.transcript(theirs)
    (asked,) = await world.denizen.calls.waiting(noor)
    answered = await world.denizen.calls.answer(asked, "yes", by=noor)
    assert answered.state == "answered"
    await world.run()
    assert f'[Tool result "confirm" | call: {asked.id} | space "Hall" | spaceId: <Hall>] "yes"' in (
        await world.newest_inbox(ada)
    )
    assert (await world.transcript(hall))[-1] == "Ada: Deployed."
    with pytest.raises(AlreadySettled):
        await world.denizen.calls.answer(asked, "yes", by=noor)


async def test_an_approval_needs_more_than_words(world: World):
    """What is typed does not approve; the button does, or the code that is shown with it."""
    ada, noor, hall = await asked_in_a_hall(
        world,
        call("confirm", what="deploy"),
        reply("Please press the button."),
        "Told Noor.",
        reply("Please press the button."),
        "Told Noor.",
        reply("Deployed."),
        "Deployed.",
        tools=[confirm(approval=True)],
    )
    (asked,) = await world.denizen.calls.waiting(noor)
    await world.say(noor, "Yes, go ahead!", hall)
    await world.run()
    assert await results(world, ada) == [f"results: confirm → {NOT_YET}"]
    assert [each.id for each in await world.denizen.calls.waiting(noor)] == [asked.id]
    await world.say(noor, f"Yes {asked.code}", hall)
    await world.run()
    assert await world.denizen.calls.waiting(noor) == []
    assert '{"confirmed": true, "by": "Noor"}' in await world.newest_inbox(ada)


async def test_a_code_answers_its_own_approval_while_the_agent_waits(world: World):
    ada, noor, hall = await asked_in_a_hall(
        world, call("confirm", what="deploy"), reply("I leave it."), "Left it.", tools=[confirm(approval=True)]
    )
    (asked,) = await world.denizen.calls.waiting(noor)
    assert asked.code is not None
    await world.say(noor, f"reject {asked.code.lower()}.", hall)
    await world.run()
    assert await results(world, ada) == ['results: confirm → {"confirmed": false, "by": "Noor"}']


async def test_only_a_person_approves(world: World):
    _, noor, hall = await asked_in_a_hall(world, call("confirm", what="deploy"), tools=[confirm(approval=True)])
    bo = await world.agent("Bo")
    await world.denizen.spaces.join(hall, bo)
    (asked,) = await world.denizen.calls.waiting(noor)
    with pytest.raises(NotAllowed, match="Only a person can approve"):
        await world.denizen.calls.answer(asked, "yes", by=bo)


async def test_a_question_that_nobody_answers_ends_by_time(world: World):
    ada, noor, hall = await asked_in_a_hall(
        world, call("confirm", what="deploy"), reply("I leave it."), "Left it.", tools=[confirm(seconds=3600)]
    )
    await world.run_after(3599)
    assert len(world.model(ada).requests) == 1
    await world.run_after(1)
    assert await results(world, ada) == [
        "results: confirm → Nobody answered within 1 hour. An answer that comes later will reach you as an event."
    ]
    assert (await world.transcript(hall))[-1] == "Ada: I leave it."
    assert await world.denizen.calls.waiting(noor) == []


@pytest.mark.parametrize("mode", ["pause", "async"])
async def test_a_question_is_not_given_up_because_no_instance_was_seen(world: World, mode: str):
    """After the machine slept, the first look came before the first sign of life, and took people for dead tools."""
    turns = [call("confirm", what="deploy"), "Asked."]
    _, noor, _ = await asked_in_a_hall(world, *turns, tools=[confirm(mode=mode)])
    world.clock.advance(3_600)
    given_up = await world.denizen.db.write(running_calls.attend, world.denizen.instance, 0)
    assert given_up == []
    assert [each.state for each in await world.denizen.calls.waiting(noor)] == ["waiting"]


async def test_whoever_looks_does_not_take_its_own_calls_for_abandoned(world: World):
    started, go_on = asyncio.Event(), asyncio.Event()

    @tool(background=True)
    async def brew() -> str:
        """Brew."""
        started.set()
        await go_on.wait()
        return "Tea."

    ada = await world.agent("Ada", call("brew"), "It brews.", reply("Tea is ready."), "Told.", tools=[brew])
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    async with world.denizen.living():
        await world.say(noor, "Tea, please", hall)
        await started.wait()
        db, me, later = world.denizen.db, world.denizen.instance, -3_600
        assert not await db.read(running_calls.unattended, me, later)
        assert await db.write(running_calls.attend, me, later) == []
        assert await db.read(running_calls.unattended, "another", later)
        go_on.set()
        await world.run()
    assert await world.transcript(hall) == ["Noor: Tea, please", "Ada: Tea is ready."]


async def test_the_time_people_take_is_not_the_cycles(world: World):
    ada, noor, hall = await asked_in_a_hall(
        world, call("confirm", what="deploy"), reply("Done."), "Done.", cycle={"max_seconds": 60}
    )
    world.clock.advance(7200)
    (asked,) = await world.denizen.calls.waiting(noor)
    await world.denizen.calls.answer(asked, "yes", by=noor)
    await world.run()
    assert (await world.endings(ada))[0][2] == "answered"
    assert (await world.transcript(hall))[-1] == "Ada: Done."


async def test_calls_after_a_question_wait_for_its_answer(world: World):
    """In order: what follows a question in the same response is not done before it is answered."""
    ada, noor, hall = await asked_in_a_hall(world, [call("confirm", what="deploy"), reply("Confirmed.")], "Done.")
    assert await world.transcript(hall) == ["Noor: Do it"]
    (asked,) = await world.denizen.calls.waiting(noor)
    await world.denizen.calls.answer(asked, "yes", by=noor)
    await world.run()
    assert await world.transcript(hall) == ["Noor: Do it", "Ada: Confirmed."]
    assert await world.denizen.agents.status(ada) == "sleeping"


async def test_independent_questions_are_asked_together(world: World):
    _, noor, _ = await asked_in_a_hall(
        world,
        [call("confirm", what="one"), call("confirm", what="two")],
        "Done.",
        tools=[confirm(independent=True)],
    )
    first, second = await world.denizen.calls.waiting(noor)
    await world.denizen.calls.answer(second, "no", by=noor)
    await world.run()
    assert [each.id for each in await world.denizen.calls.waiting(noor)] == [first.id]


async def test_wrong_arguments_ask_nobody(world: World):
    ada, noor, _ = await asked_in_a_hall(world, call("confirm", why="?"), "Gave up.", cycle={"silent_reply": "ignore"})
    assert await world.denizen.calls.waiting(noor) == []
    (told,) = await results(world, ada)
    assert r"\"what\" is a required property" in told


async def test_an_asynchronous_question_does_not_stop_the_cycle(world: World):
    ada, noor, hall = await asked_in_a_hall(
        world,
        [call("confirm", what="deploy"), reply("I asked.")],
        "Asked Noor.",
        reply("Thanks."),
        "Thanked Noor.",
        tools=[confirm(mode="async")],
    )
    assert await world.denizen.agents.status(ada) == "sleeping"
    (asked,) = await world.denizen.calls.waiting(noor)
    assert (await results(world, ada))[0].startswith(f'results: confirm → {{"status": "pending", "call": "{asked.id}"')
    await world.denizen.calls.answer(asked, "go ahead", by=noor)
    await world.run()
    assert await world.transcript(hall) == ["Noor: Do it", "Ada: I asked.", "Ada: Thanks."]


async def test_an_asynchronous_answer_may_come_after_it_was_given_up(world: World):
    """First it is told that no answer came, then the answer: two events."""
    ada, noor, hall = await asked_in_a_hall(
        world,
        [call("confirm", what="deploy"), reply("I asked.")],
        "Asked Noor.",
        reply("No answer."),
        "Told Noor.",
        reply("At last."),
        "Told Noor.",
        tools=[confirm(mode="async", seconds=60)],
    )
    (asked,) = await world.denizen.calls.waiting(noor)
    await world.run_after(60)
    assert "No result came in time." in await world.newest_inbox(ada)
    await world.denizen.calls.answer(asked, "go ahead", by=noor)
    await world.run()
    assert '"go ahead"' in await world.newest_inbox(ada)
    assert (await world.transcript(hall))[1:] == ["Ada: I asked.", "Ada: No answer.", "Ada: At last."]


async def test_a_deleted_agent_waits_for_nothing(world: World):
    ada, noor, _ = await asked_in_a_hall(world, call("confirm", what="deploy"), "Done.")
    (asked,) = await world.denizen.calls.waiting(noor)
    await world.denizen.agents.delete(ada)
    assert await world.denizen.calls.waiting(noor) == []
    with pytest.raises(AlreadySettled, match="Nobody waits"):
        await world.denizen.calls.answer(asked, "yes", by=noor)
    assert (await results(world, ada)) == ["results: confirm → Not finished: this agent was deleted."]


async def test_a_suspended_agent_goes_on_when_it_is_resumed(world: World):
    ada, noor, hall = await asked_in_a_hall(world, call("confirm", what="deploy"), reply("Done."), "Done.")
    (asked,) = await world.denizen.calls.waiting(noor)
    await world.denizen.agents.suspend(ada)
    await world.denizen.calls.answer(asked, "yes", by=noor)
    await world.run()
    assert len(world.model(ada).requests) == 1
    await world.denizen.agents.resume(ada)
    await world.run()
    assert (await world.transcript(hall))[-1] == "Ada: Done."


async def test_an_answer_wakes_another_instance(world: World):
    """A pause gives the lease up: whoever hears of the answer goes on."""
    ada, noor, hall = await asked_in_a_hall(world, call("confirm", what="deploy"), reply("Done."), "Done.")
    async with Runtime(world.url, clock=world.clock, models={"python:ada": world.model(ada)}) as other:
        (asked,) = await other.calls.waiting(noor)
        await other.calls.answer(asked, "yes", by=noor)
        await other.run_until_idle()
    assert (await world.transcript(hall))[-1] == "Ada: Done."


# Visible calls


async def test_a_visible_call_is_shown_as_it_is_written_and_with_its_result(world: World):
    @tool(visible=True)
    async def look_up(word: str) -> str:
        """Look it up."""
        return f"{word}: a place"

    model = scripted(call("look_up", word="hall"), reply("A place."), "Looked it up.", chunk=5)
    ada = await world.agent("Ada", model=model, tools=[look_up])
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "What is a hall?", hall)
    async with listening(world, hall) as heard:
        await world.run()
        frames = await heard()
    (shown,) = await world.denizen.calls.list(hall)
    assert (shown.state, shown.result, shown.after_seq) == ("answered", "hall: a place", 1)
    mine = [frame for frame in frames if frame.get("id") == shown.id]
    assert [frame["type"] for frame in (mine[0], mine[-2], mine[-1])] == [
        "call.started",
        "call.changed",
        "call.changed",
    ]
    assert "".join(frame["text"] for frame in mine if frame["type"] == "call.delta") == '{"word": "hall"}'
    assert [frame["state"] for frame in mine[-2:]] == ["waiting", "answered"]


# Tools that take longer than anyone waits


async def test_what_a_tool_answers_late_is_told_as_an_event(world: World):
    released = asyncio.Event()

    @tool(seconds=0.01)
    async def build() -> str:
        """Build it."""
        await released.wait()
        return "Built."

    ada = await world.agent("Ada", call("build"), reply("Building."), "Waiting.", reply("It is built."), "Told Noor.",
                            tools=[build])  # fmt: skip
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    async with world.denizen.living() as residents:
        await world.say(noor, "Build", hall)
        await residents.run_until_idle()
        assert await world.transcript(hall) == ["Noor: Build", "Ada: Building."]
        async with cycles_ending(world, ada) as ended:
            released.set()
            await ended()
    assert await world.transcript(hall) == ["Noor: Build", "Ada: Building.", "Ada: It is built."]
    assert '"Built."' in await world.newest_inbox(ada)


async def test_a_background_tool_is_never_waited_for(world: World):
    @tool(background=True)
    async def build() -> str:
        """Build it."""
        return "Built."

    ada = await world.agent("Ada", [call("build"), reply("Building.")], "Waiting.", reply("It is built."), "Told Noor.",
                            tools=[build])  # fmt: skip
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "Build", hall)
    await world.run()
    assert await world.transcript(hall) == ["Noor: Build", "Ada: Building.", "Ada: It is built."]


async def test_a_reply_is_no_answer_to_a_tool_that_runs_on_in_the_background(world: World):
    """A person who replies to what the agent said meanwhile talks to the agent; the tool gives its own result."""
    released = asyncio.Event()

    @tool(background=True, visible=True)
    async def build() -> str:
        """Build it."""
        await released.wait()
        return "Built."

    turns = [[call("build"), reply("Building.")], "Waiting.", reply("Soon."), "Told Noor.", reply("Now."), "Told Noor."]
    ada = await world.agent("Ada", *turns, tools=[build])
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    async with world.denizen.living(), cycles_ending(world, ada) as ended:
        await world.say(noor, "Build", hall)
        await ended()
        [running] = await world.denizen.calls.list(hall)
        *_, building = await world.denizen.spaces.messages(hall)
        await world.say(noor, "When?", hall, reply_to=building.id)
        await ended()
        assert [each.state for each in await world.denizen.calls.list(hall)] == [running.state] == ["waiting"]
        released.set()
        await ended()
    assert await world.transcript(hall) == [
        "Noor: Build",
        "Ada: Building.",
        "Noor: When?",
        "Ada: Soon.",
        "Ada: Now.",
    ]


@pytest.mark.parametrize(
    ("on_crash", "told", "runs"),
    [("report", "Whether it did its work is unknown", 1), ("retry", "Built.", 2)],
)
async def test_a_background_tool_survives_its_process(world: World, on_crash: Any, told: str, runs: int):
    """The next process makes the call again, or says that nobody knows."""
    begun: list[str] = []
    hang = asyncio.Event()

    @tool(background=True, on_crash=on_crash)
    async def build() -> str:
        """Build it."""
        begun.append("build")
        if len(begun) == 1:
            await hang.wait()
        return "Built."

    ada = await world.agent("Ada", call("build"), reply("Building."), "Waiting.", reply("So."), "Told Noor.",
                            tools=[build])  # fmt: skip
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    async with world.denizen.living(), cycles_ending(world, ada) as ended:
        await world.say(noor, "Build", hall)
        await ended()
    await world.restart(ada=world.model(ada))
    await world.run()
    assert told in await world.newest_inbox(ada)
    assert len(begun) == runs
    assert (await world.transcript(hall))[-1] == "Ada: So."


@pytest.mark.parametrize(
    ("on_crash", "told", "runs"),
    [("report", "Whether it did its work is unknown", 1), ("retry", "Built.", 2)],
)
async def test_a_background_tool_is_not_forgotten_by_a_house_that_comes_to_life_again(
    small_world: World, on_crash: Any, told: str, runs: int
):
    """The same process as before was at it, by its row; and was not any more."""
    begun: list[str] = []
    begins, hang = asyncio.Event(), asyncio.Event()

    @tool(background=True, on_crash=on_crash)
    async def build() -> str:
        """Build it."""
        begun.append("build")
        begins.set()
        if len(begun) == 1:
            await hang.wait()
        return "Built."

    ada = await small_world.agent("Ada", call("build"), reply("Building."), "Waiting.", reply("So."), "Told.",
                                  tools=[build])  # fmt: skip
    noor = await small_world.person("Noor")
    hall = await small_world.space("Hall", noor, ada)
    async with small_world.denizen.living(), cycles_ending(small_world, ada) as ended:
        await small_world.say(noor, "Build", hall)
        await begins.wait()
        await ended()
    await small_world.run()
    assert told in await small_world.newest_inbox(ada)
    assert len(begun) == runs
    assert await small_world.transcript(hall) == ["Noor: Build", "Ada: Building.", "Ada: So."]


async def test_a_background_tool_whose_cycle_was_taken_away_before_it_began_is_called_all_the_same(
    ready_postgres_url: str,
):
    """The call was stored, and its life ended before it heard of that: the row said that this process was at it."""
    stored, heard = threading.Event(), threading.Event()
    begun: list[str] = []

    @tool(background=True)
    async def build() -> str:
        """Build it."""
        begun.append("build")
        return "Built."

    def hesitate() -> None:
        stored.set()
        assert heard.wait(120)

    # No sweep but that of the test's own: it would bring the agent back to life as soon as it has lost its lease.
    async with open_world(ready_postgres_url, pace=Pace(sweep_seconds=1_000_000)) as world:
        ada = await world.agent("Ada", call("build"), reply("Building."), "Waiting.", reply("It is built."), "Told.",
                                tools=[build])  # fmt: skip
        noor = await world.person("Noor")
        hall = await world.space("Hall", noor, ada)
        async with world.denizen.living() as residents:
            failpoints.arm("committed:carry_on", hesitate)
            try:
                await world.say(noor, "Build", hall)
                assert await asyncio.to_thread(stored.wait, 50)
                await world.denizen.db.write(leases.seize, ada.id)
                async with asyncio.timeout(50):
                    while residents.awake:
                        world.clock.advance(10)
                        await world.denizen.db.read(leases.epoch_of, ada.id)
            finally:
                failpoints.disarm()
                heard.set()
            assert begun == []
            await world.run()
        assert await world.transcript(hall) == ["Noor: Build", "Ada: Building.", "Ada: It is built."]
        assert begun == ["build"]


async def test_a_call_that_cannot_be_made_again_here_ends_nobodys_life(small_world: World):
    """What one agent lacks in this process ended the sweep, and with it everybody."""
    hang = asyncio.Event()

    @tool(background=True, on_crash="retry")
    async def build() -> str:
        """Build it."""
        await hang.wait()
        return "Unreachable."

    ada = await small_world.agent("Ada", call("build"), reply("Building."), "Waiting.", tools=[build])
    ben = await small_world.agent("Ben", reply("Still here."), "Answered Noor.")
    noor = await small_world.person("Noor")
    hall, attic = await small_world.space("Hall", noor, ada), await small_world.space("Attic", noor, ben)
    async with small_world.denizen.living(), cycles_ending(small_world, ada) as ended:
        await small_world.say(noor, "Build", hall)
        await ended()
    await small_world.close()
    async with Runtime(
        small_world.url, clock=small_world.clock, models={"python:ben": small_world.model(ben)}
    ) as other:
        async with other.living() as residents:
            await other.spaces.post(attic, noor, "Are you there?")
            with pytest.raises(InvalidInput, match="build"):
                await residents.run_until_idle()
            told = (await other.minds.inbox(ada))[0].text
        assert await other.spaces.transcript(attic) == ["Noor: Are you there?", "Ben: Still here."]
    await small_world.open()
    assert told == calls.UNKNOWN_OUTCOME


async def test_a_call_that_is_made_again_after_a_crash_is_still_the_same_call(small_world: World):
    """A service was told another address to answer to than the one under which its answer was waited for."""
    asked: list[str] = []
    begun, hang = asyncio.Event(), asyncio.Event()

    @tool(visible=True, on_crash="retry")
    async def order() -> str:
        """Order it."""
        return "Never called."

    async def hand_over(_arguments: Mapping[str, Any], occasion: CallIdentity) -> str:
        asked.append(occasion.call_id)
        begun.set()
        if len(asked) == 1:
            await hang.wait()
        return "Taken."

    turns = call("order"), reply("Ordered."), "Waiting.", reply("It is here."), "Told Noor."
    service = replace(order, call=hand_over, mode="async")
    ada = await small_world.agent("Ada", *turns, tools=[service])
    noor = await small_world.person("Noor")
    hall = await small_world.space("Hall", noor, ada)
    async with listening(small_world, hall), small_world.denizen.living():
        await small_world.say(noor, "Order it", hall)
        await begun.wait()
        small_world.denizen.hurry()
    await small_world.restart()
    await small_world.run()
    (shown,) = await small_world.denizen.calls.list(hall)
    assert asked == [shown.id, shown.id]
    await small_world.denizen.db.write(calls.answer, asked[-1], "Delivered.")
    await small_world.run()
    assert await small_world.transcript(hall) == ["Noor: Order it", "Ada: Ordered.", "Ada: It is here."]


# Speaking in a space by its name


async def test_a_message_may_name_another_space_and_streams_there(world: World):
    ada = await world.agent("Ada")
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    attic = await world.space("Attic", noor, ada)
    cellar = await world.space("Cellar", noor)
    await world.restart(
        ada=scripted(
            [
                call("send_message", space_id=attic.id, text="Up here."),
                call("send_message", space_id=cellar.id, text="Down here."),
                call("send_message", text="Here."),
            ],
            "Spoke in two spaces.",
            chunk=4,
        )
    )
    await world.say(noor, "Anyone up there?", attic)
    await world.say(noor, "Say something everywhere", hall)
    async with listening(world, attic) as in_attic, listening(world, cellar) as in_cellar:
        await world.run()
        up, down = await in_attic(), await in_cellar()
    assert await world.transcript(attic) == ["Noor: Anyone up there?", "Ada: Up here."]
    assert (await world.transcript(cellar), down) == ([], [])
    started, *_, created = up
    assert (started["type"], created["type"], started["id"]) == ("stream.started", "message.created", created["id"])
    told = (await world.history(ada))[2].splitlines()
    assert '"error": "not_found"' in told[1]
    assert "No space is active: the events come from several spaces." in told[2]


async def test_a_question_asked_in_no_space_is_for_whoever_shares_one_with_the_agent(world: World):
    """Not for people who have nothing to do with it, though they share spaces with others."""
    ada = await world.agent("Ada", call("confirm", what="deploy"), "Done.", tools=[confirm()])
    noor, sam, iris = [await world.person(name) for name in ("Noor", "Sam", "Iris")]
    await world.space("Hall", noor, ada)
    await world.space("Attic", noor, sam)
    await world.denizen.agents.trigger(ada, "bell")
    await world.run()
    asked = {each.name: [found.tool for found in await world.denizen.calls.waiting(each)] for each in (noor, sam, iris)}
    assert asked == {"Noor": ["confirm"], "Sam": [], "Iris": []}
