"""Reactions and pins stand with a message; another answer can be asked for, and the earlier one stays."""

from __future__ import annotations

import pytest

from denizen import reply
from denizen.agents.registry import Agent
from denizen.errors import InvalidInput, NotFound
from denizen.spaces.directory import Entity, Space
from tests.world import World, listening


async def answered(world: World, *turns: object) -> tuple[Agent, Entity, Space]:
    """Noor has asked Ada for a name, and Ada has answered."""
    ada = await world.agent("Ada", reply("Rex."), "Named it.", *turns)  # pyright: ignore[reportArgumentType]
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "A name for the dog?", hall)
    await world.run()
    return ada, noor, hall


async def test_a_reaction_wakes_nobody_and_is_read_with_the_next_message(world: World):
    ada, noor, hall = await answered(world, reply("Gladly."), "Answered.")
    (_, rex) = await world.denizen.spaces.messages(hall)
    async with listening(world, hall) as heard:
        message = await world.denizen.spaces.react(rex.id, "👍", by=noor)
        assert await world.denizen.spaces.react(rex.id, "👍", by=noor) == message
        await world.run()
        assert [each["type"] for each in await heard()] == ["message.edited"]
    assert message.reactions == {"👍": [noor.id]}
    assert (message.text, message.edited_at) == ("Rex.", None)
    assert len(await world.cycles(ada)) == 1

    await world.say(noor, "Thanks!", hall)
    await world.run()
    told = f"Noor reacted 👍 to your message {rex.id} (number 2 in "
    assert told in str(world.model(ada).requests[-1])
    assert len(await world.cycles(ada)) == 2


async def test_a_reaction_that_was_taken_back_is_not_read(world: World):
    ada, noor, hall = await answered(world, reply("Gladly."), "Answered.")
    (_, rex) = await world.denizen.spaces.messages(hall)
    await world.denizen.spaces.react(rex.id, "👍", by=noor)
    left = await world.denizen.spaces.react(rex.id, "👍", by=noor, remove=True)
    assert left.reactions == {}
    await world.say(noor, "Thanks!", hall)
    await world.run()
    assert "reacted" not in str(world.model(ada).requests[-1])


async def test_only_members_react_and_only_with_an_emoji(world: World):
    _, noor, hall = await answered(world)
    (_, rex) = await world.denizen.spaces.messages(hall)
    stranger = await world.person("Sam")
    with pytest.raises(NotFound):
        await world.denizen.spaces.react(rex.id, "👍", by=stranger)
    with pytest.raises(NotFound):
        await world.denizen.spaces.pin(rex.id, by=stranger)
    for wrong in ("", "ok", "👍 👍", "👍" * 17, "é\n"):
        with pytest.raises(InvalidInput, match="one emoji"):
            await world.denizen.spaces.react(rex.id, wrong, by=noor)
    assert (await world.denizen.spaces.react(rex.id, "👩‍💻", by=noor)).reactions == {"👩‍💻": [noor.id]}


async def test_pinned_messages_are_listed_and_a_deleted_one_is_not(world: World):
    _, noor, hall = await answered(world)
    asked, rex = await world.denizen.spaces.messages(hall)
    await world.denizen.spaces.pin(rex.id, by=noor)
    await world.denizen.spaces.pin(asked.id, by=noor)
    assert [each.text for each in await world.denizen.spaces.pins(hall, noor)] == ["A name for the dog?", "Rex."]
    await world.denizen.spaces.pin(rex.id, by=noor, pinned=False)
    await world.denizen.spaces.react(asked.id, "👍", by=noor)
    gone = await world.denizen.spaces.delete_message(asked.id, by=noor)
    assert (gone.pinned_at, gone.reactions) == (None, {})
    assert await world.denizen.spaces.pins(hall, noor) == []


