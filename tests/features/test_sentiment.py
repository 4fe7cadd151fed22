"""Sentiment."""

from __future__ import annotations

from typing import Any

import pytest

from denizen import InvalidInput, Runtime, call, forever, reply, skip, tool
from tests.reflection.kitchens import CROSS, kitchen, say, utility
from tests.world import World, open_world

LEXICON = {"enabled": True, "presets": ["all"]}


def numbers(text: str) -> dict[str, float]:
    """A classifier for tests: a message begins with its score and its intensity."""
    score, intensity, *_ = text.split()
    return {"score": float(score), "intensity": float(intensity)}


async def signals(*texts: str, classifier: Any = None, **sentiment: Any) -> list[list[str]]:
    """Noor says these things to an agent that tracks sentiment: the signals of each turn."""
    async with open_world("sqlite://", classifier=classifier) as world:
        utility(world, model=forever(lambda *_: call("adjust"), name="utility"))
        ada, noor, room = await kitchen(world, len(texts), sentiment={**LEXICON, **sentiment})
        await say(world, noor, room, *texts)
        found = await world.denizen.reflection.signals(ada, room)
    return [[each.name for each in found if each.cycle == turn] for turn in range(1, len(texts) + 1)]


async def by_score(*texts: str, **sentiment: Any) -> list[list[str]]:
    """The same, where each message begins with its score and its intensity."""
    return await signals(*texts, classifier=numbers, method="trained_classifier", **sentiment)


# How sentiment is found


async def test_sentiment_is_off_by_default(world: World) -> None:
    """Sentiment is not tracked unless an agent's definition says so, and then costs nothing.

    Docs: reflection.md
    """
    ada = await world.agent("Ada", reply("I see."), "Done.")
    noor = await world.person("Noor")
    room = await world.space("Kitchen", noor, ada)
    await say(world, noor, room, CROSS)
    assert await world.denizen.reflection.signals(ada, room) == []
    assert len(world.model(ada).requests) == 2


async def test_every_message_of_a_person_is_read(world: World) -> None:
    """Every message of a person is read, and none of an agent.

    Docs: reflection.md#steps
    """
    asked = utility(world, *[call("adjust")] * 2)
    ada, noor, room = await kitchen(world)
    bea = await world.agent("Bea", reply(CROSS), "Done.")
    await world.denizen.spaces.join(room, bea, attention="mentions")
    await say(world, noor, room, CROSS, "@bea, and you?", CROSS)
    assert f"Bea: {CROSS}" in await world.transcript(room)
    found = await world.denizen.reflection.signals(ada, room)
    assert [each.person_id for each in found] == [noor.id] * 2
    assert len(asked.requests) == 2


async def test_a_lexicon_reads_messages_without_a_model() -> None:
    """By default a lexicon reads the messages: it asks no model, and costs nothing.

    Docs: reflection.md#steps
    """
    async with open_world("sqlite://") as world:
        asked = utility(world)
        ada, noor, room = await kitchen(world, sentiment={"enabled": True})
        await say(world, noor, room, CROSS)
        [signal] = await world.denizen.reflection.signals(ada, room)
    assert (signal.name, asked.requests) == ("user_frustrated", [])


async def test_a_model_can_read_messages() -> None:
    """With the method `llm` a model reads the messages, in any language.

    Docs: reflection.md#steps
    """
    async with open_world("sqlite://") as world:
        asked = utility(world, call("feel", score=-0.9, intensity=0.9))
        ada, noor, room = await kitchen(world, sentiment={"enabled": True, "method": "llm", "model": "utility"})
        await say(world, noor, room, "Das ist doch zum Davonlaufen.")
        [signal] = await world.denizen.reflection.signals(ada, room)
    assert (signal.name, len(asked.requests)) == ("user_frustrated", 1)


async def test_the_agents_model_reads_messages_unless_another_is_named(world: World) -> None:
    """Without another model, the method `llm` asks the model of the agent.

    Docs: reflection.md#settings
    Differs: if its provider has a cheap model, that one is asked.
    """
    turns = reply("I see."), "Done.", call("feel", score=-0.9, intensity=0.9)
    sentiment = {"sentiment": {"enabled": True, "method": "llm"}}
    ada, noor = await world.agent("Ada", *turns, reflection=sentiment), await world.person("Noor")
    room = await world.space("Kitchen", noor, ada)
    await say(world, noor, room, "Das ist doch zum Davonlaufen.")
    assert [each.name for each in await world.denizen.reflection.signals(ada, room)] == ["user_frustrated"]


