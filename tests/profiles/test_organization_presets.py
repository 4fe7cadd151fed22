"""Presets of an organization's own: they replace the server's, for its agents, its panels and its summaries."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from denizen import forever, reply
from denizen.agents import preset_changes
from denizen.errors import InvalidInput
from denizen.memory.settings import MemoryOptions
from denizen.profiles import organization_presets
from denizen.spaces.directory import Entity, Space
from tests.world import World, open_world

OWN: dict[str, Any] = {
    "presets": [{"id": "own", "addonPromptKeys": ["mine"]}, {"id": "plain"}],
    "rules": [{"id": "hurry", "presetId": "own", "anyKeywords": ["hurry"]}],
    "routing": {"defaultPresetId": "plain", "reviewEveryNTurns": 1},
    "addonPrompts": {"mine": "Answer in one word."},
}


@pytest.fixture
async def house(ready_url: str, tmp_path: Path) -> AsyncGenerator[World]:
    """A world with the presets that come with Denizen, on both databases."""
    async with open_world(ready_url, presets=tmp_path / "none.json") as world:
        yield world


async def ask(world: World, noor: Entity, where: Space, text: str) -> None:
    await world.say(noor, text, where)
    await world.run()


async def test_an_agent_follows_the_presets_of_its_organization(house: World) -> None:
    organizations, reflection = house.denizen.organizations, house.denizen.reflection
    ada = await house.agent("Ada", *[reply("Yes."), "Done."] * 4)
    noor = await house.person("Noor")
    kitchen = await house.space("Kitchen", noor, ada)
    assert (await organizations.presets()).source == "shipped"
    await ask(house, noor, kitchen, "Tell me briefly.")
    assert (await reflection.stance(ada, kitchen)).preset == "concise"

    assert (await organizations.change_presets(OWN)).source == "organization"
    await ask(house, noor, kitchen, "I am in a hurry.")
    stance = await reflection.stance(ada, kitchen)
    assert (stance.preset, stance.preset_reason) == (
        "own",
        "rule 'hurry': the message has 'hurry' (the preset is no more)",
    )
    assert "own: Answer in one word." in (await house.history(ada))[-4]

    assert (await organizations.reset_presets()).source == "shipped"
    await ask(house, noor, kitchen, "And now in depth.")
    assert (await reflection.stance(ada, kitchen)).preset == "deep_dive"


async def test_another_organization_keeps_the_presets_of_the_server(house: World) -> None:
    denizen = house.denizen
    await house.person("Noor")
    bakery = await denizen.organizations.create("Bakery")
    await denizen.organizations.change_presets(OWN, organization=bakery)
    first, *_ = await denizen.organizations.list()
    found = {each.name: await denizen.db.read(denizen.prompt_config.presets_of, each.id) for each in (first, bakery)}
    assert [found[each.name] is denizen.prompt_config.presets() for each in (first, bakery)] == [True, False]


async def test_a_change_by_another_process_applies_at_once(house: World) -> None:
    denizen = house.denizen
    await house.person("Noor")
    (home,) = await denizen.organizations.list()
    config = denizen.prompt_config
    assert await denizen.db.read(config.presets_of, home.id) is config.presets()
    # Another process has a cache of its own: it only writes.
    await denizen.db.write(organization_presets.store, home.id, OWN)
    own = await denizen.db.read(config.presets_of, home.id)
    assert own is not None
    assert list(own.presets) == ["own", "plain"]
    assert await denizen.db.read(config.presets_of, home.id) is own


async def test_advisors_follow_the_presets_of_their_organization(house: World) -> None:
    denizen, noor = house.denizen, await house.person("Noor")
    denizen.models.register("echo", forever(lambda messages, info: "Yes."))
    await denizen.organizations.change_presets(OWN)
    board = await denizen.panels.create("Board", [noor], advisors=["Seth"], model="echo")
    asked = await denizen.panels.ask(board, noor, "I am in a hurry.")
    await denizen.run_until_idle()
    (seth,) = await denizen.advisors.list(board)
    assert "Answer in one word." in (await denizen.rounds.context(asked, seth)).lines[0].text


async def test_conversations_are_summarized_as_their_organization_says(ready_sqlite_url: str, tmp_path: Path) -> None:
    async with open_world(ready_sqlite_url, memory=MemoryOptions(), presets=tmp_path / "none.json") as world:
        noor, ada = await world.person("Noor"), await world.agent("Ada")
        kitchen = await world.space("Kitchen", noor, ada)
        keeper, organizations = world.denizen.keeper, world.denizen.organizations
        assert keeper is not None
        assert await keeper.roll(kitchen.id) == "not due"
        await organizations.change_presets({**OWN, "memoryCompaction": {"defaultProfile": "off"}})
        assert await keeper.roll(kitchen.id) == "off"
        await organizations.reset_presets()
        assert await keeper.roll(kitchen.id) == "not due"


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ({}, "list at least one preset"),
        ({"presets": [{"id": "x", "addonPromptKeys": ["nowhere"]}]}, "there is no add-on 'nowhere'"),
        ({"presets": [{"id": "x", "addonPromptKeys": ["../../secret"]}]}, "there is no add-on"),
        ({"presets": [{"id": "x"}], "memoryCompaction": {"defaultProfile": "huge"}}, "there is no profile 'huge'"),
        (
            {"presets": [{"id": "x"}], "memoryCompaction": {"profiles": {"cheap": {"modelId": "gpt-5"}}}},
            r"profiles\.cheap\.modelId: There is no model 'gpt-5'",
        ),
        ({"presets": [{"id": "x"}], "note": "x" * 100_000}, "more than 100,000 characters"),
    ],
    ids=["empty", "add-on", "path", "compaction", "model", "long"],
)
async def test_wrong_presets_are_refused_and_change_nothing(
    tmp_path: Path, document: dict[str, Any], told: str
) -> None:
    async with open_world("sqlite://", presets=tmp_path / "none.json") as world:
        await world.person("Noor")
        with pytest.raises(InvalidInput, match=told):
            await world.denizen.organizations.change_presets(document)
        assert (await world.denizen.organizations.presets()).source == "shipped"


async def test_a_runtime_without_profiles_refuses_presets(small_world: World) -> None:
    await small_world.person("Noor")
    with pytest.raises(InvalidInput, match="Prompt profiles are off"):
        await small_world.denizen.organizations.change_presets(OWN)


async def test_presets_whose_add_on_is_gone_give_way_to_those_of_the_server(tmp_path: Path) -> None:
    """And the warning says why, until somebody mends them."""
    addon = tmp_path / "prompts" / "_meta" / "mine.md"
    addon.parent.mkdir(parents=True)
    addon.write_text("Mine.")
    async with open_world("sqlite://", presets=tmp_path / "none.json", prompts=tmp_path / "prompts") as world:
        await world.person("Noor")
        denizen, (home,) = world.denizen, await world.denizen.organizations.list()
        document: dict[str, Any] = {"presets": [{"id": "x", "addonPromptKeys": ["mine"]}]}
        assert (await denizen.organizations.change_presets(document)).addons["mine"] == "Mine."
        addon.unlink()
        await denizen.db.write(organization_presets.store, home.id, {**document, "version": "2"})
        found = await denizen.db.read(preset_changes.get, home.id, denizen.prompt_config)
        assert "there is no add-on 'mine'" in found.warnings[0]
        assert await denizen.db.read(denizen.prompt_config.presets_of, home.id) is denizen.prompt_config.presets()
