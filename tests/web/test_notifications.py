"""Notifications of the browser, the number in the title, and the page without a connection."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from playwright.async_api import Page, expect

from denizen import call, reply, scripted
from denizen.tools.settings import ClientTool
from tests.server.conftest import House
from tests.web.conftest import PHONE, WIDE, Visit, Visitor
from tests.web.test_conversation import write

LOOK_AWAY = """() => {
  document.hasFocus = () => false;
  window.dispatchEvent(new Event("blur"));
}"""
LOOK_BACK = """() => {
  document.hasFocus = () => true;
  window.dispatchEvent(new Event("focus"));
}"""
# The headless browser refuses every notification, whatever was permitted: this is what would be on the desktop.
DESKTOP = """(() => {
  let desktop = [];
  const close = (one) => (desktop = desktop.filter((each) => each !== one));
  Object.defineProperty(Notification, "permission", { get: () => localStorage.getItem("permitted") ?? "default" });
  Notification.requestPermission = async () => (localStorage.setItem("permitted", "granted"), "granted");
  ServiceWorkerRegistration.prototype.showNotification = async (title, options) => {
    const one = { title, ...options, close: () => close(one) };
    desktop = [...desktop.filter((each) => each.tag !== options.tag), one];
  };
  ServiceWorkerRegistration.prototype.getNotifications = async () => desktop;
  navigator.setAppBadge = async (count) => (self.badge = count);
  navigator.clearAppBadge = async () => (self.badge = 0);
})()"""
SHOWN = """async () => {
  const registration = await navigator.serviceWorker.ready;
  const shown = await registration.getNotifications();
  return shown.map(({ title, body, data, actions }) => [title, body, data, actions.map((each) => each.title)]);
}"""


async def turn_on(hers: Visitor) -> Page:
    await hers.context.add_init_script(DESKTOP)
    page = await hers.open("/me")
    await page.get_by_role("button", name="Turn on notifications").click()
    await expect(page.get_by_role("button", name="Turn off notifications")).to_be_visible()
    await page.evaluate("async () => { await navigator.serviceWorker.ready; }")
    return page


async def shown(page: Page, count: int) -> list[list[Any]]:
    while len(found := await page.evaluate(SHOWN)) != count:  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    return found


@pytest.mark.parametrize("where", ["wide, light", "phone, dark"])
async def test_a_mention_is_told_while_nobody_looks(house: House, visit: Visit, where: str) -> None:
    world = house.world
    noor, sam = await world.person("Noor", handle="noor"), await world.person("Sam")
    kitchen = await world.space("Kitchen", noor, sam)
    dark = where == "phone, dark"
    hers = await visit(noor, size=PHONE if dark else WIDE, color_scheme="dark" if dark else "light", new_context=True)
    page = await turn_on(hers)
    await hers.check_accessibility()
    await hers.turn_to(f"/s/{kitchen.id}")
    await expect(page).to_have_title("Kitchen · Denizen")

    await page.evaluate(LOOK_AWAY)
    await world.say(sam, "Nobody in particular?", kitchen)
    message = await world.say(sam, "Tea, @noor?", kitchen)
    await expect(page).to_have_title("(1) Kitchen · Denizen")
    assert await page.evaluate("() => self.badge") == 1
    [[title, body, data, actions]] = await shown(page, 1)
    assert (title, body, actions) == ("Sam in Kitchen", "Tea, @noor?", [])
    assert data["path"] == f"/s/{kitchen.id}/m/{message.seq}"

    await page.evaluate(LOOK_BACK)
    await expect(page).to_have_title("Kitchen · Denizen")
    assert await page.evaluate("() => self.badge") == 0
    await shown(page, 0)
    await world.say(sam, "And now, @noor?", kitchen)
    await expect(page.get_by_role("article", name="Sam: And now, @noor?")).to_be_visible()
    assert await page.evaluate(SHOWN) == []


async def test_an_answer_one_waited_for_is_told_and_leads_back(house: House, visit: Visit) -> None:
    world = house.world
    noor = await world.person("Noor")
    ada = await world.agent("Ada", model=scripted(reply("It is four."), "Done."))
    kitchen = await world.space("Kitchen", noor, ada)
    hers = await visit(noor, new_context=True)
    page = await turn_on(hers)
    await hers.turn_to(f"/s/{kitchen.id}")
    await page.evaluate(LOOK_AWAY)
    await write(page, "What time is it?")
    [[title, body, data, _]] = await shown(page, 1)
    assert (title, body) == ("Ada in Kitchen", "It is four.")

    await hers.turn_to("/agents")
    [worker] = hers.context.service_workers
    await worker.evaluate("data => clicked('', data)", data)
    await expect(page.get_by_role("article", name="Ada: It is four.")).to_be_visible()


@pytest.mark.parametrize("keeps", [True, False])
async def test_a_question_is_answered_from_its_notification(house: House, visit: Visit, keeps: bool) -> None:
    """It is shown as well where the browser keeps nothing for the worker, as in a private window."""
    world = house.world
    noor = await world.person("Noor")
    confirm = ClientTool(
        name="confirm_action",
        description="Ask before you do something.",
        parameters={"type": "object", "properties": {"question": {"type": "string"}}, "required": ["question"]},
    )
    ask = call("confirm_action", question="Shall I make tea?")
    ada = await world.agent("Ada", ask, reply("Tea it is."), "Made tea.", tools=[confirm])
    kitchen = await world.space("Kitchen", noor, ada)
    hers = await visit(noor, new_context=True)
    page = await turn_on(hers)
    await hers.turn_to(f"/s/{kitchen.id}")
    await page.evaluate(LOOK_AWAY)
    if not keeps:
        await page.evaluate("() => { caches.open = () => Promise.reject(new Error('not allowed')); }")
    await write(page, "Anything to do?")
    [[title, body, data, actions]] = await shown(page, 1)
    assert (title, body, actions) == ("Ada asks", "Shall I make tea?", ["Confirm", "Decline"])
    if keeps:
        [worker] = hers.context.service_workers
        await worker.evaluate("data => clicked('confirm', data)", data)
        await expect(page.get_by_text("answered by you")).to_be_visible()


async def test_the_page_opens_without_a_connection(house: House, visit: Visit) -> None:
    world = house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    kitchen = await world.space("Kitchen", noor, sam)
    hers = await visit(noor, new_context=True)
    page = await turn_on(hers)
    await page.reload()  # by the service worker, which keeps it
    await expect(page.get_by_role("heading", name="You", level=1)).to_be_visible()
    house.stop.set()
    await page.goto(f"{house.address}/s/{kitchen.id}")
    await expect(page.get_by_text("connection").first).to_be_visible()


async def test_a_file_that_was_opened_is_never_kept_as_the_page(house: House, visit: Visit) -> None:
    """Anybody may send HTML, which a browser only downloads."""
    world = house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    kitchen = await world.space("Kitchen", noor, sam)
    sent = await house.call("POST", "/api/files", sam, files={"file": ("note.html", b"<p>Not the page", "text/html")})
    await house.say(sam, "A note", kitchen, files=[sent.json()["id"]])
    link = (await house.call("GET", f"/api/files/{sent.json()['id']}/link", noor)).json()["url"]
    hers = await visit(noor, new_context=True)
    page = await turn_on(hers)
    await page.reload()  # by the service worker, which keeps it
    async with page.expect_download():
        await page.evaluate("(address) => { location.href = address; }", link)
    house.stop.set()
    await page.goto(f"{house.address}/s/{kitchen.id}")
    await expect(page.get_by_text("connection").first).to_be_visible()


async def test_the_page_can_be_installed(house: House, visit: Visit) -> None:
    hers = await visit(await house.world.person("Noor"))
    page = await hers.open("/")
    devtools = await hers.context.new_cdp_session(page)
    manifest = await devtools.send("Page.getAppManifest")
    assert manifest["url"].endswith("/manifest.webmanifest")
    assert manifest["errors"] == []
    sizes = (
        "async src => { const image = new Image(); image.src = src; await image.decode(); return image.naturalWidth; }"
    )
    assert [await page.evaluate(sizes, f"/icon-{size}.png") for size in (192, 512)] == [192, 512]
