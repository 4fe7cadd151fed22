"""Web push in a real browser: subscribing, and a notification that comes while no page is open."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any, Literal

import pytest
import pytest_asyncio
from playwright.async_api import Page, ViewportSize, Worker, expect

from denizen import call, reply
from denizen.spaces.directory import Entity, Space
from denizen.tools.calls import Call
from denizen.tools.outbound import Outbound
from tests.notifications.push_service import Browser, pusher
from tests.notifications.test_pushing import CONFIRM
from tests.server.conftest import House
from tests.web.conftest import PHONE, WIDE, Visit, Visitor, served_to_browsers
from tests.web.test_notifications import turn_on
from tests.world import UNHURRIED, open_world

SWITCH = "Also while no tab of Denizen is open"
# The headless browser has no push service: this is what one would give to the page.
SUBSCRIBING = """(() => {
  let present = null;
  const keys = %s;
  PushManager.prototype.getSubscription = async () => present;
  PushManager.prototype.subscribe = async ({ userVisibleOnly, applicationServerKey }) => {
    if (!userVisibleOnly || applicationServerKey.length !== 87) throw new Error("not as browsers want it");
    const plain = atob(applicationServerKey.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(plain, (each) => each.charCodeAt(0));
    present = {
      options: { applicationServerKey: bytes.buffer },
      toJSON: () => ({ endpoint: "https://push.example/send/one", expirationTime: null, keys }),
      unsubscribe: async () => ((present = null), true),
    };
    return present;
  };
})()"""
# The headless browser refuses to show notifications: this keeps what the worker wanted to show.
DESKTOP = """() => {
  self.desktop = [];
  self.registration.showNotification = async (title, options) => self.desktop.push({ title, ...options });
}"""


@pytest_asyncio.fixture(loop_scope="session")
async def pushing_house(ready_sqlite_url: str) -> AsyncGenerator[House]:
    """A house in which agents live, and that can notify browsers."""
    async with (
        open_world(ready_sqlite_url, pace=UNHURRIED) as world,
        Outbound() as outbound,
        served_to_browsers(world, push=pusher(world.denizen, outbound)) as house,
        world.denizen.living(),
    ):
        yield house


async def turn_on_with_push_service(hers: Visitor) -> Page:
    await hers.context.add_init_script(SUBSCRIBING % json.dumps(Browser().keys))
    return await turn_on(hers)


async def subscribe(hers: Visitor) -> Page:
    """The page has subscribed: before, the worker has no key to answer with, and is sent nothing to answer."""
    page = await turn_on_with_push_service(hers)
    await expect(page.get_by_label(SWITCH)).to_be_checked()
    return page


@pytest.mark.parametrize(("size", "colors"), [(PHONE, "light"), (WIDE, "dark")])
async def test_the_account_page_turns_it_on_and_off(
    pushing_house: House, visit: Visit, size: ViewportSize, colors: Literal["light", "dark"]
) -> None:
    noor = await pushing_house.world.person("Noor")
    hers = await visit(noor, at=pushing_house, size=size, color_scheme=colors, new_context=True)
    page = await subscribe(hers)
    switch = page.get_by_label(SWITCH)
    await hers.check_accessibility()
    async with page.expect_response("**/api/push/subscriptions/*") as ended:
        await switch.click()
    assert (await (await ended.value).finished()) is None
    assert (await ended.value).status == 204
    await expect(switch).not_to_be_checked()
    async with page.expect_response("**/api/push/subscriptions") as begun:
        await switch.click()
    assert (await begun.value).status == 201
    await expect(switch).to_be_checked()


async def test_a_server_without_web_push_says_so(house: House, visit: Visit) -> None:
    page = await turn_on_with_push_service(await visit(await house.world.person("Noor"), new_context=True))
    await expect(page.get_by_text("Web push is switched off on this server.")).to_be_visible()
    await expect(page.get_by_label(SWITCH)).to_be_disabled()


async def worker_of(hers: Visitor) -> Worker:
    while not (workers := hers.context.service_workers):
        await hers.context.wait_for_event("serviceworker")
    await workers[0].evaluate(DESKTOP)
    return workers[0]


async def leave(hers: Visitor) -> None:
    """She is at a page elsewhere."""
    await hers.page.goto("about:blank")
    hers.complaints.clear()  # the scripts of the tests are for pages of the house


async def deliver(hers: Visitor, news: dict[str, Any]) -> None:
    """As the push service of the browser would."""
    devtools = await hers.context.new_cdp_session(hers.page)
    found: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def registered(event: dict[str, Any]) -> None:
        for each in event["registrations"]:
            if each["scopeURL"].startswith(hers.house.address) and not found.done():
                found.set_result(each["registrationId"])

    devtools.on("ServiceWorker.workerRegistrationUpdated", registered)
    await devtools.send("ServiceWorker.enable")
    message = {"origin": hers.house.address, "registrationId": await found, "data": json.dumps(news)}
    await devtools.send("ServiceWorker.deliverPushMessage", message)


async def desktop(worker: Worker, count: int) -> list[dict[str, Any]]:
    while len(found := await worker.evaluate("() => self.desktop")) < count:  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    return found


async def asked_about_tea(pushing_house: House, visit: Visit) -> tuple[Entity, Space, Visitor, Worker, Call]:
    """Ada has asked Noor, whose browser is subscribed, whether to make tea."""
    world = pushing_house.world
    noor = await world.person("Noor")
    ask = call("confirm_action", question="Shall I make tea?")
    ada = await world.agent("Ada", ask, reply("Tea it is."), "Made tea.", tools=[CONFIRM])
    kitchen = await world.space("Kitchen", noor, ada)
    hers = await visit(noor, at=pushing_house, new_context=True)
    await subscribe(hers)
    worker = await worker_of(hers)
    await world.say(noor, "Anything to do?", kitchen)
    await world.run()
    [asked] = await world.denizen.calls.waiting(noor)
    return noor, kitchen, hers, worker, asked


async def test_a_question_is_answered_while_no_page_is_open(pushing_house: House, visit: Visit) -> None:
    world = pushing_house.world
    noor, kitchen, hers, worker, asked = await asked_about_tea(pushing_house, visit)
    await leave(hers)
    news = {"tag": asked.id, "title": "Ada asks", "body": "Shall I make tea?", "path": "/", "call": asked.id}
    await deliver(hers, news)
    [shown] = await desktop(worker, 1)
    assert (shown["title"], shown["body"], shown["tag"]) == ("Ada asks", "Shall I make tea?", asked.id)
    assert [each["title"] for each in shown["actions"]] == ["Confirm", "Decline"]
    await worker.evaluate("data => clicked('confirm', data)", shown["data"])
    assert await world.denizen.calls.waiting(noor) == []
    await world.run()
    assert (await world.transcript(kitchen))[-1] == "Ada: Tea it is."

    await worker.evaluate("data => clicked('confirm', data)", shown["data"])
    [_, failed] = await desktop(worker, 2)
    assert failed["title"] == "Your answer was not sent"


async def test_a_question_is_answered_while_the_browser_has_frozen_the_page(pushing_house: House, visit: Visit) -> None:
    """Browsers freeze pages that nobody looks at, and list those that are being closed: neither hears anything."""
    world = pushing_house.world
    noor, kitchen, hers, worker, asked = await asked_about_tea(pushing_house, visit)
    devtools = await hers.context.new_cdp_session(hers.page)
    await devtools.send("Page.setWebLifecycleState", {"state": "frozen"})
    await worker.evaluate("data => clicked('confirm', data)", {"path": "/", "call": asked.id})
    assert await worker.evaluate("() => self.desktop") == []
    assert await world.denizen.calls.waiting(noor) == []
    await devtools.send("Page.setWebLifecycleState", {"state": "active"})
    await world.run()
    assert (await world.transcript(kitchen))[-1] == "Ada: Tea it is."


async def test_whoever_looks_at_a_page_is_not_told_twice(pushing_house: House, visit: Visit) -> None:
    hers = await visit(await pushing_house.world.person("Noor"), at=pushing_house, new_context=True)
    page = await subscribe(hers)
    worker = await worker_of(hers)
    news = {"tag": "1", "title": "Sam in Kitchen", "body": "Tea?", "path": "/me", "call": None}
    await page.bring_to_front()
    await worker.evaluate("news => pushed({ json: () => news })", news)
    assert await worker.evaluate("() => self.desktop") == []
    await leave(hers)
    await deliver(hers, news)
    assert [each["actions"] for each in await desktop(worker, 1)] == [[]]