async def test_a_model_is_named_by_its_provider_and_id() -> None:
    """The model that reads messages is named as `provider:name`, or by `providerId` and `modelId`.

    Docs: reflection.md#settings
    """
    named = {"enabled": True, "method": "llm", "modelId": "gpt-5-mini", "providerId": "openai"}
    async with Runtime() as denizen:
        ada = await denizen.agents.create("Ada", model="demo", reflection={"sentimentTracking": named})
    assert ada.definition.reflection.sentiment is not None
    assert ada.definition.reflection.sentiment.model == "openai:gpt-5-mini"


async def test_your_own_classifier_can_read_messages() -> None:
    """With the method `trained_classifier` your own function reads the messages.

    Docs: reflection.md#steps
    """
    assert await by_score("-0.9 0.9") == [["user_frustrated"]]


async def test_a_classifier_that_does_not_exist_is_refused() -> None:
    """The method `trained_classifier` is refused if no function is configured.

    Docs: reflection.md#settings
    """
    async with Runtime() as denizen:
        with pytest.raises(InvalidInput, match="needs a classifier, and there is none"):
            await denizen.agents.create(
                "Ada", model="demo", reflection={"sentiment": {"enabled": True, "method": "trained_classifier"}}
            )


# What is a signal


async def test_a_strongly_negative_message_is_frustration() -> None:
    """A message is frustrated if its score is below the threshold and its intensity above 0.6.

    Docs: reflection.md#steps
    """
    found = await by_score("-0.31 0.61", "0 0", "-0.31 0.6", "0 0", "-0.3 0.9")
    assert found == [["user_frustrated"], [], [], [], []]


async def test_negative_messages_in_a_row_are_frustration() -> None:
    """Negative messages in a row are frustration, however mild each of them is.

    Docs: reflection.md#steps
    """
    assert await by_score("-0.4 0.1", "-0.4 0.1", "0 0", "-0.4 0.1") == [[], ["user_frustrated"], [], []]


async def test_some_phrases_show_confusion() -> None:
    """Phrases such as "don't understand", "unclear" or "??" show that a person is confused.

    Docs: reflection.md#steps
    """
    found = await by_score("0 0 I don't understand.", "0 0 That is unclear.", "0 0 What??", "0 0 I see.")
    assert found == [["user_confused"], ["user_confused"], ["user_confused"], []]


async def test_a_neutral_message_with_negative_words_is_confusion() -> None:
    """A message that is neutral on the whole, but has two negative words, shows confusion.

    Docs: reflection.md#steps
    """
    found = await signals("The bad weather and the good cake: a sad, happy day.", "The meeting is at nine.")
    assert found == [["user_confused"], []]


async def test_a_strongly_positive_message_is_satisfaction() -> None:
    """A message is satisfied if its score is above the threshold and its intensity above 0.5.

    Docs: reflection.md#steps
    """
    found = await by_score("0.31 0.51", "0 0", "0.31 0.5", "0 0", "0.3 0.9")
    assert found == [["user_satisfied"], [], [], [], []]


async def test_positive_messages_in_a_row_are_satisfaction() -> None:
    """Positive messages in a row are satisfaction, however mild each of them is.

    Docs: reflection.md#steps
    """
    assert await by_score("0.4 0.1", "0.4 0.1", "0 0", "0.4 0.1") == [[], ["user_satisfied"], [], []]


async def test_short_neutral_messages_in_a_row_are_low_engagement() -> None:
    """Four neutral messages in a row, of less than 50 characters on average, show that a person is not interested.

    Docs: reflection.md#steps
    """
    assert await by_score(*["0 0"] * 5) == [[], [], [], ["low_engagement"], ["low_engagement"]]
    assert await by_score(*["0 0 " + "x" * 46] * 4) == [[], [], [], []]


