"""A person stops what an agent writes: what was said stays, the agent is told, and others are still answered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ThinkingPart, ToolCallPart

from denizen import call, reply, scripted, tool
from denizen.agents.registry import Agent
from denizen.cycles.stopped_answers import Utterance, cut_answer
from denizen.errors import InvalidInput, ModelRejected, NotFound
from denizen.inbox.urgency import says_only_stop
from denizen.models.scripted import Info, ScriptedModel, Turn
from denizen.spaces.directory import Entity, Space
from denizen.storage.database import Tx, statement
from denizen.storage.schema import stop_requests
from tests.world import World, listening, open_world

LONG = "One word after the other, until somebody stops me in the middle."


def stopped_after(pieces: int, act: Callable[[], Awaitable[object]], *turns: Turn) -> ScriptedModel:
    """A model that writes four characters at a time; once it has written that many pieces, something happens."""
    written = 0

    async def pause() -> None:
        nonlocal written
        written += 1
        if written == pieces:
            await act()

    return scripted(*turns, chunk=4, pause=pause)


async def hall_with_ada(world: World, pieces: int, *turns: Turn) -> tuple[Agent, Entity, Space]:
    """Ada writes in the hall; after so many pieces Noor presses Stop."""
    held: list[Space] = []

    async def stop() -> None:
        assert await world.denizen.spaces.stop(held[0], noor) == [ada.id]

    ada = await world.agent("Ada", model=stopped_after(pieces, stop, *turns))
    noor = await world.person("Noor")
    held.append(await world.space("Hall", noor, ada))
    return ada, noor, held[0]


async def test_what_was_said_stays_and_says_that_it_was_stopped(world: World):
    """The model call ends in the middle; the message has the id that it was streaming under, and the agent is told."""
    ada, noor, hall = await hall_with_ada(world, 10, reply(LONG), reply("I did."))
    async with listening(world, hall) as heard:
        await world.say(noor, "Count.", hall)
        await world.run()
        frames = await heard()

    (_, said) = await world.denizen.spaces.messages(hall)
    assert LONG.startswith(said.text)
    assert 0 < len(said.text) < len(LONG)
    assert said.metadata == {"stopped": {"by": noor.id}}
    streamed = "".join(each["text"] for each in frames if each["type"] == "stream.delta")
    assert (streamed, frames[-1]["type"], frames[-1]["id"]) == (said.text, "message.created", said.id)

    assert (await world.history(ada))[1:] == [
        f'response: send_message {{"text":"{said.text}"}}',
        (
            'results: send_message → {"success":true,"messageId":"<Hall 2>","stopped":"Noor stopped you here. The text '
            'above was sent as it is. Do not continue it unless someone asks."}'
        ),
    ]
    ((_, outcome, reason, summary),) = await world.endings(ada)
    assert (outcome, reason) == ("acted", "stopped")
    assert summary == 'Noor stopped the answer in "Hall". Sent a message to "Hall". (No summary was written.)'
    assert await world.denizen.spaces.statuses(hall) == []
    assert await world.denizen.db.read(_requests) == 0

    await world.say(noor, "And did you stop?", hall)
    await world.run()
    assert (await world.transcript(hall))[-1] == "Ada: I did."
    told = [text for text in (await world.prompts(ada))[-1] if "Noor stopped you here" in text]
    assert len(told) == 1


async def test_stopped_before_the_first_word_shows_a_status_and_no_message(world: World):
    """Nothing was said, so nothing stays; the person can ask again, and the agent knows."""
    ada, noor, hall = await hall_with_ada(world, 1, reply(LONG), reply("Here I am."), "Answered.")
    await world.say(noor, "Count.", hall)
    await world.run()

    assert await world.transcript(hall) == ["Noor: Count."]
    (status,) = await world.denizen.spaces.statuses(hall)
    assert (status.cause, status.text) == (
        "stopped",
        "Noor stopped Ada before it had answered. Ask again for an answer.",
    )
    assert (await world.history(ada))[1:] == [
        (
            'note: [STOPPED] Noor stopped your answer in the space "Hall" (id: <Hall>). '
            "What you were writing was not sent. Send nothing there until someone writes again."
        )
    ]
    await world.denizen.spaces.ask_for_answer(hall, ada, noor)
    await world.run()
    assert await world.transcript(hall) == ["Noor: Count.", "Ada: Here I am."]
    assert await world.denizen.spaces.statuses(hall) == []


async def test_those_who_wait_elsewhere_are_still_answered(world: World):
    """Only what is written to that space stops: the same cycle goes on and answers Bo."""
    held: list[Space] = []

    async def stop() -> None:
        await world.denizen.spaces.stop(held[0], noor)

    ada = await world.agent("Ada", model=scripted())
    noor, bo = await world.person("Noor"), await world.person("Bo")
    hall, attic = await world.space("Hall", noor, ada), await world.space("Attic", bo, ada)
    held.append(hall)
    turns = (
        [call("set_goals", goals=[]), reply(LONG, space_id=hall.id)],
        [reply("Anyway:", space_id=hall.id), reply("Hello Bo.", space_id=attic.id)],
        "Answered Bo.",
    )
    await world.restart(ada=stopped_after(26, stop, *turns))
    await world.say(noor, "Count.", hall)
    await world.say(bo, "Hello.", attic)
    await world.run()

    said = (await world.denizen.spaces.messages(hall))[1:]
    assert [each.metadata for each in said] == [{"stopped": {"by": noor.id}}]
    assert LONG.startswith(said[0].text)
    assert await world.transcript(attic) == ["Bo: Hello.", "Ada: Hello Bo."]
    results = [each for each in await world.history(ada) if each.startswith("results: ")]
    assert results[0].startswith("results: set_goals → Not run: a person stopped you")
    assert 'Noor stopped your answer in the space \\"Hall\\"' in results[1]
    assert [each[1:3] for each in await world.endings(ada)] == [("acted", "answered")]
    assert await world.denizen.db.read(_requests) == 0


async def test_a_stop_elsewhere_does_not_end_what_is_written_here(world: World):
    """Bo stops in the attic while Ada writes to Noor in the hall: Noor gets the whole answer, Bo none."""
    held: list[Space] = []

    async def stop() -> None:
        await world.denizen.spaces.stop(held[0], bo)

    ada = await world.agent("Ada", model=scripted())
    noor, bo = await world.person("Noor"), await world.person("Bo")
    hall, attic = await world.space("Hall", noor, ada), await world.space("Attic", bo, ada)
    held.append(attic)
    turns = reply(LONG, space_id=hall.id), "Answered Noor."
    await world.restart(ada=stopped_after(30, stop, *turns))
    await world.say(noor, "Count.", hall)
    await world.say(bo, "Hello.", attic)
    await world.run()

    assert await world.transcript(hall) == ["Noor: Count.", f"Ada: {LONG}"]
    assert await world.transcript(attic) == ["Bo: Hello."]
    assert [each.cause for each in await world.denizen.spaces.statuses(attic)] == ["stopped"]
    assert await world.denizen.spaces.statuses(hall) == []


async def test_stop_typed_does_the_same_and_wakes_nobody(world: World):
    """ "Stop!" is a message like any other; the agent reads it when it wakes next."""
    held: list[Space] = []

    async def stop() -> None:
        await world.say(noor, "Stop!", held[0])

    model = stopped_after(10, stop, reply(LONG), reply("As you wish."), "Answered.")
    ada = await world.agent("Ada", model=model)
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    held.append(hall)
    await world.say(noor, "Count.", hall)
    await world.run()

    count, stopped, cut = await world.denizen.spaces.messages(hall)
    assert (count.text, stopped.text, cut.metadata) == ("Count.", "Stop!", {"stopped": {"by": noor.id}})
    assert LONG.startswith(cut.text)
    assert [(each.text, each.state) for each in await world.waiting(ada)] == [("Stop!", "pending")]
    await world.say(noor, "Thanks.", hall)
    await world.run()
    assert "Stop!" in await world.newest_inbox(ada)
    assert (await world.transcript(hall))[-1] == "Ada: As you wish."


async def test_stop_typed_by_someone_it_does_not_work_for_is_only_read(world: World):
    held: list[Space] = []

    async def stop() -> None:
        await world.say(bo, "stop", held[0])

    model = stopped_after(10, stop, reply(LONG), "Counted.", reply("No."), "Refused.")
    ada = await world.agent("Ada", model=model, urgent={"works_for": ("noor",)})
    noor, bo = await world.person("Noor"), await world.person("Bo")
    hall = await world.space("Hall", noor, bo, ada)
    held.append(hall)
    await world.say(noor, "Count.", hall)
    await world.run()
    assert await world.transcript(hall) == ["Noor: Count.", "Bo: stop", f"Ada: {LONG}", "Ada: No."]


async def test_what_is_said_after_the_stop_is_answered(world: World):
    """Noor stops Ada and asks something else at once."""
    held: list[Space] = []

    async def stop() -> None:
        await world.denizen.spaces.stop(held[0], noor)
        await world.say(noor, "Just tell me the last number.", held[0])

    model = stopped_after(10, stop, reply(LONG), reply("Twelve."), "Told Noor.")
    ada = await world.agent("Ada", model=model)
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    held.append(hall)
    await world.say(noor, "Count.", hall)
    await world.run()
    assert (await world.transcript(hall))[-1] == "Ada: Twelve."


async def test_what_is_said_after_the_stop_is_answered_by_a_cycle_that_begins_anew(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    """It takes the message that was to be answered no more together with the one that is, said in the same moment."""
    held: list[Space] = []

    async def stop_and_fail(_messages: list[ModelMessage], _info: Info) -> Turn:
        monkeypatch.setattr("denizen.inbox.stop_requests.STOP", "nobody listens to this")
        await world.denizen.spaces.stop(held[0], noor)
        await world.say(noor, "Just tell me the last number.", held[0])
        return ModelRejected("no")

    ada = await world.agent("Ada", model=scripted(stop_and_fail, reply("Twelve."), "Told Noor."))
    noor = await world.person("Noor")
    held.append(await world.space("Hall", noor, ada))
    await world.say(noor, "Count.", held[0])
    await world.run()
    await world.run_after(60)
    assert await world.transcript(held[0]) == ["Noor: Count.", "Noor: Just tell me the last number.", "Ada: Twelve."]


async def test_while_a_tool_runs_the_cycle_ends_when_it_has_returned(world: World):
    """What was done outside stays done, and is in the log."""
    held: list[Space] = []

    @tool
    async def water(plants: str) -> str:
        """Water the plants."""
        await world.denizen.spaces.stop(held[0], noor)
        return f"{plants}: watered"

    ada = await world.agent("Ada", call("water", plants="all"), reply("Watered."), tools=[water])
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    held.append(hall)
    await world.say(noor, "Water the plants.", hall)
    await world.run()
    assert await world.transcript(hall) == ["Noor: Water the plants."]
    assert [each.partition(" ")[0] for each in await world.history(ada)] == ["inbox:", "response:", "results:", "note:"]
    assert [each.cause for each in await world.denizen.spaces.statuses(hall)] == ["stopped"]


async def test_a_lost_hint_delays_the_stop_and_does_not_cancel_it(world: World, monkeypatch: pytest.MonkeyPatch):
    """The bus carries hints: the request is in the database, and is found when the leases are renewed."""
    held: list[Space] = []

    async def stop() -> None:
        monkeypatch.setattr("denizen.inbox.stop_requests.STOP", "nobody listens to this")
        assert await world.denizen.spaces.stop(held[0], noor) == [ada.id]
        world.clock.advance(15)
        await asyncio.Event().wait()  # until it is stopped

    ada = await world.agent("Ada", model=stopped_after(10, stop, reply(LONG)))
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    held.append(hall)
    await world.say(noor, "Count.", hall)
    await world.run()
    (_, said) = await world.denizen.spaces.messages(hall)
    assert said.metadata == {"stopped": {"by": noor.id}}


async def test_a_stop_reaches_the_instance_that_thinks(ready_url: str, redis_url: str):
    """A person presses Stop in a page that another instance serves."""
    held: list[Space] = []

    async def stop() -> None:
        await other.denizen.spaces.stop(held[0], noor)
        await asyncio.Event().wait()  # until the hint comes

    async with open_world(ready_url, redis_url=redis_url) as world, open_world(ready_url, redis_url=redis_url) as other:
        ada = await world.agent("Ada", model=stopped_after(10, stop, reply(LONG)))
        noor = await world.person("Noor")
        held.append(await world.space("Hall", noor, ada))
        await world.say(noor, "Count.", held[0])
        await world.run()
        (_, said) = await world.denizen.spaces.messages(held[0])
        assert said.metadata == {"stopped": {"by": noor.id}}


async def test_nothing_to_stop(world: World):
    ada = await world.agent("Ada", reply("Hello."), "Greeted.")
    noor, bo = await world.person("Noor"), await world.person("Bo")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "Hello.", hall)
    await world.run()
    assert await world.denizen.spaces.stop(hall, noor) == []
    with pytest.raises(NotFound):
        await world.denizen.spaces.stop(hall, bo)
    with pytest.raises(InvalidInput, match="Only people"):
        await world.denizen.spaces.stop(hall, ada)


def _requests(tx: Tx) -> int:
    return len(tx.all(statement(stop_requests.select())))


@pytest.mark.parametrize(
    "text", ["stop", "Stop!", "@ada stop", "Please stop.", "STOP it!!", "/stop", "Hör auf!", "stopp"]
)
def test_a_message_that_only_says_stop(text: str):
    assert says_only_stop(text)


@pytest.mark.parametrize(
    "text", ["Stop the deployment", "bus stop", "don't stop", "Stop, use Q3", "", "stopwatch", "non-stop"]
)
def test_a_message_that_says_more_than_stop(text: str):
    assert not says_only_stop(text)


def test_of_a_response_that_was_cut_only_what_was_shown_stays():
    def send(args: str) -> ToolCallPart:
        return ToolCallPart("send_message", args)

    whole, begun = send('{"text":"One."}'), send('{"space_id":"s","text":"Two wor')
    thought, other = ThinkingPart("Hm."), ToolCallPart("water", '{"plants":"a')
    shown = {0: Utterance("One.", None), 1: Utterance("Two ", "s")}
    cut = cut_answer(ModelResponse(parts=[thought, whole, begun]), shown)
    assert cut is not None
    assert cut.cut == 1
    kept = [each.args for each in cut.response.parts if isinstance(each, ToolCallPart)]
    assert kept == ['{"text":"One."}', '{"space_id": "s", "text": "Two "}']
    assert cut_answer(ModelResponse(parts=[thought, begun]), {0: Utterance(" ", "s")}) is None
    assert cut_answer(ModelResponse(parts=[TextPart("Plain")]), {}) is None
    left = cut_answer(ModelResponse(parts=[whole, other]), {0: Utterance("One.", None)})
    assert left is not None
    assert (left.cut, len(left.response.parts)) == (None, 1)
