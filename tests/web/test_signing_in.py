"""Coming in, and going: with a token, with a link, and out again."""

from __future__ import annotations

from playwright.async_api import expect

from tests.server.conftest import House
from tests.web.conftest import Visit


async def test_whoever_signs_in_with_a_token_sees_the_first_space(house: House, visit: Visit) -> None:
    world = house.world
    noor = await world.person("Noor")
    ada = await world.agent("Ada")
    kitchen = await world.space("Kitchen", noor, ada)
    await world.say(noor, "Good morning.", kitchen)
    visitor = await visit(noor, signed_in=False)

    page = await visitor.open("/")
    await visitor.check_accessibility()
    await page.get_by_label("Access token or link").fill(await house.token(noor))
    await page.get_by_role("button", name="Sign in").click()

    await expect(page.get_by_role("heading", name="Kitchen", level=1)).to_be_visible()
    await expect(page.get_by_text("Good morning.")).to_be_visible()
    await visitor.check_accessibility()
