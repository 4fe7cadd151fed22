"""What people do with answers and messages: stop, try again, react, pin, copy."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Literal

import pytest
from playwright.async_api import Locator, ViewportSize, expect

from denizen.models.scripted import ScriptedModel, reply, scripted
from tests.server.conftest import House
from tests.web.conftest import PHONE, WIDE, Visit
from tests.web.test_conversation import write

LONG = "One word after the other, until somebody stops me in the middle of it."
LOOKS = [(WIDE, "light"), (PHONE, "dark")]
Scheme = Literal["light", "dark"]


def endless() -> ScriptedModel:
    """A model that writes a few words and then hangs until it is stopped."""
    written = 0

    async def pause() -> None:
        nonlocal written
        written += 1
        if written == 12:
            await asyncio.Event().wait()

    return scripted(reply(LONG), chunk=4, pause=pause)


@pytest.mark.parametrize(("size", "scheme"), LOOKS)
async def test_an_answer_is_stopped_while_it_is_written(
    house: House, visit: Visit, size: ViewportSize, scheme: Scheme
) -> None:
    world = house.world
    noor = await world.person("Noor")
    bo = await world.agent("Bo", model=endless())
    kitchen = await world.space("Kitchen", noor, bo)
    hers = await visit(noor, size=size, color_scheme=scheme)
    page = await hers.open(f"/s/{kitchen.id}")
    await write(page, "Count.")
    await expect(page.get_by_role("article", name="Bo is writing").get_by_text("One word after")).to_be_visible()
    await hers.check_accessibility()
    if size is WIDE:
        await page.get_by_role("button", name="Stop").click()
    else:
        await page.get_by_role("textbox", name="Message to Kitchen").press("Escape")
    said = page.get_by_role("article", name="Bo: One word")
    await expect(said.get_by_text("Stopped by you")).to_be_visible()
    await expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    await expect(page.get_by_role("textbox", name="Message to Kitchen")).to_be_focused()
    await hers.check_accessibility()


@pytest.mark.parametrize(("size", "scheme"), LOOKS)
async def test_people_react_pin_quote_and_try_again(
    house: House, visit: Visit, size: ViewportSize, scheme: Scheme
) -> None:
    """From the menu of a message, by keyboard too; everyone in the space sees it at once."""
    world = house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    turns = reply("**Rex** is a good name."), "Named it.", reply("Bello."), "Again.", reply("Minka."), "And again."
    bo = await world.agent("Bo", *turns)
    kitchen = await world.space("Kitchen", noor, sam, bo)
    hers, his = await visit(noor, size=size, color_scheme=scheme), await visit(sam)
    page, other = await hers.open(f"/s/{kitchen.id}"), await his.open(f"/s/{kitchen.id}")
    await write(page, "A name for the dog?")
    rex = page.get_by_role("article", name="Bo: Rex")

    # By keyboard: the message is reached with Tab.
    await rex.get_by_role("button", name="React").focus()
    await page.keyboard.press("Enter")
    await page.keyboard.press("ArrowRight")
    await page.keyboard.press("Enter")
    await expect(rex.get_by_role("button", name="Heart: You")).to_have_attribute("aria-pressed", "true")
    theirs = other.get_by_role("article", name="Bo: Rex").get_by_role("button", name="Heart: Noor")
    await expect(theirs).to_be_visible()
    await theirs.click()
    await expect(rex.get_by_role("button", name="Heart: You, Sam")).to_be_visible()
    await hers.check_accessibility()

    async def choose(message: Locator, item: str) -> None:
        await message.get_by_role("button", name="More").click()
        found = page.get_by_role("menuitem", name=item, exact=True)
        # On one line.
        assert await found.evaluate("each => each.offsetWidth > 120 && each.scrollHeight < 48")
        await found.click()

    await choose(rex, "Pin")
    await expect(rex.get_by_text("Pinned", exact=True)).to_be_visible()
    await page.get_by_role("button", name="Space menu").click()
    await page.get_by_role("menuitem", name="Pinned messages").click()
    dialog = page.get_by_role("dialog", name="Pinned messages")
    await expect(dialog.get_by_text("Rex is a good name.")).to_be_visible()
    await hers.check_accessibility()
    await dialog.get_by_role("button", name="Unpin").click()
    await expect(dialog.get_by_text("No pinned messages yet.")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(rex.get_by_text("Pinned", exact=True)).to_have_count(0)

    await hers.context.grant_permissions(["clipboard-read", "clipboard-write"])
    copies = {"Copy as Markdown": "**Rex** is a good name.", "Copy as plain text": "Rex is a good name."}
    for item, copied in copies.items():
        await choose(rex, item)
        await expect(page.get_by_text(item.replace("Copy", "Copied"))).to_be_visible()
        assert await page.evaluate("navigator.clipboard.readText()") == copied
    await choose(rex, "Try again")
    bello = page.get_by_role("article", name="Bo: Bello.")
    await expect(bello.get_by_role("button", name="Another answer. Show the earlier one")).to_be_visible()
    await expect(rex).to_be_visible()

    await choose(rex, "Quote and reply")
    box = page.get_by_role("textbox", name="Message to Kitchen")
    await expect(box).to_have_value("> **Rex** is a good name.\n\n")
    await expect(page.get_by_text("Reply to Bo: Rex is a good name.")).to_be_visible()
    await page.get_by_role("button", name="Cancel reply").click()
    await box.fill("")

    await choose(page.get_by_role("article", name="Noor: A name"), "Edit")
    await page.get_by_role("textbox", name="Edit message").fill("A name for the cat?")
    await hers.check_accessibility()
    await page.get_by_role("button", name="Save and ask again").click()
    await expect(page.get_by_role("article", name="Bo: Minka.")).to_be_visible()
    await expect(page.get_by_role("article", name="Noor: A name for the cat?")).to_be_visible()
    await hers.check_accessibility()


@pytest.mark.parametrize(("size", "scheme"), LOOKS)
async def test_one_changes_ones_own_name(house: House, visit: Visit, size: ViewportSize, scheme: Scheme) -> None:
    noor, sam = await house.world.person("Noor"), await house.world.person("Sam")
    kitchen = await house.world.space("Kitchen", noor, sam)
    await house.say(noor, "Tea?", kitchen)
    hers, his = await visit(noor, size=size, color_scheme=scheme), await visit(sam)
    page, other = await hers.open("/me"), await his.open(f"/s/{kitchen.id}")
    await page.get_by_role("button", name="Change name").click()
    await page.get_by_role("textbox", name="Name").fill("Noor Haddad")
    await hers.check_accessibility()
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("heading", name="Noor Haddad")).to_be_visible()
    await hers.check_accessibility()
    await other.reload()
    await expect(other.get_by_role("article", name="Noor Haddad: Tea?")).to_be_visible()


async def test_one_downloads_what_was_said_in_a_space(house: House, visit: Visit) -> None:
    noor = await house.world.person("Noor")
    kitchen = await house.world.space("Kitchen / Küche", noor)
    await house.say(noor, "Tea?", kitchen)
    page = await (await visit(noor)).open(f"/s/{kitchen.id}")
    await expect(page.get_by_role("article", name="Noor: Tea?")).to_be_visible()
    async with page.expect_download() as waiting:
        await page.get_by_role("button", name="Space menu").click()
        await page.get_by_role("menuitem", name="Download the transcript").click()
    saved = await waiting.value
    assert saved.suggested_filename == "Kitchen _ Küche.md"
    assert (await asyncio.to_thread(Path(await saved.path()).read_text, encoding="utf-8")).endswith("UTC\n\nTea?\n")


@pytest.mark.parametrize(("size", "scheme"), LOOKS)
async def test_a_first_conversation_leads_somewhere(
    house: House, visit: Visit, size: ViewportSize, scheme: Scheme
) -> None:
    """The demo model says what to try, and the page offers to connect a model."""
    world = house.world
    olga = await world.person("Olga")
    bo = await world.denizen.agents.create("Bo", model="demo", purpose="Shows how everything works.")
    kitchen = await world.space("Kitchen", olga, bo)
    hers = await visit(olga, size=size, color_scheme=scheme, first_start=True)
    page = await hers.open(f"/s/{kitchen.id}")
    await expect(page.get_by_text("Shows how everything works.")).to_be_visible()
    await hers.check_accessibility()
    await page.get_by_role("button", name="What can you do?").click()
    answer = page.get_by_role("article", name="Bo: I am Bo")
    await expect(answer.get_by_role("listitem")).to_have_count(3)
    await hers.check_accessibility()
    await answer.get_by_role("link", name="Connect a model").click()
    await expect(page).to_have_url(f"{house.address}/admin/models")
