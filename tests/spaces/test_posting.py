"""Saying something in a space: who hears of it, what is refused, and that message and events are one."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import func, select, text

from denizen import failpoints, reply, skip
from denizen.errors import InvalidInput, NotAMember, NotFound
from denizen.ids import MessageId, SpaceId, new_id
from denizen.spaces.posting import MESSAGE_CHARACTERS
from denizen.storage.database import StorageError, Tx, statement
from denizen.storage.schema import events, messages
from tests.world import World

_count_messages = statement(select(func.count()).select_from(messages))
_count_events = statement(select(func.count()).select_from(events))


def _counts(tx: Tx) -> tuple[int, int]:
    said, delivered = tx.one(_count_messages), tx.one(_count_events)
    assert said is not None
    assert delivered is not None
    return said[0], delivered[0]


async def test_a_message_stands_in_the_space_and_in_every_inbox_but_the_authors(world: World):
    ada, bee = await world.agent("Ada"), await world.agent("Bee")
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada, bee)

    posted = await world.say(ada, "Hello, *all*", hall, metadata={"mood": "fine"})

    assert await world.inbox(ada) == []
    assert await world.inbox(bee) == ["Hello, *all*"]
    (message,) = await world.denizen.spaces.messages(hall)
    assert (message.id, message.seq, message.author_name, message.text, message.plain, message.metadata) == (
        posted.id,
        1,
        "Ada",
        "Hello, *all*",
        "Hello, all",
        {"mood": "fine"},
    )


async def test_a_message_and_its_events_are_one_even_if_delivery_breaks_in_the_middle(world: World):
    """A message and its inbox entries written apart, so that one could fail, lost messages elsewhere."""
    ada, bee = await world.agent("Ada"), await world.agent("Bee")
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada, bee)
    refuse, allow = (statement(text(sql)) for sql in _refusing(world.url, bee.id))
    await world.denizen.db.write(lambda tx: tx.run(refuse))

    with pytest.raises(StorageError):
        await world.say(noor, "Hello", hall)

    assert await world.denizen.db.read(_counts) == (0, 0)
    assert await world.inbox(ada) == []
    await world.denizen.db.write(lambda tx: tx.run(allow))
    await world.say(noor, "Hello", hall)
    assert await world.inbox(ada) == await world.inbox(bee) == ["Hello"]


def _refusing(url: str, agent_id: str) -> tuple[str, str]:
    """SQL that makes the database refuse every event for this agent, and SQL that ends it."""
    if url.startswith("sqlite"):
        condition = f"WHEN NEW.agent_id = '{agent_id}' BEGIN SELECT RAISE(ABORT, 'no room in this inbox'); END"
        return f"CREATE TRIGGER refuse BEFORE INSERT ON events {condition}", "DROP TRIGGER refuse"
    alter = "ALTER TABLE events"
    return f"{alter} ADD CONSTRAINT refuse CHECK (agent_id <> '{agent_id}')", f"{alter} DROP CONSTRAINT refuse"


async def test_a_commit_that_fails_leaves_neither_message_nor_event(world: World):
    ada = await world.agent("Ada")
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)

    def break_off() -> None:
        raise OSError("the plug was pulled")

    failpoints.arm("commit:post_message", break_off)
    try:
        with pytest.raises(OSError, match="plug"):
            await world.say(noor, "Hello", hall)
    finally:
        failpoints.disarm()
    assert await world.denizen.db.read(_counts) == (0, 0)

    await world.say(noor, "Hello", hall)
    assert [message.seq for message in await world.denizen.spaces.messages(hall)] == [1]
    assert await world.inbox(ada) == ["Hello"]


@pytest.mark.parametrize(
    ("attention", "heard"),
    [("all", ["Good morning", "@ada, are you there?"]), ("mentions", ["@ada, are you there?"]), ("none", [])],
)
async def test_attention_decides_what_reaches_an_inbox(world: World, attention: str, heard: list[str]):
    ada = await world.agent("Ada")
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.denizen.spaces.set_attention(hall, ada, attention)  # pyright: ignore[reportArgumentType]

    await world.say(noor, "Good morning", hall)
    await world.say(noor, "@ada, are you there?", hall)

    assert await world.inbox(ada) == heard


async def test_a_handle_mentions_whoever_has_it_and_nobody_else(small_world: World):
    """Mentions are found in what is said, not in code, and by whole handles."""
    world = small_world
    ada, adam = await world.agent("Ada"), await world.agent("Adam")
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada, adam)

    for text_ in ("@ADA hi", "`@ada` is a handle", "@adam hi", "mail me at noor@ada.example"):
        await world.say(noor, text_, hall)

    mentions = [message.mentions for message in await world.denizen.spaces.messages(hall)]
    assert mentions == [("ada",), (), ("adam",), ()]
    assert [event.type for event in await world.denizen.minds.inbox(ada)] == [
        "mention",
        "space_message",
        "space_message",
        "space_message",
    ]


async def test_only_members_may_speak(world: World):
    noor, bert = await world.person("Noor"), await world.person("Bert")
    hall = await world.space("Hall", noor)

    with pytest.raises(NotAMember):
        await world.say(bert, "Let me in", hall)
    assert await world.transcript(hall) == []

    await world.denizen.spaces.join(hall, bert)
    await world.say(bert, "Thank you", hall)
    await world.denizen.spaces.leave(hall, bert)
    with pytest.raises(NotAMember):
        await world.say(bert, "Wait", hall)
    assert await world.transcript(hall) == ["Bert: Thank you"]
    assert [message.seq for message in await world.denizen.spaces.messages(hall)] == [1]


async def test_nothing_can_be_said_in_a_space_that_is_not_there(world: World):
    noor = await world.person("Noor")
    with pytest.raises(NotFound):
        await world.denizen.spaces.post(SpaceId(new_id()), noor, "Hello?")


@pytest.mark.parametrize("nothing", ["", "   ", "\n\t "])
async def test_a_message_needs_some_text(small_world: World, nothing: str):
    noor = await small_world.person("Noor")
    hall = await small_world.space("Hall", noor)
    with pytest.raises(InvalidInput):
        await small_world.say(noor, nothing, hall)
    assert await small_world.transcript(hall) == []


async def test_a_message_has_its_longest_length(small_world: World):
    noor = await small_world.person("Noor")
    hall = await small_world.space("Hall", noor)
    await small_world.say(noor, "x" * MESSAGE_CHARACTERS, hall)
    with pytest.raises(InvalidInput, match="Send it in parts"):
        await small_world.say(noor, "x" * (MESSAGE_CHARACTERS + 1), hall)
    assert [len(line) for line in await small_world.transcript(hall)] == [MESSAGE_CHARACTERS + len("Noor: ")]


async def test_what_no_database_can_hold_is_shown_as_replaced(world: World):
    ada = await world.agent("Ada")
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)

    await world.say(noor, "a\0b", hall)
    await world.say(noor, "half \ud83d of a smile", hall)
    await world.say(noor, "a whole 😀", hall)

    assert await world.transcript(hall) == ["Noor: a\ufffdb", "Noor: half \ufffd of a smile", "Noor: a whole 😀"]
    assert await world.inbox(ada) == ["a\ufffdb", "half \ufffd of a smile", "a whole 😀"]


async def test_metadata_may_hold_any_text_at_all(world: World):
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor)
    await world.say(noor, "Hello", hall, metadata={"half \ud83d": "a\0b \udc00"})
    (message,) = await world.denizen.spaces.messages(hall)
    assert message.metadata == {"half \ud83d": "a\0b \udc00"}


async def test_posting_again_under_the_same_id_is_posting_once(world: World):
    """A client that lost the answer may send again."""
    ada = await world.agent("Ada", reply("Hello."), "Greeted Noor.")
    noor = await world.person("Noor")
    hall, attic = await world.space("Hall", noor, ada), await world.space("Attic", noor)
    id = MessageId(new_id())

    first = await world.say(noor, "Hello", hall, id=id)
    again = await world.say(noor, "Hello", hall, id=id)
    await world.run()
    late = await world.say(noor, "Hello", hall, id=id)
    await world.run()

    assert first == again == late
    assert await world.transcript(hall) == ["Noor: Hello", "Ada: Hello."]
    assert [message.seq for message in await world.denizen.spaces.messages(hall)] == [1, 2]
    with pytest.raises(InvalidInput):
        await world.say(noor, "Hello", attic, id=id)


async def test_sequence_numbers_are_whole_under_fifty_posts_at_once(world: World):
    """Numbers given out by the application collided elsewhere."""
    ada = await world.agent("Ada")
    people = [await world.person(f"Person {number}") for number in range(5)]
    hall = await world.space("Hall", ada, *people)

    posted = await asyncio.gather(*(world.say(people[at % 5], f"message {at}", hall) for at in range(50)))

    assert sorted(each.seq for each in posted) == list(range(1, 51))
    messages_ = await world.denizen.spaces.messages(hall)
    assert [message.seq for message in messages_] == list(range(1, 51))
    assert {message.id: message.seq for message in messages_} == {each.id: each.seq for each in posted}
    assert sorted(await world.inbox(ada)) == sorted(message.text for message in messages_)


async def test_a_reply_says_what_it_replies_to(world: World):
    ada = await world.agent("Ada", skip(), skip())
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    first = await world.say(noor, "Who is there?", hall)
    await world.run()
    await world.say(noor, "I asked you something", hall, reply_to=first.id)
    await world.run()

    assert [message.reply_to for message in await world.denizen.spaces.messages(hall)] == [None, first.id]
    assert await world.newest_inbox(ada) == (
        "[INBOX - 1 new event]\n"
        "Now: Monday 2026-01-05 09:00 UTC\n"
        "\n"
        '1. [Space "Hall" | spaceId: <Hall> | reply to: <Hall 1>] Noor (human): "I asked you something"\n'
        "   → received just now"
    )
