"""Profiles in a life: chosen with a cycle, told once, kept with its end."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from denizen import forever, reply, scripted, skip
from denizen.agents.registry import Agent
from denizen.checker import check_database
from denizen.errors import ModelRejected
from denizen.memory.settings import MemoryOptions
from denizen.spaces.directory import Entity, Space
from tests.world import World, awake, open_world

PRESETS: dict[str, Any] = {
    "routing": {"reviewEveryNTurns": 3, "defaultPresetByMode": {"ada": "short"}},
    "presets": [
        {"id": "short", "addonPromptKeys": ["_meta/brief"]},
        {"id": "plan", "addonPromptKeys": ["steps"]},
        {"id": "plain", "addonPromptKeys": []},
    ],
    "rules": [
        {"id": "plans", "presetId": "plan", "anyKeywords": ["plan"]},
        {"id": "as-you-are", "presetId": "plain", "anyKeywords": ["normally"]},
    ],
    "addonPrompts": {"_meta/brief": "Be brief.", "steps": "First the goal,\n\nthen the steps."},
}
BRIEF = 'in "Kitchen" (id: <Kitchen>) — short: Be brief.'
STEPS = 'in "Kitchen" (id: <Kitchen>) — plan: First the goal, then the steps.'


def write(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**PRESETS, **changes}))


@pytest.fixture
async def house(ready_url: str, tmp_path: Path) -> AsyncGenerator[World]:
    """A world with a file of presets, on both databases."""
    write(tmp_path / "presets.json")
    async with open_world(ready_url, presets=tmp_path / "presets.json") as world:
        yield world


@pytest.fixture
async def small_house(ready_sqlite_url: str, tmp_path: Path) -> AsyncGenerator[World]:
    write(tmp_path / "presets.json")
    async with open_world(ready_sqlite_url, presets=tmp_path / "presets.json") as world:
        yield world


async def kitchen(world: World, *turns: Any, **more: Any) -> tuple[Agent, Entity, Space]:
    ada = await world.agent("Ada", *turns, **more)
    noor = await world.person("Noor")
    return ada, noor, await world.space("Kitchen", noor, ada)


async def changes(world: World, ada: Agent) -> list[str]:
    """What each inbox message told of changes."""
    found: list[str] = []
    for entry in await world.history(ada):
        if entry.startswith("inbox: "):
            lines = entry.split("\n\n")[0].splitlines()
            found.append("; ".join(line[2:] for line in lines if line.startswith("- ")))
    return found


async def say(world: World, noor: Entity, where: Space, *texts: str) -> None:
    for text in texts:
        await world.say(noor, text, where)
        await world.run()


@pytest.mark.parametrize("rests", [False, True])
async def test_a_profile_is_told_once_when_it_changes_and_reviewed_every_n_turns(house: World, rests: bool):
    """Cached in between, whatever is said; the reason is kept with it."""
    ada, noor, room = await kitchen(house, *[reply("Yes."), "Done."] * 8)
    async with awake(house, rests):
        await say(house, noor, room, "Hello.", "Make a plan.", "A plan!", "A plan.", "Hm.", "Hm.", "Hm.", "Hm.")
    assert await changes(house, ada) == [
        f"Answer from now on: {BRIEF}", "", "", f"Answer from now on: {STEPS}", "", "", f"Answer from now on: {BRIEF}",
        "",
    ]  # fmt: skip
    stance = await house.denizen.reflection.stance(ada, room)
    assert (stance.preset, stance.turns) == ("short", 8)
    assert stance.preset_reason == "default of the mode 'ada' (every 3 turns)"
    assert await check_database(house.denizen.db) == []


async def test_a_skipped_cycle_is_no_turn_and_its_profile_is_told_again(house: World):
    ada, noor, room = await kitchen(house, skip("not now"), reply("Yes."), "Done.")
    await house.denizen.spaces.join(
        room, await house.person("Bert")
    )  # in company nobody waits, and a skip leaves no trace
    await say(house, noor, room, "Hello.")
    assert await house.denizen.reflection.stances(ada) == []
    await say(house, noor, room, "Are you there?")
    assert await changes(house, ada) == [f"Answer from now on: {BRIEF}"]
    assert (await house.denizen.reflection.stance(ada, room)).turns == 1


async def test_the_self_of_the_next_era_has_the_profile_and_its_role_stays(small_house: World):
    """Profiles are additive: the agent's own instructions are what they were."""
    ada, noor, room = await kitchen(small_house, *[reply("Yes."), "Done."] * 2, instructions="You keep bees.")
    await say(small_house, noor, room, "Hello.")
    small_house.clock.advance(3_600)
    await say(small_house, noor, room, "Hello again.")
    own = (await small_house.prompts(ada))[-1][0]
    assert f"HOW TO ANSWER:\n  - {BRIEF}" in own
    assert "YOUR ROLE:\nYou keep bees." in own
    assert await changes(small_house, ada) == [f"Answer from now on: {BRIEF}", ""]


