"""Profiles, memory and reflection in detail."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from denizen import forever, reply
from denizen.memory.settings import MemoryOptions
from tests.memory.conftest import PRESETS, answering, known, remembering, utility, written
from tests.memory.test_reminding import remembered
from tests.server.conftest import Stream, served
from tests.world import open_world


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
