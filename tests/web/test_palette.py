"""Finding anything with a few letters, and going anywhere by the keyboard."""

from __future__ import annotations

import re

from playwright.async_api import expect

from tests.server.conftest import House
from tests.web.conftest import Visit


async def test_everything_is_found_with_a_few_letters(house: House, visit: Visit) -> None:
    world = house.world
    noor, zoe = await world.person("Noor"), await world.person("Zoë")
    ada = await world.agent("Ada")
    lobby = await world.space("Lobby", noor, ada)
    kitchen = await world.space("Kitchen", noor, zoe)
    await world.say(zoe, "The marmalade is in the cupboard.", kitchen)
    visitor = await visit(noor)
    page = await visitor.open(f"/s/{lobby.id}")
    await expect(page.get_by_role("heading", name="Lobby", level=1)).to_be_visible()
    palette = page.get_by_role("dialog", name="Find anything")
    find = palette.get_by_role("combobox", name="Find spaces, people")

    async def search(words: str, chosen: str) -> None:
        await page.keyboard.press("Control+k")
        await expect(find).to_be_focused()
        await find.fill(words)
        await expect(palette.get_by_role("option", selected=True)).to_contain_text(chosen)

    await search("kit", "Kitchen")
    await visitor.check_accessibility()
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(f"{house.address}/s/{kitchen.id}")

    await search("marmalade", "marmalade")
    found = palette.get_by_role("option").filter(has_text="Zoë in Kitchen")
    await expect(found).to_contain_text("The marmalade is in the cupboard.")
    await found.click()
    await expect(page).to_have_url(f"{house.address}/s/{kitchen.id}/m/1")

    await search("@ada", "Ada")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Noor and Ada", level=1)).to_be_visible()
    await search("zoe", "Zoë")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Noor and Zoë", level=1)).to_be_visible()

    await search("dark", "Dark theme")
    await page.keyboard.press("Enter")
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    await search("cost", "usage")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("ArrowUp")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(f"{house.address}/admin/usage")

    await search("no such thing anywhere", "Search messages for")
    await expect(palette.get_by_role("option")).to_have_text([re.compile("Search messages for")])
    await page.keyboard.press("Escape")
    await expect(find).to_have_count(0)


async def test_the_keyboard_leads_everywhere(house: House, visit: Visit) -> None:
    world = house.world
    noor, mia = await world.person("Noor"), await world.person("Mia")
    await world.agent("Ada")
    await world.agent("Bo")
    kitchen = await world.space("Kitchen", noor, mia)
    visitor = await visit(noor)
    page = await visitor.open(f"/s/{kitchen.id}")
    await expect(page.get_by_role("heading", name="Kitchen", level=1)).to_be_visible()
    # Whoever comes can write at once; outside of the box, keys lead.
    await expect(page.get_by_label("Message to Kitchen")).to_be_focused()
    await page.keyboard.press("Escape")
    await page.keyboard.press("?")
    sheet = page.get_by_role("dialog", name="Shortcuts")
    await expect(sheet.get_by_text("Find anything")).to_be_visible()
    await visitor.check_accessibility()
    await page.keyboard.press("Escape")
    await expect(sheet).to_have_count(0)

    await page.keyboard.type("ga")
    await expect(page.get_by_role("list", name="Agents")).to_be_visible()
    await page.keyboard.press("j")
    await expect(page.get_by_role("link", name="Ada")).to_be_focused()
    await page.keyboard.press("j")
    await expect(page.get_by_role("link", name="Bo")).to_be_focused()
    await page.keyboard.press("k")
    await expect(page.get_by_role("link", name="Ada")).to_be_focused()
    await page.keyboard.type("na")
    await expect(page.get_by_role("heading", name="New agent")).to_be_visible()
    # While something is written, letters are letters.
    await page.get_by_label("Role").fill("")
    await page.get_by_label("Role").press_sequentially("ga?")
    await expect(page.get_by_label("Role")).to_have_value("ga?")
    await page.get_by_label("Role").evaluate("field => field.blur()")
    await page.keyboard.type("gd")
    await expect(page.get_by_role("heading", name="People and services")).to_be_visible()
    await page.keyboard.type("gs")
    await expect(page.get_by_role("heading", name="Kitchen", level=1)).to_be_visible()

    # For whoever is no admin, keys for admins do nothing.
    other = await visit(mia)
    page = await other.open("/agents")
    await expect(page.get_by_role("list", name="Agents")).to_be_visible()
    await page.keyboard.type("gd")
    await page.keyboard.press("?")
    sheet = page.get_by_role("dialog", name="Shortcuts")
    await expect(sheet.get_by_text("Find anything")).to_be_visible()
    await expect(sheet.get_by_text("Administration")).to_have_count(0)
    await expect(page).to_have_url(f"{house.address}/agents")


