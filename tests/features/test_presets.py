"""Prompt profiles."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import expect

from denizen import reply
from denizen.profiles.library import shipped_file
from tests.web.conftest import SharedBrowser, _web_client, browser, served_to_browsers, visiting  # noqa: F401  fixtures
from tests.world import UNHURRIED, open_world


async def test_presets_apply_without_a_file(tmp_path: Path) -> None:
    """A server has presets from the start: a message that asks for something brief gets the profile `concise`.

    Docs: profiles.md
    """
    async with open_world("sqlite://", presets=tmp_path / "metaprompt-presets.json") as world:
        ada, noor = await world.agent("Ada", reply("Yes."), "Answered."), await world.person("Noor")
        kitchen = await world.space("Kitchen", noor, ada)
        await world.say(noor, "Tell me briefly: is there tea?", kitchen)
        await world.run()
        stance = await world.denizen.reflection.stance(ada, kitchen)
        assert stance.preset == "concise"
        assert stance.preset_reason == "rule 'asked-to-be-brief': the message has 'briefly' (first turn)"


def test_the_shipped_presets_include_the_summaries() -> None:
    """The presets file that comes with Denizen has `memoryCompaction` with the profiles `off` and `standard`.

    Docs: memory.md
    Differs: the file names no model for summaries. The cheap model of the server's own provider writes them.
    """
    compaction = shipped_file()["memoryCompaction"]
    assert isinstance(compaction, dict)
    assert compaction["defaultProfile"] == "standard"
    assert set(compaction["profiles"]) == {"off", "standard"}  # pyright: ignore[reportArgumentType, reportCallIssue]


async def test_an_organization_changes_and_resets_its_presets(tmp_path: Path) -> None:
    """An organization can replace the server's presets with its own, in the same format, and reset them.

    Docs: profiles.md
    """
    async with open_world("sqlite://", presets=tmp_path / "metaprompt-presets.json") as world:
        await world.person("Noor")
        organizations = world.denizen.organizations
        own = {"presets": [{"id": "formal", "addonPromptKeys": ["formal"]}], "addonPrompts": {"formal": "Be formal."}}
        assert (await organizations.change_presets(own)).document == own
        assert (await organizations.presets()).source == "organization"
        assert (await organizations.reset_presets()).source == "shipped"


@pytest.mark.asyncio(loop_scope="session")
async def test_a_message_is_tried_in_the_browser(
    ready_sqlite_url: str,
    tmp_path: Path,
    browser: SharedBrowser,  # noqa: F811
) -> None:
    """In the browser, Administration › Profiles shows the presets, and says which one a message would get and why.

    Docs: web.md
    """
    async with (
        open_world(ready_sqlite_url, pace=UNHURRIED, presets=tmp_path / "metaprompt-presets.json") as world,
        served_to_browsers(world) as house,
        visiting(browser, house, await world.person("Noor")) as visitor,
    ):
        page = await visitor.open("/admin/profiles")
        await page.get_by_label("Message", exact=True).fill("Tell me briefly.")
        await page.get_by_role("button", name="Try", exact=True).click()
        tried = page.get_by_role("region", name="Try a message").get_by_role("status")
        await expect(tried).to_contain_text("concise rule 'asked-to-be-brief': the message has 'briefly'")
