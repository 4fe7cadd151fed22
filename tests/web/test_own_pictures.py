"""Pictures of people and agents in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import FilePayload, Page, expect

from tests.files.pictures import photo
from tests.server.conftest import House
from tests.web.conftest import PHONE, WIDE, Visit

FACE: FilePayload = {"name": "me.jpg", "mimeType": "image/jpeg", "buffer": photo(300, 300)}


async def choose(page: Page, button: str, file: FilePayload) -> None:
    async with page.expect_file_chooser() as choosing:
        await page.get_by_role("button", name=button).click()
    await (await choosing.value).set_files([file])


@pytest.mark.parametrize(("size", "scheme"), [(WIDE, "light"), (PHONE, "dark")])
async def test_one_has_a_picture_that_others_see(
    house: House, visit: Visit, size: Any, scheme: str, tmp_path: Path
) -> None:
    world = house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    kitchen = await world.space("Kitchen", noor, sam)
    await world.say(noor, "Good morning.", kitchen)
    hers = await visit(noor, size=size, color_scheme=scheme)
    page = await hers.open("/me")
    account = page.get_by_role("region", name="Account")
    await choose(page, "Add picture", FACE)
    await expect(page.get_by_text("Picture changed.")).to_be_visible()
    await expect(account.locator("img")).to_be_visible()
    await hers.check_accessibility()
    await page.screenshot(path=tmp_path / "me.png")

    his = await visit(sam, size=size, color_scheme=scheme)
    other = await his.open(f"/s/{kitchen.id}")
    face = other.get_by_role("article").locator("img")
    await expect(face).to_be_visible()
    await other.wait_for_function("img => img.complete && img.naturalWidth === 256", arg=await face.element_handle())
    await his.check_accessibility()
    await other.screenshot(path=tmp_path / "seen.png")

    await page.get_by_role("button", name="Remove picture").click()
    await expect(page.get_by_text("Picture removed.")).to_be_visible()
    await expect(account.locator("img")).to_have_count(0)
    await his.open(f"/s/{kitchen.id}")
    await expect(other.get_by_role("article")).to_be_visible()
    await expect(face).to_have_count(0)


async def test_what_is_no_picture_is_refused_with_the_reason(house: House, visit: Visit) -> None:
    noor = await house.world.person("Noor")
    hers = await visit(noor)
    page = await hers.open("/me")
    await choose(page, "Add picture", {"name": "me.png", "mimeType": "image/png", "buffer": b"Hello"})
    await expect(page.get_by_text("The picture cannot be used")).to_be_visible()


async def test_an_admin_gives_an_agent_a_picture(house: House, visit: Visit, tmp_path: Path) -> None:
    world = house.world
    noor, ada = await world.person("Noor"), await world.agent("Ada")
    await world.space("Kitchen", noor, ada)
    hers = await visit(noor)
    page = await hers.open("/agents/@ada/settings")
    await choose(page, "Add picture", FACE)
    await expect(page.get_by_text("Picture changed.")).to_be_visible()
    await hers.check_accessibility()
    await page.screenshot(path=tmp_path / "agent.png")
    await hers.turn_to("/agents")
    await expect(page.locator("main img")).to_be_visible()
