"""Conversation summaries."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from denizen import Entity, MemoryOptions, ModelUnreachable, Space, forever
from denizen.models.scripted import ScriptedModel
from tests.memory.conftest import answering, known, remembering, utility, written
from tests.memory.test_forgetting import a_life
from tests.memory.test_keeping import a_conversation, talk
from tests.memory.test_panels_life import a_panel, ask, shown
from tests.memory.test_rolling_window import shown as in_prompt
from tests.memory.test_rolling_window import talk as say_all
from tests.memory.test_rolling_window import talking
from tests.world import World, as_text, open_world


@asynccontextmanager
async def standard(*turns: Any, messages: int = 0, **compaction: Any) -> AsyncGenerator[tuple[World, Entity, Space]]:
    """A world with the defaults of summaries, except what the test says, and a conversation of so many messages."""
    presets: dict[str, Any] = {"memoryCompaction": {"profiles": {"standard": {"modelId": "utility", **compaction}}}}
    async with open_world("sqlite://", memory=MemoryOptions(presets=lambda: presets)) as world:
        utility(world, *turns)
        yield (world, *(await a_conversation(world, messages)))


def sizes(model: ScriptedModel) -> list[str]:
    """Which messages the model was given in each pass."""
    asked = "\n".join(as_text(request[1]) for request in model.requests)
    return re.findall(r"^\[MESSAGES (.*)\]$", asked, re.MULTILINE)


async def test_a_long_conversation_is_summarized() -> None:
    """A summary of each conversation is written while it grows, and continued with what comes next.

    Docs: memory.md#conversation-summaries
    """
    async with open_world("sqlite://", memory=remembering()) as world:
        model = utility(world, written("They met."), written("They met and talked."))
        noor, kitchen = await a_conversation(world, 4)
        assert await world.denizen.memory.summarize(kitchen) == "done"
        await talk(world, noor, kitchen, 2)
        assert await world.denizen.memory.summarize(kitchen) == "done"
        assert (await world.denizen.memory.summary(kitchen)).summary == "They met and talked."
        assert 'summary_markdown: "They met."' in as_text(model.requests[1][1])
        assert sizes(model) == ["1–2", "3–4"]


async def test_a_summary_says_up_to_where_it_reaches() -> None:
    """A summary says up to which message it reaches; every message is in it or comes after it.

    Docs: memory.md#conversation-summaries
    Differs: by the number of the message, not by its time. Two messages can have the same time.
    """
    async with open_world("sqlite://", memory=remembering()) as world:
        utility(world, written("They met."))
        _, kitchen = await a_conversation(world, 5)
        await world.denizen.memory.summarize(kitchen)
        assert (await world.denizen.memory.summary(kitchen)).upto == 3


async def test_a_summary_survives_a_restart(tmp_path: Path) -> None:
    """Summaries are stored, and continue after a restart.

    Docs: memory.md#conversation-summaries
    Differs: there is nothing to switch on. Every conversation is stored.
    """
    async with open_world(f"sqlite:///{tmp_path / 'denizen.db'}", memory=remembering()) as world:
        utility(world, written("They met."))
        _, kitchen = await a_conversation(world, 4)
        await world.denizen.memory.summarize(kitchen)
        await world.restart()
        assert (await world.denizen.memory.summary(kitchen)).summary == "They met."


async def test_a_pass_writes_markdown_and_json() -> None:
    """A pass writes both: a summary in Markdown for people, and a memory in JSON for programs.

    Docs: memory.md#conversation-summaries
    """
    async with open_world("sqlite://", memory=remembering()) as world:
        memory = {"facts": [known("Noor lives in Bern.", 1)], "todos": [known("Buy tea.", 2)], "tags": ["home"]}
        utility(world, written("**Noor** came.", **memory))
        _, kitchen = await a_conversation(world, 4)
        await world.denizen.memory.summarize(kitchen)
        state = await world.denizen.memory.summary(kitchen)
    assert state.summary == "**Noor** came."
    assert [each.text for each in (*state.memory.facts, *state.memory.todos)] == ["Noor lives in Bern.", "Buy tea."]
    assert (state.memory.facts[0].sources, state.memory.tags) == ((1,), ("home",))


async def test_the_summary_takes_the_place_of_older_messages() -> None:
    """The summary is in the system prompt of an advisor, and only the messages after it are shown.

    Docs: panel.md#what-an-advisor-sees
    """
    async with open_world("sqlite://", memory=remembering()) as world:
        noor, panel = await a_panel(world, "Seth")
        asked = await ask(world, panel, noor, "One", "Two", "Three", "Four", "Five")
        [seth] = await world.denizen.advisors.list(panel)
        system, said = await shown(world, asked, seth)
    assert "Messages 1 to 2, heard by Seth." in system
    assert said == ["Three", "Four", "Five"]


async def test_nobody_waits_for_a_summary() -> None:
    """Summaries are written in the background: an agent answers while a summary is being written.

    Docs: memory.md#conversation-summaries
    Differs: not before each call of the model. A person would wait for a second model before the first one begins.
    """
    async with open_world("sqlite://", memory=remembering()) as world:
        answers: list[list[str]] = []

        async def slow(*_: Any) -> str:
            if not answers:
                await world.say(noor, "Are you there?", kitchen)
                while len(said := await world.transcript(kitchen)) < 6:
                    pass
                answers.append(said)
            return written("They talked.")

        world.denizen.models.register("utility", forever(slow))
        ada, noor = await world.agent("Ada", model=forever(answering)), await world.person("Noor")
        kitchen = await world.space("Kitchen", noor, ada)
        async with world.denizen.living():
            for text in ("Hello.", "It rains."):
                await world.say(noor, text, kitchen)
                while not (await world.transcript(kitchen))[-1].startswith("Ada"):
                    pass
            while not answers:
                await world.transcript(kitchen)
    assert answers[0][-2:] == ["Noor: Are you there?", "Ada: I see."]


async def test_summaries_are_on_by_default() -> None:
    """Conversations are summarized without any configuration: by the profile `standard`.

    Docs: memory.md
    Differs: in Python you pass `memory=MemoryOptions()` to the runtime; `denizen up` does so itself.
    """
    async with open_world("sqlite://", memory=MemoryOptions()) as world:
        noor, kitchen = await a_conversation(world, 23)
        assert await world.denizen.memory.summarize(kitchen) == "not due"
        await talk(world, noor, kitchen, 1)
        assert await world.denizen.memory.summarize(kitchen) == "done"


async def test_summaries_can_be_switched_off() -> None:
    """With the profile `off` as default, no conversation is summarized.

    Docs: memory.md#conversation-summaries
    """
    options = MemoryOptions(presets=lambda: {"memoryCompaction": {"defaultProfile": "off"}})
    async with open_world("sqlite://", memory=options) as world:
        _, kitchen = await a_conversation(world, 30)
        assert await world.denizen.memory.summarize(kitchen) == "off"


async def test_a_mode_or_an_agent_has_its_own_profile() -> None:
    """Your own profiles apply by agent or by kind of conversation; one without an entry has the default.

    Docs: memory.md#conversation-summaries
    """
    quick = {"tailTurnsToKeep": 2, "minTurnsToSummarize": 2, "modelId": "utility"}
    by_mode = {"profiles": {"quick": quick}, "defaultProfile": "off", "defaultProfileByMode": {"ada": "quick"}}
    async with open_world("sqlite://", memory=remembering(memoryCompaction=by_mode)) as world:
        utility(world, written("They met."))
        noor, kitchen = await a_conversation(world, 4)
        study = await world.space("Study", noor, await world.agent("Bea", model=forever(answering)))
        await talk(world, noor, study, 4)
        assert [await world.denizen.memory.summarize(each) for each in (kitchen, study)] == ["done", "off"]


async def test_at_most_one_pass_a_minute() -> None:
    """At most one pass is made over a conversation in 60 seconds.

    Docs: memory.md#conversation-summaries
    """
    async with standard(written("One."), written("Two."), messages=24) as (world, noor, kitchen):
        assert await world.denizen.memory.summarize(kitchen) == "done"
        await talk(world, noor, kitchen, 12)
        world.clock.advance(59)
        assert await world.denizen.memory.summarize(kitchen) == "cooling down"
        world.clock.advance(1)
        assert await world.denizen.memory.summarize(kitchen) == "done"


async def test_the_newest_twelve_messages_are_not_summarized() -> None:
    """The newest 12 messages are never summarized, and no pass is made for fewer than 12.

    Docs: memory.md#conversation-summaries
    """
    async with standard(written("One."), messages=23) as (world, noor, kitchen):
        assert await world.denizen.memory.summarize(kitchen) == "not due"
        await talk(world, noor, kitchen, 1)
        assert await world.denizen.memory.summarize(kitchen) == "done"
        assert (await world.denizen.memory.summary(kitchen)).upto == 12


async def test_a_pass_reads_at_most_48_messages() -> None:
    """One pass reads at most 48 messages; the next one continues after them.

    Docs: memory.md#conversation-summaries
    """
    async with standard(written("One."), written("Two."), messages=100) as (world, _, kitchen):
        upto: list[int] = []
        for _ in range(2):
            assert await world.denizen.memory.summarize(kitchen) == "done"
            upto.append((await world.denizen.memory.summary(kitchen)).upto)
            world.clock.advance(60)
    assert upto == [48, 88]


async def test_a_summary_has_at_most_900_tokens() -> None:
    """The summary and the memory together have at most 900 tokens.

    Docs: memory.md#conversation-summaries
    Differs: the model is told 900, and cut off only a little above that: JSON that is cut off cannot be used.
    """
    async with standard(written("One."), messages=24) as (world, _, kitchen):
        model = utility(world, written("One."))
        await world.denizen.memory.summarize(kitchen)
        assert "Everything together has at most 900 tokens." in as_text(model.requests[0][0])
        assert 900 < ((model.infos[0].settings or {}).get("max_tokens") or 0) < 1_200


async def test_the_limits_of_a_pass_can_be_set() -> None:
    """A profile sets the messages to keep, to wait for and to read at once, the cool-down and the tokens.

    Docs: memory.md#conversation-summaries
    """
    limits = {"tailTurnsToKeep": 3, "minTurnsToSummarize": 2, "maxTurnsToSummarizePerPass": 4, "maxSummaryTokens": 300}
    async with standard(messages=12, cooldownMs=5_000, **limits) as (world, _, kitchen):
        model = utility(world, written("One."), written("Two."), written("Three."))
        found = [await world.denizen.memory.summarize(kitchen)]
        for seconds in (4, 1, 5):
            world.clock.advance(seconds)
            found.append(await world.denizen.memory.summarize(kitchen))
        assert found == ["done", "cooling down", "done", "not due"]
        assert sizes(model) == ["1–4", "5–8"]
        assert "at most 300 tokens" in as_text(model.requests[0][0])


async def test_a_profile_can_have_its_own_prompt(tmp_path: Path) -> None:
    """A profile can name a prompt of your own: a Markdown file in the folder of prompts.

    Docs: memory.md#conversation-summaries
    """
    (tmp_path / "mine.md").write_text("Summarize it as a sonnet.")
    presets: dict[str, Any] = {
        "memoryCompaction": {"profiles": {"standard": {"modelId": "utility", "promptKey": "mine"}}}
    }
    options = MemoryOptions(presets=lambda: presets, prompts=tmp_path)
    async with open_world("sqlite://", memory=options) as world:
        model = utility(world, written("They met."))
        _, kitchen = await a_conversation(world, 24)
        assert await world.denizen.memory.summarize(kitchen) == "done"
        assert "Summarize it as a sonnet." in as_text(model.requests[0][0])


async def test_a_cheap_model_writes_summaries() -> None:
    """A utility model writes summaries, not the agent's own; its name may be written as `provider/name`.

    Docs: memory.md#conversation-summaries
    """
    async with standard(messages=24, modelId="openai/gpt-4o-mini") as (world, _, kitchen):
        small = forever(lambda *_: written("One."))
        world.denizen.models.register("openai:gpt-4o-mini", small)
        assert await world.denizen.memory.summarize(kitchen) == "done"
        assert len(small.requests) == 1
        assert (await world.denizen.memory.summary(kitchen)).model == "openai:gpt-4o-mini"


async def test_a_failed_pass_leaves_the_last_good_summary() -> None:
    """If the model fails or writes something unusable, the last good summary stays, and the pass is tried again.

    Docs: memory.md#conversation-summaries
    """
    turns = written("Good."), ModelUnreachable("gone"), "No JSON.", "No JSON.", written("Better.")
    async with standard(*turns, messages=24) as (world, noor, kitchen):
        await world.denizen.memory.summarize(kitchen)
        await talk(world, noor, kitchen, 12)
        found: list[tuple[str, str]] = []
        for _ in range(3):
            world.clock.advance(3_600)
            result = await world.denizen.memory.summarize(kitchen)
            found.append((result, (await world.denizen.memory.summary(kitchen)).summary))
    assert found == [("failed", "Good."), ("failed", "Good."), ("done", "Better.")]


async def test_an_unusable_answer_is_asked_for_once_more() -> None:
    """If the model writes something that is not the expected JSON, it is told what was wrong and asked once more.

    Docs: memory.md#conversation-summaries
    """
    async with standard(messages=24) as (world, _, kitchen):
        model = utility(world, "Sure! Here it is:", written("Whole."))
        assert await world.denizen.memory.summarize(kitchen) == "done"
        assert "That cannot be used." in as_text(model.requests[1][-1])


async def test_an_agent_can_have_summaries_in_its_window() -> None:
    """With the window strategy `rolling`, an agent has the summaries of its conversations before its compacted past.

    Docs: memory.md#conversation-summaries
    Differs: only with that strategy. By default an agent keeps its own past, which also has what it did itself.
    """
    async with open_world("sqlite://", memory=remembering()) as world:
        ada, _, _ = await a_life(world)
        prompt = (await world.prompts(ada))[-1]
    assert any(text.startswith('user: [ROLLING MEMORY — "Violet Kitchen", messages 1–') for text in prompt)


async def test_what_a_summary_covers_leaves_the_prompt() -> None:
    """With the strategy `rolling`, older turns that the summary covers leave the prompt when the next era begins.

    Docs: consciousness.md
    Differs: when an era begins, so that the provider's prompt cache serves the prefix in between.
    """
    async with open_world("sqlite://", memory=remembering()) as world:
        ada, noor, kitchen = await talking(world, 6)
        assert '"This is message 0 of mine."' in await in_prompt(world, ada)
        world.clock.advance(301)
        await say_all(world, noor, kitchen, range(6, 7))
        now = await in_prompt(world, ada)
    assert "| Read until [" in now
    assert '"This is message 0 of mine."' not in now
    assert '"This is message 5 of mine."' in now
