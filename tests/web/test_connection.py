"""The connection breaks, comes back, and leads to another instance; nothing is lost, and nothing appears twice."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator

import pytest_asyncio
from playwright.async_api import Route, expect

from tests.browser import open_browser
from tests.server.conftest import House
from tests.web.conftest import SharedBrowser, Visit, Visitor, served_to_browsers, visiting
from tests.web.test_conversation import write

SAID = re.compile(r"\d")
"""The place of a message that the server has."""


async def test_what_was_said_and_changed_meanwhile_is_there_when_the_connection_is_back(
    house: House, visit: Visit
) -> None:
    world = house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    kitchen = await world.space("Kitchen", noor, sam)
    first = await world.say(sam, "Tea at four", kitchen)
    hers = await visit(noor)
    page = await hers.open(f"/s/{kitchen.id}")
    await expect(page.get_by_role("article")).to_have_count(1)

    await hers.context.set_offline(True)
    await expect(page.get_by_text("No connection.")).to_be_visible()
    await hers.check_accessibility()
    await write(page, "Is anyone there?")
    await expect(page.get_by_text("Waiting for a connection").first).to_be_visible()
    await world.denizen.spaces.edit_message(first.id, "Tea at five", by=sam)
    await world.say(sam, "I am back.", kitchen)
    await hers.context.set_offline(False)
    await expect(page.get_by_text("No connection.")).to_have_count(0)

    await expect(page.get_by_role("article", name="Noor: Is anyone there?")).to_have_attribute("data-seq", "3")
    await expect(page.get_by_role("article")).to_have_count(3)
    await expect(page.get_by_role("article", name="Sam: Tea at five")).to_be_visible()
    await expect(page.get_by_text("Waiting for a connection")).to_have_count(0)
    assert [each.text for each in await world.denizen.spaces.messages(kitchen)] == [
        "Tea at five",
        "I am back.",
        "Is anyone there?",
    ]


async def test_what_the_server_refuses_for_now_is_explained_and_tried_again(house: House, visit: Visit) -> None:
    """The stream is open, and a server or a proxy answers with errors: nothing waits in silence or for ever."""
    world = house.world
    noor = await world.person("Noor")
    kitchen = await world.space("Kitchen", noor)
    answers: list[tuple[int, str]] = [(0, "")]
    """To requests that send a message, one after the other; the last one stays."""

    async def answer(route: Route) -> None:
        status, body = answers.pop(0) if len(answers) > 1 else answers[0]
        await (route.fulfill(status=status, body=body) if status else route.continue_())

    async def refuse_list(route: Route) -> None:
        await route.fulfill(status=503, body="busy")

    hers = await visit(noor)
    page = hers.page
    await page.route("**/api/spaces?*", refuse_list)
    await page.route("**/messages", answer)
    await hers.open(f"/s/{kitchen.id}")
    await expect(page.get_by_text("Your spaces cannot be loaded. Trying again every few seconds.")).to_be_visible()
    await hers.check_accessibility()
    await page.unroute("**/api/spaces?*")
    await expect(page.get_by_text("No messages yet.")).to_be_visible()
    await expect(page.get_by_text("Your spaces cannot be loaded.")).to_have_count(0)

    busy = json.dumps({"code": "overloaded", "title": "Busy", "detail": "Too many ask at once.", "status": 503})
    answers[:] = [(503, busy)]
    await write(page, "One")
    await write(page, "Two")
    one, two = (page.get_by_role("article", name=f"Noor: {text}") for text in ("One", "Two"))
    told = "Not sent yet; it is tried again every few seconds. Too many ask at once."
    await expect(one.get_by_role("alert")).to_contain_text(told)
    await hers.check_accessibility()
    # The first is in the way of the second; without it, that is sent by itself, also after an answer that broke off.
    answers[:] = [(201, '{"id"'), (0, "")]
    await one.get_by_role("button", name="Discard").click()
    await expect(two).to_have_attribute("data-seq", "1")
    await expect(page.get_by_role("article")).to_have_count(1)

    # A proxy of its own mind: what it does not take is not tried again until she says so.
    answers[:] = [(413, '{"error": "too large"}'), (0, "")]
    await write(page, "Three")
    three = page.get_by_role("article", name="Noor: Three")
    await expect(three.get_by_role("alert")).to_contain_text("Not sent. This is too large for a proxy")
    await three.get_by_role("button", name="Retry").click()
    await expect(three).to_have_attribute("data-seq", "2")
    assert [each.text for each in await world.denizen.spaces.messages(kitchen)] == ["Two", "Three"]

    # A screen that is loaded only when it is opened.
    await hers.context.route("**/assets/AgentsPage*", lambda route: route.abort())
    await page.get_by_role("link", name="Agents").click()
    await expect(page.get_by_role("main").get_by_role("alert")).to_contain_text(
        "A part of this page could not be loaded"
    )
    await hers.context.unroute("**/assets/AgentsPage*")
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_role("heading", name="Agents", level=1)).to_be_visible()
    hers.complaints.clear()  # the page logs what broke


_HELD_FRAMES = """
  delete window.SharedWorker;  // so that the stream can be held up here
  const draw = window.requestAnimationFrame.bind(window);
  window.holdFrames = () => { window.requestAnimationFrame = (frame) => { window.held = frame; return 0; }; };
  window.drawFrame = () => { window.requestAnimationFrame = draw; draw(window.held); };
