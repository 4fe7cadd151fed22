"""Prompt profiles."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from denizen import InvalidInput, MemoryOptions, Runtime, forever, reply, scripted
from tests.memory.conftest import PRESETS as QUICK_MEMORY
from tests.memory.conftest import utility, written
from tests.profiles.test_in_life import kitchen, say
from tests.world import World, as_text, open_world

PRESETS = [
    {"id": "plain", "addonPromptKeys": []},
    {"id": "short", "addonPromptKeys": ["brief"]},
    {"id": "plan", "addonPromptKeys": ["steps"]},
]
RULES = [{"id": "plans", "presetId": "plan", "anyKeywords": ["plan"]}]
ADDONS = {"brief": "Be very brief.", "steps": "First the goal."}


def write(path: Path, **file: Any) -> Path:
    routing = {"defaultPresetId": "plain"} | file.pop("routing", {})
    whole = {"presets": PRESETS, "rules": RULES, "addonPrompts": ADDONS, **file, "routing": routing}
    path.write_text(json.dumps(whole))
    return path


@asynccontextmanager
async def profiles(folder: Path, *, options: dict[str, Any] | None = None, **file: Any) -> AsyncGenerator[World]:
    """A world with a presets file: three presets, a rule for one of them, and what the test says."""
    async with open_world("sqlite://", presets=write(folder / "presets.json", **file), **(options or {})) as world:
        yield world


async def chosen(world: World, *texts: str, name: str = "Ada", **agent: Any) -> list[tuple[str | None, str]]:
    """Somebody says these things to an agent: the preset and the reason after each."""
    ada = await world.agent(name, *[reply("Yes."), "Done."] * len(texts), **agent)
    noor = await world.person(f"Friend of {name}")
    room = await world.space("Room", noor, ada)
    found: list[tuple[str | None, str]] = []
    for text in texts:
        await say(world, noor, room, text)
        stance = await world.denizen.reflection.stance(ada, room)
        found.append((stance.preset, stance.preset_reason))
    return found


async def presets_of(world: World, *texts: str, **more: Any) -> list[str | None]:
    return [preset for preset, _ in await chosen(world, *texts, **more)]


async def test_a_profile_adds_instructions_and_the_role_stays(tmp_path: Path) -> None:
    """A profile adds a block of instructions for a conversation. The agent's own instructions stay as they are.

    Docs: profiles.md
    """
    async with profiles(tmp_path, routing={"defaultPresetId": "short"}) as world:
        ada, noor, room = await kitchen(world, reply("Yes."), "Done.", instructions="You keep bees.")
        await say(world, noor, room, "Hello.")
        own, *rest = (as_text(each) for each in world.model(ada).requests[0])
    assert "You keep bees." in own
    assert "Be very brief." in "\n".join(rest)


async def test_four_add_ons_and_more_are_built_in(tmp_path: Path) -> None:
    """Add-ons for short answers, depth, plans and reviews are built in: concise, deep_dive, planner, reviewer.

    Docs: profiles.md#the-presets-file
    """
    names = ["concise", "deep_dive", "planner", "reviewer"]
    built_in = [{"id": "all", "addonPromptKeys": [f"_meta/{name}" for name in names]}]
    async with profiles(tmp_path, presets=built_in, rules=[], routing={"defaultPresetId": "all"}) as world:
        ada, noor, room = await kitchen(world, reply("Yes."), "Done.")
        await say(world, noor, room, "Hello.")
        told = await world.newest_inbox(ada)
    beginnings = ("Be brief. Begin with", "Go to the bottom of it.", "Turn what is wanted into a plan.", "Review what")
    assert [each in told for each in beginnings] == [True] * 4


async def test_your_own_add_ons_are_markdown_files(tmp_path: Path) -> None:
    """Your own add-ons are files in prompts/_meta, named by their key. One with a built-in name replaces that.

    Docs: profiles.md#the-presets-file
    """
    folder = tmp_path / "prompts" / "_meta"
    folder.mkdir(parents=True)
    (folder / "concise.md").write_text("Three words at most.")
    own = [{"id": "own", "addonPromptKeys": ["_meta/concise"]}]
    options = {"prompts": tmp_path / "prompts"}
    async with profiles(tmp_path, options=options, presets=own, rules=[], routing={"defaultPresetId": "own"}) as world:
        ada, noor, room = await kitchen(world, reply("Yes."), "Done.")
        await say(world, noor, room, "Hello.")
        assert "own: Three words at most." in await world.newest_inbox(ada)


async def test_add_ons_can_be_combined(tmp_path: Path) -> None:
    """A preset may combine several add-ons, in the order in which it names them.

    Docs: profiles.md#the-presets-file
    """
    both = [{"id": "both", "addonPromptKeys": ["steps", "brief"]}]
    async with profiles(tmp_path, presets=both, rules=[], routing={"defaultPresetId": "both"}) as world:
        ada, noor, room = await kitchen(world, reply("Yes."), "Done.")
        await say(world, noor, room, "Hello.")
        assert "First the goal. Be very brief." in await world.newest_inbox(ada)


async def test_a_profile_is_chosen_for_each_conversation(tmp_path: Path) -> None:
    """Each conversation of an agent has a profile of its own.

    Docs: profiles.md#when-a-profile-is-chosen
    """
    async with profiles(tmp_path) as world:
        ada, noor, room = await kitchen(world, *[reply("Yes."), "Done."] * 2)
        garden = await world.space("Garden", noor, ada)
        await say(world, noor, room, "A plan, please.")
        await say(world, noor, garden, "Hello.")
        found = [(await world.denizen.reflection.stance(ada, each)).preset for each in (room, garden)]
    assert found == ["plan", "plain"]


async def test_a_profile_is_reviewed_every_n_turns(tmp_path: Path) -> None:
    """The choice stays, whatever is said, until it is reviewed: every so many turns.

    Docs: profiles.md#when-a-profile-is-chosen
    """
    async with profiles(tmp_path, routing={"reviewEveryNTurns": 3}) as world:
        found = await presets_of(world, "Hello.", "A plan!", "A plan!", "A plan!", "Hm.", "Hm.", "Hm.")
    assert found == ["plain", "plain", "plain", "plan", "plan", "plan", "plain"]


async def test_a_profile_is_reviewed_every_six_turns_by_default(tmp_path: Path) -> None:
    """Unless you set another number, a profile is reviewed every 6 turns: in turns 1, 7 and 13.

    Docs: profiles.md#when-a-profile-is-chosen
    """
    async with profiles(tmp_path) as world:
        found = await presets_of(world, "Hello.", *["A plan!"] * 6)
    assert found == ["plain"] * 6 + ["plan"]


@asynccontextmanager
async def summarizing(folder: Path, *, forced: bool) -> AsyncGenerator[World]:
    """Conversations are summarized after four messages."""
    memory = MemoryOptions(presets=lambda: QUICK_MEMORY)
    routing = {"reviewEveryNTurns": 1_000, "forceReviewOnCompaction": forced}
    async with profiles(folder, options={"memory": memory}, routing=routing) as world:
        utility(world, *[written("They talked.")] * 3)
        yield world


async def test_a_profile_is_reviewed_when_the_conversation_is_summarized(tmp_path: Path) -> None:
    """A profile is reviewed when rolling memory has summarized the conversation.

    Docs: profiles.md#the-presets-file
    """
    async with summarizing(tmp_path, forced=True) as world:
        found = await chosen(world, "Hello.", "Hm.", "A plan, please.")
    assert found[-1] == ("plan", "rule 'plans': the message has 'plan' (compacted)")


async def test_reviews_by_summaries_can_be_switched_off(tmp_path: Path) -> None:
    """With `routing.forceReviewOnCompaction` false, a summary is no reason to choose again.

    Docs: profiles.md#the-presets-file
    """
    async with summarizing(tmp_path, forced=False) as world:
        assert await presets_of(world, "Hello.", "Hm.", "A plan, please.") == ["plain"] * 3


async def test_each_mode_has_its_default(tmp_path: Path) -> None:
    """A mode has its own default preset. The mode of an agent is its handle, or what its definition says.

    Docs: profiles.md#the-presets-file
    """
    async with profiles(tmp_path, routing={"defaultPresetByMode": {"ada": "short", "work": "plan"}}) as world:
        assert await presets_of(world, "Hello.") == ["short"]
        assert await presets_of(world, "Hello.", name="Bo", profiles={"mode": "work"}) == ["plan"]
        assert await presets_of(world, "Hello.", name="Cy") == ["plain"]


async def test_a_part_of_a_mode_finds_its_default(tmp_path: Path) -> None:
    """The default of a mode applies to every mode that contains its name; the longest such name wins.

    Docs: profiles.md#the-presets-file
    """
    async with profiles(tmp_path, routing={"defaultPresetByMode": {"tutor": "short", "math-tutor": "plan"}}) as world:
        assert await presets_of(world, "Hello.", name="My tutor") == ["short"]
        assert await presets_of(world, "Hello.", name="The math tutor") == ["plan"]


async def test_other_fields_of_the_file_are_ignored(tmp_path: Path) -> None:
    """Fields that Denizen does not know are allowed and ignored.

    Docs: profiles.md#the-presets-file
    """
    known = [{**each, "basePromptKey": "voice", "colour": "red"} for each in PRESETS]
    async with profiles(tmp_path, presets=known, version=3, theme={"dark": True}) as world:
        assert await presets_of(world, "A plan!") == ["plan"]


async def test_a_rule_matches_any_or_all_of_its_keywords(tmp_path: Path) -> None:
    """A rule matches a message that has any of its keywords, or all of them, as whole words in any case.

    Docs: profiles.md#the-presets-file
    """
    rules = [
        {"presetId": "plan", "anyKeywords": ["plan", "next steps"]},
        {"presetId": "short", "allKeywords": ["quick", "answer"]},
    ]
    said = "My PLAN.", "An explanation.", "The next  steps?", "A quick one.", "An answer, quick!"
    async with profiles(tmp_path, rules=rules, routing={"reviewEveryNTurns": 1}) as world:
        assert await presets_of(world, *said) == ["plan", "plain", "plan", "plain", "short"]


async def test_a_rule_matches_by_length(tmp_path: Path) -> None:
    """A rule can match by the length of the message.

    Docs: profiles.md#the-presets-file
    """
    rules = [{"presetId": "plan", "minMessageChars": 100}, {"presetId": "short", "maxMessageChars": 10}]
    async with profiles(tmp_path, rules=rules, routing={"reviewEveryNTurns": 1}) as world:
        assert await presets_of(world, "a" * 10, "a" * 11, "a" * 99, "a" * 100) == ["short", "plain", "plain", "plan"]


async def test_the_rule_with_the_highest_priority_wins(tmp_path: Path) -> None:
    """If several rules match, the one with the highest priority decides, then the first in the file.

    Docs: profiles.md#the-presets-file
    """
    rules = [
        {"id": "low", "presetId": "plain", "anyKeywords": ["tea"], "priority": 1},
        {"id": "high", "presetId": "short", "anyKeywords": ["tea"], "priority": 9},
        {"id": "also high", "presetId": "plan", "anyKeywords": ["tea"], "priority": 9},
    ]
    async with profiles(tmp_path, rules=rules) as world:
        assert await chosen(world, "Tea?") == [("short", "rule 'high': the message has 'tea' (first turn)")]


async def test_a_preset_can_be_set_by_hand(tmp_path: Path) -> None:
    """A preset can be set for an agent, and for one conversation of it; then no rule applies.

    Docs: profiles.md#when-a-profile-is-chosen
    """
    async with profiles(tmp_path) as world:
        ada, noor, room = await kitchen(world, *[reply("Yes."), "Done."] * 2, profiles={"preset": "short"})
        found: list[tuple[str | None, str]] = []
        for settings in ({}, {"preset": "plain"}):
            await world.denizen.reflection.set_settings(ada, room, settings)
            await say(world, noor, room, "A plan!")
            stance = await world.denizen.reflection.stance(ada, room)
            found.append((stance.preset, stance.preset_reason))
    assert found == [("short", "set by hand"), ("plain", "set by hand")]


async def test_the_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    """A changed presets file applies from the next turn on, without a restart.

    Docs: profiles.md#the-presets-file
    """
    async with profiles(tmp_path, routing={"defaultPresetId": "short"}) as world:
        ada, noor, room = await kitchen(world, *[reply("Yes."), "Done."] * 2)
        await say(world, noor, room, "Hello.")
        write(tmp_path / "presets.json", routing={"defaultPresetId": "short"}, addonPrompts={**ADDONS, "brief": "Hum."})
        await say(world, noor, room, "Hello.")
        assert "short: Hum." in await world.newest_inbox(ada)


async def test_a_wrong_file_is_refused_with_the_place_of_the_mistake(tmp_path: Path) -> None:
    """With a wrong presets file nothing starts, and the error says where the mistake is.

    Docs: profiles.md#the-presets-file
    """
    path = write(tmp_path / "presets.json", rules=[{"presetId": "plann"}])
    with pytest.raises(InvalidInput, match=r"rules\[0\]\.presetId: there is no preset 'plann'; did you mean 'plan'"):
        async with Runtime(presets=path):
            pass


async def test_advisors_have_profiles_too(tmp_path: Path) -> None:
    """The advisors of a panel have profiles as agents do; each reply says which one, and why.

    Docs: panel.md#what-an-advisor-sees
    """
    async with profiles(tmp_path) as world:
        noor = await world.person("Noor")
        world.denizen.models.register("m", forever(lambda *_: "Yes."))
        board = await world.denizen.panels.create("Board", [noor], advisors=["Seth"], model="m")
        asked = await world.denizen.panels.ask(board, noor, "A plan, please.")
        await world.run()
        [seth] = (await world.denizen.rounds.get(asked)).spoken
        shown = await world.denizen.rounds.context(asked, seth.voice)
    assert "## How to answer\nFirst the goal." in shown.lines[0].text
    assert (seth.recipe or {})["background"]["profile"]["preset"] == "plan"


async def test_profiles_and_metaprompts_are_two_things(tmp_path: Path) -> None:
    """A profile is chosen before a turn, by rules. A metaprompt runs after it, asks a model, and is off by default.

    Docs: reflection.md
    """
    async with profiles(tmp_path) as world:
        asked = scripted(name="utility")
        world.denizen.models.register("utility", asked)
        assert await presets_of(world, "I hate this, it is terrible: a plan, please!") == ["plan"]
        assert asked.requests == []
