"""How far members have read."""

from __future__ import annotations

import pytest

from denizen import reply
from denizen.errors import InvalidInput, NotFound
from denizen.spaces import reading
from denizen.spaces.directory import Entity, Space
from tests.world import World


async def unread(world: World, space: Space, *who: Entity) -> list[int]:
    return [(await world.denizen.db.read(reading.place_of, space.id, each.id)).unread for each in who]


async def test_whoever_speaks_has_read_and_the_others_have_not(world: World) -> None:
    noor, sam = await world.person("Noor"), await world.person("Sam")
    ada = await world.agent("Ada", reply("Good morning."), "Greeted.")
    hall = await world.space("Hall", noor, sam, ada)

    await world.say(noor, "Good morning", hall)
    await world.run()
    assert await unread(world, hall, noor, sam) == [1, 2]

    await world.say(sam, "Hello", hall)
    assert await unread(world, hall, noor, sam) == [2, 0]


async def test_posting_again_moves_no_mark(world: World) -> None:
    noor, sam = await world.person("Noor"), await world.person("Sam")
    hall = await world.space("Hall", noor, sam)
    first = await world.say(noor, "Once", hall)
    await world.say(sam, "Between", hall)
    await world.say(noor, "Once", hall, id=first.id)
    assert await unread(world, hall, noor, sam) == [1, 0]


async def test_whoever_joins_has_read_what_was_said_before(world: World) -> None:
    noor, sam = await world.person("Noor"), await world.person("Sam")
    hall = await world.space("Hall", noor)
    await world.say(noor, "One", hall)
    await world.denizen.spaces.join(hall, sam)
    assert await unread(world, hall, sam) == [0]
    await world.say(noor, "Two", hall)
    await world.denizen.spaces.join(hall, sam)
    assert await unread(world, hall, sam) == [1]


async def test_a_mark_moves_both_ways_and_no_further_than_what_was_said(world: World) -> None:
    noor, sam = await world.person("Noor"), await world.person("Sam")
    eve = await world.person("Eve")
    hall = await world.space("Hall", noor, sam)
    for number in range(3):
        await world.say(noor, f"{number}", hall)

    for seq, left in [(2, 1), (3, 0), (1, 2), (0, 3)]:
        assert (await world.denizen.spaces.mark_read(hall, sam, seq)).unread == left
        assert await unread(world, hall, noor, sam) == [0, left]
    for seq in (-1, 4):
        with pytest.raises(InvalidInput, match="up to 3"):
            await world.denizen.spaces.mark_read(hall, sam, seq)
    with pytest.raises(NotFound):
        await world.denizen.spaces.mark_read(hall, eve, 1)


async def test_deleted_messages_keep_their_place_in_the_count(world: World) -> None:
    """The number of a message is never another's."""
    noor, sam = await world.person("Noor"), await world.person("Sam")
    hall = await world.space("Hall", noor, sam)
    said = await world.say(noor, "Oh", hall)
    await world.denizen.spaces.delete_message(said, by=noor)
    assert await unread(world, hall, sam) == [1]


async def test_places_come_page_by_page_with_who_is_there(world: World) -> None:
    noor, sam = await world.person("Noor"), await world.person("Sam")
    for number in range(5):
        members = (noor, sam) if number % 2 else (noor,)
        await world.space(f"Space {number}", *members)
    await world.space("Sam's own", sam)

    found: list[tuple[str, list[str]]] = []
    after = ""
    while page := await world.denizen.db.read(reading.places_of, noor.id, after=after, limit=2):
        assert len(page) <= 2
        found += [(place.space.name, [each.entity.name for each in there]) for place, there in page]
        after = page[-1][0].space.id

    assert found == [
        ("Space 0", ["Noor"]),
        ("Space 1", ["Noor", "Sam"]),
        ("Space 2", ["Noor"]),
        ("Space 3", ["Noor", "Sam"]),
        ("Space 4", ["Noor"]),
    ]


async def test_what_mentions_oneself_is_counted_among_the_newest(world: World) -> None:
    """Not what mentions others, whatever their handles look like, nor what was deleted, nor what is read."""
    noor, sam = await world.person("Noor"), await world.person("Sam A", handle="sam_a")
    await world.person("Sammy", handle="sam-a")
    hall, cellar = await world.space("Hall", noor, sam), await world.space("Cellar", noor, sam)
    said = [
        await world.denizen.spaces.post(hall, noor, text)
        for text in ("@sam_a?", "@sam-a?", "Hello, @SAM_A and @noor", "Nobody", "@sam_a!")
    ]
    await world.denizen.spaces.post(cellar, noor, "@noor")

    async def mentions(who: Entity) -> list[int]:
        places = await world.denizen.db.read(reading.places_of, who.id, limit=10)
        return [place.unread_mentions for place, _ in places]

    assert (await mentions(sam), await mentions(noor)) == ([3, 0], [0, 0])
    await world.denizen.spaces.delete_message(said[-1], by=noor)
    assert await mentions(sam) == [2, 0]
    assert (await world.denizen.spaces.mark_read(hall, sam, 1)).unread_mentions == 1
    for number in range(reading.LOOKED_AT - 1):
        await world.denizen.spaces.post(hall, noor, f"{number}")
    assert (await world.denizen.db.read(reading.place_of, hall.id, sam.id)).unread_mentions == 0
