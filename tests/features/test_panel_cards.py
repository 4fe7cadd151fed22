"""Panel cards."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import Page, expect

from denizen import think
from tests.panel.test_rounds import voices
from tests.server.conftest import House
from tests.web.conftest import Visit, _web_client, browser, house, visit  # noqa: F401  fixtures
from tests.web.test_panel import _IN_COLUMNS, _card
from tests.world import World

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def answered(world: World, visit: Visit, *advisors: Any) -> Page:  # noqa: F811
    """Noor sees a panel in the browser that has answered her."""
    noor = await world.person("Noor")
    world.denizen.models.register("m", voices(lambda who, *_: [think(f"{who} ponders."), f"**{who}** says yes."]))
    board = await world.denizen.panels.create("Board", [noor], advisors=advisors, model="m")
    await world.denizen.panels.ask(board, noor, "Well?")
    await world.run()
    return await (await visit(noor)).open(f"/panels/{board.id}")


async def test_cards_stand_in_columns(house: House, visit: Visit) -> None:  # noqa: F811
    """The replies of a round are cards: in one column on a phone, two on a tablet, three on a desktop.

    Docs: web.md
    """
    names = "Seth", "Buber", "Pema"
    page = await answered(house.world, visit, *names)
    cards = [await _card(page, name).element_handle() for name in names]
    for width, columns in ((1440, 3), (1000, 2), (390, 1)):
        await page.set_viewport_size({"width": width, "height": 900})
        await page.wait_for_function(_IN_COLUMNS, arg=[cards, columns])


async def test_a_card_has_the_name_the_colour_and_the_thinking(house: House, visit: Visit) -> None:  # noqa: F811
    """A card has the advisor's name, its colour, its text as Markdown, and what its model thought.

    Docs: web.md
    """
    page = await answered(house.world, visit, {"name": "Seth", "colour": "#b3322b", "reasoning": True}, "Buber")
    card = _card(page, "Seth")
    await expect(card).to_have_css("border-top-color", "rgb(179, 50, 43)")
    await expect(card.locator("strong")).to_have_text("Seth")
    await card.get_by_text("Thinking").click()
    await expect(card).to_contain_text("Seth ponders.")
