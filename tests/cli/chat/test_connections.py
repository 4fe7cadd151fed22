"""What a conversation needs of the API, asked of the application in this process."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from denizen import call, scripted, tool
from denizen.client import AgentStatus, Call, Client, Connected, Message, StreamDelta, StreamEvent, StreamStarted
from denizen.errors import DenizenError
from denizen.ids import new_id
from tests.cli.chat.houses import CONFIRM, House, echoing, open_house
from tests.hesitation import Hesitation


async def collect(client: Client, space_id: str, *, after: int, until: str, saying: str = "") -> list[StreamEvent]:
    """What the stream tells until a message ends with `until`; `saying` is posted once it is connected."""
    events: list[StreamEvent] = []
    async with asyncio.timeout(60), aclosing(client.stream(space_id, after=after)) as stream:
        async for event in stream:
            events.append(event)
            if isinstance(event, Connected) and saying:
                await client.post(space_id, saying, key=new_id())
            if isinstance(event, Message) and event.text.endswith(until):
                return events
    raise AssertionError("unreachable")


def messages_of(events: list[StreamEvent]) -> list[tuple[int, str, str]]:
    return [(each.seq, each.author.name, each.text) for each in events if isinstance(each, Message)]


async def test_one_sees_who_and_where_one_is(client: Client, house: House) -> None:
    me, spaces, agents = await client.me(), await client.spaces(), await client.agents()

    assert (me.id, me.handle, me.name) == (house.noor.id, "noor", "Noor")
    assert [(each.name, each.private, each.last_seq, [m.handle for m in each.members]) for each in spaces] == [
        ("Kitchen", False, 0, ["noor", "ada", "bo"]),
        ("Cellar", False, 0, ["noor"]),
        ("Noor and Ada", True, 0, ["noor", "ada"]),
    ]
    assert [member.attention for member in spaces[0].members] == ["all", "all", "mentions"]
    assert [(each.name, each.status, each.purpose) for each in agents] == [
        ("Ada", "sleeping", "Keeps the house."),
        ("Bo", "sleeping", "Mends things."),
    ]


async def test_posting_twice_with_one_key_is_posting_once(client: Client, house: House) -> None:
    """So that what was typed can be sent again when it is not known whether it arrived."""
    key = new_id()
    first = await client.post(house.cellar.id, "Hello @ada", key=key)
    second = await client.post(house.cellar.id, "Hello @ada", key=key)

    assert first == second
    assert (first.seq, first.author.name, first.mentions) == (1, "Noor", ["ada"])
    assert (await client.spaces())[1].last_seq == 1


async def test_history_is_read_in_both_directions(client: Client, house: House) -> None:
    for number in range(1, 6):
        await client.post(house.cellar.id, f"text {number}", key=new_id())

    async def numbers(**where: int) -> list[int]:
        return [each.seq for each in await client.messages(house.cellar.id, **where)]

    assert await numbers() == [1, 2, 3, 4, 5]
    assert await numbers(limit=2) == [4, 5]
    assert await numbers(before=4, limit=2) == [2, 3]
    assert await numbers(after=3) == [4, 5]


async def test_an_answer_is_heard_as_it_is_written(ready_sqlite_url: str) -> None:
    """The agent wakes and writes piece by piece, under the id of the message, what the message says in the end."""
    hesitation, events = Hesitation(), list[StreamEvent]()
    async with (
        open_house(ready_sqlite_url, ada=echoing("Ada", pause=hesitation)) as house,
        house.client() as client,
        asyncio.timeout(60),
        aclosing(client.stream(house.room.id, after=0)) as stream,
    ):
        async for event in stream:
            events.append(event)
            if isinstance(event, Connected):
                await client.post(house.room.id, "Hello", key=new_id())
            elif isinstance(event, StreamDelta):
                hesitation.may_go_on.set()
            elif isinstance(event, Message) and event.author.name == "Ada":
                break

    assert isinstance(events[0], Connected)
    assert messages_of(events) == [(1, "Noor", "Hello"), (2, "Ada", "Ada hears you.")]
    assert hesitation.pieces > 4
    answer = events[-1]
    assert isinstance(answer, Message)
    started = next(each for each in events if isinstance(each, StreamStarted))
    pieces = [each for each in events if isinstance(each, StreamDelta)]
    assert {started.id, *(each.id for each in pieces)} == {answer.id}
    assert "".join(each.text for each in pieces) == answer.text
    assert (house.ada.id, "alive") in [(each.agent, each.status) for each in events if isinstance(each, AgentStatus)]


async def test_a_stream_resumes_after_any_number(client: Client, house: House) -> None:
    """Neither a gap nor a message twice."""
    for number in range(1, 4):
        await client.post(house.cellar.id, f"text {number}", key=new_id())

    events = await collect(client, house.cellar.id, after=1, until="text 4", saying="text 4")
    assert [seq for seq, _, _ in messages_of(events)] == [2, 3, 4]


async def test_someone_who_joins_is_heard_too(client: Client, house: House) -> None:
    """The stream follows who is in the space."""
    told: list[StreamEvent] = []
    async with asyncio.timeout(60), aclosing(client.stream(house.cellar.id, after=0)) as stream:
        async for event in stream:
            told.append(event)
            if isinstance(event, Connected):
                await house.runtime.spaces.join(house.cellar, house.bo)
                await client.post(house.cellar.id, "Welcome", key=new_id())
            if isinstance(event, Message) and event.author.name == "Bo":
                break
    assert messages_of(told) == [(1, "Noor", "Welcome"), (2, "Bo", "Bo hears you.")]


async def test_what_an_agent_asks_is_heard_and_answered_once(house_that_asks: House) -> None:
    """Everyone sees it wait, and who answered what; the agent goes on with the first answer."""
    house, told = house_that_asks, list[Call]()
    async with house.client() as client, asyncio.timeout(60):
        async with aclosing(client.stream(house.room.id, after=0)) as stream:
            async for event in stream:
                if isinstance(event, Connected):
                    await client.post(house.room.id, "Go", key=new_id())
                elif isinstance(event, Call) and event not in told:  # a call may be told of more than once
                    told.append(event)
                    if event.state == "waiting":
                        assert await client.calls() == [event]
                        assert (await client.answer(event.id, {"confirmed": True})).state == "answered"
                elif isinstance(event, Message) and event.author.name == "Ada":
                    break
        asked, settled = told
        assert (asked.tool, asked.mode, asked.agent_id, asked.space_id) == (
            "confirm_action",
            "pause",
            house.ada.id,
            house.room.id,
        )
        assert asked.arguments == {"question": "Deploy v2.1?", "where": "the barn"}
        assert settled == await client.call(asked.id)
        assert (settled.state, settled.result, settled.settled_by) == ("answered", '{"confirmed":true}', house.noor.id)
        assert await client.calls() == []
        with pytest.raises(DenizenError, match="The first one stands"):
            await client.answer(asked.id, "no")
        with pytest.raises(DenizenError, match="There is no call"):
            await client.call(new_id())
    assert await house.runtime.spaces.transcript(house.room) == ["Noor: Go", 'Ada: So it is {"confirmed":true}.']


async def test_what_waits_is_told_to_whoever_comes(house_that_asks: House) -> None:
    house = house_that_asks
    async with house.client() as client, asyncio.timeout(60):
        await client.post(house.room.id, "Go", key=new_id())
        for _ in range(2):
            async with aclosing(client.stream(house.room.id, after=1)) as stream:
                told = await anext(event async for event in stream if isinstance(event, Call))
                assert (told.state, told.after_seq) == ("waiting", 1)


async def test_a_call_that_was_settled_before_the_stream_began_is_told(ready_sqlite_url: str) -> None:
    """An agent may look something up and ask before the stream of whoever spoke to it is there."""

    @tool(visible=True)
    async def look_up(word: str) -> str:
        return f"{word}: a place"

    turns = scripted(call("look_up", word="hall"), call("confirm_action", question="Deploy v2.1?"))
    async with (
        open_house(ready_sqlite_url, ada=turns, tools=[look_up, CONFIRM]) as house,
        house.client() as client,
        asyncio.timeout(60),
    ):
        await client.post(house.room.id, "Go", key=new_id())
        told: list[str] = []
        for _ in range(2):  # the second time it is certain that all of it was before
            told.clear()
            async with aclosing(client.stream(house.room.id, after=0)) as stream:
                while "confirm_action waiting" not in told:
                    match await anext(stream):
                        case Message() as message:
                            told.append(message.text)
                        case Call(state=state, tool=name) if (name, state) != ("look_up", "waiting"):
                            told.append(f"{name} {state}")
                        case _:
                            pass
        assert told == ["Go", "look_up answered", "confirm_action waiting"]


@pytest.mark.parametrize("what", ["empty", "elsewhere"])
async def test_what_cannot_be_said_is_refused_with_a_sentence(client: Client, house: House, what: str) -> None:
    space = house.cellar.id if what == "empty" else new_id()
    with pytest.raises(DenizenError, match=r"needs some text|There is no space"):
        await client.post(space, " " if what == "empty" else "Hello", key=new_id())
    assert await client.messages(house.cellar.id) == []