async def test_the_self_has_the_profile_of_every_space_even_if_the_texts_together_are_too_long(
    small_house: World, tmp_path: Path
):
    """A text that several spaces share is written out once; before, the spaces that came last lost their profile."""
    write(tmp_path / "presets.json", addonPrompts={"brief": "Be brief. " * 90, "steps": "Steps."})
    ada, noor = await small_house.agent("Ada", *[reply("Yes."), "Done."] * 13), await small_house.person("Noor")
    rooms = [await small_house.space(f"Room {number}", noor, ada) for number in range(12)]
    for room in rooms:
        await say(small_house, noor, room, "Hello." if room is not rooms[-1] else "Make a plan.")
    small_house.clock.advance(3_600)
    await say(small_house, noor, rooms[0], "Hello again.")
    own = (await small_house.prompts(ada))[-1][0]
    [listed] = [each for each in own.split("\n\n") if each.startswith("HOW TO ANSWER")]
    lines = listed.splitlines()[1:]
    assert [line.partition(") — ")[0] for line in lines] == [f'  - in "Room {n}" (id: <Room {n}>' for n in range(12)]
    texts = [line.partition(") — ")[2] for line in lines]
    assert texts == ["short: " + ("Be brief. " * 90).strip(), *["short, as above"] * 10, "plan: Steps."]


async def test_a_preset_without_add_ons_takes_the_profile_away(small_house: World):
    ada, noor, room = await kitchen(small_house, *[reply("Yes."), "Done."] * 4)
    await say(small_house, noor, room, "Hi.", "Hi.", "Hi.", "Answer normally.")
    assert (await changes(small_house, ada))[-1] == f"Answer no longer: {BRIEF}"
    assert (await small_house.denizen.reflection.stance(ada, room)).preset == "plain"


@pytest.mark.parametrize("rests", [False, True])
async def test_the_file_is_reloaded_while_agents_live(small_house: World, tmp_path: Path, rests: bool):
    """Another text of the same preset is told with the next turn; the choice stays until its review."""
    ada, noor, room = await kitchen(small_house, *[reply("Yes."), "Done."] * 3)
    async with awake(small_house, rests):
        await say(small_house, noor, room, "Hi.")
        write(tmp_path / "presets.json", addonPrompts={"brief": "Be very brief indeed.", "steps": "Steps."})
        await say(small_house, noor, room, "Hi.")
        assert (await changes(small_house, ada))[
            1
        ] == f"Answer from now on: {BRIEF.replace('Be brief', 'Be very brief indeed')}"
        (tmp_path / "presets.json").unlink()
        await say(small_house, noor, room, "Hi.")
    stance = await small_house.denizen.reflection.stance(ada, room)
    assert (stance.preset, stance.preset_reason, stance.turns) == ("balanced", "default (the preset is no more)", 3)


async def test_reviews_that_are_switched_off_in_a_running_conversation_do_not_happen(
    small_house: World, tmp_path: Path
):
    """`reviewEveryNTurns` is 3 when it begins, and 0, never, from the second turn on."""
    ada, noor, room = await kitchen(small_house, *[reply("Yes."), "Done."] * 8)
    await say(small_house, noor, room, "Hi.")
    write(tmp_path / "presets.json", routing={**PRESETS["routing"], "reviewEveryNTurns": 0})
    await say(small_house, noor, room, *["A plan, please."] * 5)
    assert (await small_house.denizen.reflection.stance(ada, room)).preset == "short"
    write(tmp_path / "presets.json", routing={**PRESETS["routing"], "reviewEveryNTurns": 3})
    await say(small_house, noor, room, "A plan, please.")
    assert (await small_house.denizen.reflection.stance(ada, room)).preset != "short"


