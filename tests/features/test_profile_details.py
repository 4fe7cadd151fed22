"""Profiles, memory and reflection in detail."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from denizen import forever, reply, scripted
from denizen.cli.house import how_agents_reflect, what_is_remembered
from denizen.memory.settings import CompactionProfile, MemoryOptions
from denizen.settings.loading import load, specs
from tests.memory.conftest import PRESETS, answering, known, remembering, utility, written
from tests.memory.test_reminding import remembered
from tests.server.conftest import Stream, served
from tests.world import as_text, open_world


def presets_file(folder: Path, **changes: Any) -> Path:
    """A file with two profiles, of which `short` is chosen by the word "briefly"."""
    path = folder / "presets.json"
    given = {
        "routing": {"reviewEveryNTurns": 3, "defaultPresetByMode": {"default": "plain"}},
        "presets": [
            {"id": "plain", "addonPromptKeys": []},
            {"id": "short", "addonPromptKeys": ["brief"]},
        ],
        "rules": [{"id": "asked", "presetId": "short", "anyKeywords": ["briefly"]}],
        "addonPrompts": {"brief": "Answer in one sentence."},
        **changes,
    }
    path.write_text(json.dumps(given))
    return path


async def test_a_profile_is_part_of_the_instructions_from_the_next_era_on(tmp_path: Path) -> None:
    """The add-ons of an agent's profile are part of its system prompt from the next era on. Until then one line of the
    inbox message says "Answer from now on: …", so that the prompt that the provider has cached stays the same.

    Docs: profiles.md
    """
    async with open_world("sqlite://", presets=presets_file(tmp_path)) as world:
        noor = await world.person("Noor")
        ada = await world.agent("Ada", *[reply("Yes."), "Done."] * 3, instructions="You keep bees.")
        kitchen = await world.space("Kitchen", noor, ada)
        profile = 'in "Kitchen" (id: <Kitchen>) — short: Answer in one sentence.'
        for text, later_seconds in (("Hello, briefly.", 1), ("And now?", 3_600), ("Good morning.", 0)):
            await world.say(noor, text, kitchen)
            await world.run()
            world.clock.advance(later_seconds)
        first, *_, last = requests = await world.prompts(ada)
        assert [f"Answer from now on: {profile}" in each for each in first] == [False, True]
        assert {request[0] for request in requests[:4]} == {first[0]}
        assert "YOUR ROLE:\nYou keep bees." in last[0]
        assert f"HOW TO ANSWER:\n  - {profile}" in last[0]
        assert sum("Answer from now on" in each for each in last) == 1


async def next_update(stream: Stream) -> dict[str, Any]:
    while (told := await stream.next()).name != "metadata.update":
        pass
    return {name: value for name, value in told.data.items() if value is not None}


async def test_metadata_of_an_answer_is_in_the_stream_too(tmp_path: Path) -> None:
    """The metadata of an answer of `/api/chat` comes in `metadata.update` too: the prompt profile and why it was
    chosen, the conversation summary, and why memories were recalled: `first`, `cadence` or `compaction`.

    Docs: streams.md
    """
    presets = presets_file(tmp_path)
    given = {**PRESETS, **json.loads(presets.read_text())}
    memory = MemoryOptions(presets=lambda: given)
    async with open_world("sqlite://", presets=presets, memory=memory) as world, served(world) as house:
        utility(world, written("They met.", facts=[known("Noor sings.", 1)]), *[written("They talked.")] * 3)
        noor = await world.person("Noor")
        ada = await world.agent("Ada", model=forever(answering))
        kitchen = await world.space("Kitchen", noor, ada)
        await remembered(world, noor, kitchen)

        async def chat(text: str) -> dict[str, Any]:
            asked = {"agent": "@ada", "text": text, "space": kitchen.id}
            return (await house.call("POST", "/api/chat", noor, json=asked)).json()["metadata"]

        async with house.stream(noor, kitchen) as stream, world.denizen.living():
            answer = await chat("Briefly: where is my violin?")
            told = await next_update(stream)
            assert (told["agent"], told["prompt_profile"]) == (ada.id, answer["prompt_profile"])
            assert told["prompt_profile"]["reason"] == "rule 'asked': the message has 'briefly' (first turn)"
            assert told["long_term_memory"] == answer["long_term_memory"]
            assert (told["long_term_memory"]["reason"], told["long_term_memory"]["memories"]["user"]) == ("first", 1)
            assert "rolling_memory" not in told

            answer = await chat("Good.")
            assert "long_term_memory" not in answer
            told = await next_update(stream)
            assert told["rolling_memory"]["summary_markdown"] == "They met."

            await world.run()
            answer = await chat("And the violin?")
            assert answer["rolling_memory"]["summary_markdown"] == "They met."
            assert answer["long_term_memory"]["reason"] == "compaction"
            told = await next_update(stream)
            while "agent" not in told:
                told = await next_update(stream)
            assert told["prompt_profile"] == answer["prompt_profile"]
            assert told["prompt_profile"]["reason"].endswith("(compacted)")
            assert told["long_term_memory"] == answer["long_term_memory"]


async def test_a_remembered_fact_is_told_once() -> None:
    """A fact that is remembered in several scopes is told once, and not again while the agent sees it: in an earlier
    reminder, in recalled passages or in the conversation summary.

    Docs: memory.md
    """
    fact = "The violin is in the attic."
    async with open_world("sqlite://", memory=remembering(routing={"reviewEveryNTurns": 1})) as world:
        noor = await world.person("Noor")
        ada = await world.agent("Ada", model=forever(answering))
        kitchen = await world.space("Kitchen", noor, ada)
        await remembered(world, noor, kitchen, fact)
        for scope in ({"scope": "persona", "agent_id": ada.id}, {"scope": "conversation", "space_id": kitchen.id}):
            await world.say(noor, "Where is my violin?", kitchen)
            await world.run()
            await remembered(world, noor, kitchen, fact, **scope)
        await world.say(noor, "Where is my violin?", kitchen)
        await world.run()
        assert sum(entry.count(fact) for entry in await world.history(ada)) == 1


@dataclass(frozen=True)
class Summarized:
    """What became of a conversation of eight messages."""

    upto: int
    """The last message in the summary."""
    asked: str
    """The instructions of the first pass; empty if there was none."""


async def summarized(folder: Path, **variables: str) -> Summarized:
    """Summarizes a conversation as a server with these variables would: after the sixth message, unless they differ."""
    usual = {"TAIL_TURNS": "0", "MIN_TURNS": "6", "COOLDOWN_MS": "0", "MODEL_ID": "openai/gpt-4o-mini"}
    environ = {f"MEMORY_COMPACTION_{name}": value for name, value in usual.items()}
    environ |= {"DENIZEN_HOME": str(folder), "DENIZEN_PROFILES__PROMPTS": str(folder / "prompts")} | variables
    memory = what_is_remembered(load(environ=environ, folder=folder).settings)
    async with open_world("sqlite://", memory=memory) as world:
        model = scripted(*[written("They talked.")] * 8)
        world.denizen.models.register("openai:gpt-4o-mini", model)
        world.denizen.models.register("demo:other", scripted())
        noor, ada = await world.person("Noor"), await world.agent("Ada")
        kitchen = await world.space("Kitchen", noor)
        await world.denizen.spaces.join(kitchen, ada, attention="none")
        for number in range(8):
            await world.say(noor, f"Message {number}.", kitchen)
            await world.run()
        asked = as_text(model.requests[0][0]) if model.requests else ""
        return Summarized((await world.denizen.memory.summary(kitchen)).upto, asked)


@pytest.mark.parametrize(
    ("variables", "upto"),
    [
        ({}, 6),
        ({"MEMORY_COMPACTION_ENABLED": "false"}, 0),
        ({"MEMORY_COMPACTION_TAIL_TURNS": "4"}, 0),
        ({"MEMORY_COMPACTION_MIN_TURNS": "2"}, 8),
        ({"MEMORY_COMPACTION_MAX_TURNS_PER_PASS": "4"}, 4),
        ({"MEMORY_COMPACTION_MIN_TURNS": "2", "MEMORY_COMPACTION_COOLDOWN_MS": "60000"}, 2),
        ({"MEMORY_COMPACTION_MODEL_ID": "demo/other"}, 0),
    ],
    ids=lambda given: ",".join(given).replace("MEMORY_COMPACTION_", "") if isinstance(given, dict) else str(given),
)
async def test_each_compaction_variable_has_its_effect(tmp_path: Path, variables: dict[str, str], upto: int) -> None:
    """The variables `MEMORY_COMPACTION_ENABLED`, `_TAIL_TURNS`, `_MIN_TURNS`, `_MAX_TURNS_PER_PASS`, `_COOLDOWN_MS` and
    `_MODEL_ID` decide when a conversation is summarized, how much of it, and by which model.

    Docs: settings.md
    """
    assert (await summarized(tmp_path, **variables)).upto == upto


async def test_variables_choose_the_prompt_and_the_length_of_a_summary(tmp_path: Path) -> None:
    """`MEMORY_COMPACTION_PROMPT_KEY` names a file in the folder of prompts, `_MAX_SUMMARY_TOKENS` is the limit that the
    model is told.

    Docs: settings.md
    """
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "mine.md").write_text("Summarize in {tokens} tokens, as a poem.")
    variables = {"MEMORY_COMPACTION_PROMPT_KEY": "mine", "MEMORY_COMPACTION_MAX_SUMMARY_TOKENS": "333"}
    assert "Summarize in 333 tokens, as a poem." in (await summarized(tmp_path, **variables)).asked


async def test_variables_name_the_presets_file_and_the_add_ons(tmp_path: Path) -> None:
    """`DENIZEN_PROFILES__PRESETS` names the file of presets, rules and compaction profiles, and
    `DENIZEN_PROFILES__PROMPTS` the folder whose `_meta/*.md` are add-ons.

    Docs: settings.md
    """
    compaction = {"profiles": {"soon": {"minTurnsToSummarize": 3}}, "defaultProfile": "soon"}
    path = presets_file(tmp_path, addonPrompts={}, memoryCompaction=compaction)
    (tmp_path / "mine" / "_meta").mkdir(parents=True)
    (tmp_path / "mine" / "_meta" / "brief.md").write_text("Answer with one word.")
    environ = {"DENIZEN_PROFILES__PRESETS": str(path), "DENIZEN_PROFILES__PROMPTS": str(tmp_path / "mine")}
    settings = load(environ={**environ, "DENIZEN_HOME": str(tmp_path)}, folder=tmp_path).settings
    memory = what_is_remembered(settings)
    async with open_world("sqlite://", memory=memory, **how_agents_reflect(settings)) as world:
        noor, ada = await world.person("Noor"), await world.agent("Ada", reply("Yes."), "Done.")
        await world.say(noor, "Hello, briefly.", await world.space("Kitchen", noor, ada))
        await world.run()
        assert "short: Answer with one word." in (await world.history(ada))[0]
    assert memory is not None
    assert dict(memory.presets())["memoryCompaction"] == compaction


def test_the_settings_page_has_the_default_of_each_variable() -> None:
    """The page about settings lists each `MEMORY_COMPACTION_*` variable with the default of the profile `standard`.

    Docs: settings.md
    Differs: the default model is `default`, the cheap model of the server's provider, and not one of a certain vendor.
    """
    usual = CompactionProfile()
    assert {each.variable: each.default for each in specs() if each.variable.startswith("MEMORY_COMPACTION_")} == {
        "MEMORY_COMPACTION_ENABLED": "true",
        "MEMORY_COMPACTION_PROMPT_KEY": usual.prompt,
        "MEMORY_COMPACTION_MODEL_ID": usual.model,
        "MEMORY_COMPACTION_COOLDOWN_MS": str(usual.cooldown_ms),
        "MEMORY_COMPACTION_TAIL_TURNS": str(usual.tail_turns),
        "MEMORY_COMPACTION_MIN_TURNS": str(usual.min_turns),
        "MEMORY_COMPACTION_MAX_TURNS_PER_PASS": str(usual.max_turns),
        "MEMORY_COMPACTION_MAX_SUMMARY_TOKENS": str(usual.max_summary_tokens),
    }
