"""Messages that are edited or deleted: who may, what is seen, and what agents are told."""

from __future__ import annotations

import pytest

from denizen import call, reply, scripted
from denizen.checker import check_deeply
from denizen.errors import InvalidInput, NotAllowed, NotFound
from denizen.ids import MessageId
from denizen.spaces import directory
from tests.world import World, listening

QUIET = {"silent_reply": "ignore"}


async def test_an_edited_message_says_the_new_thing_and_keeps_its_place(world: World):
    noor, bert = await world.person("Noor"), await world.person("Bert")
    hall = await world.space("Hall", noor, bert)
    posted = await world.say(noor, "Tea at **four**, @bert?", hall)
    await world.say(bert, "Fine.", hall)
    world.clock.advance(60)

    async with listening(world, hall) as heard:
        edited = await world.denizen.spaces.edit_message(posted.id, "Tea at *five*?", by=noor)
        assert await heard() == [{"type": "message.edited", "space": hall.id, "seq": 1, "id": posted.id}]

    assert (edited.seq, edited.text, edited.plain, edited.mentions) == (1, "Tea at *five*?", "Tea at five?", ())
    assert edited.edited_at == edited.created_at + 60_000_000
    assert await world.transcript(hall) == ["Noor: Tea at *five*?", "Bert: Fine."]


async def test_a_deleted_message_leaves_its_place(world: World):
    noor, bert = await world.person("Noor"), await world.person("Bert")
    hall = await world.space("Hall", noor, bert)
    posted = await world.say(noor, "Oh no, @bert", hall, metadata={"mood": "bad"})
    await world.say(bert, "What?", hall)

    async with listening(world, hall) as heard:
        deleted = await world.denizen.spaces.delete_message(posted.id, by=noor)
        again = await world.denizen.spaces.delete_message(posted.id, by=noor)
        assert await heard() == [{"type": "message.deleted", "space": hall.id, "seq": 1, "id": posted.id}]

    assert again == deleted
    assert (deleted.text, deleted.plain, deleted.mentions, deleted.metadata) == ("[deleted]", "[deleted]", (), {})
    assert deleted.deleted_at is not None
    assert [message.seq for message in await world.denizen.spaces.messages(hall)] == [1, 2]
    with pytest.raises(InvalidInput, match="deleted"):
        await world.denizen.spaces.edit_message(posted.id, "Oh yes", by=noor)


async def test_only_the_author_and_those_who_run_the_space_may(world: World):
    noor, bert, cleo = await world.person("Noor"), await world.person("Bert"), await world.person("Cleo")
    hall = await world.space("Hall", noor, bert)
    posted = await world.say(noor, "Mine", hall)

    with pytest.raises(NotAllowed):
        await world.denizen.spaces.edit_message(posted.id, "Ours", by=bert)
    with pytest.raises(NotAllowed):
        await world.denizen.spaces.delete_message(posted.id, by=bert)
    with pytest.raises(NotFound, match=f"There is no message '{posted.id}'"):
        await world.denizen.spaces.delete_message(posted.id, by=cleo)
    with pytest.raises(NotFound):
        await world.denizen.spaces.delete_message(MessageId("nothing"), by=noor)
    assert await world.transcript(hall) == ["Noor: Mine"]

    await world.denizen.db.write(directory.join, hall.id, cleo.id, role="admin")
    await world.denizen.spaces.delete_message(posted.id, by=cleo)
    assert await world.transcript(hall) == ["Noor: [deleted]"]


async def test_what_still_waits_is_read_as_it_is_now(world: World):
    """An agent that has not read it need not be told that it was otherwise."""
    ada = await world.agent("Ada", "Read it.", cycle=QUIET)
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    first = await world.say(noor, "Tea at four?", hall)
    second = await world.say(noor, "Or not?", hall)

    await world.denizen.spaces.edit_message(first.id, "@ada Tea at five?", by=noor)
    await world.denizen.spaces.delete_message(second.id, by=noor)

    assert [(event.type, event.text) for event in await world.denizen.minds.inbox(ada)] == [
        ("mention", "@ada Tea at five?")
    ]
    await world.run()
    assert await world.inbox(ada) == []
    assert "four" not in "\n".join(await world.history(ada))
    assert await world.denizen.db.read(check_deeply) == []


