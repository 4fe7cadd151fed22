"""How reflection may be written in definitions, and what is refused when it is set."""

from __future__ import annotations

import pytest

from denizen import Runtime, call, reply, scripted
from denizen.agents.definition import AgentDefinition
from denizen.errors import InvalidInput
from denizen.memory.settings import read as read_memory
from denizen.models.discovery import utility_model_for
from denizen.reflection import configuration
from denizen.reflection.settings import ReflectionSettings
from tests.world import World

PERSONA = {
    "baseSystemPrompt": "You are an adaptive coding tutor.",
    "sentimentTracking": {
        "enabled": True,
        "method": "llm",
        "modelId": "gpt-5-mini",
        "providerId": "openai",
        "historyWindow": 5,
        "frustrationThreshold": -0.4,
        "consecutiveTurnsForTrigger": 3,
        "presets": ["frustration_recovery", "confusion_clarification"],
    },
    "metaPrompts": [
        {
            "id": "gmi_self_trait_adjustment",
            "promptTemplate": "Reflect on the conversation: {{evidence}}",
            "trigger": {"type": "turn_interval", "intervalTurns": 5},
            "maxOutputTokens": 128,
        }
    ],
}


def test_the_keys_of_a_persona_are_accepted() -> None:
    found = AgentDefinition.model_validate(PERSONA)
    sentiment, (metaprompt,) = found.reflection.sentiment, found.reflection.metaprompts
    assert sentiment is not None
    assert (sentiment.method, sentiment.model, sentiment.history_window) == ("llm", "openai:gpt-5-mini", 5)
    assert (sentiment.frustration_threshold, sentiment.consecutive_turns_for_trigger) == (-0.4, 3)
    assert (metaprompt.trigger.type, metaprompt.max_output_tokens) == ("turn_interval", 128)
    assert found.instructions == "You are an adaptive coding tutor."
    assert AgentDefinition.load(found.model_dump_json(exclude_defaults=True)) == found
    under = {"reflection": {"sentimentTracking": PERSONA["sentimentTracking"], "metaPrompts": PERSONA["metaPrompts"]}}
    assert AgentDefinition.model_validate(under).reflection == found.reflection


async def test_a_persona_is_created_and_its_wrong_keys_are_refused() -> None:
    async with Runtime(models={"mine": scripted()}) as denizen:
        tutor = await denizen.agents.create("Tutor", model="mine", reflection={"sentimentTracking": {"enabled": True}})
        assert tutor.definition.reflection.is_on
        with pytest.raises(InvalidInput, match="histroy_window"):
            await denizen.agents.create("Other", model="mine", reflection={"sentimentTracking": {"histroyWindow": 3}})


async def test_a_classifier_that_is_not_there_is_refused_when_it_is_set() -> None:
    """It was accepted, and every turn was logged as a failure."""
    by_classifier = {"sentiment": {"enabled": True, "method": "trained_classifier"}}
    async with Runtime(models={"mine": scripted()}) as denizen:
        with pytest.raises(InvalidInput, match="needs a classifier, and there is none"):
            await denizen.agents.create("Ada", model="mine", reflection=by_classifier)
        ada = await denizen.agents.create("Ada", model="mine")
        with pytest.raises(InvalidInput, match="needs a classifier"):
            await denizen.agents.edit(ada, reflection=by_classifier)
        with pytest.raises(InvalidInput, match="needs a classifier"):
            await denizen.panels.create("Board", reflection=by_classifier)
    async with Runtime(models={"mine": scripted()}, classifier=lambda _: 0.5) as denizen:
        await denizen.agents.create("Ada", model="mine", reflection=by_classifier)


def test_intervals_of_the_presets_file_run_for_whoever_reflects() -> None:
    own = {"metaPrompts": [{**PERSONA["metaPrompts"][0]}, {  # type: ignore[dict-item]
        "id": "when_sad", "promptTemplate": "Why?", "trigger": {"type": "event_based", "eventName": "user_frustrated"},
    }]}  # fmt: skip
    by = configuration.read({}, own)
    without_sentiment = ReflectionSettings.model_validate({"sentiment": {"presets": ["when_sad"]}})
    assert without_sentiment.is_on
    found = configuration.effective(without_sentiment, by)
    assert [each.id for each in found.metaprompts] == ["gmi_self_trait_adjustment"]
    assert not found.idle
    with_sentiment = ReflectionSettings.model_validate({"sentiment": {"enabled": True, "presets": ["when_sad"]}})
    ids = [each.id for each in configuration.effective(with_sentiment, by).metaprompts]
    assert ids == ["gmi_self_trait_adjustment", "when_sad"]


def test_a_review_every_zero_turns_is_never() -> None:
    assert read_memory({"routing": {"reviewEveryNTurns": 0}}).routing.every_turns == 0


@pytest.mark.parametrize(
    ("main", "utility"),
    [
        ("anthropic:claude-sonnet-5-5", "anthropic:claude-haiku-5-5"),
        ("openai:gpt-6.1-terra", "openai:gpt-6-luna"),
        ("openai:gpt-5-nano", "openai:gpt-5-nano"),
        ("ollama:qwen3:8b", "ollama:qwen3:8b"),
        ("demo", "demo"),
    ],
)
def test_the_utility_model_is_the_cheap_one_of_the_provider(main: str, utility: str) -> None:
    assert utility_model_for(main, {}) == utility
    assert utility_model_for(main, {"OPENAI_BASE_URL": "http://x/v1", "ANTHROPIC_BASE_URL": "http://x"}) == main


async def test_an_answer_that_cannot_be_used_is_asked_for_once_more(small_world: World) -> None:
    model = scripted("I think they are sad.", call("adjust", mood="patient", reason="Take it slowly."))
    small_world.denizen.models.register("utility", model)
    asks = {"id": "each", "prompt_template": "Well?", "trigger": {"type": "turn_interval", "interval_turns": 1}}
    ada = await small_world.agent(
        "Ada", reply("I see."), "Answered.", reflection={"metaprompts": [asks], "model": "utility"}
    )
    noor = await small_world.person("Noor")
    desk = await small_world.space("Desk", noor, ada)
    await small_world.say(noor, "It does not work.", desk)
    await small_world.run()
    assert (await small_world.denizen.reflection.stance(ada, desk)).state.mood == "patient"
    assert len(model.requests) == 2
