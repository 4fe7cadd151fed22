"""States of mind, templates and configuration: one enumeration, one pass, one schema. Pure."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.agents import registry
from denizen.errors import InvalidInput
from denizen.ids import SpaceId
from denizen.profiles.library import shipped_file
from denizen.reflection import configuration
from denizen.reflection.configuration import effective, merged
from denizen.reflection.sentiment import Sentiment
from denizen.reflection.settings import ReflectionSettings, SentimentSettings
from denizen.reflection.signals import Counters
from denizen.reflection.stance_store import Run, Stance, settle
from denizen.reflection.state import IMPRINTS, Adjustment, StateOfMind, read_adjustment, schema
from denizen.reflection.templates import VARIABLES, check_template, fill
from denizen.reflection.thinking import PersonSentiment, values

OURS = configuration.read(shipped_file(), {})
FIVE = {
    "frustration_recovery": "user_frustrated",
    "confusion_clarification": "user_confused",
    "satisfaction_reinforcement": "user_satisfied",
    "error_recovery": "error_threshold_exceeded",
    "engagement_boost": "low_engagement",
}


def test_sentiment_tracking_has_the_documented_fields_and_defaults():
    assert SentimentSettings().model_dump() == {
        "enabled": False,
        "method": "lexicon_based",
        "model": None,
        "history_window": 10,
        "frustration_threshold": -0.3,
        "satisfaction_threshold": 0.3,
        "consecutive_turns_for_trigger": 2,
        "presets": (),
    }


def test_the_five_presets_have_their_event_triggers():
    assert {id: each.trigger.model_dump().get("event_name") for id, each in OURS.metaprompts.items()} == FIVE


def test_presets_offer_no_mood_that_the_enumeration_rejects():
    """Elsewhere they did. Ours name moods in words only; answers are checked against one enumeration."""
    for each in OURS.metaprompts.values():
        assert check_template(each.prompt_template) == each.prompt_template
    assert isinstance(read_adjustment({"mood": "grumpy"}), str)
    assert set(schema()["properties"]) == set(Adjustment.model_fields)


@pytest.mark.parametrize(
    ("profile", "method", "presets"),
    [
        ("off", None, []),
        ("basic", "lexicon_based", ["frustration_recovery", "confusion_clarification"]),
        ("standard", "lexicon_based", list(FIVE)),
        ("advanced", "llm", list(FIVE)),
        (
            "tutor",
            "lexicon_based",
            ["frustration_recovery", "confusion_clarification", "satisfaction_reinforcement"],
        ),
    ],
)
def test_quick_start_profiles(profile: str, method: str | None, presets: list[str]):
    found = effective(ReflectionSettings(profile=profile), OURS)
    assert [each.id for each in found.metaprompts] == presets
    assert found.sentiment.enabled == (method is not None)
    assert method is None or found.sentiment.method == method
    assert found.warnings == ()


def test_the_tutor_has_lower_thresholds():
    tutor, usual = OURS.profiles["tutor"], SentimentSettings()
    assert tutor.frustration_threshold > usual.frustration_threshold
    assert tutor.satisfaction_threshold < usual.satisfaction_threshold


def test_it_is_opt_in_and_off_by_default():
    assert not registry.define().reflection.is_on
    assert effective(ReflectionSettings(), OURS).idle
    assert registry.define(reflection={"profile": "basic"}).reflection.is_on


def metaprompt(id: str, **more: Any) -> dict[str, Any]:
    return {"id": id, "prompt_template": "How?", "trigger": {"type": "turn_interval", "interval_turns": 5}, **more}


def test_turn_interval_reflection_works_regardless_of_sentiment_tracking():
    settings = ReflectionSettings.model_validate({"metaprompts": [metaprompt("gmi_self_trait_adjustment")]})
    assert settings.is_on
    assert not effective(settings, OURS).idle


def test_a_custom_metaprompt_with_the_id_of_a_preset_replaces_it():
    own = metaprompt("frustration_recovery", trigger={"type": "event_based", "event_name": "user_frustrated"})
    settings = ReflectionSettings.model_validate({"profile": "basic", "metaprompts": [own]})
    found = {each.id: each for each in effective(settings, OURS).metaprompts}
    assert (list(found), found["frustration_recovery"].prompt_template) == (
        ["frustration_recovery", "confusion_clarification"],
        "How?",
    )


LOOK_BACK: dict[str, Any] = {
    "id": "look_back",
    "promptTemplate": "Reflect on the conversation: {{evidence}}",
    "trigger": {"type": "turn_interval", "intervalTurns": 5},
}


@pytest.mark.parametrize(
    ("named", "model"),
    [
        ({"modelId": "gpt-4o-mini", "providerId": "openai"}, "openai:gpt-4o-mini"),
        ({"modelId": "openai/gpt-4o-mini"}, "openai:gpt-4o-mini"),
        ({"modelId": "ollama:llama3.2"}, "ollama:llama3.2"),
        ({"providerId": "openai"}, None),
        ({}, None),
    ],
)
def test_profiles_and_metaprompts_can_name_a_model(named: dict[str, Any], model: str | None):
    """Without one, it is the agent's own."""
    own: dict[str, Any] = {"sentimentTracking": {"profiles": {"x": named}}, "metaPrompts": [{**LOOK_BACK, **named}]}
    found = configuration.read(shipped_file(), own)
    assert (found.profiles["x"].model, found.metaprompts["look_back"].model) == (model, model)
    assert found.warnings == ()


