"""What an agent says is heard while it is still being written: frames of the bus, provisional until it is said."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from denizen import call, reply, scripted, skip, think, tool
from denizen.agents.pace import Pace
from denizen.agents.registry import Agent
from denizen.bus.port import Frame
from denizen.bus.streams import AgentStatus, agent_topic, from_payload
from denizen.errors import ModelRejected, ModelUnreachable
from denizen.models.scripted import Call, ScriptedModel
from denizen.spaces.directory import Space
from tests.world import UNHURRIED, JumpingClock, World, listening, open_world

GREETING = 'Hello, Noor. \n"How" are you 😀?'


async def heard_in_a_hall(
    world: World, model: ScriptedModel, **options: Any
) -> tuple[list[dict[str, Any]], Agent, Space]:
    """All frames of the space, from a message of Noor's to the end of what Ada makes of it."""
    ada = await world.agent("Ada", model=model, **options)
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    async with listening(world, hall) as heard:
        await world.say(noor, "Hi", hall)
        await world.run()
        frames = await heard()
    assert frames[0]["type"] == "message.created"
    return frames[1:], ada, hall


def types(frames: list[dict[str, Any]]) -> list[str]:
    """The types of the frames, runs of deltas as one."""
    found: list[str] = []
    for frame in frames:
        if frame["type"] != "stream.delta" or found[-1:] != ["stream.delta"]:
            found.append(frame["type"])
    return found


def text_of(frames: list[dict[str, Any]], id: str) -> str:
    deltas = [frame for frame in frames if frame["type"] == "stream.delta" and frame["id"] == id]
    text = ""
    for delta in deltas:
        assert delta["offset"] == len(text)
        text += delta["text"]
    return text


@pytest.mark.parametrize("chunk", [1, 3, 12, None])
async def test_a_message_streams_under_the_id_that_it_will_have(world: World, chunk: int | None):
    """The stream and the stored message were shown twice elsewhere: here they have one id."""
    model = scripted([think("Polite."), reply(GREETING)], "Greeted Noor.", chunk=chunk)
    frames, ada, hall = await heard_in_a_hall(world, model)

    assert types(frames) == ["stream.started", "stream.delta", "message.created"]
    started, *deltas, created = frames
    (_, message) = await world.denizen.spaces.messages(hall)
    assert started == {
        "type": "stream.started",
        "id": message.id,
        "agent": ada.id,
        "space": hall.id,
        "epoch": 1,
        "reply_to": None,
        "again": False,
    }
    assert text_of(deltas, message.id) == GREETING == message.text
    assert created == {"type": "message.created", "space": hall.id, "seq": 2, "id": message.id, "author": ada.id}
    assert len(deltas) == 1 if chunk is None else len(deltas) > 1


async def test_two_messages_of_one_response_are_two_streams(world: World):
    frames, _, hall = await heard_in_a_hall(world, scripted([reply("One."), reply("Two.")], "Counted.", chunk=2))
    assert types(frames) == [
        "stream.started",
        "stream.delta",
        "stream.started",
        "stream.delta",
        "message.created",
        "message.created",
    ]
    ids = [frame["id"] for frame in frames if frame["type"] == "stream.started"]
    assert [message.id for message in await world.denizen.spaces.messages(hall)][1:] == ids
    assert [text_of(frames, id) for id in ids] == ["One.", "Two."]


async def test_after_entering_a_space_in_the_same_response_the_message_is_held(world: World):
    """Where it goes is not certain before the call is carried out: so it is not streamed to the wrong place."""
    ada = await world.agent("Ada")
    noor = await world.person("Noor")
    hall, attic = await world.space("Hall", noor, ada), await world.space("Attic", noor, ada)
    turns = [reply("Here."), call("enter_space", space_id=attic.id), reply("There.")], reply("Still there."), "Went up."
    await world.restart(ada=scripted(*turns, chunk=2))
    async with listening(world, hall) as in_hall, listening(world, attic) as in_attic:
        await world.say(noor, "Go up", hall)
        await world.run()
        assert types(await in_hall()) == ["message.created", "stream.started", "stream.delta", "message.created"]
        frames = await in_attic()
    assert types(frames) == ["message.created", "stream.started", "stream.delta", "message.created"]
    assert text_of(frames, frames[-1]["id"]) == "Still there."
    assert await world.transcript(attic) == ["Ada: There.", "Ada: Still there."]


async def test_a_stream_that_is_skipped_is_aborted(world: World):
    frames, ada, hall = await heard_in_a_hall(world, scripted([reply("Hello"), skip("not mine")], chunk=2))
    assert types(frames) == ["stream.started", "stream.delta", "stream.aborted", "status.changed"]
    assert frames[-2] == {
        "type": "stream.aborted",
        "agent": ada.id,
        "epoch": 1,
        "id": frames[0]["id"],
        "reason": "skipped",
    }
    assert await world.transcript(hall) == ["Noor: Hi"]


