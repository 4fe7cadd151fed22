"""Everything a person may see, as server-sent events: nothing is lost or repeated, wherever one comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen import reply, scripted
from denizen.access import tokens
from denizen.bus.streams import CallStarted, SpaceChanged, entity_topic, space_topic
from denizen.errors import InvalidInput
from denizen.ids import CallId, SpaceId, new_id
from denizen.server.streams import cursor
from denizen.spaces.directory import Space
from tests.hesitation import Hesitation
from tests.server.conftest import House, SentEvent, Stream

PATH = "/api/stream"


def said(events: Sequence[SentEvent]) -> list[str]:
    return [each.data["text"] for each in events if each.name == "message"]


async def begun(stream: Stream) -> list[SentEvent]:
    return await stream.until("ready")


@given(st.dictionaries(st.builds(new_id).map(SpaceId), st.integers(0, 2**62), max_size=20))
def test_a_cursor_holds_every_position(positions: dict[SpaceId, int]) -> None:
    text = cursor.encode(positions)
    assert cursor.decode(text) == {cursor.ending(space): seq for space, seq in positions.items()}
    assert text.replace("-", "").replace("_", "").isalnum()


@pytest.mark.parametrize("text", ["x", "12", "AQ==x", "AgAA", "AQAAAAAAAACA", "é", "AQAAAA"])
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="not an event id"):
        cursor.decode(text)


async def test_everything_of_every_space_comes_once(house: House) -> None:
    world = house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    hall, attic = await world.space("Hall", noor, sam), await world.space("Attic", noor)
    cellar = await world.space("Cellar", sam)
    await world.say(noor, "Before", hall)
    async with house.listen(noor, PATH) as stream:
        start = await begun(stream)
        await world.say(sam, "One", hall)
        await world.say(sam, "Not for Noor", cellar)
        await world.say(noor, "Two", attic)
        [one, two] = await stream.until("message", 2)
        message = await house.say(noor, "Three", hall)
        await house.call("PATCH", f"/api/spaces/{hall.id}/messages/{message['id']}", noor, json={"text": "3"})
        [_, edited] = await stream.until("message.edited")
        await house.call("DELETE", f"/api/spaces/{hall.id}/messages/{message['id']}", noor)
        [deleted] = await stream.until("message.deleted")

    assert [(each.name, each.data.get("name"), each.data.get("last_seq")) for each in start] == [
        ("space.joined", "Hall", 1),
        ("space.joined", "Attic", 0),
        ("ready", None, None),
    ]
    assert start[-1].data["spaces"] == [hall.id, attic.id]
    assert said([one, two]) == ["One", "Two"]
    assert (edited.data["text"], deleted.data["text"]) == ("3", "[deleted]")
    assert [edited.id, deleted.id] == [None, None]

    await world.say(sam, "Four", hall)
    await world.say(noor, "Five", attic)
    async with house.listen(noor, PATH, last=one.id) as stream:
        events = await stream.until("message", 4)
    assert [each.name for each in events[:1]] == ["ready"]
    assert sorted(said(events)) == ["Five", "Four", "Two", "[deleted]"]
    # From the very beginning of being here, too.
    async with house.listen(noor, PATH, last=start[-1].id) as stream:
        assert sorted(said(await stream.until("message", 5))) == ["Five", "Four", "One", "Two", "[deleted]"]


async def test_spaces_one_comes_into_and_leaves_are_followed(house: House) -> None:
    world = house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    ada = await world.agent("Ada")
    hall = await world.space("Hall", noor)
    async with house.listen(noor, PATH) as stream:
        await begun(stream)
        attic = await world.space("Attic", sam, ada)
        await world.say(sam, "Before Noor", attic)
        await world.denizen.spaces.join(attic, noor)
        joined = await stream.until("agent.status")
        await world.say(sam, "Welcome", attic)
        joined += await stream.until("message")
        await world.denizen.spaces.leave(attic, noor)
        [left] = await stream.until("space.left")
        await world.say(sam, "She is gone", attic)
        await world.say(noor, "Home", hall)
        rest = await stream.until("message")

    assert [(each.name, each.data.get("last_seq")) for each in joined if each.name == "space.joined"] == [
        ("space.joined", 1)
    ]
    assert said(joined) == ["Welcome"]
    assert left.data["space"] == attic.id
    assert said(rest) == ["Home"]
    # Whoever comes back from before it left is told where it is.
    async with house.listen(noor, PATH, last=joined[-1].id) as stream:
        [ready] = await begun(stream)
        assert ready.data["spaces"] == [hall.id]
        assert said(await stream.until("message")) == ["Home"]
    # And from before it came: a space that the cursor does not hold is told with its last number.
    await world.denizen.spaces.join(attic, noor)
    async with house.listen(noor, PATH, last=left.id) as stream:
        events = await stream.until("message")
    assert [(each.name, each.data.get("last_seq")) for each in events[:2]] == [("space.joined", 3), ("ready", None)]


async def test_what_is_read_on_one_device_is_told_to_the_others(house: House) -> None:
    world = house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    hall = await world.space("Hall", noor, sam)
    for text in ("One", "Two", "Three"):
        await world.say(sam, text, hall)
    async with house.listen(noor, PATH) as noors, house.listen(sam, PATH) as sams:
        ready = (await begun(noors))[-1]
        assert ready.data["read"] == {hall.id: 0}
        await begun(sams)
        told: list[SentEvent] = []
        for seqs in ([2], [2, 1]):
            for seq in seqs:
                await house.call("PUT", f"/api/spaces/{hall.id}/read", noor, json={"seq": seq})
            told += await noors.until("space.read")
        # Whoever says something has read up to it: that is told by the message.
        await house.say(noor, "Four", hall)
        await house.say(sam, "Five", hall)
        told += await noors.until("message", 2)
        other = await sams.until("message", 2)
    assert [each.data for each in told if each.name == "space.read"] == [
        {"type": "space.read", "space": hall.id, "read_seq": 2, "last_seq": 3, "unread": 1},
        {"type": "space.read", "space": hall.id, "read_seq": 1, "last_seq": 3, "unread": 2},
    ]
    assert {each.id for each in told if each.name == "space.read"} == {None}, "one does not resume after it"
    assert "space.read" not in {each.name for each in other}, "it is nobody else's business"
    async with house.listen(noor, PATH, last=told[-1].id) as again:
        assert (await begun(again))[-1].data["read"] == {hall.id: 4}


async def test_a_changed_space_is_told_as_it_is(small_house: House) -> None:
    world = small_house.world
    noor, ada = await world.person("Noor"), await world.agent("Ada")
    hall = await world.space("Hall", noor)
    async with small_house.listen(noor, PATH) as stream:
        await begun(stream)
        await world.denizen.spaces.join(hall, ada)
        world.denizen.bus.publish(space_topic(hall.id), SpaceChanged(hall.id).to_payload())
        [changed, status] = await stream.until("agent.status")
    assert (changed.name, changed.data["space"], changed.data["name"]) == ("space.changed", hall.id, "Hall")
    assert status.data["agent"] == ada.id


async def test_text_is_heard_while_it_is_written_and_from_its_beginning(small_house: House) -> None:
    world = small_house.world
    noor = await world.person("Noor")
    hesitation = Hesitation()
    ada = await world.agent("Ada", model=scripted(reply("One two three four five six"), "Done.", pause=hesitation))
    hall = await world.space("Hall", noor, ada)
    async with world.denizen.living(), small_house.listen(noor, PATH) as early:
        await begun(early)
        await world.say(noor, "Count", hall)
        await early.until("stream.delta")
        async with small_house.listen(noor, PATH) as late:
            await late.until("stream.delta")
            hesitation.may_go_on.set()
            await late.until("message")
        await early.until("message")
    for stream in (early, late):
        texts = [each.data["text"] for each in stream.seen if each.name == "stream.delta"]
        assert "".join(texts) == "One two three four five six" == said(stream.seen)[-1]
        [start] = [each.data for each in stream.seen if each.name == "stream.started"]
        assert (start["space"], start["offset"]) == (hall.id, 0)


async def test_calls_come_from_the_spaces_one_is_in(small_house: House) -> None:
    world = small_house.world
    noor, ada = await world.person("Noor"), await world.agent("Ada")
    hall = await world.space("Hall", noor, ada)
    frame = CallStarted(CallId("c1"), ada.id, hall.id, 0, "confirm").to_payload()
    async with small_house.listen(noor, PATH) as stream:
        await stream.until("agent.status")
        world.denizen.bus.publish(space_topic(hall.id), frame)
        assert (await stream.next()).data == frame
        await world.denizen.spaces.leave(hall, noor)
        await stream.until("space.left")
        world.denizen.bus.publish(space_topic(hall.id), frame)
        await world.denizen.spaces.join(hall, noor)
        assert [each.name for each in await stream.until("space.joined")] == ["space.joined"]


async def token_revoked(house: House, noor: Any) -> None:
    [token] = await house.world.denizen.db.read(tokens.tokens_of, noor.id)
    await house.world.denizen.db.write(tokens.revoke, token.id)


async def test_a_stream_ends_when_the_token_is_not_good_any_more(small_house: House) -> None:
    world = small_house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    hall = await world.space("Hall", noor, sam)
    async with small_house.listen(noor, PATH) as stream:
        await begun(stream)
        await token_revoked(small_house, noor)
        await world.say(sam, "A secret", hall)
        assert await stream.rest() == []


async def test_agents_have_no_such_stream_and_a_strange_id_is_refused(small_house: House) -> None:
    world = small_house.world
    noor, ada = await world.person("Noor"), await world.agent("Ada")
    assert (await small_house.call("GET", PATH, ada)).status_code == 403
    answer = await small_house.call("GET", PATH, noor, headers={"Last-Event-ID": "7"})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")


async def test_when_a_reader_leaves_the_server_lets_go(small_house: House) -> None:
    world = small_house.world
    noor = await world.person("Noor")
    hall: Space = await world.space("Hall", noor)
    bus = world.denizen.bus
    async with small_house.listen(noor, PATH) as stream:
        await begun(stream)
    while bus.attention(space_topic(hall.id)) or bus.attention(entity_topic(noor.id)):  # noqa: ASYNC110
        await asyncio.sleep(0)
