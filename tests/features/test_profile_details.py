"""Profiles, memory and reflection in detail."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from denizen import call, forever, reply, scripted
from denizen.agents.definition import AgentDefinition
from denizen.agents.files import DefinitionFile, read
from denizen.cli.home import memory_options, profile_options
from denizen.ids import AgentId
from denizen.memory.settings import CompactionProfile, MemoryOptions
from denizen.reflection.sentiment import by_lexicon
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
        utility(world, written("They met.", facts=[known("Noor sings.", 1)]), *[written("They met.")] * 3)
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
    memory = memory_options(load(environ=environ, folder=folder).settings)
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
    memory = memory_options(settings)
    async with open_world("sqlite://", memory=memory, **profile_options(settings)) as world:
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


PERSONA: dict[str, Any] = {
    "id": "my_tutor_persona",
    "name": "Adaptive Tutor",
    "version": "1.0.0",
    "baseSystemPrompt": "You are an adaptive coding tutor.",
    "sentimentTracking": {
        "enabled": True,
        "method": "lexicon_based",
        "modelId": "gpt-5-mini",
        "providerId": "openai",
        "historyWindow": 5,
        "frustrationThreshold": -0.4,
        "satisfactionThreshold": 0.4,
        "consecutiveTurnsForTrigger": 3,
        "presets": ["frustration_recovery", "confusion_clarification"],
    },
    "metaPrompts": [
        {
            "id": "gmi_self_trait_adjustment",
            "promptTemplate": "Reflect on the conversation: {{evidence}}",
            "trigger": {"type": "turn_interval", "intervalTurns": 5},
            "temperature": 0.3,
            "maxOutputTokens": 128,
        }
    ],
}


def is_tutor(definition: AgentDefinition) -> bool:
    """Whether everything of the persona is in the definition."""
    sentiment, (metaprompt,) = definition.reflection.sentiment, definition.reflection.metaprompts
    return (
        definition.instructions == PERSONA["baseSystemPrompt"]
        and sentiment is not None
        and (sentiment.model, sentiment.history_window, sentiment.presets)
        == ("openai:gpt-5-mini", 5, ("frustration_recovery", "confusion_clarification"))
        and (sentiment.frustration_threshold, sentiment.satisfaction_threshold) == (-0.4, 0.4)
        and sentiment.consecutive_turns_for_trigger == 3
        and metaprompt.trigger.type == "turn_interval"
        and (metaprompt.trigger.interval_turns, metaprompt.max_output_tokens) == (5, 128)
    )


async def test_a_persona_can_be_written_to_a_file_posted_or_given_in_python() -> None:
    """A persona with its keys in camelCase (`baseSystemPrompt`, `sentimentTracking`, `metaPrompts`) is accepted as a
    definition: in files, over HTTP and in Python, when an agent is created and when it is changed. `id` becomes the
    handle.

    Docs: reflection.md
    """
    keys = ("baseSystemPrompt", "sentimentTracking", "metaPrompts")
    only_persona: Any = {key: PERSONA[key] for key in keys}
    async with open_world("sqlite://") as world, served(world) as house:
        noor, agents = await world.person("Noor"), world.denizen.agents
        await agents.apply(read([DefinitionFile("tutor.json", json.dumps(PERSONA))]))
        applied = next(each for each in await agents.list() if each.entity.handle == "my-tutor-persona")
        assert (applied.name, is_tutor(applied.definition)) == ("Adaptive Tutor", True)

        posted = await house.call("POST", "/api/agents", noor, json={**PERSONA, "id": "second_tutor"})
        assert (posted.status_code, posted.json()["handle"]) == (201, "second-tutor")
        plain = await agents.create("Plain", instructions="You keep bees.", reflection={"profile": "basic"})
        changed = await house.call("PATCH", f"/api/agents/{plain.id}", noor, json=only_persona)
        assert changed.status_code == 200
        for id in (posted.json()["id"], plain.id):
            assert is_tutor((await agents.get(AgentId(id))).definition)

        created = await agents.create("Third tutor", **only_persona)
        edited = await agents.edit(await agents.create("Fourth", instructions="You keep bees."), **only_persona)
        assert is_tutor(created.definition)
        assert is_tutor(edited.definition)


INTERVAL: dict[str, Any] = {
    "id": "gmi_self_trait_adjustment",
    "promptTemplate": "Reflect on the conversation: {{evidence}}",
    "trigger": {"type": "turn_interval", "intervalTurns": 2},
}


@pytest.mark.parametrize("way", ["definition", "presets file", "conversation", "HTTP"])
async def test_metaprompts_run_by_interval_without_sentiment(tmp_path: Path, way: str) -> None:
    """A metaprompt with a `turn_interval` runs every so many turns, whether or not sentiment is tracked. It may stand
    in the definition of an agent, in the presets file for every agent that reflects, or in the settings of one
    conversation, over HTTP too.

    Docs: reflection.md
    """
    patient = call("adjust", mood="patient", reason="They take their time.")
    path = presets_file(tmp_path, **({"metaPrompts": [INTERVAL]} if way == "presets file" else {}))
    defined: dict[str, Any] = {
        "definition": {"metaPrompts": [INTERVAL], "model": "small"},
        "presets file": {"sentimentTracking": {"presets": ["frustration_recovery"]}, "model": "small"},
    }
    async with open_world("sqlite://", presets=path) as world, served(world) as house:
        world.denizen.models.register("small", scripted(*[patient] * 2))
        noor = await world.person("Noor")
        ada = await world.agent("Ada", *[reply("Yes."), "Done."] * 5, reflection=defined.get(way, {}))
        desk = await world.space("Desk", noor, ada)
        own: Any = {"reflection": {"metaPrompts": [INTERVAL], "model": "small"}}
        if way == "conversation":
            await world.denizen.reflection.set_settings(ada, desk, own)
        if way == "HTTP":
            put = await house.call("PUT", f"/api/agents/{ada.id}/stances/{desk.id}/settings", noor, json=own)
            assert put.status_code == 200
        for _ in range(5):
            await world.say(noor, "I hate this, it is terrible.", desk)
            await world.run()
        runs = await world.denizen.reflection.states_of_mind(ada, desk)
        assert [(each.metaprompt, each.cause) for each in runs] == [(INTERVAL["id"], "interval")] * 2
        assert await world.denizen.reflection.signals(ada, desk) == []


async def test_reviews_can_be_switched_off(tmp_path: Path) -> None:
    """With `reviewEveryNTurns: 0`, a profile is chosen and memories are recalled only at the first turn of a
    conversation and after a compaction.

    Docs: profiles.md
    """
    presets = presets_file(tmp_path, routing={"reviewEveryNTurns": 0}, memoryCompaction={"defaultProfile": "off"})
    given = json.loads(presets.read_text())
    async with open_world("sqlite://", presets=presets, memory=MemoryOptions(presets=lambda: given)) as world:
        noor = await world.person("Noor")
        ada = await world.agent("Ada", model=forever(answering))
        kitchen = await world.space("Kitchen", noor, ada)
        for number in range(10):
            await remembered(world, noor, kitchen, f"The violin was tuned {number} times.")
            await world.say(noor, "Tell me briefly about the violin." if number else "And the violin?", kitchen)
            await world.run()
        assert (await world.denizen.reflection.stance(ada, kitchen)).preset is None
        assert sum(entry.startswith("remembered") for entry in await world.history(ada)) == 1


async def test_panels_take_reflection_settings_with_json_names() -> None:
    """`reflection` of a panel and of an advisor takes the same names in camelCase.

    Docs: reflection.md
    """
    async with open_world("sqlite://") as world:
        board = await world.denizen.panels.create(
            "Board",
            advisors=[{"name": "Seth", "reflection": {"metaPrompts": [INTERVAL]}}],
            reflection={"sentimentTracking": {"enabled": True, "historyWindow": 3}},
        )
        sentiment = board.settings.reflection.sentiment
        assert sentiment is not None
        assert (sentiment.enabled, sentiment.history_window) == (True, 3)
        [seth] = await world.denizen.advisors.list(board)
        own = seth.settings.reflection
        assert own is not None
        assert [each.id for each in own.metaprompts] == [INTERVAL["id"]]


def test_the_lexicon_reads_ordinary_frustration_in_english_and_german() -> None:
    """Without a model, sentiment is read in English and German: a negated verb such as "does not work" or
    "funktioniert nicht" is negative, a plain "yes" or "ja" is neutral.

    Docs: reflection.md
    Differs: other languages score about 0; for them, use the method `llm`.
    """
    for text in ("It still does not work, bad.", "it doesn't work", "Es funktioniert immer noch nicht."):
        assert by_lexicon(text).score < -0.3
    for text in ("yes", "ja", "Please send me the invoice.", "Die Rechnung war im Anhang.", "No funciona."):
        assert by_lexicon(text).score == 0
    assert by_lexicon("Das verstehe ich nicht.").confusion
