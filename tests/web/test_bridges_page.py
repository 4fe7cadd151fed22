"""Administration › Bridges: how each bridge does, what is connected, and what an admin can do about it."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest_asyncio
from playwright.async_api import expect

from denizen.access.vault import new_key
from denizen.bridges import registry
from tests.bridges.conformance import ROOM
from tests.bridges.in_process import Harbour
from tests.server.conftest import House
from tests.web.conftest import PHONE, Visit, served_to_browsers
from tests.world import UNHURRIED, open_world

HARBOUR = Harbour()


@pytest_asyncio.fixture(loop_scope="session")
async def house(ready_sqlite_url: str) -> AsyncGenerator[House]:
    async with (
        open_world(ready_sqlite_url, pace=UNHURRIED, secret_key=new_key(), bridge_kinds=[HARBOUR.kind]) as world,
        served_to_browsers(world) as house,
        world.denizen.living(),
    ):
        yield house


async def test_a_bridge_is_made_connected_paused_resumed_and_deleted(house: House, visit: Visit) -> None:
    """On a phone, in the dark; everything on one page."""
    world = house.world
    noor = await world.person("Noor")
    space = await world.space("Pier", noor)
    visitor = await visit(noor, size=PHONE, color_scheme="dark")
    page = await visitor.open("/admin/bridges")
    await expect(page.get_by_role("heading", name="No bridges.")).to_be_visible()

    await page.get_by_role("button", name="New bridge").click()
    await page.get_by_label("Kind").select_option("email")
    await expect(page.get_by_label("password")).to_be_visible()
    await visitor.check_accessibility()
    await page.get_by_label("Kind").select_option("harbour")
    await page.get_by_label("Name").fill("Harbour")
    await page.get_by_role("button", name="Create bridge").click()
    row = page.get_by_role("list", name="Bridges", exact=True).get_by_role("listitem").first
    await expect(row).to_contain_text("Harbour")

    async def choose(action: str) -> None:
        await page.get_by_role("button", name="Actions for Harbour").click()
        await page.get_by_role("menuitem", name=action).click()

    await choose("Connect a room")
    await page.get_by_role("textbox", name="Room").fill(ROOM)
    await page.get_by_role("combobox", name="Space").select_option(label="Pier")
    await page.get_by_role("button", name="Connect", exact=True).click()
    await expect(row).to_contain_text(f"{ROOM} ↔ Pier")
    await HARBOUR.write(ROOM, "Eve", "Ahoy!")
    await world.run()
    await page.get_by_role("button", name="Show accounts").click()
    await expect(row).to_contain_text("@eve:harbour guest: Eve")

    await choose("Pause")
    await expect(row).to_contain_text("paused")
    await world.say(noor, "Are you there?", space)
    await world.run()
    assert HARBOUR.said == []
    await page.reload()
    await expect(row).to_contain_text("1 waits to be sent")
    await choose("Resume")
    await world.run()
    await page.reload()
    await expect(row).to_contain_text("connected")
    assert HARBOUR.said == [f"{ROOM}: Noor: Are you there?"]

    # The token is revoked: the page says so, and what to do; then it works again.
    HARBOUR.forbid()
    await world.say(noor, "Still there?", space)
    await world.run()
    await page.reload()
    await expect(row).to_contain_text("parked")
    await expect(row).to_contain_text("The harbour does not accept the token.")
    await visitor.check_accessibility()
    assert await page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")
    HARBOUR.permit()
    await choose("Try again now")
    await world.run()
    await page.reload()
    await expect(row).to_contain_text("connected")

    await choose("Delete")
    await page.get_by_role("button", name="Delete bridge").click()
    await expect(page.get_by_role("heading", name="No bridges.")).to_be_visible()
    organization = noor.organization_id
    assert await world.denizen.db.read(registry.bridges_of, organization) == []