async def test_letters_typed_right_after_the_shortcut_are_searched_for(house: House, visit: Visit) -> None:
    noor = await house.world.person("Noor")
    kitchen = await house.world.space("Kitchen", noor)
    page = await (await visit(noor)).open(f"/s/{kitchen.id}")
    await expect(page.get_by_label("Message to Kitchen")).to_be_focused()
    await page.keyboard.press("Control+k")
    await page.keyboard.type("kit")
    await expect(page.get_by_role("combobox", name="Find spaces, people")).to_have_value("kit")
    await expect(page.get_by_role("option", selected=True)).to_contain_text("Kitchen")
    await page.keyboard.press("Escape")
    await expect(page.get_by_label("Message to Kitchen")).to_have_value("")


async def test_next_space_follows_the_order_of_the_sidebar(house: House, visit: Visit) -> None:
    world = house.world
    noor, zoe = await world.person("Noor"), await world.person("Zoë")
    kitchen, workshop = await world.space("Kitchen", noor), await world.space("Workshop", noor)
    direct = await world.space("Noor and Zoë", noor, zoe, private=True)
    panel = await world.denizen.panels.create("Advice", [noor])
    page = await (await visit(noor)).open(f"/s/{kitchen.id}")
    await expect(page.get_by_role("link", name="Advice")).to_be_visible()
    # Shared spaces first, then direct messages, then panels; not by their names alone.
    for path in (f"/s/{workshop.id}", f"/s/{direct.id}", f"/panels/{panel.id}", f"/s/{kitchen.id}"):
        await page.keyboard.press("Alt+ArrowDown")
        await expect(page).to_have_url(f"{house.address}{path}")
    await page.keyboard.press("Alt+ArrowUp")
    await expect(page).to_have_url(f"{house.address}/panels/{panel.id}")


async def test_spaces_of_the_same_name_are_told_apart(house: House, visit: Visit) -> None:
    """In the sidebar, in the head of each, here, and where a search looks."""
    noor, ada = await house.world.person("Noor"), await house.world.agent("Ada")
    with_ada = await house.world.space("Kitchen", noor, ada)
    alone = await house.world.space("Kitchen", noor)
    await house.world.space("Garden", noor)
    hers = await visit(noor)
    page = await hers.open(f"/s/{alone.id}")
    places = page.get_by_role("navigation", name="Spaces")
    await expect(places.get_by_role("link")).to_have_text(["#Garden", "#Kitchen, Ada", "#Kitchen, only you"])
    await expect(page.get_by_role("banner")).to_contain_text("only you")
    await page.keyboard.press("Control+k")
    await page.get_by_role("combobox").fill("kitch")
    options = page.get_by_role("dialog", name="Find anything").get_by_role("group", name="Spaces").get_by_role("option")
    await expect(options).to_have_text(["KitchenAda", "Kitchenonly you"])
    await hers.check_accessibility()
    await options.first.click()
    await page.wait_for_url(f"**/s/{with_ada.id}")
    await hers.turn_to("/search")
    await expect(page.get_by_label("Where").get_by_role("option")).to_have_text(
        ["Everywhere", "Garden", "Kitchen (Ada)", "Kitchen (only you)"]
    )
