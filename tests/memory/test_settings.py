"""How memory is configured: the file and the switches, with their defaults."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from denizen.cli.home import memory_options
from denizen.errors import InvalidInput, SettingsError
from denizen.memory.settings import Configuration, Switches, read
from denizen.profiles.files import PresetFile
from denizen.settings.loading import load


def profile(presets: dict[str, Any], *modes: str, **switches: Any) -> Any:
    return Configuration(lambda: presets, Switches(**switches)).profile(modes)


def test_the_standard_profile_has_the_documented_defaults() -> None:
    name, found = profile({})
    assert name == "standard"
    assert (found.enabled, found.cooldown_ms, found.tail_turns, found.min_turns) == (True, 60_000, 12, 12)
    assert (found.max_turns, found.max_summary_tokens, found.prompt) == (48, 900, "memory_compactor_v2_json")


def test_compaction_is_on_by_default_and_off_where_the_default_profile_is() -> None:
    assert profile({})[1].enabled
    assert not profile({"memoryCompaction": {"defaultProfile": "off"}})[1].enabled


def test_a_profile_is_chosen_by_mode_or_agent_and_else_by_default() -> None:
    """An exact name beats a part of one."""
    presets = {
        "memoryCompaction": {
            "profiles": {"long": {"tailTurnsToKeep": 40}},
            "defaultProfileByMode": {"ada": "long", "pan": "off"},
        }
    }
    assert profile(presets, "ada")[0] == "long"
    assert profile(presets, "bee", "panel")[0] == "off"
    assert profile(presets, "bee", "conversation")[0] == "standard"


def test_the_switches_of_a_deployment_beat_the_profile() -> None:
    _, found = profile(
        {},
        enabled=None,
        prompt_key="mine",
        model_id="openai/gpt-4o-mini",
        cooldown_ms=1,
        tail_turns=2,
        min_turns=3,
        max_turns_per_pass=4,
        max_summary_tokens=500,
    )
    assert (found.prompt, found.model, found.cooldown_ms) == ("mine", "openai:gpt-4o-mini", 1)
    assert (found.tail_turns, found.min_turns, found.max_turns, found.max_summary_tokens) == (2, 3, 4, 500)


def test_the_kill_switch_switches_off_and_never_on() -> None:
    assert not profile({}, enabled=False)[1].enabled
    assert not profile({"memoryCompaction": {"defaultProfile": "off"}}, enabled=True)[1].enabled


def test_the_switches_are_the_documented_variables(tmp_path: Path) -> None:
    environ = {
        "MEMORY_COMPACTION_ENABLED": "false",
        "MEMORY_COMPACTION_MODEL_ID": "openai/gpt-4o-mini",
        "MEMORY_COMPACTION_COOLDOWN_MS": "5",
        "MEMORY_COMPACTION_TAIL_TURNS": "6",
        "MEMORY_COMPACTION_MIN_TURNS": "7",
        "MEMORY_COMPACTION_MAX_TURNS_PER_PASS": "8",
        "MEMORY_COMPACTION_MAX_SUMMARY_TOKENS": "900",
        "MEMORY_COMPACTION_PROMPT_KEY": "mine",
        "DENIZEN_HOME": str(tmp_path),
    }
    options = memory_options(load(environ=environ, folder=tmp_path).settings)
    assert options is not None
    assert options.switches == Switches(
        enabled=False,
        prompt_key="mine",
        model_id="openai:gpt-4o-mini",
        cooldown_ms=5,
        tail_turns=6,
        min_turns=7,
        max_turns_per_pass=8,
        max_summary_tokens=900,
    )


def test_other_fields_are_ignored_and_near_misses_are_told() -> None:
    found = read({"memoryCompaction": {"profiles": {"p": {"cooldownMS": 1, "colour": "red"}}}, "presets": []})
    assert found.warnings == (
        "memoryCompaction.profiles.p.cooldownMS is not known, and ignored: did you mean cooldownMs?",
    )


@pytest.mark.parametrize(
    ("presets", "said"),
    [
        ({"memoryCompaction": {"defaultProfile": "fast"}}, "there is no profile 'fast'; there is off, standard"),
        ({"memoryCompaction": {"profiles": {"p": {"minTurnsToSummarize": 0}}}}, "profiles.p.minTurnsToSummarize"),
    ],
    ids=["unknown profile", "wrong number"],
)
def test_what_is_wrong_is_told_with_its_place(presets: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said.replace(".", r"\.")):
        read(presets)


def test_a_scope_whose_top_k_is_not_named_has_the_usual_one() -> None:
    top_k = read({"longTermMemory": {"topKByScope": {"user": 1}}}).long_term.top_k
    assert top_k == {"conversation": 4, "user": 1, "persona": 6, "organization": 6}


def test_presets_that_become_wrong_leave_what_they_said_before() -> None:
    """An agent does not stop to think because somebody mistypes a number."""
    said: list[dict[str, Any]] = [{"longTermMemory": {"maxCharacters": 300}}]
    configuration = Configuration(lambda: said[0])
    assert configuration.now().long_term.max_characters == 300
    said[0] = {"longTermMemory": {"maxCharacters": "many"}}
    assert configuration.now().long_term.max_characters == 300
    with pytest.raises(SettingsError, match=r"longTermMemory\.maxCharacters"):
        Configuration(lambda: said[0]).now()


def test_retrieval_is_reviewed_as_often_as_profiles_are() -> None:
    routing = read({"routing": {"reviewEveryNTurns": 3, "forceReviewOnCompaction": False}}).routing
    assert (routing.every_turns, routing.on_compaction) == (3, False)


class TestPresetFile:
    """The file both parts share."""

    def test_a_file_that_is_not_there_says_nothing(self, tmp_path: Path) -> None:
        assert PresetFile(tmp_path / "none.json").load() == {}

    def test_it_is_parsed_once_and_again_when_it_has_changed(self, tmp_path: Path) -> None:
        path = tmp_path / "presets.json"
        path.write_text('{"a": 1}')
        file = PresetFile(path)
        first = file.load()
        assert file.load() is first
        path.write_text('{"a": 22}')
        assert file.load() == {"a": 22}

    def test_what_is_broken_is_told_with_its_line_and_a_good_one_stays(self, tmp_path: Path) -> None:
        path = tmp_path / "presets.json"
        path.write_text('{"a": 1,\n "b" 2}')
        with pytest.raises(InvalidInput, match=r"presets\.json:2:6: "):
            PresetFile(path).load()
        path.write_text('{"a": 1}')
        file = PresetFile(path)
        assert file.load() == {"a": 1}
        path.write_text("[")
        os.utime(path, ns=(1, 1))
        assert file.load() == {"a": 1}

    def test_it_has_to_be_an_object(self, tmp_path: Path) -> None:
        path = tmp_path / "presets.json"
        path.write_text(json.dumps([1]))
        with pytest.raises(InvalidInput, match="has to hold a JSON object"):
            PresetFile(path).load()


@pytest.mark.parametrize(
    ("part", "field", "taken", "refused"),
    [
        ("profile", "cooldownMs", 0, -1),
        ("profile", "tailTurnsToKeep", 0, -1),
        ("profile", "tailTurnsToKeep", 10_000, 10_001),
        ("profile", "minTurnsToSummarize", 1, 0),
        ("profile", "minTurnsToSummarize", 10_000, 10_001),
        ("profile", "maxTurnsToSummarizePerPass", 1, 0),
        ("profile", "maxTurnsToSummarizePerPass", 1_000, 1_001),
        ("profile", "maxSummaryTokens", 100, 99),
        ("profile", "maxSummaryTokens", 20_000, 20_001),
        ("profile", "modelId", "m", ""),
        ("profile", "promptKey", "p", ""),
        ("routing", "reviewEveryNTurns", 0, -1),
        ("longTermMemory", "maxCharacters", 200, 199),
        ("longTermMemory", "maxCharacters", 40_000, 40_001),
        ("longTermMemory", "topKByScope", {"user": 0}, {"user": -1}),
        ("longTermMemory", "topKByScope", {"user": 60}, {"user": 61}),
    ],
)
def test_a_limit_is_taken_and_the_value_beyond_it_is_refused(part: str, field: str, taken: Any, refused: Any) -> None:
    def presets(value: Any) -> dict[str, Any]:
        if part == "profile":
            return {"memoryCompaction": {"profiles": {"mine": {field: value}}}}
        return {part: {field: value}}

    read(presets(taken))
    with pytest.raises(SettingsError, match=field):
        read(presets(refused))


def test_reviews_follow_compaction_and_every_sixth_turn_by_default() -> None:
    routing = read({}).routing
    assert (routing.every_turns, routing.on_compaction) == (6, True)
