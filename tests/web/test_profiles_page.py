"""The prompt profiles of an organization in the browser: tried, changed and reset."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import ViewportSize, expect

from denizen.access import roles
from tests.server.conftest import House
from tests.web.conftest import PHONE, WIDE, Visit, served_to_browsers
from tests.world import UNHURRIED, open_world

SIZES = pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])


@pytest_asyncio.fixture(loop_scope="session")
async def house(ready_sqlite_url: str, tmp_path: Path) -> AsyncGenerator[House]:
    """A server without a presets file."""
    async with (
        open_world(ready_sqlite_url, pace=UNHURRIED, presets=tmp_path / "none.json") as world,
        served_to_browsers(world) as house,
    ):
        yield house


@SIZES
async def test_an_owner_tries_changes_and_resets_profiles(house: House, visit: Visit, size: ViewportSize) -> None:
    noor = await house.world.person("Noor")
    visitor = await visit(noor, size=size)
    page = await visitor.open("/admin/profiles")
    await expect(page.get_by_text("Built in")).to_be_visible()
    await visitor.check_accessibility()

    # With the keyboard: which profile would this get, and why?
    message = page.get_by_label("Message", exact=True)
    await message.fill("I am in a hurry.")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    tried = page.get_by_role("region", name="Try a message").get_by_role("status")
    await expect(tried).to_contain_text("balanced default")
    await expect(tried).to_contain_text("Adds no instructions.")

    # A preset and a rule are added, and tried before they are saved.
    await page.get_by_role("button", name="New preset").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Name").fill("One word")
    await expect(dialog.get_by_text("ID: one_word")).to_be_visible()
    await dialog.get_by_label("Instructions").fill("Answer in one word.")
    await visitor.check_accessibility()
    await dialog.get_by_role("button", name="Apply").click()
    # They stay during a look at another screen.
    await visitor.turn_to("/admin/people")
    await expect(page.get_by_role("list", name="People and services")).to_be_visible()
    await visitor.turn_to("/admin/profiles")
    await expect(page.get_by_text("Unsaved changes.")).to_be_visible()
    await message.fill("I am in a hurry.")
    await page.get_by_role("button", name="New rule").click()
    await dialog.get_by_label("Name").fill("in-a-hurry")
    await dialog.get_by_label("Preset").select_option("One word")
    await dialog.get_by_label("Any of these words").fill("hurry\nquick")
    await visitor.check_accessibility()
    await dialog.get_by_role("button", name="Apply").click()
    rules = page.get_by_role("list", name="Rules").get_by_role("listitem")
    await expect(rules.last).to_contain_text("The message has “hurry” or “quick”.")
    await expect(page.get_by_text("Unsaved changes.")).to_be_visible()
    await page.get_by_role("button", name="Try", exact=True).click()
    await expect(tried).to_contain_text("one_word rule 'in-a-hurry': the message has 'hurry'")
    await expect(tried).to_contain_text("Answer in one word.")
    assert (await house.world.denizen.organizations.presets()).source == "shipped"

    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("Changed by your organization")).to_be_visible()
    await expect(page.get_by_text("Unsaved changes.")).to_have_count(0)
    saved = await house.world.denizen.organizations.presets()
    assert saved.document["addonPrompts"] == {"one_word": "Answer in one word."}
    await visitor.check_accessibility()
    await page.get_by_role("button", name="Reset", exact=True).click()
    await page.get_by_role("dialog").get_by_role("button", name="Reset").click()
    await expect(page.get_by_text("Built in")).to_be_visible()
    await expect(page.get_by_role("list", name="Presets")).not_to_contain_text("One word")


@SIZES
async def test_a_file_is_pasted_and_its_faults_are_told(house: House, visit: Visit, size: ViewportSize) -> None:
    noor = await house.world.person("Noor")
    visitor = await visit(noor, size=size)
    page = await visitor.open("/admin/profiles")
    await page.get_by_role("button", name="Show as a file").click()
    dialog = page.get_by_role("dialog")
    text = dialog.get_by_label("metaprompt-presets.json")
    given = json.loads(await text.input_value())
    assert given["memoryCompaction"]["defaultProfile"] == "standard"
    await text.fill("{")
    await dialog.get_by_role("button", name="Apply").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("This is not JSON")
    await visitor.check_accessibility()
    given["rules"] = [{"presetId": "gone"}]
    await text.fill(json.dumps(given))
    await dialog.get_by_role("button", name="Apply").click()
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("alert")).to_contain_text("rules[0].presetId: there is no preset 'gone'")
    await page.get_by_role("button", name="Remove rule Rule 1").click()
    await page.get_by_label("Summaries of conversations").select_option("off")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("Changed by your organization")).to_be_visible()
    document = (await house.world.denizen.organizations.presets()).document
    assert (document["rules"], document["memoryCompaction"]) == (
        [],
        {**given["memoryCompaction"], "defaultProfile": "off"},
    )


async def test_the_instructions_of_a_preset_and_the_defaults_are_edited(house: House, visit: Visit) -> None:
    noor = await house.world.person("Noor")
    visitor = await visit(noor, color_scheme="dark")
    page = await visitor.open("/admin/profiles")
    await page.get_by_role("button", name="Edit Tutor").click()
    dialog = page.get_by_role("dialog", name="Edit Tutor")
    await dialog.get_by_label("Instructions: tutor").fill("Ask back first.")
    await dialog.get_by_role("button", name="Apply").click()
    await page.get_by_label("Default preset", exact=True).select_option("Concise")
    await page.get_by_label("Choose again every so many turns").fill("2")
    await page.get_by_label("New mode").fill("ada")
    await page.get_by_role("button", name="Add mode").click()
    await page.get_by_label("Default preset of ada").select_option("Ideas")
    await page.get_by_role("button", name="Remove Reviewer").click()
    await visitor.check_accessibility()
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("Changed by your organization")).to_be_visible()
    found = (await house.world.denizen.organizations.presets()).document
    assert found["routing"] == {
        "reviewEveryNTurns": 2,
        "forceReviewOnCompaction": True,
        "defaultPresetId": "concise",
        "defaultPresetByMode": {"tutor": "tutor", "plan": "planner", "ada": "ideas"},
    }
    assert found["addonPrompts"] == {"tutor": "Ask back first."}


async def test_an_admin_tries_changes_but_cannot_save_them(house: House, visit: Visit) -> None:
    await house.world.person("Noor")
    ines = await house.world.person("Ines")
    await house.world.denizen.db.write(roles.set_role, ines.id, "admin")
    visitor = await visit(ines)
    page = await visitor.open("/admin/profiles")
    await expect(page.get_by_text("ask an owner to save them")).to_be_visible()
    await expect(page.get_by_role("button", name="Save")).to_have_count(0)
    await page.get_by_role("button", name="Remove rule asked-to-be-brief").click()
    await page.get_by_label("Message", exact=True).fill("Tell me briefly.")
    await page.get_by_role("button", name="Try", exact=True).click()
    status = page.get_by_role("region", name="Try a message").get_by_role("status")
    await expect(status).to_contain_text("balanced")