def test_the_presets_file_takes_camel_case_keys():
    own: dict[str, Any] = {
        "sentimentTracking": {
            "profiles": {"mine": {"enabled": True, "method": "llm", "modelId": "gpt-4o-mini", "providerId": "openai"}}
        },
        "metaPrompts": [
            {
                "id": "my_custom_reflection",
                "description": "Custom reflection triggered by frustration",
                "promptTemplate": "The user seems frustrated. Current mood: {{current_mood}}. Suggest adjustments.",
                "trigger": {"type": "event_based", "eventName": "user_frustrated"},
                "temperature": 0.3,
                "maxOutputTokens": 256,
            }
        ],
    }
    found = configuration.read(shipped_file(), own)
    assert found.profiles["mine"].model == "openai:gpt-4o-mini"
    assert found.metaprompts["my_custom_reflection"].max_output_tokens == 256
    assert set(FIVE) < set(found.metaprompts)


def test_other_fields_of_profiles_and_metaprompts_are_ignored_and_near_misses_are_warned_about():
    trigger = {**LOOK_BACK["trigger"], "note": "mine", "intervalTurn": 9}
    own: dict[str, Any] = {
        "sentimentTracking": {"profiles": {"x": {"label": "X", "historyWindows": 3}}, "profile": {}},
        "metaPrompts": [{**LOOK_BACK, "version": 2, "maxOutputToken": 9, "trigger": trigger}],
    }
    found = configuration.read(shipped_file(), own)
    assert found.profiles["x"].history_window == 10
    assert found.metaprompts["look_back"].trigger.model_dump()["interval_turns"] == 5
    assert found.warnings == (
        "sentimentTracking.profile is ignored: did you mean profiles?",
        "sentimentTracking.profiles.x.historyWindows is ignored: did you mean historyWindow?",
        "metaPrompts[0].maxOutputToken is ignored: did you mean maxOutputTokens?",
        "metaPrompts[0].trigger.intervalTurn is ignored: did you mean intervalTurns?",
    )


@pytest.mark.parametrize(
    ("own", "told"),
    [
        (
            {"sentimentTracking": {"profiles": {"x": {"presets": ["no"]}}}},
            "profiles.x.presets[0]: there is no metaprompt",
        ),
        ({"sentimentTracking": {"profiles": {"x": {"method": "tarot"}}}}, "sentimentTracking.profiles.x.method"),
        ({"metaPrompts": [{"id": "x", "promptTemplate": "{{curent_mood}}"}]}, "did you mean {{current_mood}}?"),
        ({"metaPrompts": {}}, "metaPrompts has to be a list."),
        ({"metaPrompts": [LOOK_BACK, LOOK_BACK]}, "metaPrompts[1].id: 'look_back' appears twice."),
        ({"sentimentTracking": []}, "sentimentTracking has to be an object."),
        ({"sentimentTracking": {"profiles": []}}, "sentimentTracking.profiles has to be an object."),
        ({"metaPrompts": [{**LOOK_BACK, "trigger": {"type": "weekly"}}]}, "metaPrompts[0].trigger"),
    ],
    ids=["preset", "method", "variable", "list", "twice", "section", "profiles", "trigger"],
)
def test_what_is_wrong_in_the_file_is_an_error_that_says_where(own: dict[str, Any], told: str):
    with pytest.raises(InvalidInput) as error:
        configuration.read(shipped_file(), own)
    assert told in str(error.value)


def test_what_a_conversation_says_is_stronger_than_what_the_agent_says():
    agent = ReflectionSettings.model_validate({"sentiment": {"enabled": True}, "model": "small"})
    assert merged(agent, None) is agent
    here = merged(agent, {"profile": "tutor"})
    assert (here.profile, here.sentiment, here.model) == ("tutor", None, "small")
    with pytest.raises(InvalidInput, match=r"sentiment\.method"):
        merged(agent, {"sentiment": {"method": "tarot"}})


NAMES = (
    "current_mood user_skill task_complexity current_sentiment recent_conversation recent_errors evidence "
    "sentiment_score consecutive_frustration consecutive_confusion consecutive_satisfaction confusion_keywords "
    "consecutive_neutral"
)


def test_the_variables_are_the_documented_ones():
    assert NAMES.split() == list(VARIABLES)