async def test_compaction_asks_for_a_review(small_house: World, tmp_path: Path):
    write(tmp_path / "presets.json", routing={**PRESETS["routing"], "reviewEveryNTurns": 1_000})
    window = {"max_tokens": 6_000, "min_recent_cycles": 1}
    ada, noor, room = await kitchen(small_house, *[reply("Yes. " * 200), "Done."] * 40, window=window)
    await say(small_house, noor, room, "Hello.")
    turns = 0
    while (await small_house.denizen.reflection.stance(ada, room)).preset == "short":
        turns += 1
        assert turns < 40
        await say(small_house, noor, room, "Go on with the plan. " + "word " * 200)
    assert turns > 1
    found = await small_house.denizen.reflection.stance(ada, room)
    assert found.preset_reason == "rule 'plans': the message has 'plan' (compacted)"


async def test_summing_up_the_conversation_asks_for_a_review_there(ready_url: str, tmp_path: Path):
    """Whenever rolling memory compaction runs; in other conversations the choice stays."""
    quick = {"tailTurnsToKeep": 2, "minTurnsToSummarize": 2, "cooldownMs": 0, "modelId": "utility"}
    compaction = {"profiles": {"quick": quick}, "defaultProfile": "quick"}
    write(tmp_path / "presets.json", routing={**PRESETS["routing"], "reviewEveryNTurns": 1_000})
    memory = MemoryOptions(presets=lambda: {"memoryCompaction": compaction})
    async with open_world(ready_url, presets=tmp_path / "presets.json", memory=memory) as world:
        ada, noor, room = await kitchen(world, *[reply("Yes."), "Done."] * 6)
        garden = await world.space("Garden", noor, ada)
        summary = json.dumps({"summary_markdown": "Noor greeted.", "memory_json": {}})
        world.denizen.models.register("utility", scripted(*[summary] * 3))
        await say(world, noor, garden, "Hello.")
        await say(world, noor, room, "Hello.", "How are you?", "A plan, please.")
        await say(world, noor, garden, "A plan, please.")
        assert (await world.denizen.memory.summary(room)).passes == 2
        assert (await world.denizen.reflection.stance(ada, room)).preset_reason == (
            "rule 'plans': the message has 'plan' (compacted)"
        )
        assert (await world.denizen.reflection.stance(ada, garden)).preset == "short"


async def test_a_preset_that_is_set_and_not_there_is_told_with_the_reason(small_house: World):
    ada, noor, room = await kitchen(small_house, *[reply("Yes."), "Done."] * 2, profiles={"preset": "plann"})
    await say(small_house, noor, room, "Hello.", "Hello.")
    assert (await small_house.denizen.reflection.stance(ada, room)).preset_reason == (
        "default of the mode 'ada' (first turn); 'plann' was set by hand, and is not there"
    )


async def test_what_is_set_for_a_conversation_is_stronger_than_the_agents_and_that_than_the_rules(small_house: World):
    ada, noor, room = await kitchen(small_house, *[reply("Yes."), "Done."] * 4, profiles={"preset": "plan"})
    await say(small_house, noor, room, "Hello.")
    assert (await small_house.denizen.reflection.stance(ada, room)).preset_reason == "set by hand"
    await small_house.denizen.reflection.set_settings(ada, room, {"preset": "short"})
    await say(small_house, noor, room, "A plan!")
    assert (await small_house.denizen.reflection.stance(ada, room)).preset == "short"
    await small_house.denizen.reflection.set_settings(ada, room, {})
    await small_house.denizen.agents.edit(ada, profiles={"enabled": True})
    await say(small_house, noor, room, "Hello.")
    stance = await small_house.denizen.reflection.stance(ada, room)
    assert (stance.preset, stance.preset_reason) == ("short", "default of the mode 'ada' (first turn)")
    await small_house.denizen.agents.edit(ada, profiles={"enabled": False})
    await say(small_house, noor, room, "A plan, again and again!")
    assert (await small_house.denizen.reflection.stance(ada, room)).turns == 3