async def test_two_errors_in_the_last_ten_results_are_a_signal(world: World) -> None:
    """Two or more errors in the last ten results of tools are a signal.

    Docs: reflection.md#steps
    Differs: one of them has to be of the last cycle. The same two errors would be a signal again and again.
    """

    @tool
    def lookup(word: str) -> str:
        """Look a word up."""
        raise ValueError(f"no entry for {word}")

    utility(world, call("adjust"))
    look = call("lookup", word="tea")
    turns = look, reply("Sorry."), "Done.", look, reply("Sorry."), "Done.", reply("Well."), "Done."
    ada = await world.agent("Ada", *turns, tools=[lookup], reflection={"profile": "standard", "model": "utility"})
    noor = await world.person("Noor")
    room = await world.space("Kitchen", noor, ada)
    await say(world, noor, room, "What is the word for this?", "And what is the word for that?", "Then leave it.")
    found = await world.denizen.reflection.signals(ada, room)
    assert [(each.name, each.cycle) for each in found] == [("error_threshold_exceeded", 2)]


# Settings


async def default(name: str) -> Any:
    """What a setting of sentiment is, where a definition does not say."""
    async with Runtime() as denizen:
        ada = await denizen.agents.create("Ada", model="demo", reflection={"sentiment": {"enabled": True}})
        return getattr(ada.definition.reflection.sentiment, name)


async def test_the_thresholds_can_be_set() -> None:
    """The thresholds of frustration (-0.3) and satisfaction (0.3) can be set.

    Docs: definitions.md
    """
    assert [await default(f"{name}_threshold") for name in ("frustration", "satisfaction")] == [-0.3, 0.3]
    found = await by_score("-0.4 0.9", "0.4 0.9", frustration_threshold=-0.5, satisfaction_threshold=0.5)
    assert found == [[], []]


async def test_the_number_of_messages_in_a_row_can_be_set() -> None:
    """How many messages in a row are a signal (2) can be set.

    Docs: definitions.md
    """
    assert await default("consecutive_turns_for_trigger") == 2
    found = await by_score(*["-0.4 0.1"] * 3, consecutive_turns_for_trigger=3)
    assert found == [[], [], ["user_frustrated"]]


async def test_the_number_of_remembered_turns_can_be_set() -> None:
    """How many turns of a person are looked back on (10) can be set; a metaprompt sees the scores of those.

    Docs: definitions.md
    """
    asks = {"id": "each", "prompt_template": "{{evidence}}", "trigger": {"type": "turn_interval", "interval_turns": 4}}
    sentiment = {"enabled": True, "method": "trained_classifier", "history_window": 2}
    assert await default("history_window") == 10
    async with open_world("sqlite://", classifier=numbers) as world:
        asked = utility(world, call("adjust"))
        _, noor, room = await kitchen(world, sentiment=sentiment, metaprompts=[asks])
        await say(world, noor, room, "0.1 0", "0.2 0", "0.3 0", "0.25 0")
        assert "Recent scores: 0.30, 0.25." in str(asked.requests[0][-1])


async def test_each_person_in_each_space_is_counted_apart() -> None:
    """The messages of each person in each space are counted apart.

    Docs: reflection.md#steps
    """
    async with open_world("sqlite://", classifier=numbers) as world:
        utility(world)
        settings = {"enabled": True, "method": "trained_classifier"}
        ada, noor, room = await kitchen(world, sentiment=settings)
        sam, garden = await world.person("Sam"), await world.space("Garden", noor, ada)
        await world.denizen.spaces.join(room, sam)
        for who, where in ((noor, room), (sam, room), (noor, garden)):
            await say(world, who, where, "-0.4 0.1")
        assert await world.denizen.reflection.signals(ada, room) == []
        await say(world, noor, room, "-0.4 0.1")
        [signal] = await world.denizen.reflection.signals(ada, room)
    assert (signal.person_id, signal.rule) == (noor.id, "2 negative turns in a row")


async def test_a_skipped_message_is_not_a_turn() -> None:
    """A message that the agent skips is not a turn, and is not counted.

    Docs: reflection.md#settings
    """
    async with open_world("sqlite://", classifier=numbers) as world:
        settings = {"sentiment": {"enabled": True, "method": "trained_classifier"}}
        ada = await world.agent("Ada", skip("not for me"), reply("I see."), "Done.", reflection=settings)
        noor = await world.person("Noor")
        room = await world.space("Kitchen", noor, await world.person("Sam"), ada)
        await say(world, noor, room, "-0.4 0.1 Sam?", "-0.4 0.1 Ada?")
        assert await world.denizen.reflection.signals(ada, room) == []
        assert (await world.denizen.reflection.stance(ada, room)).reflected_turns == 1