"""


async def test_a_change_between_the_page_and_the_stream_is_shown(house: House, visit: Visit) -> None:
    """The messages were read before the change, the stream began after it, and both arrive in the same frame."""
    world = house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    kitchen = await world.space("Kitchen", noor, sam)
    first = await world.say(sam, "Tea at four", kitchen)
    was_read, may_arrive, may_begin, may_list = (asyncio.Event() for _ in range(4))

    async def late_page(route: Route) -> None:
        answer = await route.fetch()
        was_read.set()
        await may_arrive.wait()
        await route.fulfill(response=answer)

    async def late_stream(route: Route) -> None:
        await may_begin.wait()
        await route.continue_()

    async def late_list(route: Route) -> None:
        """The page asks for all spaces again when the stream is ready."""
        may_arrive.set()
        await may_list.wait()
        await route.continue_()

    page = (await visit(noor)).page
    await page.add_init_script(_HELD_FRAMES)
    await page.route("**/messages?*", late_page, times=1)
    await page.route("**/api/stream", late_stream)
    await page.goto(f"{house.address}/s/{kitchen.id}")
    await was_read.wait()
    await world.denizen.spaces.edit_message(first.id, "Tea at five", by=sam)
    await page.route("**/api/spaces?*", late_list)
    await page.evaluate("holdFrames()")
    may_begin.set()
    await expect(page.get_by_role("article", name="Sam: Tea")).to_be_visible()
    await page.evaluate("drawFrame()")
    may_list.set()
    await expect(page.get_by_role("article", name="Sam: Tea at five")).to_be_visible()


async def test_a_stream_that_breaks_is_resumed_without_gaps_or_doubles(house: House, visit: Visit) -> None:
    """Without a reload: the page itself catches up, edits included."""
    world = house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    kitchen = await world.space("Kitchen", noor, sam)
    first = await world.say(sam, "One", kitchen)
    hers = await visit(noor)
    page = await hers.open(f"/s/{kitchen.id}")
    await expect(page.get_by_role("article", name="Sam: One")).to_be_visible()

    await hers.context.set_offline(True)
    await expect(page.get_by_text("No connection.")).to_be_visible()
    await world.say(sam, "Two", kitchen)
    await world.denizen.spaces.edit_message(first.id, "One, changed", by=sam)

    async def refuse(route: Route) -> None:
        await route.fulfill(status=503, body="busy")

    # The first time it asks what has changed, the server is still busy.
    await page.route("**/messages?*", refuse, times=1)
    await hers.context.set_offline(False)

    await expect(page.get_by_role("article", name="Sam: One, changed")).to_be_visible()
    await expect(page.get_by_role("article")).to_have_count(2)
    await expect(page.get_by_text("No connection.")).to_have_count(0)


async def test_two_people_on_two_instances_talk(house: House, browser: SharedBrowser) -> None:
    """Each at a server of its own, over the same house."""
    world = house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    kitchen = await world.space("Kitchen", noor, sam)
    async with (
        served_to_browsers(world) as other,
        visiting(browser, house, noor) as hers,
        visiting(browser, other, sam) as his,
    ):
        assert house.address != other.address
        page, beside = await hers.open(f"/s/{kitchen.id}"), await his.open(f"/s/{kitchen.id}")
        await write(page, "Do you hear me?")
        await expect(beside.get_by_role("article", name="Noor: Do you hear me?")).to_be_visible()
        await write(beside, "I do.")
        await expect(page.get_by_role("article", name="Sam: I do.")).to_be_visible()
        await expect(page.get_by_role("article")).to_have_count(2)
        assert (hers.complaints, his.complaints) == ([], [])


async def test_what_is_written_without_a_connection_is_sent_by_itself_once_and_in_order(
    house: House, visit: Visit
) -> None:
    """After the connection is back, and also by a page that is opened anew."""
    world = house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    kitchen = await world.space("Kitchen", noor, sam)
    hers = await visit(noor)
    page = await hers.open(f"/s/{kitchen.id}")
    await write(page, "Zero")
    await expect(page.get_by_role("article", name="Noor: Zero")).to_have_attribute("data-seq", "1")

    await hers.context.set_offline(True)
    for text in ("One", "Two", "Three"):
        await write(page, text)
    await expect(page.get_by_role("article")).to_have_count(4)
    await expect(page.get_by_text("Waiting for a connection").first).to_be_visible()
    await hers.context.set_offline(False)
    await expect(page.get_by_role("article", name="Noor: Three")).to_have_attribute("data-seq", "4")

    await hers.context.set_offline(True)
    for text in ("Four", "Five"):
        await write(page, text)
    await expect(page.get_by_role("article")).to_have_count(6)
    await page.close()
    await hers.context.set_offline(False)
    again = await hers.context.new_page()
    await again.goto(f"{house.address}/s/{kitchen.id}")
    await expect(again.get_by_role("article", name="Noor: Five")).to_have_attribute("data-seq", "6")
    said = [each.text for each in await world.denizen.spaces.messages(kitchen)]
    assert said == ["Zero", "One", "Two", "Three", "Four", "Five"]


@pytest_asyncio.fixture(loop_scope="session")
async def browser_with_a_process_for_each_tab() -> AsyncGenerator[SharedBrowser]:
    """What one tab stores the other sees a little later, as at home. In the shared browser they are one process."""
    async with open_browser() as browser:
        yield SharedBrowser(browser)


async def test_two_tabs_without_a_connection_neither_lose_nor_repeat_what_the_other_wrote(
    house: House, browser_with_a_process_for_each_tab: SharedBrowser
) -> None:
    """One of them is closed before the connection is back; the other sends for both, each message once."""
    async with visiting(browser_with_a_process_for_each_tab, house, await house.world.person("Noor")) as hers:
        await _write_in_two_tabs(hers)
        assert hers.complaints == []


async def _write_in_two_tabs(hers: Visitor) -> None:
    house, world, noor = hers.house, hers.house.world, hers.who
    sam = await world.person("Sam")
    kitchen = await world.space("Kitchen", noor, sam)
    first = await hers.open(f"/s/{kitchen.id}")
    second = await hers.context.new_page()
    await second.goto(f"{house.address}/s/{kitchen.id}")
    for page in (first, second):
        await write(page, "Online")
        await expect(page.get_by_role("article", name="Noor: Online").last).to_have_attribute("data-seq", SAID)

    await hers.context.set_offline(True)
    for page, text in ((first, "One"), (second, "Two"), (first, "Three"), (second, "Four")):
        await write(page, text)
        await expect(page.get_by_text("Waiting for a connection").last).to_be_visible()
        await expect(page.get_by_role("article", name=f"Noor: {text}")).to_be_visible()
    await first.close()
    third = await hers.context.new_page()
    await hers.context.set_offline(False)
    # A third one, opened at the same moment, holds all four as well: they go under the same keys.
    await third.goto(f"{house.address}/s/{kitchen.id}")
    for page in (second, third):
        for text in ("One", "Two", "Three", "Four"):
            await expect(page.get_by_role("article", name=f"Noor: {text}")).to_have_attribute("data-seq", SAID)
        await expect(page.get_by_role("article")).to_have_count(6)
    said = [each.text for each in await world.denizen.spaces.messages(kitchen)]
    assert sorted(said) == ["Four", "One", "Online", "Online", "Three", "Two"]
    kept = await second.evaluate("Object.keys(localStorage).filter((name) => name.startsWith('outbox '))")
    assert kept == []


async def test_a_space_that_could_not_be_read_is_read_when_the_connection_is_back(house: House, visit: Visit) -> None:
    world = house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    kitchen = await world.space("Kitchen", noor, sam)
    garden = await world.space("Garden", noor, sam)
    await world.say(sam, "Tea at four", garden)
    hers = await visit(noor)
    page = await hers.open(f"/s/{kitchen.id}")
    await expect(page.get_by_role("link", name="Garden")).to_be_visible()
    await hers.context.set_offline(True)
    await page.get_by_role("link", name="Garden").click()
    await expect(page.get_by_text("The server cannot be reached.")).to_be_visible()
    await hers.check_accessibility()
    await hers.context.set_offline(False)
    await expect(page.get_by_role("article", name="Sam: Tea at four")).to_be_visible()
