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


COMMANDS = [
    "stop",
    "Stop!",
    "STOP IT NOW",
    "stop stop stop",
    "Stop! Wrong dataset.",
    "Wait, stop.",
    "No no stop",
    "@ada stop please",
    "Ada, stop the deployment",
    "please cancel",
    "Please STOP that",
    "Actually cancel that — don't deploy yet.",
    "Never mind, cancel it",
    "Can you stop?",
    "Could you please cancel the upload?",
    "I want you to stop.",
    "You should stop here",
    "Let's stop here",
    "Stop at once",
    "Hold on, that is the wrong file",
    "That is enough. Abort.",
    "Stopp!",
    "Bitte stopp",
    "Halt, falsche Datei",
    "Nein, abbrechen!",
    "Bitte sofort abbrechen",
    "Kannst du das bitte abbrechen?",
    "Brich das Hochladen ab",
    "Hör auf!",
    "Hör jetzt bitte auf",
    "Du sollst damit aufhören",
    "Moment, stop",
]
SENTENCES = [
    "",
    "Where's the bus stop?",
    "the bus stop",
    "Where should I stop?",
    "Does the train stop in Ulm?",
    "Stop words are removed before indexing",
    "Stop signs are red",
    "The cancel button is grey",
    "Cancel buttons should be grey",
    "I can't stop laughing",
    "Don't stop now",
    "Please don't cancel it",
    "never stop learning",
    "Full stop.",
    "do it non-stop",
    "the stopwatch",
    "unstoppable",
    "a full_stop",
    "cancellation policy",
    "How do I cancel my subscription?",
    "I had to cancel my trip",
    "Stop by tomorrow",
    "I will stop at the shop",
    "Cancel?",
    'He said "stop" to me',
    "Wo ist die nächste Haltestelle?",
    "Das ist halt so.",
    "Halt die Tür auf",
    "Bitte nicht abbrechen",
    "Soll ich abbrechen?",
    "Ich musste die Reise abbrechen",
    "Wie kann ich mein Abo stoppen?",
    "Der Film läuft nonstop",
    "Das Stoppschild ist rot",
    "Wann hört der Regen auf?",
]


@pytest.mark.parametrize(
    ("plain", "urgent"), [*((each, True) for each in COMMANDS), *((each, False) for each in SENTENCES)]
)
def test_a_command_is_urgent_and_a_sentence_with_the_same_word_is_not(plain: str, urgent: bool):
    assert UrgentRule().applies(handle="noor", kind="human", plain=plain) is urgent
    assert UrgentRule().applies(handle="bee", kind="agent", plain=plain) is False


@pytest.mark.parametrize(
    ("plain", "urgent"),
    [("There is a fire in the kitchen", True), ("FIRE!", True), ("the fireplace", False), ("Hello", False)],
)
def test_words_of_an_owners_own_count_wherever_they_stand_as_a_whole(plain: str, urgent: bool):
    """Elsewhere "plan" matched "explanation"."""
    rule = UrgentRule(words=("fire",))
    assert rule.applies(handle="noor", kind="human", plain=plain) is urgent
    # In plain letters a text is looked through faster, to the same end.
    assert rule.applies(handle="noor", kind="human", plain=f"{plain} —") is urgent


def test_what_is_no_word_makes_nothing_urgent():
    """An empty one stands at the end of every sentence."""
    assert not UrgentRule(words=("", " "), commands=("", " ")).applies(
        handle="noor", kind="human", plain="Good morning. How are you?"
    )


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
