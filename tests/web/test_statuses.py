"""Why an agent has not answered stands in the space, with what one can do about it."""

from __future__ import annotations

from playwright.async_api import expect

from denizen.errors import ModelKeyRejected
from denizen.models.scripted import reply, skip
from tests.server.conftest import House
from tests.web.conftest import PHONE, Visit
from tests.web.test_conversation import write


async def test_an_agent_that_did_not_reply_is_asked_for_an_answer(house: House, visit: Visit) -> None:
    world = house.world
    noor = await world.person("Noor")
    bo = await world.agent("Bo", skip("Nothing to add."), reply("Four o'clock."), "Answered.")
    kitchen = await world.space("Kitchen", noor, bo)
    hers = await visit(noor, size=PHONE)
    page = await hers.open(f"/s/{kitchen.id}")
    await write(page, "When is tea?")

    notice = page.get_by_role("status").filter(has_text="Bo read this and did not reply.")
    await expect(notice).to_be_visible()
    await hers.check_accessibility()
    await notice.get_by_role("button", name="Ask for an answer").click()
    await expect(page.get_by_role("article", name="Bo: Four o'clock.")).to_be_visible()
    await expect(notice).to_have_count(0)


async def test_a_rejected_key_is_told_and_trying_again_brings_the_answer(house: House, visit: Visit) -> None:
    world = house.world
    noor = await world.person("Noor")
    bo = await world.agent("Bo", ModelKeyRejected("status_code: 401"), reply("Here."), "Answered.")
    kitchen = await world.space("Kitchen", noor, bo)
    hers = await visit(noor)
    page = await hers.open(f"/s/{kitchen.id}")
    await write(page, "Hello?")

    notice = page.get_by_role("status").filter(has_text="rejected the API key of Bo")
    await expect(notice).to_be_visible()
    # It is there for whoever comes later, too.
    await page.reload()
    await expect(notice).to_be_visible()
    await notice.get_by_role("button", name="Try again").click()
    await expect(page.get_by_role("article", name="Bo: Here.")).to_be_visible()
    await expect(notice).to_have_count(0)