async def test_a_stream_that_is_refused_is_aborted(world: World):
    """The arguments turn out to be wrong after the text has streamed."""
    wrong = Call("send_message", '{"text": "Hello", "space_id": 7}')
    frames, _, hall = await heard_in_a_hall(world, scripted([wrong, reply("Hello.")], "Greeted.", chunk=2))
    first, second = [frame["id"] for frame in frames if frame["type"] == "stream.started"]
    assert [(frame["id"], frame["reason"]) for frame in frames if frame["type"] == "stream.aborted"] == [
        (first, "refused")
    ]
    assert [frame["id"] for frame in frames if frame["type"] == "message.created"] == [second]
    assert await world.transcript(hall) == ["Noor: Hi", "Ada: Hello."]


async def test_a_stream_that_breaks_off_is_aborted_and_begins_anew(ready_sqlite_url: str):
    clock = JumpingClock()
    async with open_world(ready_sqlite_url, clock=clock, pace=UNHURRIED) as world:
        model = scripted([reply("Hel"), ModelUnreachable("line cut")], reply("Hello."), "Greeted Noor.", chunk=2)
        frames, _, hall = await heard_in_a_hall(world, model)
        assert types(frames) == [
            "stream.started",
            "stream.delta",
            "stream.aborted",
            "stream.started",
            "stream.delta",
            "message.created",
        ]
        aborted, said = frames[0]["id"], frames[-1]["id"]
        assert [(frame["id"], frame["reason"]) for frame in frames if frame["type"] == "stream.aborted"] == [
            (aborted, "error")
        ]
        assert (text_of(frames, aborted), text_of(frames, said)) == ("Hel", "Hello.")
        assert await world.transcript(hall) == ["Noor: Hi", "Ada: Hello."]


@pytest.mark.parametrize("error", [ModelRejected("no"), ValueError("a defect")])
async def test_a_stream_that_fails_for_good_is_aborted(world: World, error: Exception):
    frames, _, hall = await heard_in_a_hall(world, scripted([reply("Hello"), error], chunk=2))
    assert types(frames) == ["stream.started", "stream.delta", "stream.aborted", "status.changed"]
    assert await world.transcript(hall) == ["Noor: Hi"]


async def test_a_stream_cut_off_by_a_shutdown_is_aborted(ready_url: str):
    half = asyncio.Event()
    deltas = 0

    async def stop_in_the_middle() -> None:
        nonlocal deltas
        deltas += 1
        if deltas == 10:
            half.set()
            await asyncio.Event().wait()

    async with open_world(ready_url, pace=Pace(grace_seconds=0)) as world:
        ada = await world.agent("Ada", model=scripted(reply("Hello, Noor."), chunk=2, pause=stop_in_the_middle))
        noor = await world.person("Noor")
        hall = await world.space("Hall", noor, ada)
        async with listening(world, hall) as heard:
            await world.say(noor, "Hi", hall)
            async with world.denizen.living():
                await half.wait()
            frames = (await heard())[1:]
        assert types(frames) == ["stream.started", "stream.delta", "stream.aborted"]
        assert frames[-1]["reason"] == "interrupted"


async def test_only_what_is_said_streams(world: World):
    """Not thinking, not plain text, not the arguments of other tools."""
    frames, _, _ = await heard_in_a_hall(
        world, scripted([think("Hm."), call("read_messages", limit=3)], "Plain.", reply("Hello."), "Greeted.", chunk=2)
    )
    assert types(frames) == ["stream.started", "stream.delta", "message.created"]
    assert text_of(frames, frames[0]["id"]) == "Hello."


async def test_without_listeners_the_message_is_said_all_the_same(world: World):
    ada = await world.agent("Ada", model=scripted(reply(GREETING), "Greeted.", chunk=1))
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "Hi", hall)
    await world.run()
    assert await world.transcript(hall) == ["Noor: Hi", f"Ada: {GREETING}"]


async def test_what_a_person_posts_is_told_to_listeners(world: World):
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor)
    async with listening(world, hall) as heard:
        posted = await world.say(noor, "Hi", hall)
        assert await heard() == [
            {"type": "message.created", "space": hall.id, "seq": 1, "id": posted.id, "author": noor.id}
        ]


async def test_whoever_watches_an_agent_sees_with_which_tool_it_is_busy(world: World):
    """From waking to sleeping; tools of ours are done in no time and are not told."""

    @tool
    async def oven() -> str:
        """Heat the oven."""
        return "hot"

    model = scripted([call("read_messages"), call("oven")], reply("It is hot."), "Heated the oven.")
    ada = await world.agent("Ada", model=model, tools=[oven])
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    async with world.denizen.bus.subscribe(agent_topic(ada.id)) as frames:
        await world.say(noor, "Heat the oven, please.", hall)
        await world.run()
        seen: list[tuple[str, str | None]] = []
        async for frame in frames:
            assert isinstance(frame, Frame)
            told = from_payload(frame.payload)
            if not isinstance(told, AgentStatus):
                continue  # of its cycle
            seen.append((told.status, told.doing))
            if told.status == "sleeping":
                break
    assert seen == [("alive", None), ("alive", "oven"), ("alive", None), ("sleeping", None)]