async def test_forgetting_a_person_removes_their_reactions(world: World):
    _, noor, hall = await answered(world)
    sam = await world.person("Sam")
    await world.denizen.spaces.join(hall, sam)
    (_, rex) = await world.denizen.spaces.messages(hall)
    await world.denizen.spaces.react(rex.id, "👍", by=noor)
    await world.denizen.spaces.react(rex.id, "👍", by=sam)
    await world.denizen.spaces.react(rex.id, "🎉", by=sam)
    await world.denizen.people.forget(sam)
    assert (await world.denizen.spaces.messages(hall))[1].reactions == {"👍": [noor.id]}


async def test_another_answer_leaves_the_earlier_one_and_the_agent_knows(world: World):
    """Someone who asks again waits: the agent is woken, and the new answer names the old one."""
    ada, noor, hall = await answered(world, reply("Bello."), "Named it again.", reply("Fido."), "And again.")
    _, rex = await world.denizen.spaces.messages(hall)
    await world.denizen.spaces.try_again(rex.id, by=noor)
    await world.run()
    _, first, second = await world.denizen.spaces.messages(hall)
    assert (first.text, first.metadata) == ("Rex.", {})
    assert (second.text, second.metadata) == ("Bello.", {"again": rex.id})
    inbox = await world.newest_inbox(ada)
    assert "Noor asks you for another answer to what Noor wrote:" in inbox
    assert "A name for the dog?" in inbox
    assert "Your earlier answer (message <Hall 2>) stays where it is." in inbox
    # Another answer to the same question, not to the request.
    await world.denizen.spaces.try_again(second.id, by=noor)
    await world.run()
    assert "A name for the dog?" in await world.newest_inbox(ada)
    assert (await world.denizen.spaces.messages(hall))[-1].metadata == {"again": second.id}


async def test_another_answer_in_plain_text_also_names_the_earlier_one(world: World):
    """As one that the agent sends with a tool: the text of a model that calls none is sent in its name."""
    _, noor, hall = await answered(world, "Bello.", "Bello.")
    _, rex = await world.denizen.spaces.messages(hall)
    await world.denizen.spaces.try_again(rex.id, by=noor)
    await world.run()
    assert await world.transcript(hall) == ["Noor: A name for the dog?", "Ada: Rex.", "Ada: Bello."]
    assert (await world.denizen.spaces.messages(hall))[-1].metadata == {"again": rex.id}


async def test_whoever_asks_again_in_vain_is_told_why(world: World):
    """As with any message: the space shows it if no answer comes."""
    ada, noor, hall = await answered(world)
    await world.denizen.agents.suspend(ada)
    (_, rex) = await world.denizen.spaces.messages(hall)
    await world.denizen.spaces.try_again(rex.id, by=noor)
    assert [each.cause for each in await world.denizen.spaces.statuses(hall)] == ["suspended"]


async def test_only_an_answer_of_an_agent_is_tried_again(world: World):
    ada, noor, hall = await answered(world)
    asked, rex = await world.denizen.spaces.messages(hall)
    with pytest.raises(InvalidInput, match="answer of an agent"):
        await world.denizen.spaces.try_again(asked.id, by=noor)
    await world.denizen.spaces.leave(hall, ada)
    with pytest.raises(InvalidInput, match="no longer in this space"):
        await world.denizen.spaces.try_again(rex.id, by=noor)


async def test_an_edited_question_is_answered_as_it_is_now(world: World):
    """The agent that was to answer it is asked once, and is not told of the edit a second time."""
    ada, noor, hall = await answered(world, reply("Minka."), "Named the cat.")
    asked, rex = await world.denizen.spaces.messages(hall)
    await world.denizen.spaces.edit_message(asked.id, "A name for the cat?", by=noor, ask_again=True)
    await world.run()
    assert await world.transcript(hall) == ["Noor: A name for the cat?", "Ada: Rex.", "Ada: Minka."]
    assert (await world.denizen.spaces.messages(hall))[-1].metadata == {"again": rex.id}
    inbox = await world.newest_inbox(ada)
    assert "Noor changed a message and asks you to answer it as it is now:" in inbox
    assert "edited" not in inbox
