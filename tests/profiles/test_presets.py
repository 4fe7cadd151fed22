"""What a file of presets says: its keys, what is ignored, what is wrong, and where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from denizen.agents.prompt_config import PromptConfig
from denizen.errors import InvalidInput
from denizen.memory import settings as memory_settings
from denizen.profiles import presets
from denizen.profiles.files import PresetFile
from denizen.profiles.library import Library, shipped_addons, shipped_file
from denizen.profiles.presets import Presets
from denizen.profiles.router import route

ADDONS = {"concise": "Be brief.", "planner": "Make a plan."}
FILE: dict[str, Any] = {
    "routing": {
        "reviewEveryNTurns": 4,
        "forceReviewOnCompaction": False,
        "defaultPresetByMode": {"ada": "short", "review": "plan"},
    },
    "presets": [
        {"id": "short", "addonPromptKeys": ["_meta/concise"], "basePromptKey": "ignored"},
        {"id": "plan", "addonPromptKeys": ["planner", "concise"]},
    ],
    "rules": [{"id": "plans", "priority": 5, "presetId": "plan", "anyKeywords": ["plan"]}],
}


def read(given: dict[str, Any]) -> Presets:
    found = presets.read(given, ADDONS.get)
    assert found is not None
    return found


def with_(path: str, value: Any) -> dict[str, Any]:
    """The file with one thing in it changed."""
    changed = json.loads(json.dumps(FILE))
    *outer, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    there = changed
    for part in outer:
        there = there[part]
    there[last] = value
    return changed


def test_the_file_has_the_documented_keys():
    found = read(FILE)
    assert (found.review_every, found.review_on_compaction) == (4, False)
    assert found.by_mode == {"ada": "short", "review": "plan"}
    assert found.rules[0].priority == 5


def test_meta_add_ons_can_be_combined_and_are_appended_in_order():
    assert read(FILE).text("plan") == "Make a plan.\n\nBe brief."


def test_other_fields_are_allowed_but_ignored_and_near_misses_are_warned_about():
    found = read({**with_("routing.reviewEveryNturn", 9), "memoryCompaction": {}, "colour": "red", "rulez": []})
    assert found.review_every == 4
    assert found.warnings == (
        "rulez is ignored: did you mean rules?",
        "routing.reviewEveryNturn is ignored: did you mean reviewEveryNTurns?",
    )


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("rules.0.presetId", "plann", "rules[0].presetId: there is no preset 'plann'; did you mean 'plan'."),
        ("routing.defaultPresetByMode.ada", "no", "routing.defaultPresetByMode.ada: there is no preset 'no'."),
        ("routing.defaultPresetId", "gone", "routing.defaultPresetId: there is no preset 'gone'."),
        ("presets.0.addonPromptKeys", ["x"], "presets[0].addonPromptKeys[0]: there is no add-on 'x'"),
        ("presets.1.id", "short", "presets[1].id: 'short' appears twice."),
        ("routing.reviewEveryNTurns", "six", "routing.reviewEveryNTurns: Input should be a valid integer."),
        ("rules.0.anyKeywords", "plan", "rules[0].anyKeywords: Input should be a valid list."),
    ],
    ids=["rule", "mode", "default", "add-on", "twice", "number", "list"],
)
def test_what_is_wrong_is_an_error_that_says_where(path: str, value: Any, told: str):
    with pytest.raises(InvalidInput) as error:
        read(with_(path, value))
    assert told in str(error.value)


def test_without_presets_there_are_no_profiles():
    assert presets.read({"memoryCompaction": {}}, ADDONS.get) is None
    assert Library().current() is None


def test_the_shipped_presets_are_valid_and_have_all_add_ons(tmp_path: Path):
    found = presets.read(shipped_file(), lambda key: key)
    assert found is not None
    assert found.warnings == ()
    assert {"concise", "deep_dive", "planner", "reviewer"} < set(shipped_addons())


def test_without_a_file_the_shipped_presets_apply(tmp_path: Path):
    library = Library(tmp_path / "metaprompt-presets.json", tmp_path)
    found = library.current()
    assert found is not None
    assert route(found, "ada", "Tell me briefly.").preset == "concise"
    assert route(found, "ada", "Hello.").preset == "balanced"
    assert found.text("balanced") == ""


def test_the_shipped_file_says_how_conversations_are_summarized():
    """The profile `standard` is what memory does without a file."""
    shipped = memory_settings.read(shipped_file())
    assert shipped.warnings == ()
    assert shipped.compaction.profile_for([]) == memory_settings.read({}).compaction.profile_for([])
    assert not shipped.compaction.named("off").enabled


def test_the_file_and_its_add_ons_are_read_again_when_they_change(tmp_path: Path):
    path, own = tmp_path / "config" / "metaprompt-presets.json", tmp_path / "prompts" / "_meta"
    own.mkdir(parents=True)
    library = Library(path, tmp_path / "prompts")
    assert library.source == "shipped"
    path.parent.mkdir()
    path.write_text(json.dumps({"presets": [{"id": "short", "addonPromptKeys": ["concise"]}]}))
    shipped = library.current()
    assert shipped is not None
    assert shipped.text("short").startswith("Be brief. Begin")
    assert library.current() is shipped
    (own / "concise.md").write_text("Short, please.")
    ours = library.current()
    assert ours is not None
    assert ours.text("short") == "Short, please."


def test_what_was_good_last_stays_in_force_while_the_file_is_wrong(tmp_path: Path):
    path = tmp_path / "presets.json"
    path.write_text(json.dumps(FILE))
    library = Library(path)
    good = library.current()
    path.write_text('{"presets": [{]')
    assert library.current() is good
    path.write_text(json.dumps(with_("rules.0.presetId", "gone")))
    assert library.current() is good
    path.unlink()
    assert library.source == "shipped"
    assert library.current() is not good


def test_a_file_that_never_was_good_is_an_error_with_its_line(tmp_path: Path):
    path = tmp_path / "presets.json"
    path.write_text('{\n  "presets": [}')
    with pytest.raises(InvalidInput, match=r"presets\.json:2:15: this is not JSON"):
        PresetFile(path).load()
    path.write_text("[]")
    with pytest.raises(InvalidInput, match="has to hold a JSON object"):
        PresetFile(path).load()


def test_a_key_is_no_way_out_of_the_folder(tmp_path: Path):
    (tmp_path / "secret.md").write_text("swordfish")
    (tmp_path / "prompts" / "_meta").mkdir(parents=True)
    path = tmp_path / "presets.json"
    path.write_text(json.dumps({"presets": [{"id": "x", "addonPromptKeys": ["../../secret"]}]}))
    with pytest.raises(InvalidInput, match="there is no add-on"):
        Library(path, tmp_path / "prompts").current()


def test_an_add_on_that_is_used_no_more_may_change_without_a_word(tmp_path: Path):
    """It once made the presets be read, and warned about, again and again."""
    path, own = tmp_path / "presets.json", tmp_path / "prompts" / "_meta"
    own.mkdir(parents=True)
    (own / "old.md").write_text("Old.")
    path.write_text(json.dumps({"presets": [{"id": "x", "addonPromptKeys": ["old"]}]}))
    library = Library(path, tmp_path / "prompts")
    library.current()
    path.write_text(json.dumps({"presets": [{"id": "x", "addonPromptKeys": ["concise"]}]}))
    found = library.current()
    (own / "old.md").unlink()
    assert library.current() is found


def test_an_add_on_that_cannot_be_read_leaves_what_was_good_in_force(tmp_path: Path):
    path, own = tmp_path / "presets.json", tmp_path / "prompts" / "_meta"
    own.mkdir(parents=True)
    path.write_text(json.dumps({"presets": [{"id": "x", "addonPromptKeys": ["mine"]}]}))
    (own / "mine.md").write_text("Mine.")
    library = Library(path, tmp_path / "prompts")
    good = library.current()
    assert good is not None
    (own / "mine.md").write_bytes(b"\xff\xfe\xff")
    assert library.current() is good
    (own / "mine.md").unlink()
    assert library.current() is good
    (own / "mine.md").write_text("Mine again.")
    again = library.current()
    assert again is not None
    assert again.text("x") == "Mine again."
    (own / "mine.md").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInput, match=r"mine\.md is not UTF-8 text"):
        Library(path, tmp_path / "prompts").current()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"\xff\xff", "is not UTF-8 text"),
        (b"[" * 100_000, "cannot be read"),
        (b'{"n": ' + b"9" * 5_000 + b"}", "cannot be read"),
        (b'{"presets": [{"id": "x", "addonPromptKeys": ["a\\u0000b"]}]}', "there is no add-on"),
    ],
    ids=["bytes", "deep", "digits", "nul"],
)
def test_whatever_stands_in_the_file_is_right_or_an_error(tmp_path: Path, content: bytes, told: str):
    path = tmp_path / "presets.json"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match=told):
        Library(path, tmp_path).current()


def test_metaprompts_and_quick_start_profiles_are_read_again_when_the_file_changes(tmp_path: Path):
    """And what was good last stays in force while it is not."""
    path = tmp_path / "presets.json"
    prompt_config = PromptConfig(path)
    assert "mine" not in prompt_config.configuration().profiles
    path.write_text(json.dumps({"sentimentTracking": {"profiles": {"mine": {"enabled": True}}}}))
    good = prompt_config.configuration()
    assert good.profiles["mine"].enabled
    path.write_text(json.dumps({"sentimentTracking": {"profiles": {"mine": {"enabled": "perhaps"}}}}))
    assert prompt_config.configuration() is good
    path.write_text(json.dumps({"metaPrompts": []}))
    assert "mine" not in prompt_config.configuration().profiles
