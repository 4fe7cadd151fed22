"""What holds on every screen: nothing jumps while it loads, times are the reader's, the focus is where it should be."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from playwright.async_api import Page, Route, expect

from denizen import reply
from tests.server.conftest import House
from tests.web.conftest import PHONE, WIDE, Visit

SHIFTS = """
() => {
  // What the browser itself calls a shift: something moved, and no press, key or scroll can have been the cause.
  window.shifts = [];
  const named = node => `${node?.nodeName} ${node?.className ?? ""} ${node?.textContent?.slice(0, 40)}`;
  const at = ({ x, y, width, height }) => [x, y, width, height].map(Math.round).join(" ");
  const told = it => `${location.pathname} ${named(it.node)}: ${at(it.previousRect)} -> ${at(it.currentRect)}`;
  new PerformanceObserver(list => {
    for (const each of list.getEntries()) if (!each.hadRecentInput) window.shifts.push(...each.sources.map(told));
  }).observe({ type: "layout-shift", buffered: true });
}
"""
AFTER_A_FRAME = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


async def test_nothing_moves_while_a_screen_loads(house: House, visit: Visit) -> None:
    world = house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    ada = await world.agent("Ada", reply("The kettle is on."), "Told them.")
    kitchen, hall = await world.space("Kitchen", noor, ada), await world.space("Hall", noor, sam)
    for number in range(1, 40):
        await world.say(sam, f"Leaf {number} of the great book of tea.\n```py\nx = {number}\n```", hall)
    await world.say(noor, "Is there tea, @ada?", kitchen)
    mind = [f"/agents/{ada.id}/{tab}" for tab in ("now", "life", "window", "inbox", "plans", "settings")]
    admin = [f"/admin/{tab}" for tab in ("people", "tokens", "keys", "budgets", "usage", "health")]
    places = [f"/s/{kitchen.id}", f"/s/{hall.id}", "/agents", *mind, "/search?q=tea", "/memory/you", "/me", *admin]
    moved: list[str] = []
    for size, seen in [(WIDE, places), (PHONE, places[::2])]:
        # The more there is to load, the more could move.
        hers = await visit(noor, size=size, new_context=True)
        await hers.context.add_init_script(f"({SHIFTS})()")
        for at, path in enumerate(seen):
            # Some are come to from elsewhere, most by a link: then only what they ask for themselves is loaded.
            page = await (hers.turn_to if at % 4 else hers.open)(path)
            await expect(page.get_by_role("heading").first).to_be_visible()
            await expect(page.get_by_role("status", name="Loading")).to_have_count(0)
            await page.evaluate(AFTER_A_FRAME)
            moved += await page.evaluate("window.shifts.splice(0)")
    assert not moved, "\n".join(moved)


async def test_messages_that_cannot_be_read_are_said_to_be_so_and_tried_again(house: House, visit: Visit) -> None:
    """First while they are waited for, then when they do not come; and the same for older ones above."""
    world = house.world
    noor = await world.person("Noor")
    kitchen = await world.space("Kitchen", noor)
    for number in range(1, 81):
        await world.say(noor, f"Leaf {number}\n\n" + "A line of it.\n\n" * 4, kitchen)
    hers = await visit(noor)
    failing = asyncio.Event()

    async def fail(route: Route) -> None:
        await failing.wait()
        await route.fulfill(status=503, body="busy")

    await hers.page.route("**/messages?*", fail)
    page = await hers.open(f"/s/{kitchen.id}")
    await expect(page.get_by_role("status", name="Loading messages")).to_be_visible()
    await hers.check_accessibility()
    failing.set()
    await expect(page.get_by_role("alert")).to_contain_text("Try again in a moment.")
    await hers.check_accessibility()
    await page.unroute("**/messages?*")
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_role("article", name="Noor: Leaf 80 A")).to_be_in_viewport()

    asked: list[str] = []

    async def refuse(route: Route) -> None:
        asked.append(route.request.url)
        await route.fulfill(status=503, body="busy")

    await page.route("**/messages?*", refuse)
    await page.get_by_role("log").hover()
    await turn_up(page)
    await expect(page.get_by_role("alert")).to_contain_text("Try again in a moment.")
    await turn_up(page)
    # One does not hammer at a door that does not open.
    assert len(asked) == 1
    await page.unroute("**/messages?*")
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_role("alert")).to_have_count(0)
    first = page.get_by_role("article", name=re.compile("^Noor: Leaf 1 "))
    while not await first.count():
        await turn_up(page)

    # On paper it is not cut off at the end of the screen, and dark is for screens.
    await page.emulate_media(media="print", color_scheme="dark")
    await page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    height = await page.evaluate("document.querySelector('[role=log]').lastChild.scrollHeight")
    assert await page.evaluate("document.documentElement.scrollHeight") >= height > WIDE["height"]
    await expect(page.get_by_role("navigation", name="Spaces")).to_be_hidden()
    await expect(page.get_by_label("Message to Kitchen")).to_be_hidden()
    await expect(page.locator("html")).to_have_attribute("data-theme", "light")
    await page.evaluate("() => dispatchEvent(new Event('afterprint'))")
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")


async def turn_up(page: Page) -> None:
    for _ in range(4):
        await page.mouse.wheel(0, -5_000)
        await page.evaluate(AFTER_A_FRAME)


async def test_times_are_those_of_the_readers_zone(house: House, visit: Visit) -> None:
    world = house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    kitchen = await world.space("Kitchen", noor, sam)
    world.clock.advance(3.5 * 3_600)  # half past twelve in the house, by UTC
    await world.say(sam, "Good night", kitchen)
    await world.say(sam, "And dream.", kitchen)
    for zone, locale, day, clock in [
        ("Europe/Berlin", "en-GB", "Monday 5 January", "13:30"),
        ("America/New_York", "en-US", "Monday, January 5", "07:30 AM"),
        ("Pacific/Auckland", "en-GB", "Tuesday 6 January", "01:30"),
    ]:
        hers = await visit(noor, timezone_id=zone, locale=locale)
        page = await hers.open(f"/s/{kitchen.id}")
        said = page.get_by_role("article", name="Sam: Good night")
        await expect(page.get_by_role("log").get_by_role("heading")).to_have_text(re.compile(day))
        await expect(said.get_by_role("time")).to_have_text(re.compile(clock, re.IGNORECASE))
        await expect(said.get_by_role("time")).to_have_attribute(
            "title", re.compile(rf"2026 at 0?{clock[:5].lstrip('0')}:00")
        )
        # However a clock is written there, a line is one line high.
        box = await page.get_by_role("article", name="Sam: And dream.").bounding_box()
        assert box is not None
        assert box["height"] < 36


async def test_a_dialog_takes_the_focus_to_its_first_field_and_gives_it_back(house: House, visit: Visit) -> None:
    world = house.world
    noor = await world.person("Noor")
    kitchen = await world.space("Kitchen", noor)
    await world.say(noor, "Tea at four", kitchen)
    hers = await visit(noor)
    page = await hers.open(f"/s/{kitchen.id}")
    await expect(page.get_by_role("article")).to_have_count(1)

    opener = page.get_by_role("button", name="Create a space")
    await opener.press("Enter")
    dialog = page.get_by_role("dialog", name="New space")
    await expect(dialog.get_by_label("Name")).to_be_focused()
    # It stays inside, whichever way one goes round.
    for _ in range(8):
        await page.keyboard.press("Tab")
        assert await page.evaluate(
            "document.activeElement === document.body || !!document.activeElement.closest('dialog')"
        )
    await page.keyboard.press("Escape")
    await expect(opener).to_be_focused()

    # A press beside it closes it, unless something was filled in.
    await opener.press("Enter")
    await page.mouse.click(5, 5)
    await expect(dialog).to_have_count(0)
    await opener.press("Enter")
    await dialog.get_by_label("Name").fill("Attic")
    await page.mouse.click(5, 5)
    await expect(dialog.get_by_label("Name")).to_have_value("Attic")
    await page.keyboard.press("Escape")

    # From a menu, back to its button; where nothing can be filled in, what does no harm comes first.
    more = page.get_by_role("button", name="Space menu")
    for item, focused in [("Settings", dialog_field("Name")), ("Leave", dialog_button("Stay")), ("Members", None)]:
        await more.press("Enter")
        await page.get_by_role("menuitem", name=item).press("Enter")
        if focused:
            await expect(focused(page)).to_be_focused()
        await expect(page.get_by_role("dialog")).to_be_visible()
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("dialog")).to_have_count(0)
        await expect(more).to_be_focused()


def dialog_field(label: str) -> Any:
    return lambda page: page.get_by_role("dialog").get_by_label(label)


def dialog_button(name: str) -> Any:
    return lambda page: page.get_by_role("dialog").get_by_role("button", name=name)


async def test_the_sidebar_shows_the_place_that_is_open_however_many_there_are(house: House, visit: Visit) -> None:
    world = house.world
    noor = await world.person("Noor")
    spaces = [await world.space(f"Shelf {number:02}", noor) for number in range(1, 61)]
    hers = await visit(noor)
    page = await hers.open(f"/s/{spaces[-1].id}")

    current = page.get_by_role("navigation", name="Spaces").locator("[aria-current=page]")
    await expect(current).to_have_text("#Shelf 60")
    await expect(current).to_be_in_viewport(ratio=1)
    await hers.turn_to(f"/s/{spaces[0].id}")
    await expect(current).to_have_text("#Shelf 01")
    await expect(current).to_be_in_viewport(ratio=1)


async def test_a_long_name_leaves_the_box_for_a_message_one_line_high(house: House, visit: Visit) -> None:
    world = house.world
    noor = await world.person("Noor")
    ada = await world.agent("Ada Lovelace")
    long_name = "Everything that has no other room " * 3
    short, long = await world.space("Tea", noor), await world.space(long_name, noor, ada)
    hers = await visit(noor, size=PHONE)
    heights: list[int] = []
    for space in (short, long):
        await hers.open(f"/s/{space.id}")
        box = hers.page.get_by_label(f"Message to {space.name}")
        await expect(box).to_be_visible()
        heights.append(await box.evaluate("each => each.clientHeight"))
    assert heights[0] == heights[1]

    # Beside what an agent gets there is still room for its name.
    await hers.page.get_by_role("button", name="Members: 2").click()
    name = hers.page.get_by_role("dialog").get_by_role("link", name="Ada Lovelace")
    assert await name.evaluate("each => each.getClientRects().length") == 1
