"""People keep many tabs open. All of them are live, over one connection."""

from __future__ import annotations

import asyncio

from fastapi import FastAPI
from playwright.async_api import expect

from denizen import reply
from denizen.models.scripted import scripted
from tests.hesitation import Hesitation
from tests.server.conftest import House, served
from tests.web.conftest import PHONE, SharedBrowser, Visit, visiting
from tests.web.test_conversation import write
from tests.world import open_world

TABS = 12
"""Browsers open at most six connections to a server."""


async def streams_open(app: FastAPI, count: int) -> None:
    while app.state.context.streams.total() != count:  # noqa: ASYNC110
        await asyncio.sleep(0)


async def test_twelve_tabs_are_all_live_over_one_stream(ready_sqlite_url: str, browser: SharedBrowser) -> None:
    made: list[FastAPI] = []
    async with open_world(ready_sqlite_url) as world, served(world, made=made) as house:
        noor, sam = await world.person("Noor"), await world.person("Sam")
        kitchen = await world.space("Kitchen", noor, sam)
        await world.say(sam, "Good morning", kitchen)
        async with visiting(browser, house, noor) as hers:
            pages = [hers.page, *[await hers.context.new_page() for _ in range(TABS - 1)]]
            for page in pages:
                await page.goto(f"{house.address}/s/{kitchen.id}")
                await expect(page.get_by_role("article", name="Sam: Good morning")).to_be_visible()
            await streams_open(made[0], 1)
            await world.say(sam, "Is everybody there?", kitchen)
            for page in pages:
                await expect(page.get_by_role("article", name="Sam: Is everybody there?")).to_be_visible()
            await write(pages[-1], "All of us.")
            for page in pages:
                await expect(page.get_by_role("article", name="Noor: All of us.")).to_have_attribute("data-seq", "3")

            # The tab that opened the stream closes, and then all but one: the stream stays.
            for page in pages[:-1]:
                await page.close()
            await world.say(sam, "One is left.", kitchen)
            await expect(pages[-1].get_by_role("article", name="Sam: One is left.")).to_be_visible()
            await expect(pages[-1].get_by_role("article")).to_have_count(4)
            await streams_open(made[0], 1)
            await pages[-1].close()
            await streams_open(made[0], 0)
            assert hers.complaints == []


async def test_a_tab_that_is_loaded_again_and_again_does_not_stall(house: House, visit: Visit) -> None:
    world = house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    kitchen = await world.space("Kitchen", noor, sam)
    hers = await visit(noor, size=PHONE)
    page = await hers.open(f"/s/{kitchen.id}")
    for number in range(1, 11):
        await page.reload()
        await world.say(sam, f"Message {number}", kitchen)
        await expect(page.get_by_role("article", name=f"Sam: Message {number}", exact=True)).to_be_visible()
    await expect(page.get_by_role("article")).to_have_count(10)


async def test_a_tab_that_is_opened_while_an_agent_writes_has_the_text_from_its_beginning(
    ready_sqlite_url: str, browser: SharedBrowser
) -> None:
    """And the tab that was there keeps it."""
    async with open_world(ready_sqlite_url) as world, served(world) as house:
        noor = await world.person("Noor")
        hesitation = Hesitation()
        ada = await world.agent(
            "Ada", model=scripted(reply("One two three four five six seven"), "Done.", pause=hesitation)
        )
        kitchen = await world.space("Kitchen", noor, ada)
        async with visiting(browser, house, noor) as hers, asyncio.TaskGroup() as tasks:
            early = await hers.open(f"/s/{kitchen.id}")
            await write(early, "Count")
            await expect(early.get_by_role("article", name="Noor: Count")).to_have_attribute("data-seq", "1")
            tasks.create_task(world.run())
            await expect(early.get_by_text("One")).to_be_visible()
            late = await hers.context.new_page()
            await late.goto(f"{house.address}/s/{kitchen.id}")
            for page in (late, early):
                await expect(page.get_by_text("One")).to_be_visible()
            hesitation.may_go_on.set()
            for page in (late, early):
                await expect(page.get_by_role("article", name="Ada: One two three four five six seven")).to_have_count(
                    1
                )
                await expect(page.get_by_role("article")).to_have_count(2)


async def test_nothing_is_missed_while_tabs_come_and_go(ready_sqlite_url: str, browser: SharedBrowser) -> None:
    async with open_world(ready_sqlite_url) as world, served(world) as house:
        noor, sam = await world.person("Noor"), await world.person("Sam")
        kitchen = await world.space("Kitchen", noor, sam)
        async with visiting(browser, house, noor) as hers:
            watching = await hers.open(f"/s/{kitchen.id}")
            await expect(watching.get_by_text("No messages yet.").first).to_be_visible()

            said = 0
            for _ in range(4):
                page = await hers.context.new_page()
                opening = asyncio.create_task(page.goto(f"{house.address}/s/{kitchen.id}"))
                while True:
                    said += 1
                    await world.say(sam, f"Word {said}.", kitchen)
                    if (await asyncio.wait({opening}, timeout=0.05))[0]:
                        break
                await expect(page.get_by_role("article").first).to_be_visible()
                await page.close()
            await expect(watching.get_by_role("article", name=f"Sam: Word {said}.")).to_be_visible()
            seen = await watching.get_by_role("article").evaluate_all(
                "all => all.map(each => Number(each.dataset.seq))"
            )
            assert seen == sorted(set(seen))
            assert seen[-1] - seen[0] == len(seen) - 1
            assert hers.complaints == []


async def test_a_draft_that_was_sent_in_one_tab_is_gone_in_the_other(house: House, visit: Visit) -> None:
    noor = await house.world.person("Noor")
    kitchen = await house.world.space("Kitchen", noor)
    hers = await visit(noor)
    here = await hers.open(f"/s/{kitchen.id}")
    await here.get_by_label("Message to Kitchen").fill("Is there")
    there = await hers.context.new_page()
    await there.goto(f"{house.address}/s/{kitchen.id}")
    box = there.get_by_label("Message to Kitchen")
    await expect(box).to_have_value("Is there")

    # It is one text, wherever one goes on writing it.
    await box.press_sequentially(" tea?")
    await expect(here.get_by_label("Message to Kitchen")).to_have_value("Is there tea?")
    await box.press("Enter")
    await expect(here.get_by_role("article", name="Noor: Is there tea?")).to_be_visible()
    await expect(here.get_by_label("Message to Kitchen")).to_have_value("")