def test_every_variable_stands_for_what_is_known():
    counters = Counters(9, 2, 3, 4, 5, (0.1, -0.42), (10, 20))
    stance = Stance(SpaceId("s"), None, "", 0, StateOfMind("patient", "novice", "simple"), {"tea": "green"})
    felt = PersonSentiment(counters, Sentiment(-0.42, 0.5, 1, ("unclear", "huh")))
    assert values(stance, felt, "| Noor: {{current_mood}}", ["lookup failed", "again"], 7) == {
        "current_mood": "patient",
        "user_skill": "novice",
        "task_complexity": "simple",
        "current_sentiment": "negative (-0.42, intensity 0.50)",
        "recent_conversation": "| Noor: {{current_mood}}",
        "recent_errors": "| lookup failed\n| again",
        "evidence": "Turn 7. Recent scores: 0.10, -0.42. Kept from before: tea: green.\n| Noor: {{current_mood}}",
        "sentiment_score": "-0.42",
        "consecutive_frustration": "2",
        "consecutive_confusion": "3",
        "consecutive_satisfaction": "4",
        "confusion_keywords": "unclear, huh",
        "consecutive_neutral": "5",
    }


def test_every_variable_has_a_word_where_nothing_is_known():
    found = values(Stance(SpaceId("s"), None, "", 0), PersonSentiment(), "", [], 1)
    assert set(found) == set(VARIABLES)
    assert all(found.values())


def test_every_documented_variable_can_be_used():
    template = " ".join(f"{{{{{name}}}}}" for name in VARIABLES)
    assert fill(check_template(template), {name: name.upper() for name in VARIABLES}) == template.upper().replace(
        "{{", ""
    ).replace("}}", "")


TEXTS = st.one_of(
    st.text(),
    st.sampled_from([f"{{{{{name}}}}}" for name in VARIABLES]),
    st.just(""),
    st.text(alphabet="{} current_mood\\g<1>$", max_size=60),
    st.just("{{evidence}}" * 20_000),
)


@given(st.dictionaries(st.sampled_from(VARIABLES), TEXTS))
def test_what_people_say_never_changes_a_template(values: dict[str, str]):
    """One pass: a value with braces in it stays what it is, be it empty or huge."""
    template = "A {{current_mood}} B {{ recent_conversation }} C {{evidence}} D"
    filled = fill(template, {"current_mood": "", "recent_conversation": "", "evidence": "", **values})
    parts = [values.get(name, "") for name in ("current_mood", "recent_conversation", "evidence")]
    assert filled == f"A {parts[0]} B {parts[1]} C {parts[2]} D"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3),
    max_leaves=8,
)
ANSWERS = st.one_of(
    JSON,
    st.text(max_size=200),
    st.fixed_dictionaries({"mood": JSON, "imprints": JSON}),
    st.sampled_from(['{"mood": "empathetic"', "{}{}", '{"mood": "grumpy"}', '{"status": "processing"}', "[" * 5_000]),
)


@given(ANSWERS)
def test_nonsense_of_the_utility_model_leaves_the_state_as_it_was(answer: object):
    """Whatever it answers, the state is the same or one of the enumeration, and nothing else is touched."""
    before = Stance(SpaceId("space"), None, "", 0, StateOfMind("curious", "expert", "simple"), {"a": "b"})
    found = read_adjustment(answer)
    run = Run("m", "interval", None, found) if isinstance(found, str) else Run("m", "interval", found)
    after = settle(before, run)
    if isinstance(found, str):
        assert (after.outcome, after.state, after.imprints) == ("failed", before.state, before.imprints)
    else:
        assert set(found.model_dump(exclude_unset=True)) <= set(schema()["properties"])
        assert len(after.imprints) <= IMPRINTS


def test_keys_that_the_model_chooses_live_in_their_own_namespace():
    """Elsewhere they overwrote internal state."""
    before = Stance(SpaceId("space"), None, "", 0)
    found = read_adjustment({"imprints": {"mood": "angry", "status": "processing", "turns": "0"}})
    assert isinstance(found, Adjustment)
    after = settle(before, Run("m", "interval", found))
    assert after.state == StateOfMind()
    assert after.imprints == {"mood": "angry", "status": "processing", "turns": "0"}
    gone = read_adjustment({"imprints": {"mood": ""}})
    assert isinstance(gone, Adjustment)
    assert gone.imprint(after.imprints) == {"status": "processing", "turns": "0"}
    assert isinstance(read_adjustment({"status": "processing"}), str)


def test_an_answer_in_plain_text_is_understood_if_there_is_one_object_in_it():
    found = read_adjustment('Certainly! ```json\n{"mood": "patient", "reason": "They  ask\\nagain."}\n```')
    assert isinstance(found, Adjustment)
    assert (found.mood, found.why) == ("patient", "They ask again.")


def test_a_state_of_mind_says_what_follows_from_it():
    assert StateOfMind().line() is None
    line = StateOfMind("empathetic", "novice", "complex").line() or ""
    assert re.match(r"your mood is empathetic \(.+\), their skill is novice, the task is complex", line)
