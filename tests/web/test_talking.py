"""What people do with answers and messages: stop, try again, react, pin, copy."""

from __future__ import annotations

import asyncio
from typing import Literal

import pytest
from playwright.async_api import ViewportSize, expect

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
    await hers.check_accessibility()
