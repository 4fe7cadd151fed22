"""Reflection."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from denizen import InvalidInput, Runtime, call, forever, reply, scripted
from denizen.models.scripted import ScriptedModel
from tests.features.test_sentiment import LEXICON, numbers
from tests.reflection.kitchens import CROSS, Pondering, kitchen, runs, say, utility
from tests.world import World, as_text, open_world

ANGRY, HAPPY, PUZZLED = "-0.9 0.9", "0.9 0.9", "0 0 I don't understand."
PATIENT = call("adjust", mood="patient")
DARK = "There is darkness outside."
"""A little negative: -0.25 by the lexicon."""


def metaprompt(template: str = "Well?", *, turns: int = 0, event: str = "", **more: Any) -> dict[str, Any]:
    """A metaprompt by interval, by event, or by hand."""
    trigger: dict[str, Any] = {"type": "manual"}
    if turns or event:
        by_turns = {"type": "turn_interval", "interval_turns": turns}
        trigger = by_turns if turns else {"type": "event_based", "event_name": event}
    return {"id": "mine", "prompt_template": template, "trigger": trigger, **more}


async def asked_after(*texts: str, answer: Any = PATIENT, **reflection: Any) -> tuple[list[str], ScriptedModel]:
    """Noor says these things to an agent that reflects so: which metaprompts were asked, and the model they asked."""
    async with open_world("sqlite://", classifier=numbers) as world:
        model = utility(world, model=forever(lambda *_: answer, name="utility"))
        ada, noor, room = await kitchen(world, len(texts), **reflection)
        await say(world, noor, room, *texts)
        return [f"{turn} {name}" for turn, name, _, _ in await runs(world, ada, room)], model


async def by_preset(preset: str, *texts: str) -> list[str]:
    """The same with one preset, and scores that the messages begin with."""
    sentiment = {"enabled": True, "method": "trained_classifier", "presets": [preset]}
    return (await asked_after(*texts, sentiment=sentiment))[0]


async def state_after(**adjustment: str) -> tuple[str, str, str]:
    """Noor is frustrated, and the model recommends this: mood, skill and complexity then."""
    async with open_world("sqlite://") as world:
        utility(world, call("adjust", **adjustment))
        ada, noor, room = await kitchen(world)
        await say(world, noor, room, CROSS)
        state = (await world.denizen.reflection.stance(ada, room)).state
    return state.mood, state.user_skill, state.task_complexity


# The state of mind


async def test_a_metaprompt_changes_the_state_of_mind() -> None:
    """A model decides what should change: the agent's mood, the person's skill, how complex the task is.

    Docs: reflection.md#steps
    """
    assert await state_after(mood="patient") == ("patient", "unknown", "unknown")
    told = {"mood": "empathetic", "user_skill": "novice", "task_complexity": "complex"}
    assert await state_after(**told) == ("empathetic", "novice", "complex")


async def test_the_next_turn_knows_the_state_of_mind(world: World) -> None:
    """Reflection runs after a turn; the next inbox message tells the agent its state of mind, once.

    Docs: reflection.md
    Differs: it is told when it changes, and not repeated in each turn, because the agent still has it in its window.
    """
    utility(world, PATIENT)
    ada, noor, room = await kitchen(world)
    await say(world, noor, room, CROSS, "And now?", "And now?")
    told = [each for each in await world.history(ada) if each.startswith("inbox")]
    assert ["your mood is patient" in each for each in told] == [False, True, False]


async def test_an_answer_does_not_wait_for_reflection(small_unhurried_world: World) -> None:
    """Reflection never delays an answer: the agent answers while a metaprompt is being asked.

    Docs: reflection.md#steps
    """
    world, pondering = small_unhurried_world, Pondering(PATIENT)
    utility(world, model=pondering.model)
    _, noor, room = await kitchen(world)
    async with world.denizen.living() as residents:
        await world.say(noor, CROSS, room)
        await pondering.begun.wait()
        await world.say(noor, "Are you still there?", room)
        while len(await world.transcript(room)) < 4:
            await residents.sweep()
            await asyncio.sleep(0)
        pondering.may_answer.set()
    assert (await world.transcript(room))[-1] == "Ada: I see."


@pytest.mark.parametrize("answer", ["I would rather not say.", call("adjust", mood="grumpy"), RuntimeError("boom")])
async def test_a_failed_reflection_changes_nothing(answer: Any) -> None:
    """If the model fails or answers something unusable, the state of mind stays as it was.

    Docs: reflection.md#steps
    """
    async with open_world("sqlite://") as world:
        utility(world, model=forever(lambda *_: answer, name="utility"))
        ada, noor, room = await kitchen(world)
        await world.denizen.reflection.set_state_of_mind(ada, room, mood="curious")
        await say(world, noor, room, CROSS)
        assert (await runs(world, ada, room))[-1][-1] == "failed"
        assert (await world.denizen.reflection.stance(ada, room)).state.mood == "curious"


async def test_a_state_of_mind_can_be_set_and_reset(world: World) -> None:
    """You can view, set and reset the state of mind of an agent in a conversation.

    Docs: reflection.md#view-and-change-a-state-of-mind
    """
    ada, noor, room = await kitchen(world)
    await world.denizen.reflection.set_state_of_mind(ada, room, mood="curious", user_skill="expert", by=noor)
    state = (await world.denizen.reflection.stance(ada, room)).state
    assert (state.mood, state.user_skill) == ("curious", "expert")
    await world.denizen.reflection.reset_state_of_mind(ada, room, by=noor)
    assert (await world.denizen.reflection.stance(ada, room)).state.mood == "neutral"


# The five presets


async def test_frustration_recovery() -> None:
    """The preset `frustration_recovery` is asked when a person is frustrated: kinder, and simpler.

    Docs: reflection.md#settings
    """
    assert await by_preset("frustration_recovery", "0 0", ANGRY) == ["2 frustration_recovery"]


async def test_confusion_clarification() -> None:
    """The preset `confusion_clarification` is asked when a person is confused: other words, with examples.

    Docs: reflection.md#settings
    """
    assert await by_preset("confusion_clarification", "0 0", PUZZLED) == ["2 confusion_clarification"]


async def test_satisfaction_reinforcement() -> None:
    """The preset `satisfaction_reinforcement` is asked when a person is satisfied: more challenge.

    Docs: reflection.md#settings
    """
    assert await by_preset("satisfaction_reinforcement", "0 0", HAPPY) == ["2 satisfaction_reinforcement"]


async def test_error_recovery(world: World) -> None:
    """The preset `error_recovery` is asked after too many errors: what they have in common, and another approach.

    Docs: reflection.md#settings
    """
    asked = utility(world, PATIENT)
    turns = [call("read_entry", entry=-1), call("read_entry", entry=-2), reply("Sorry."), "Done."]
    sentiment = {"enabled": True, "presets": ["error_recovery"]}
    ada = await world.agent("Ada", *turns, reflection={"sentiment": sentiment, "model": "utility"})
    noor = await world.person("Noor")
    room = await world.space("Kitchen", noor, ada)
    await say(world, noor, room, "The word is tea.")
    assert await runs(world, ada, room) == [(1, "error_recovery", "error_threshold_exceeded", "changed")]
    assert as_text(asked.requests[0][-1]).count("invalid_input") == 2


async def test_engagement_boost() -> None:
    """The preset `engagement_boost` is asked when a person hardly takes part: livelier, with a question.

    Docs: reflection.md#settings
    """
    assert await by_preset("engagement_boost", *["0 0"] * 4) == ["4 engagement_boost"]


async def test_all_presets_can_be_enabled_at_once() -> None:
    """`all` enables all five presets.

    Docs: reflection.md#settings
    """
    found = await by_preset("all", *["0 0"] * 4, HAPPY, PUZZLED, ANGRY)
    assert [each.split()[1] for each in found] == [
        "engagement_boost", "satisfaction_reinforcement", "confusion_clarification", "frustration_recovery",
    ]  # fmt: skip


async def test_without_presets_nothing_is_asked() -> None:
    """By default no preset is enabled: signals are recorded, and no model is asked.

    Docs: definitions.md
    """
    found, model = await asked_after(ANGRY, sentiment={"enabled": True, "method": "trained_classifier"})
    assert (found, model.requests) == ([], [])


async def test_enabled_is_the_master_switch() -> None:
    """Presets do nothing unless `enabled` is true.

    Docs: definitions.md
    """
    found, model = await asked_after(ANGRY, sentiment={"method": "trained_classifier", "presets": ["all"]})
    assert (found, model.requests) == ([], [])


# Quick-start profiles


async def test_the_profile_off() -> None:
    """The profile `off`, the default, does nothing.

    Docs: reflection.md#settings
    """
    assert (await asked_after(CROSS, profile="off"))[0] == []


async def test_the_profile_basic() -> None:
    """The profile `basic` uses the lexicon, and reacts to frustration and confusion.

    Docs: reflection.md#settings
    """
    found, _ = await asked_after("Wonderful, thank you so much!", CROSS, "I don't understand.", profile="basic")
    assert found == ["2 frustration_recovery", "3 confusion_clarification"]


async def test_the_profile_standard() -> None:
    """The profile `standard` uses the lexicon, and reacts to all five signals.

    Docs: reflection.md#settings
    """
    texts = "Wonderful, thank you so much!", CROSS, "I don't understand.", *["The train is at nine."] * 4
    found, _ = await asked_after(*texts, profile="standard")
    assert found == [
        "1 satisfaction_reinforcement", "2 frustration_recovery", "3 confusion_clarification", "7 engagement_boost",
    ]  # fmt: skip


async def test_the_profile_advanced() -> None:
    """The profile `advanced` asks a model how people feel, and reacts to all five signals.

    Docs: reflection.md#settings
    """
    async with open_world("sqlite://") as world:
        model = utility(world, call("feel", score=0.9, intensity=0.9), PATIENT)
        ada, noor, room = await kitchen(world, profile="advanced")
        await say(world, noor, room, "Das war sehr hilfreich.")
        assert await runs(world, ada, room) == [(1, "satisfaction_reinforcement", "user_satisfied", "changed")]
        assert [info.tools for info in model.infos] == [("feel",), ("adjust",)]


async def test_the_profile_tutor() -> None:
    """The profile `tutor` uses the lexicon with lower thresholds, and reacts to all but errors and low engagement.

    Docs: reflection.md#settings
    """
    texts = DARK, DARK, "Wonderful, thank you so much!", "I don't understand."
    assert (await asked_after(*texts, profile="basic"))[0] == ["4 confusion_clarification"]
    assert (await asked_after(*texts, profile="tutor"))[0] == [
        "2 frustration_recovery", "3 satisfaction_reinforcement", "4 confusion_clarification",
    ]  # fmt: skip


async def test_profiles_and_metaprompts_of_your_own_are_in_the_presets_file(tmp_path: Path) -> None:
    """The presets file can have profiles and metaprompts of your own, beside the built-in ones.

    Docs: reflection.md#settings
    """
    asks = {"id": "my_custom_reflection", "promptTemplate": "Mood: {{current_mood}}.", "trigger": {
        "type": "event_based", "eventName": "user_frustrated"}, "temperature": 0.3, "maxOutputTokens": 256}  # fmt: skip
    own = {"enabled": True, "presets": ["my_custom_reflection"]}
    path = tmp_path / "presets.json"
    path.write_text(json.dumps({"sentimentTracking": {"profiles": {"own": own}}, "metaPrompts": [asks]}))
    async with open_world("sqlite://", presets=path) as world:
        utility(world, PATIENT)
        ada, noor, room = await kitchen(world, profile="own")
        await say(world, noor, room, CROSS)
        assert await runs(world, ada, room) == [(1, "my_custom_reflection", "user_frustrated", "changed")]


# Metaprompts of your own


async def test_a_metaprompt_by_interval_needs_no_sentiment() -> None:
    """A metaprompt can run every so many turns, whether or not sentiment is tracked.

    Docs: reflection.md#settings
    """
    found, _ = await asked_after(*[CROSS] * 11, profile="off", metaprompts=[metaprompt("{{evidence}}", turns=5)])
    assert found == ["5 mine", "10 mine"]


async def test_a_metaprompt_by_event() -> None:
    """A metaprompt can run when there is a certain signal.

    Docs: reflection.md#settings
    """
    sentiment = {"enabled": True}
    found, _ = await asked_after(
        "Hello.", CROSS, sentiment=sentiment, metaprompts=[metaprompt(event="user_frustrated")]
    )
    assert found == ["2 mine"]


async def test_a_metaprompt_by_hand(world: World) -> None:
    """A metaprompt can be run by hand; you see what it would change, and decide whether it does.

    Docs: reflection.md#view-and-change-a-state-of-mind
    """
    utility(world, *[PATIENT] * 2)
    ada, noor, room = await kitchen(world, metaprompts=[metaprompt()])
    await say(world, noor, room, "Hello.")
    assert await runs(world, ada, room) == []
    moods: list[str] = []
    for apply in (False, True):
        tried = await world.denizen.reflection.try_metaprompt(ada, room, "mine", apply=apply)
        assert tried.after.mood == "patient"
        moods.append((await world.denizen.reflection.stance(ada, room)).state.mood)
    assert moods == ["neutral", "patient"]


async def test_a_metaprompt_has_its_own_temperature_and_length() -> None:
    """A metaprompt has its own temperature and length of the answer (256 tokens).

    Docs: reflection.md#settings
    Differs: a quarter and 64 tokens more are allowed. An answer that is cut off cannot be used.
    """
    asks = [metaprompt(turns=1, temperature=0.3, max_output_tokens=128), metaprompt(turns=1) | {"id": "plain"}]
    _, model = await asked_after("Hello.", profile="off", metaprompts=asks)
    sent = [info.settings or {} for info in model.infos]
    assert [(each.get("temperature"), each.get("max_tokens")) for each in sent] == [(0.3, 128 + 96), (None, 256 + 128)]


async def test_a_metaprompt_with_the_id_of_a_preset_replaces_it() -> None:
    """A metaprompt with the id of a preset replaces it.

    Docs: reflection.md#settings
    """
    own = metaprompt("Be kind: {{sentiment_score}}", event="user_frustrated") | {"id": "frustration_recovery"}
    found, model = await asked_after(CROSS, metaprompts=[own])
    assert found == ["1 frustration_recovery"]
    assert as_text(model.requests[0][-1]).startswith("Be kind: -0.")


VARIABLES = (
    "current_mood", "user_skill", "task_complexity", "current_sentiment", "recent_conversation", "recent_errors",
    "evidence", "sentiment_score", "consecutive_frustration", "consecutive_confusion", "consecutive_satisfaction",
    "confusion_keywords", "consecutive_neutral",
)  # fmt: skip


async def test_a_template_has_thirteen_variables() -> None:
    """Thirteen variables are filled in: state of mind, sentiment, counters, the last messages, errors, evidence.

    Docs: reflection.md#settings
    """
    template = "".join(f"<{name}>{{{{{name}}}}}</{name}>" for name in VARIABLES)
    sentiment = {"enabled": True, "method": "trained_classifier"}
    _, model = await asked_after("0 0 Unclear.", sentiment=sentiment, metaprompts=[metaprompt(template, turns=1)])
    told = as_text(model.requests[0][-1])
    found = {name: told.partition(f"<{name}>")[2].partition(f"</{name}>")[0] for name in VARIABLES}
    assert all(found.values())
    assert "{{" not in told
    assert (found["current_mood"], found["sentiment_score"], found["confusion_keywords"]) == (
        "neutral", "0.00", "unclear",
    )  # fmt: skip
    assert found["recent_conversation"] == "| Noor: 0 0 Unclear.\n| Ada: I see."


async def test_what_people_write_is_not_a_template() -> None:
    """Braces in a message of a person stay as they are.

    Docs: reflection.md#settings
    """
    asks = metaprompt("{{recent_conversation}}", turns=1)
    _, model = await asked_after("What is {{current_mood}}?", profile="off", metaprompts=[asks])
    assert "| Noor: What is {{current_mood}}?" in as_text(model.requests[0][-1])


async def test_an_unknown_variable_is_refused() -> None:
    """A template with an unknown variable is refused when it is set, with the name that was probably meant.

    Docs: reflection.md#settings
    """
    asks = metaprompt("{{curent_mood}}", turns=1)
    async with Runtime() as denizen:
        with pytest.raises(InvalidInput, match=r"did you mean \{\{current_mood\}\}"):
            await denizen.agents.create("Ada", model="demo", reflection={"metaprompts": [asks]})


# Conversations and panels


async def test_one_conversation_can_have_its_own_settings(world: World) -> None:
    """One conversation can have settings of its own, which override those of the agent.

    Docs: reflection.md#settings
    """
    utility(world, PATIENT)
    ada, noor, room = await kitchen(world)
    garden = await world.space("Garden", noor, ada)
    await world.denizen.reflection.set_settings(ada, garden, {"reflection": {"profile": "off"}})
    await say(world, noor, garden, CROSS)
    await say(world, noor, room, CROSS)
    assert [len(await runs(world, ada, each)) for each in (garden, room)] == [0, 1]


async def test_what_reflection_uses_is_counted(world: World) -> None:
    """What metaprompts use is counted with what the agent uses, and its budgets apply.

    Docs: reflection.md#steps
    """
    utility(world, PATIENT)
    ada, noor, room = await kitchen(world)
    await say(world, noor, room, CROSS)
    assert {each.model: each.calls for each in await world.denizen.budgets.spending(ada)}["utility"] == 1


async def test_advisors_reflect_too() -> None:
    """The advisors of a panel can reflect, each for itself.

    Docs: reflection.md#panels
    """
    models = {"small": scripted(PATIENT), "voice": forever(lambda *_: "Let us look together.")}
    async with Runtime(models=models) as denizen:
        noor = await denizen.people.create("Noor")
        reflection = {"sentiment": {**LEXICON}, "model": "small"}
        advisors = [{"name": "Seth", "reflection": reflection}, "Buber"]
        board = await denizen.panels.create("Board", [noor], advisors=advisors, model="voice")
        await denizen.panels.ask(board, noor, CROSS)
        await denizen.run_until_idle()
        moods = [(await denizen.advisors.stance(board, each)).state.mood for each in await denizen.advisors.list(board)]
    assert moods == ["patient", "neutral"]
