"""Whole conversations with agents that think with the demo model: what a stranger sees in the first minute."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from denizen.agents.registry import Agent
from denizen.models.demo.answering import HOW_TO_HAVE_A_REAL_ONE
from denizen.models.demo.model import demo
from denizen.spaces.directory import Entity, Space
from tests.world import World, listening


@dataclass
class House:
    """Noor with two agents: a kitchen for all three, and a room for each two."""

    world: World
    noor: Entity
    ada: Agent
    bo: Agent
    kitchen: Space
    with_ada: Space
    with_bo: Space
    agents_own: Space

    async def say(self, where: Space, *texts: str) -> None:
        for text in texts:
            await self.world.say(self.noor, text, where)
            await self.world.run()


@pytest.fixture
async def house(small_world: World) -> House:
    world = small_world
    noor = await world.person("Noor")
    ada = await world.agent("Ada", model=demo(0, record=True), instructions="You keep the kitchen running.")
    bo = await world.agent("Bo", model=demo(0, record=True), instructions="You look after the garden.")
    return House(
        world,
        noor,
        ada,
        bo,
        kitchen=await world.space("Kitchen", noor, ada, bo),
        with_ada=await world.space("Noor and Ada", noor, ada, private=True),
        with_bo=await world.space("Noor and Bo", noor, bo, private=True),
        agents_own=await world.space("Ada and Bo", ada, bo, private=True),
    )


async def test_a_first_conversation_in_private(house: House):
    """Greeting, identity, repeating, counting, sums, time: each answered once, at once."""
    await house.say(
        house.with_ada,
        "Hello!",
        "Who are you?",
        "Where are you?",
        "repeat after me: Good things take time",
        "count to 5",
        "How many words are in: the quick brown fox",
        "What is 2 + 2?",
        "What time is it?",
        "Who am I?",
        "How many messages have I sent you?",
        "bonjour",
    )
    assert await house.world.transcript(house.with_ada) == [
        "Noor: Hello!",
        'Ada: Hello, Noor. I am Ada. Say "help" to see what I can do.',
        "Noor: Who are you?",
        (
            'Ada: I am Ada (@ada). My role, as it was given to me: "You keep the kitchen running". '
            "I think with the built-in demo model."
        ),
        "Noor: Where are you?",
        (
            'Ada: We are in "Noor and Ada", with Noor. I am also in "Kitchen" with Noor and Bo. '
            "I am in 1 other space besides, which not everyone here is in."
        ),
        "Noor: repeat after me: Good things take time",
        "Ada: Good things take time",
        "Noor: count to 5",
        "Ada: 1, 2, 3, 4, 5.",
        "Noor: How many words are in: the quick brown fox",
        "Ada: I count 4 words.",
        "Noor: What is 2 + 2?",
        "Ada: 2 + 2 = 4",
        "Noor: What time is it?",
        "Ada: It is 09:00 UTC on Monday, 5 January 2026.",
        "Noor: Who am I?",
        'Ada: You are Noor, a person, and we are in "Noor and Ada".',
        "Noor: How many messages have I sent you?",
        "Ada: I remember 10 messages from you, this one included.",
        "Noor: bonjour",
        "Ada: Hello again, Noor.",
    ]
    assert await house.world.history(house.bo) == []


async def test_one_agent_answers_in_a_shared_space(house: House):
    """Whoever is addressed answers; if nobody is, the one addressed last, else the first of the space."""
    await house.say(
        house.kitchen,
        "Hello everyone!",
        "@bo who are you?",
        "What time is it?",
        "Ada, what is 6 times 7?",
        "thanks!",
        "Who is here?",
    )
    assert await house.world.transcript(house.kitchen) == [
        "Noor: Hello everyone!",
        'Ada: Hello, Noor. I am Ada. Say "help" to see what I can do.',
        "Noor: @bo who are you?",
        (
            'Bo: I am Bo (@bo). My role, as it was given to me: "You look after the garden". '
            "I think with the built-in demo model."
        ),
        "Noor: What time is it?",
        "Bo: It is 09:00 UTC on Monday, 5 January 2026.",
        "Noor: Ada, what is 6 times 7?",
        "Ada: 6 × 7 = 42",
        "Noor: thanks!",
        "Ada: You are welcome, Noor.",
        "Noor: Who is here?",
        'Ada: In "Kitchen" there are Noor (human), Bo (agent) and I.',
    ]
    assert [each for each in await house.world.ledger(house.bo) if each[0] == "skip"][:2] == [
        ("skip", "not addressed to me"),
        ("skip", "not addressed to me"),
    ]
    assert await house.world.endings(house.bo) == [
        (1, "acted", "answered", 'Answered Noor in "Kitchen": who I am. Nothing is pending.'),
        (2, "acted", "answered", 'Answered Noor in "Kitchen": the time. Nothing is pending.'),
    ]


async def test_both_answer_when_both_are_addressed(house: House):
    await house.say(house.kitchen, "@ada and @bo, what is your name?")
    said = await house.world.transcript(house.kitchen)
    assert sorted(line.partition(":")[0] for line in said) == ["Ada", "Bo", "Noor"]


async def test_what_was_told_is_remembered_and_told_only_to_those_who_heard_it(house: House):
    """After a long sleep and a restart it still knows; in the kitchen it keeps to itself what was private."""
    await house.say(house.with_ada, "Remember that the oven is broken.", "What do you remember?")
    await house.say(house.kitchen, "@ada please remember that Tuesday is market day")
    house.world.clock.advance(3_600)
    await house.world.restart(ada=demo(0), bo=demo(0))
    await house.say(house.with_ada, "What did I tell you about the oven?", "What do you remember?")
    await house.say(house.kitchen, "@ada what do you remember?", "@ada do you remember the oven?")
    assert await house.world.transcript(house.with_ada) == [
        "Noor: Remember that the oven is broken.",
        'Ada: Noted: "the oven is broken".',
        "Noor: What do you remember?",
        'Ada: I remember this. You told me: "the oven is broken".',
        "Noor: What did I tell you about the oven?",
        'Ada: I remember this. You told me: "the oven is broken".',
        "Noor: What do you remember?",
        'Ada: I remember this. You told me: "the oven is broken". You told me: "Tuesday is market day".',
    ]
    assert await house.world.transcript(house.kitchen) == [
        "Noor: @ada please remember that Tuesday is market day",
        'Ada: Noted: "Tuesday is market day".',
        "Noor: @ada what do you remember?",
        'Ada: I remember this. You told me: "Tuesday is market day".',
        "Noor: @ada do you remember the oven?",
        'Ada: I remember nothing about "the oven".',
    ]


async def test_a_question_about_what_was_told_finds_it(house: House):
    """Nobody asks a model for its memory in its own phrases. In the kitchen it keeps to itself what was private."""
    await house.say(
        house.with_ada,
        "Remember that my dog is called Pixel.",
        "Remember that tea is at five.",
        "What is my dog's name?",
        "when is tea",
        "Where is the cat?",
    )
    await house.say(house.kitchen, "@ada what is my dog called?")
    said = await house.world.transcript(house.with_ada)
    assert said[5] == 'Ada: I remember this. You told me: "my dog is called Pixel".'
    assert said[7] == 'Ada: I remember this. You told me: "tea is at five".'
    assert "demo model" in said[9]
    assert (await house.world.transcript(house.kitchen))[-1] == "Ada: That is more than this demo understands."


async def test_whoever_asks_elsewhere_what_was_said_in_private_is_told_so(house: House):
    """The same long answer in a space with others is stopped; whoever asked there waited in vain."""
    await house.say(house.with_ada, "help", "Will it rain?")
    await house.say(house.kitchen, "@ada help", "@ada will it snow?", "@ada what time is it?")
    assert [line for line in await house.world.transcript(house.kitchen) if line.startswith("Ada")] == [
        "Ada: Ask me that in a direct message.",
        "Ada: That is more than this demo understands.",
        "Ada: It is 09:00 UTC on Monday, 5 January 2026.",
    ]


async def test_a_message_is_passed_on_and_an_answer_brought_back(house: House):
    """It goes to where the other agent is, is confirmed where it was asked, and no exchange goes on by itself."""
    await house.say(
        house.with_ada,
        "tell @bo that lunch is ready",
        "Ask Bo what 7 times 6 is",
        "say hello to @bo",
        "say good evening in Kitchen",
        "What have you done?",
    )
    assert await house.world.transcript(house.with_ada) == [
        "Noor: tell @bo that lunch is ready",
        'Ada: I have told Bo, in the space "Ada and Bo".',
        "Noor: Ask Bo what 7 times 6 is",
        'Ada: I have asked Bo, in the space "Ada and Bo".',
        "Ada: Bo answers: 7 × 6 = 42",
        "Noor: say hello to @bo",
        'Ada: I have said it, in the space "Ada and Bo".',
        "Noor: say good evening in Kitchen",
        'Ada: I have said it, in the space "Kitchen".',
        "Noor: What have you done?",
        (
            "Ada: I remember 1 thing that I did:\n"
            '- Passed on for Noor to "Kitchen": "good evening (from Noor)".\n\n'
            "What I did elsewhere (5) I keep to those who were there."
        ),
    ]
    assert await house.world.transcript(house.agents_own) == [
        "Ada: @bo, Noor asks me to tell you: lunch is ready",
        "Ada: @bo, Noor asks: what 7 times 6 is?",
        "Bo: 7 × 6 = 42",
        "Ada: @bo hello (from Noor)",
        "Bo: Hello, Ada!",
    ]
    assert await house.world.transcript(house.kitchen) == ["Ada: good evening (from Noor)"]
    assert [ending[3] for ending in await house.world.endings(house.ada)] == [
        'Passed on for Noor to "Ada and Bo": "bo, Noor asks me to tell you: lunch is ready". Nothing is pending.',
        'Passed on for Noor to "Ada and Bo": "bo, Noor asks: what 7 times 6 is?". Pending: the answer of Bo.',
        'Brought the answer of Bo to "Noor and Ada": "Bo answers: 7 × 6 = 42". Nothing is pending.',
        'Passed on for Noor to "Ada and Bo": "bo hello (from Noor)". Nothing is pending.',
        'Heard from Bo in "Ada and Bo": "Hello, Ada!". Nothing is pending.',
        'Passed on for Noor to "Kitchen": "good evening (from Noor)". Nothing is pending.',
        'Answered Noor in "Noor and Ada": what I have done. Nothing is pending.',
    ]


async def test_agents_that_share_only_a_public_space_pass_on_there(house: House):
    """As in the first world that a stranger finds: asked in private, the answer comes back in private."""
    await house.world.denizen.spaces.leave(house.agents_own, house.bo)
    await house.say(house.with_ada, "ask @bo: who are you?", "What did Bo say?")
    assert await house.world.transcript(house.kitchen) == [
        "Ada: @bo, Noor asks: who are you?",
        (
            'Bo: I am Bo. My role, as it was given to me: "You look after the garden". '
            "I think with the built-in demo model."
        ),
    ]
    assert await house.world.transcript(house.with_ada) == [
        "Noor: ask @bo: who are you?",
        'Ada: I have asked Bo, in the space "Kitchen".',
        (
            'Ada: Bo answers: I am Bo. My role, as it was given to me: "You look after the garden". '
            "I think with the built-in demo model."
        ),
        "Noor: What did Bo say?",
        (
            "Ada: Bo wrote 1 message that I remember: "
            "\"I am Bo. My role, as it was given to me: 'You look after the garden'. I think w…\"."
        ),
    ]


async def test_it_says_what_it_can_and_what_it_cannot_do(house: House):
    await house.say(house.with_bo, "help", "Write me a poem about the sea", "remind me in 5 minutes to call mum")
    _, helped, _, unknown, _, reminded = await house.world.transcript(house.with_bo)
    assert helped.startswith(
        "Bo: I am the built-in demo model: no network, no key, a few phrases. You can say:\n- hello"
    )
    assert helped.endswith(HOW_TO_HAVE_A_REAL_ONE)
    assert unknown == (
        'Bo: I read "Write me a poem about the sea", but I am only the built-in demo model and do not understand it. '
        f'Say "help" to see what I can do. {HOW_TO_HAVE_A_REAL_ONE}'
    )
    assert reminded == 'Bo: I will remind you in 5 minutes: "call mum".'


async def test_files_without_words_are_named(house: House):
    """It said that an empty message is more than it understands."""
    files = [
        await house.world.denizen.files.upload(house.noor, b"soup", name=each)
        for each in ("menu.txt", "map.txt", "a.txt", "b.txt")
    ]
    await house.world.denizen.spaces.post(house.with_ada, house.noor, "", files=files)
    await house.world.run()
    said = (await house.world.denizen.spaces.messages(house.with_ada))[-1].text
    assert said.startswith('I have "menu.txt", "map.txt", "a.txt" and 1 more. I am the built-in demo model and cannot')


async def test_several_spaces_at_once_are_each_answered_in_their_place(house: House):
    """One cycle enters each space in turn; several messages of one space are answered together."""
    await house.world.say(house.noor, "count to 3", house.with_ada)
    await house.world.say(house.noor, "@ada what is 1 + 1?", house.kitchen)
    await house.world.say(house.noor, "and what is 2 + 2?", house.with_ada)
    await house.world.run()
    assert await house.world.transcript(house.with_ada) == [
        "Noor: count to 3",
        "Noor: and what is 2 + 2?",
        "Ada: 1, 2, 3.\n\n2 + 2 = 4",
    ]
    assert await house.world.transcript(house.kitchen) == ["Noor: @ada what is 1 + 1?", "Ada: 1 + 1 = 2"]
    assert [
        entry.partition(" ")[2] for entry in await house.world.history(house.ada) if entry.startswith("response")
    ] == [
        'enter_space {"space_id":"<Noor and Ada>"}',
        'send_message {"text":"1, 2, 3.\\n\\n2 + 2 = 4"}\nenter_space {"space_id":"<Kitchen>"}',
        'send_message {"text":"1 + 1 = 2"}',
        (
            'Answered Noor in "Noor and Ada": counting. Answered Noor in "Noor and Ada": a sum. '
            'Answered Noor in "Kitchen": a sum. Nothing is pending.'
        ),
    ]


async def test_it_knows_of_a_space_that_it_came_into_after_its_self_was_written(house: House):
    await house.say(house.with_ada, "hi")
    garden = await house.world.space("Garden", house.noor, house.ada)
    await house.say(house.with_ada, "say the roses need water in Garden")
    assert await house.world.transcript(garden) == ["Ada: the roses need water (from Noor)"]


async def test_what_it_says_streams_to_the_space_as_it_writes(house: House):
    """The last words come with the message: Ada and Bo have a private space, so that they are looked at first."""
    text = " ".join(f"word{number}" for number in range(60))
    async with listening(house.world, house.with_ada) as heard:
        await house.say(house.with_ada, f"repeat {text}")
        frames = await heard()
    deltas = [frame["text"] for frame in frames if frame["type"] == "stream.delta"]
    assert len(deltas) > 3
    assert text.startswith("".join(deltas))
    assert len("".join(deltas)) > len(text) // 2


async def test_a_greeting_that_ends_with_a_mention_is_a_greeting(house: House):
    await house.say(house.with_bo, "Hello @bo")
    assert (await house.world.transcript(house.with_bo))[-1].startswith("Bo: Hello, Noor.")


async def test_another_answer_and_an_edited_question_are_answered(house: House):
    """Also where several agents are: only the one that is asked answers."""
    world, spaces = house.world, house.world.denizen.spaces
    await house.say(house.kitchen, "@bo what is 6 * 7?")
    question, first = await spaces.messages(house.kitchen)
    await spaces.try_again(first.id, by=house.noor)
    await world.run()
    await spaces.edit_message(question.id, "@bo repeat after me: forty\n\neight", by=house.noor, ask_again=True)
    await world.run()
    _, first, second, third = await spaces.messages(house.kitchen)
    assert (second.text, second.metadata["again"]) == (first.text, first.id)
    assert ("42" in second.text, third.text) == (True, "forty\n\neight")
    assert {each.author_id for each in (first, second, third)} == {house.bo.id}
