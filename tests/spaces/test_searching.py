"""Finding what was said: whole words, all of them, the newest first, and never more work than is allowed."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from denizen.errors import InvalidInput
from denizen.ids import EntityId
from denizen.spaces import posting, searching
from denizen.spaces.directory import Entity, Space
from denizen.spaces.searching import Cursor, MessageQuery, SearchedWords
from denizen.storage.database import Tx
from tests.world import World


@pytest.mark.parametrize(
    ("query", "text", "found"),
    [
        ("plan", "The PLAN is set.", True),
        ("plan", "An explanation, a planet", False),
        ("tea milk", "Milk first, then tea", True),
        ("tea milk", "Tea only", False),
        ("straße", "In der STRASSE", True),
        ("café", "cafe\u0301", True),
        ("snake_case", "a snake and its case", True),
        ("case", "snake_case", True),
        ("@ada", "ask Ada", True),
        ("C++", "c", True),
        ("42", "call 4242", False),
        ("東京", "私は東京に住む", True),
        ("京都", "私は東京に住む", False),
        ("tea tea", "TEA", True),
    ],
)
def test_what_counts_as_a_word(query: str, text: str, found: bool) -> None:
    assert SearchedWords(query).occur_in(text) is found


@pytest.mark.parametrize("query", ["", "  ", "?!", "_"])
def test_there_has_to_be_a_word(query: str) -> None:
    with pytest.raises(InvalidInput, match="at least one word"):
        SearchedWords(query)


@pytest.mark.parametrize("text", ["!", "é", "AAAA", "AAAAAAAAAAAAAAAAAAAA"])
def test_a_place_that_no_search_gave_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="before"):
        Cursor.read(text)


def test_a_place_survives_being_written() -> None:
    place = Cursor(1_767_603_600_000_000, {b"abcdef": 0, b"\xff" * 6: 2**40 - 1})
    assert Cursor.read(str(place)) == place


async def all_pages(world: World, who: Entity, words: str, *, limit: int, look_at: int) -> list[list[str]]:
    """What each search finds, until there is nothing more."""
    pages: list[list[str]] = []
    before: Cursor | None = None
    while True:
        found = await world.denizen.db.read(
            searching.search, who.id, MessageQuery(SearchedWords(words)), before=before, limit=limit, look_at=look_at
        )
        pages.append([each.text for each in found.messages])
        if found.next is None:
            return pages
        before = Cursor.read(found.next)


async def say_all(world: World, said: Sequence[tuple[Space, EntityId, str]]) -> None:
    """Some at a time: PostgreSQL looks through all the numbers that a space had in a transaction for the next one."""

    def post(tx: Tx, some: Sequence[tuple[Space, EntityId, str]]) -> None:
        for space, author, text in some:
            posting.post(tx, space.id, author, posting.draft(text))

    for first in range(0, len(said), 100):
        await world.denizen.db.write(post, said[first : first + 100])


async def test_the_newest_comes_first_whatever_space_it_was_said_in(world: World) -> None:
    noor = await world.person("Noor")
    hall, attic = await world.space("Hall", noor), await world.space("Attic", noor)
    for number in range(6):
        world.clock.advance(1)
        await world.say(noor, f"tea {number}", hall if number % 3 else attic)

    assert await all_pages(world, noor, "tea", limit=2, look_at=100) == [
        ["tea 5", "tea 4"],
        ["tea 3", "tea 2"],
        ["tea 1", "tea 0"],
    ]


@pytest.mark.parametrize("seed", range(3))
async def test_pages_of_any_size_find_everything_once_and_in_order(world: World, seed: int) -> None:
    """However little a search may look at, and though others speak meanwhile: nothing is left out or comes twice."""
    rng = random.Random(seed)
    noor, sam = await world.person("Noor"), await world.person("Sam")
    spaces = [await world.space(f"Space {number}", noor, sam) for number in range(5)]
    other = await world.space("Elsewhere", sam)
    expected: list[str] = []
    for number in range(150):
        world.clock.advance(1)
        space = rng.choice([*spaces, other])
        text = f"{'tea' if rng.random() < 0.3 else 'milk'} {number}"
        await say_all(world, [(space, sam.id, text)])
        if space != other and text.startswith("tea"):
            expected.insert(0, text)

    for limit, look_at in [(1, 1), (3, 7), (100, 5), (4, 1_000), (100, 1_000)]:
        pages = await all_pages(world, noor, "tea", limit=limit, look_at=look_at)
        assert [text for page in pages for text in page] == expected
        assert all(len(page) <= limit for page in pages)


async def test_what_is_said_while_one_leafs_does_not_disturb(world: World) -> None:
    noor = await world.person("Noor")
    spaces = [await world.space(f"Space {number}", noor) for number in range(4)]
    for number in range(12):
        world.clock.advance(1)
        await world.say(noor, f"tea {number}", spaces[number % 4])
    read, found, before = world.denizen.db.read, list[str](), None
    while True:
        page = await read(searching.search, noor.id, MessageQuery(SearchedWords("tea")), before=before, limit=2)
        found += [each.text for each in page.messages]
        if page.next is None:
            break
        before = Cursor.read(page.next)
        world.clock.advance(1)
        for space in spaces:
            await world.say(noor, "tea, later", space)

    assert found == [f"tea {number}" for number in reversed(range(12))]


async def test_a_search_looks_at_so_much_and_no_more(small_world: World) -> None:
    """What is further back than one search goes is found by the next, which the empty first one leads to."""
    noor = await small_world.person("Noor")
    hall = await small_world.space("Hall", noor)
    milk = (hall, noor.id, "milk")
    await say_all(small_world, [(hall, noor.id, "tea"), *[milk] * (searching.MESSAGES_LOOKED_AT + 100)])

    first = await small_world.denizen.spaces.search(noor, "tea")
    assert first.messages == []
    assert first.next is not None
    assert sorted(Cursor.read(first.next).positions.values()) == [101]
    second = await small_world.denizen.spaces.search(noor, "tea", before=first.next)
    assert ([each.seq for each in second.messages], second.next) == ([1], None)


async def test_long_messages_count_for_more(small_world: World) -> None:
    """A hundred messages of 99,000 characters are more than one search reads."""
    noor = await small_world.person("Noor")
    hall = await small_world.space("Hall", noor)
    await say_all(small_world, [(hall, noor.id, "milk " * 19_800)] * 100)

    found = await small_world.denizen.spaces.search(noor, "tea")

    assert found.next is not None
    [left] = Cursor.read(found.next).positions.values()
    assert 0 < left < 60


async def test_deleted_and_forgotten_messages_are_not_found(world: World) -> None:
    noor, sam = await world.person("Noor"), await world.person("Sam")
    hall = await world.space("Hall", noor, sam)
    deleted, forgotten, edited = [await world.say(sam, f"tea {name}", hall) for name in ("one", "two", "three")]
    await world.denizen.spaces.delete_message(deleted, by=sam)
    await world.denizen.spaces.forget_message(forgotten)
    await world.denizen.spaces.edit_message(edited, "coffee three", by=sam)

    for words in ("tea", "deleted", "forgotten", "one", "two"):
        assert (await world.denizen.spaces.search(noor, words)).messages == []
    [found] = (await world.denizen.spaces.search(noor, "coffee")).messages
    assert (found.id, found.author_name) == (edited.id, "Sam")


async def test_a_search_is_narrowed_to_a_space_or_an_author(world: World) -> None:
    noor, sam = await world.person("Noor"), await world.person("Sam")
    hall, attic = await world.space("Hall", noor, sam), await world.space("Attic", noor, sam)
    for space in (hall, attic):
        for who in (noor, sam):
            world.clock.advance(1)
            await world.say(who, f"**tea** of {who.name} in the {space.name}", space)

    async def plain(**where: object) -> list[str]:
        found = await world.denizen.spaces.search(noor, "tea", **where)  # pyright: ignore[reportArgumentType]
        assert found.next is None
        return [each.plain for each in found.messages]

    assert await plain(space=hall) == ["tea of Sam in the Hall", "tea of Noor in the Hall"]
    assert await plain(author=sam) == ["tea of Sam in the Attic", "tea of Sam in the Hall"]
    assert await plain(space=attic, author=noor) == ["tea of Noor in the Attic"]


async def test_nobody_finds_what_was_said_where_they_are_not(world: World) -> None:
    noor, sam = await world.person("Noor"), await world.person("Sam")
    hall = await world.space("Hall", noor, sam)
    secret = await world.space("Secret", noor)
    await world.say(noor, "tea", secret)
    await world.say(noor, "tea", hall)

    assert [each.space_id for each in (await world.denizen.spaces.search(sam, "tea")).messages] == [hall.id]
    assert (await world.denizen.spaces.search(sam, "tea", space=secret)).messages == []
    await world.denizen.spaces.leave(hall, sam)
    assert (await world.denizen.spaces.search(sam, "tea")).messages == []