async def test_agents_that_have_read_it_are_told_once_and_keep_what_they_saw(world: World):
    """The notice wakes nobody: it is read along with what does."""
    ada, bee = await world.agent("Ada", "Noted.", "Understood.", cycle=QUIET), await world.agent("Bee")
    noor = await world.person("Noor")
    hall = await world.space("Kitchen", noor, ada)
    del bee
    posted = await world.say(noor, "Tea at four.", hall)
    await world.run()
    before = await world.history(ada)

    await world.denizen.spaces.edit_message(posted.id, "Tea at five.", by=noor)
    await world.denizen.spaces.edit_message(posted.id, "Tea at five.", by=noor)
    await world.run()
    assert await world.history(ada) == before, "nobody was woken"

    await world.say(noor, "See?", hall)
    await world.run()
    told = await world.newest_inbox(ada)
    assert told.count("Noor edited a message in") == 1
    assert 'Noor edited a message in "Kitchen": it now says "Tea at five."' in told
    assert (await world.history(ada))[: len(before)] == before
    assert await world.denizen.db.read(check_deeply) == []


async def test_agents_are_told_of_a_deletion_and_by_whom(world: World):
    ada = await world.agent("Ada", reply("Come at four."), "Invited Noor.", "Understood.", cycle=QUIET)
    noor, bert = await world.person("Noor"), await world.person("Bert")
    hall = await world.space("Kitchen", noor, ada)
    await world.denizen.db.write(directory.join, hall.id, bert.id, role="owner")
    await world.say(noor, "When shall I come?", hall)
    await world.run()
    answer = (await world.denizen.spaces.messages(hall))[1]

    await world.denizen.spaces.delete_message(answer.id, by=bert)
    await world.say(noor, "Hm.", hall)
    await world.run()

    assert 'Bert deleted a message of Ada in "Kitchen": it was message 2 there.' in await world.newest_inbox(ada)


async def test_whoever_is_mentioned_only_now_has_it_in_the_inbox(world: World):
    """An inbox holds what it attends to, also if that is so only since the edit."""
    ada = await world.agent("Ada", "Hello.", cycle=QUIET)
    noor, bert = await world.person("Noor"), await world.person("Bert")
    hall = await world.space("Hall", noor, bert, ada)
    await world.denizen.spaces.set_attention(hall, ada, "mentions")
    posted = await world.say(noor, "Hello", hall)
    world.clock.advance(1)
    assert await world.inbox(ada) == []

    await world.denizen.spaces.edit_message(posted.id, "Hello, @ada", by=noor)
    await world.denizen.spaces.edit_message(posted.id, "Hello there, @ada", by=noor)

    assert [(event.type, event.text) for event in await world.denizen.minds.inbox(ada)] == [
        ("mention", "Hello there, @ada")
    ]
    await world.run()
    assert len(await world.cycles(ada)) == 1
    assert await world.denizen.db.read(check_deeply) == []


async def test_what_can_be_recalled_follows(world: World):
    """By its old words it is not found any more, by its new ones it is; a deleted one by none."""
    ada = await world.agent("Ada", *["Noted."] * 2, cycle=QUIET)
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    edited = await world.say(noor, "The walrus sleeps in the bathtub.", hall)
    deleted = await world.say(noor, "The ostrich sleeps in the wardrobe.", hall)
    await world.run()
    await world.denizen.spaces.edit_message(edited.id, "The penguin sleeps in the sink.", by=noor)
    await world.denizen.spaces.delete_message(deleted.id, by=noor)

    async def recalled(query: str) -> str:
        await world.restart(ada=scripted(call("recall", query=query), "Looked."))
        await world.say(noor, "Look.", hall)
        await world.run()
        return (await world.history(ada))[-2].partition("recall → ")[2]

    assert "The penguin sleeps in the sink." in await recalled("penguin")
    assert "The" not in await recalled("walrus bathtub")
    assert "The" not in await recalled("ostrich wardrobe")
    await world.denizen.spaces.delete_message(edited.id, by=noor)
    assert "The" not in await recalled("penguin sink")