async def test_each_conversation_has_a_profile_of_its_own(small_house: World):
    ada, noor, room = await kitchen(small_house, *[reply("Yes."), "Done."] * 2)
    garden = await small_house.space("Garden", noor, ada)
    await say(small_house, noor, room, "Hello.")
    await say(small_house, noor, garden, "Plan the beds.")
    assert [each.preset for each in await small_house.denizen.reflection.stances(ada)] == ["short", "plan"]


async def statements_of_a_turn(world: World) -> list[str]:
    """Every statement of a warm turn, by the functions that were run in it."""
    _, noor, room = await kitchen(world, *[reply("Yes."), "Done."] * 3)
    await say(world, noor, room, "Hello.", "Hello.")
    ran: list[str] = []
    for name in ("write", "read"):
        original = getattr(world.denizen.db, name)

        def noted(fn: Any, /, *args: Any, original: Any = original, **kwargs: Any) -> Any:
            def counting(tx: Any, *more: Any, **options: Any) -> Any:
                return fn(_Counting(tx, ran, fn.__name__), *more, **options)

            counting.__name__ = fn.__name__
            return original(counting, *args, **kwargs)

        setattr(world.denizen.db, name, noted)
    await say(world, noor, room, "Hello.")
    return ran


class _Counting:
    """The real transaction, with a note of each statement that reads or writes what profiles and reflection keep."""

    def __init__(self, tx: Any, ran: list[str], name: str) -> None:
        self._tx, self._ran, self._name = tx, ran, name

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._tx, name)
        if name not in ("run", "one", "all", "many"):
            return found

        def running(statement: Any, *args: Any, **kwargs: Any) -> Any:
            if re.search(r"\b(stances|feelings|signals|reflections)\b", statement.sqlite):
                self._ran.append(self._name)
            return found(statement, *args, **kwargs)

        return running


async def test_with_everything_off_a_turn_asks_nothing_of_profiles_or_reflection(ready_sqlite_url: str):
    async with open_world(ready_sqlite_url) as world:
        assert await statements_of_a_turn(world) == []


async def test_with_profiles_a_turn_has_two_statements_more(small_house: World):
    assert await statements_of_a_turn(small_house) == ["open_cycle", "end_cycle"]


async def test_an_advisor_of_a_panel_has_a_profile_too(house: World) -> None:
    """Chosen with its first turn and every third after it; a turn that fails is none."""
    fails: list[bool] = [False, True, False, False, False]

    def answer(_messages: Any, info: Any) -> str:
        if fails[info.number]:
            raise ModelRejected("No.")
        return "Yes."

    house.denizen.models.register("m", forever(answer))
    noor = await house.person("Noor")
    board = await house.denizen.panels.create("Board", [noor], advisors=[{"name": "Ada", "phases": []}], model="m")
    told: list[tuple[Any, bool]] = []
    for text in ("Hello", "A plan?", "A plan!", "Well", "What plan?"):
        asked = await house.denizen.panels.ask(board, noor, text)
        await house.run()
        (ada,) = (await house.denizen.rounds.get(asked)).spoken
        assert ada.recipe is not None
        profile = ada.recipe["background"]["profile"]
        shown = await house.denizen.rounds.context(asked, ada.voice)
        assert shown.exact
        told.append((profile, "Be brief." in shown.lines[0].text))
    short = {"preset": "short", "reason": "default of modes with 'ada' (first turn)", "reviewed": 1}
    plan = {"preset": "plan", "reason": "rule 'plans': the message has 'plan' (every 3 turns)", "reviewed": 4}
    assert told == [
        ({**short, "turn": 1}, True),
        ({**short, "turn": 2}, True),
        ({**short, "turn": 2}, True),
        ({**short, "turn": 3}, True),
        ({**plan, "turn": 4}, False),
    ]
