"""Panels remember as conversations do: each advisor what it heard and said itself, all of them what people told."""

from __future__ import annotations

import re
from typing import Any

from pydantic_ai.messages import ModelMessage

from denizen.memory import rolling
from denizen.memory.documents import Memory
from denizen.memory.rolling import ConversationSummary
from denizen.memory.settings import CompactionProfile
from denizen.models.scripted import Info, forever
from denizen.panel.panels import Panel
from denizen.spaces.directory import Entity
from tests.memory.conftest import known, written
from tests.world import World, as_text


def summing_up(messages: list[ModelMessage], _info: Info) -> str:
    """A utility model that writes whose words it was given, and that Noor sells bread."""
    told = as_text(messages[-1])
    voices = sorted(set(re.findall(r"\[(\w+) answered:\]", told)))
    numbers = re.findall(r"^\[(\d+)\]", told, re.MULTILINE)
    said = f"Messages {numbers[0]} to {numbers[-1]}, heard by {' and '.join(voices) or 'nobody'}."
    return written(said, facts=[known("Noor sells bread.", int(numbers[0]))])


async def a_panel(world: World, *advisors: Any) -> tuple[Entity, Panel]:
    world.denizen.models.register("utility", forever(summing_up))
    world.denizen.models.register("m", forever(lambda _messages, info: f"Answer {info.number + 1}."))
    noor = await world.person("Noor")
    return noor, await world.denizen.panels.create("Board", [noor], advisors=advisors, model="m", phases=[])


async def ask(world: World, panel: Panel, noor: Entity, *texts: str) -> Any:
    asked = None
    for text in texts:
        asked = await world.denizen.panels.ask(panel, noor, text)
        await world.run()
    return asked


async def shown(world: World, asked: Any, voice: Any) -> tuple[str, list[str]]:
    """The system prompt of a reply, and the messages of people in its request; the debug view is exact."""
    found = await world.denizen.rounds.context(asked, voice)
    assert found.exact
    said = [line.text.partition("] ")[2] for line in found.lines if line.role == "user" and line.text[1:3] == "20"]
    return found.lines[0].text, said


async def test_an_advisor_has_a_summary_of_its_own_and_every_message_is_in_it_or_shown(world: World) -> None:
    """From people and its own replies only; the last words of the others are shown as ever."""
    noor, panel = await a_panel(world, "Seth", "Buber")
    await ask(world, panel, noor, "One", "Two", "Three", "Four")
    asked = await ask(world, panel, noor, "Five")
    seth, buber = await world.denizen.advisors.list(panel)

    system, said = await shown(world, asked, seth)
    assert "Messages 1 to 2, heard by Seth." in system
    assert "Buber" not in system
    assert said == ["Three", "Four", "Five"]
    assert "Messages 1 to 2, heard by Buber." in (await shown(world, asked, buber))[0]
    spent = await world.denizen.budgets.spending()
    assert {each.model for each in spent} == {"m", "utility"}


async def test_advisors_are_told_what_everyone_there_may_know(world: World) -> None:
    """What was learned of Noor in one panel is told in another where she is alone, and not where Sam reads along."""
    noor, panel = await a_panel(world, "Seth")
    await ask(world, panel, noor, "I sell bread", "Two", "Three", "Four")
    sam = await world.person("Sam")
    alone = await world.denizen.panels.create("Alone", [noor], advisors=["Seth"], model="m")
    both = await world.denizen.panels.create("Both", [noor, sam], advisors=["Seth"], model="m")

    asked = await ask(world, alone, noor, "How do I sell more bread?")
    reply = (await world.denizen.rounds.get(asked)).spoken[0]
    assert "| Noor sells bread. (facts)" in (await shown(world, asked, reply.voice))[0]
    assert reply.recipe is not None
    assert reply.recipe["background"]["memory"] == {"upto": 0, "memories": {"user": 1}}
    asked = await ask(world, both, noor, "How do I sell more bread?")
    assert "Noor sells" not in (await shown(world, asked, (await world.denizen.rounds.get(asked)).spoken[0].voice))[0]


async def test_what_is_forgotten_is_in_no_request_that_is_kept(small_world: World) -> None:
    world = small_world
    noor, panel = await a_panel(world, "Seth")
    await ask(world, panel, noor, "I sell bread", "Two", "Three", "Four")
    asked = await ask(world, panel, noor, "Where can I sell bread?")
    (seth,) = await world.denizen.advisors.list(panel)
    assert "Noor sells bread." in (await shown(world, asked, seth))[0]
    (memory,) = await world.denizen.memory.list(owner=f"user:{noor.id}")
    await world.denizen.memory.forget(memory)
    found = await world.denizen.rounds.context(asked, seth)
    assert not found.exact
    assert "Noor sells bread." not in found.lines[0].text
    assert "heard by Seth" in found.lines[0].text

    first, *_ = await world.denizen.spaces.messages(panel.id)
    await world.denizen.spaces.forget_message(first)
    assert "heard by Seth" not in (await world.denizen.rounds.context(asked, seth)).lines[0].text


async def test_what_is_still_being_answered_is_not_summed_up_but_an_open_vote_holds_nothing_up(
    small_world: World,
) -> None:
    world = small_world
    noor, panel = await a_panel(world, "Seth", "Buber")
    asked = await ask(world, panel, noor, "One", "Two")
    seth, _ = await world.denizen.advisors.list(panel)
    profile = CompactionProfile(tailTurnsToKeep=0, minTurnsToSummarize=1)

    async def to_be_summed_up() -> list[int]:
        state = ConversationSummary(panel.id, seth.id, "", Memory(), 0)
        return [each.seq for each in await world.denizen.db.read(rolling.unsummed, state, profile)]

    assert await to_be_summed_up() == [1, 2]
    await world.denizen.rounds.vote(asked, by=noor)
    assert await to_be_summed_up() == [1, 2]
    await world.denizen.panels.ask(panel, noor, "Three")
    await world.denizen.panels.ask(panel, noor, "Four")
    assert await to_be_summed_up() == [1, 2]
    await world.run()
    assert await to_be_summed_up() == [1, 2, 3, 4]
