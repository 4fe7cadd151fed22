"""Lanes: what is urgent, and in which order an inbox is drained."""

from __future__ import annotations

import pytest

from denizen import reply
from denizen.errors import NotFound
from denizen.inbox.urgency import UrgentRule
from tests.world import World


async def lanes(world: World, agent) -> list[tuple[str, str]]:
    return [(event.lane, event.text) for event in await world.denizen.minds.inbox(agent)]


async def test_a_sender_may_say_that_it_is_urgent(world: World):
    ada = await world.agent("Ada")
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "Later", hall)
    await world.say(noor, "Fire!", hall, urgent=True)
    await world.denizen.agents.trigger(ada, "alarm", text="Smoke", urgent=True)
    await world.denizen.agents.trigger(ada, "calendar", text="Lunch")

    assert await lanes(world, ada) == [
        ("urgent", "Fire!"),
        ("urgent", "Smoke"),
        ("normal", "Later"),
        ("normal", "Lunch"),
    ]


async def test_every_message_of_some_people_is_urgent_to_an_agent(world: World):
    ada = await world.agent("Ada", urgent={"people": ("noor",)})
    bee = await world.agent("Bee")
    noor, bert = await world.person("Noor"), await world.person("Bert")
    hall = await world.space("Hall", noor, bert, ada, bee)
    await world.say(bert, "Hello", hall)
    await world.say(noor, "Good morning", hall)

    assert await lanes(world, ada) == [("urgent", "Good morning"), ("normal", "Hello")]
    assert await lanes(world, bee) == [("normal", "Hello"), ("normal", "Good morning")]


async def test_some_words_of_those_it_works_for_are_urgent(world: World):
    ada = await world.agent("Ada", urgent={"works_for": ("noor",)})
    bee = await world.agent("Bee", urgent={"words": ("hold on", "stop")})
    noor, bert = await world.person("Noor"), await world.person("Bert")
    hall = await world.space("Hall", noor, bert, ada, bee)
    for who, text in [(bert, "Stop!"), (noor, "Please STOP that"), (bert, "hold on"), (bee, "stop")]:
        await world.say(who, text, hall)

    assert await lanes(world, ada) == [
        ("urgent", "Please STOP that"),
        ("normal", "Stop!"),
        ("normal", "hold on"),
        ("normal", "stop"),
    ]
    assert await lanes(world, bee) == [("urgent", "Stop!"), ("urgent", "Please STOP that"), ("urgent", "hold on")]


@pytest.mark.parametrize(
    ("plain", "urgent"),
    [
        ("stop", True),
        ("Stop! Wrong dataset.", True),
        ("please cancel", True),
        ("do it non-stop", True),
        ("the stopwatch", False),
        ("unstoppable", False),
        ("a full_stop", False),
        ("cancellation policy", False),
        ("", False),
    ],
)
def test_only_whole_words_count(plain: str, urgent: bool):
    """Elsewhere "plan" matched "explanation"."""
    assert UrgentRule().applies(handle="noor", kind="human", plain=plain) is urgent
    assert UrgentRule().applies(handle="bee", kind="agent", plain=plain) is False


def test_what_is_no_word_makes_nothing_urgent():
    """An empty one stands at the end of every sentence."""
    assert not UrgentRule(words=("", " ")).applies(handle="noor", kind="human", plain="Good morning. How are you?")


async def test_words_are_looked_for_in_what_people_read(small_world: World):
    ada = await small_world.agent("Ada")
    noor = await small_world.person("Noor")
    hall = await small_world.space("Hall", noor, ada)
    await small_world.say(noor, "**st**op", hall)
    assert await lanes(small_world, ada) == [("urgent", "**st**op")]


async def test_a_waiting_event_may_be_made_urgent_and_is_then_told_first(world: World):
    ada = await world.agent("Ada", reply("On my way."), "Went to the door.")
    noor = await world.person("Noor")
    hall = await world.space("Hall", noor, ada)
    await world.say(noor, "First", hall)
    second = await world.say(noor, "Second", hall)

    await world.denizen.minds.mark_urgent(ada, second.id)
    assert await lanes(world, ada) == [("urgent", "Second"), ("normal", "First")]
    await world.run()

    assert await world.newest_inbox(ada) == (
        "[INBOX - 2 new events]\n"
        "Now: Monday 2026-01-05 09:00 UTC\n"
        "\n"
        '1. [Space "Hall" | spaceId: <Hall> | urgent] Noor (human): "Second"\n'
        "   → received just now\n"
        "\n"
        '2. [Space "Hall" | spaceId: <Hall>] Noor (human): "First"\n'
        "   → received just now\n"
        "\n"
        "Handle these in any order. First see which are urgent and which belong together."
    )
    with pytest.raises(NotFound):
        await world.denizen.minds.mark_urgent(ada, second.id)


@pytest.mark.parametrize("text", ["Stop!", "STOP it", "nonstop", "stop_it", "please cancel", "Cancelled", "", "sto p"])
def test_a_word_makes_urgent_as_a_whole_whatever_stands_beside_it(text: str):
    """In plain letters a text is looked through faster, to the same end."""
    rule = UrgentRule()
    applies = rule.applies(handle="noor", kind="human", plain=text)
    assert applies == (text in {"Stop!", "STOP it", "please cancel"})
    assert applies == rule.applies(handle="noor", kind="human", plain=f"{text} —")
