"""Live streams."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from denizen import call, reply, scripted, skip
from denizen.models.scripted import ScriptedModel, Turn
from tests.hesitation import Hesitation
from tests.server.conftest import House, SentEvent, Stream, house  # noqa: F401  fixture
from tests.world import World

COUNT = "One two three four five six seven"


async def a_hall(world: World, *turns: Turn, model: ScriptedModel | None = None, **options: Any):
    """Noor, who owns the server, and Ada, in a space of the two."""
    noor, ada = await world.person("Noor"), await world.agent("Ada", *turns, model=model, **options)
    return ada, noor, await world.space("Hall", noor, ada)


@asynccontextmanager
async def counting(server: House) -> AsyncGenerator[tuple[Any, Any, Stream, Hesitation]]:
    """Ada is in the middle of a long message; who reads, the space, a stream of it, and what lets her go on."""
    hesitation = Hesitation()
    _, noor, hall = await a_hall(server.world, model=scripted(reply(COUNT), "Counted.", pause=hesitation))
    async with asyncio.TaskGroup() as tasks, server.stream(noor, hall) as stream:
        await server.say(noor, "Count", hall)
        tasks.create_task(server.world.run())
        await stream.until("stream.delta")
        yield noor, hall, stream, hesitation
        hesitation.may_go_on.set()


def deltas(events: list[SentEvent]) -> str:
    return "".join(event.data["text"] for event in events if event.name == "stream.delta")


async def test_messages_are_sent_as_events(house: House) -> None:  # noqa: F811
    """Everyone who has a space open gets its messages at once, as server-sent events.

    Docs: streams.md
    """
    _, noor, hall = await a_hall(house.world)
    async with house.stream(noor, hall) as stream:
        said = await house.say(noor, "Hello", hall)
        assert (await stream.until("message"))[-1].data == said


async def test_a_reader_that_was_away_misses_nothing(house: House) -> None:  # noqa: F811
    """A reader that reconnects gets what it has missed, by the id of the last event that it had.

    Docs: streams.md
    """
    _, noor, hall = await a_hall(house.world)
    for number in range(1, 5):
        await house.world.say(noor, f"{number}", hall)
    async with house.stream(noor, hall, last=2) as stream:
        missed = await stream.until("message", 2)
    assert [event.data["text"] for event in missed if event.name == "message"] == ["3", "4"]


async def test_text_streams_while_it_is_written(house: House) -> None:  # noqa: F811
    """The text of an agent arrives in pieces while it is written, and is then replaced by the message of the same id.

    Docs: streams.md
    """
    async with counting(house) as (_, _, stream, hesitation):
        hesitation.may_go_on.set()
        await stream.until("message")
        started = next(event for event in stream.seen if event.name == "stream.started")
        assert deltas(stream.seen) == stream.seen[-1].data["text"] == COUNT
        assert stream.seen[-1].data["id"] == started.data["id"]


async def test_a_late_reader_gets_a_text_from_its_beginning(house: House) -> None:  # noqa: F811
    """A reader that comes while an agent is writing gets the text from its beginning.

    Docs: streams.md
    """
    async with counting(house) as (noor, hall, _, hesitation), house.stream(noor, hall) as late:
        await late.until("stream.delta")
        hesitation.may_go_on.set()
        await late.until("message")
        assert deltas(late.seen) == COUNT


async def test_a_text_that_is_not_posted_is_taken_back(house: House) -> None:  # noqa: F811
    """If a text that has begun to stream is not posted, the readers are told to remove it.

    Docs: streams.md
    """
    noor, bert = await house.world.person("Noor"), await house.world.person("Bert")
    hesitation = Hesitation()
    ada = await house.world.agent("Ada", model=scripted([reply(COUNT), skip("for Bert")], pause=hesitation))
    hall = await house.world.space("Hall", noor, bert, ada)
    async with asyncio.TaskGroup() as tasks, house.stream(noor, hall) as stream:
        await house.say(noor, "Bert?", hall)
        tasks.create_task(house.world.run())
        await stream.until("stream.delta")
        hesitation.may_go_on.set()
        await stream.until("stream.aborted")
    assert await house.world.transcript(hall) == ["Noor: Bert?"]


async def test_people_see_that_an_agent_is_thinking(house: House) -> None:  # noqa: F811
    """Readers of a space see when an agent in it begins and ends to think.

    Docs: streams.md
    """
    async with counting(house) as (_, _, stream, hesitation):
        hesitation.may_go_on.set()
        await stream.until("agent.status", status="sleeping")
        told = [event.data["status"] for event in stream.seen if event.name == "agent.status"]
    assert told[-2:] == ["alive", "sleeping"]


async def test_all_spaces_in_one_stream(house: House) -> None:  # noqa: F811
    """One stream has the events of all spaces of a person.

    Docs: streams.md
    """
    ada, noor, hall = await a_hall(house.world)
    lab = await house.world.space("Lab", noor, ada)
    async with house.listen(noor, "/api/stream") as stream:
        await stream.until("ready")
        for space in (hall, lab):
            await house.say(noor, f"Hello, {space.name}", space)
        events = await stream.until("message", 2)
    assert [event.data["space_id"] for event in events if event.name == "message"] == [hall.id, lab.id]


async def test_cycles_and_steps_are_sent_to_admins(house: House) -> None:  # noqa: F811
    """Admins follow an agent live: its cycles, its steps with the tools they call, and its skips with the reason.

    Docs: streams.md
    """
    noor, bert = await house.world.person("Noor"), await house.world.person("Bert")
    turns = [call("read_messages"), reply("Hi.")], "Greeted Noor.", skip("for Bert")
    ada = await house.world.agent("Ada", *turns)
    hall = await house.world.space("Hall", noor, bert, ada)
    async with house.world.denizen.living(), house.listen(noor, f"/api/agents/{ada.id}/stream") as stream:
        await stream.until("agent.status", status="sleeping")
        await house.say(noor, "@ada, hello", hall)
        (*_, cycle) = await stream.until("cycle")
        await house.say(noor, "Bert?", hall)
        (*_, skipped) = await stream.until("cycle.skipped")
    assert (cycle.data["number"], cycle.data["summary"], cycle.data["steps"]) == (1, "Greeted Noor.", 2)
    assert skipped.data["reason"] == "for Bert"


async def test_a_stream_is_only_for_members(house: House) -> None:  # noqa: F811
    """Only members of a space can read its stream.

    Docs: streams.md
    """
    _, _, hall = await a_hall(house.world)
    bert = await house.world.person("Bert")
    assert (await house.call("GET", f"/api/spaces/{hall.id}/stream", bert)).status_code == 404
