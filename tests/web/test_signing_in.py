"""Coming in, and going: with a token, with a link, and out again."""

from __future__ import annotations

import asyncio
import re

import pytest
from playwright.async_api import Route, ViewportSize, expect

from tests.server.conftest import House
from tests.server.test_provider_sign_in import house_with, real_provider, tell_provider
from tests.web.conftest import PHONE, WIDE, SharedBrowser, Visit, visiting
from tests.world import UNHURRIED, open_world


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


async def test_a_link_signs_in_once_and_leaves_no_trace_in_the_address(house: House, visit: Visit) -> None:
    noor = await house.world.person("Noor")
    await house.world.space("Kitchen", noor)
    login = (await house.call("POST", "/api/logins", noor, json={})).json()
    hers, thief = await visit(noor, signed_in=False), await visit(noor, signed_in=False)

    # A server that is busy has not used it up: it can be sent again.
    await hers.page.route("**/api/session", lambda route: route.fulfill(status=503, body="busy"), times=1)
    page = await hers.open(f"/login#{login['secret']}")
    await expect(page.get_by_role("alert")).to_contain_text("The server sent an unexpected answer (503).")
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("heading", name="Kitchen", level=1)).to_be_visible()
    assert login["secret"] not in page.url
    # A newcomer types, and is heard.
    await expect(page.get_by_label("Message to Kitchen")).to_be_focused()
    await page.keyboard.type("Hello")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("article", name="Noor: Hello")).to_be_visible()
    other = await thief.open(f"/login#{login['secret']}")
    await expect(other.get_by_role("alert")).to_contain_text("This link was already used")

    await page.get_by_role("button", name="You").click()
    await page.get_by_role("menuitem", name="Sign out").click()
    await expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    await hers.open("/me")
    await expect(page.get_by_role("button", name="Sign in")).to_be_visible()


async def test_the_first_page_asks_nothing_that_is_refused(house: House, visit: Visit) -> None:
    """Each refusal is an error in the console of the browser, and made people look for what was wrong."""
    visitor = await visit(await house.world.person("Noor"), signed_in=False)
    refused: list[str] = []
    visitor.page.on("response", lambda answer: refused.append(answer.url) if answer.status >= 400 else None)
    page = await visitor.open("/")
    await expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    assert refused == []


async def test_a_browser_without_cookies_is_told_so(house: House, visit: Visit) -> None:
    """The link was good: saying that it was used already would send people round in circles."""
    noor = await house.world.person("Noor")
    login = (await house.call("POST", "/api/logins", noor, json={})).json()
    hers = await visit(noor, signed_in=False)

    async def without_cookies(route: Route) -> None:
        await hers.context.clear_cookies()
        asked = {name: value for name, value in route.request.headers.items() if name != "cookie"}
        await route.fulfill(response=await route.fetch(headers=asked))

    await hers.context.route("**/api/me", without_cookies)
    page = await hers.open(f"/login#{login['secret']}")
    await expect(page.get_by_role("alert")).to_contain_text("Allow cookies for this address")
    await hers.check_accessibility()
    hers.complaints.clear()  # the browser logs the 401


async def test_ones_own_page_tells_who_one_is_and_keeps_the_tokens(house: House, visit: Visit) -> None:
    noor = await house.world.person("Noor")
    hers = await visit(noor, color_scheme="dark")
    page = await hers.open("/me")
    await expect(page.get_by_text("@noor · owner of Home")).to_be_visible()
    await hers.check_accessibility()

    await page.get_by_role("button", name="New token").click()
    dialog = page.get_by_role("dialog", name="New token")
    await dialog.get_by_label("Purpose").fill("Backup script")
    await dialog.get_by_role("button", name="Create token").click()
    secret = await page.get_by_label("Secret", exact=True).input_value()
    # It is shown only once: a press beside it does not close it.
    await page.mouse.click(5, 5)
    await expect(page.get_by_label("Secret", exact=True)).to_be_visible()
    answer = await house.call("GET", "/api/me", headers={"Authorization": f"Bearer {secret}"})
    assert answer.json()["role"] == "member"
    await hers.check_accessibility()
    await page.get_by_role("button", name="Done").click()
    await page.get_by_role("button", name="Actions for Backup script").click()
    await page.get_by_role("menuitem", name="Replace secret").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("The old secret stops working at once.")
    await dialog.get_by_role("button", name="Cancel").click()
    await page.get_by_role("button", name="Actions for Backup script").click()
    await page.get_by_role("menuitem", name="Revoke").click()
    await expect(dialog).to_contain_text("Programs that use it lose access at once. This cannot be undone.")
    await page.route("**/api/tokens/*", lambda route: route.fulfill(status=500, body="no"), times=1)
    await dialog.get_by_role("button", name="Revoke").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("The server sent an unexpected answer (500).")
    await dialog.get_by_role("button", name="Revoke").click()
    await expect(page.get_by_text("Backup script")).to_have_count(0)
    answer = await house.call("GET", "/api/me", headers={"Authorization": f"Bearer {secret}"})
    assert answer.status_code == 401

    # Dark by the system, light by the switch, and it stays so.
    assert await page.evaluate("document.documentElement.dataset.theme") == "dark"
    await page.get_by_role("button", name="Colours").click()
    await page.get_by_role("menuitem", name="Light").click()
    await page.reload()
    await expect(page.get_by_text("@noor · owner of Home")).to_be_visible()
    assert await page.evaluate("document.documentElement.dataset.theme") == "light"


async def test_a_server_on_another_port_is_sent_the_cookie_and_can_do_nothing_with_it(
    house: House, visit: Visit
) -> None:
    """Cookies do not tell ports apart. Without the key in the storage of our pages, the cookie opens nothing."""
    noor = await house.world.person("Noor")
    kitchen = await house.world.space("Kitchen", noor)
    hers = await visit(noor)
    page = await hers.open("/")
    await expect(page.get_by_role("heading", name="Kitchen", level=1)).to_be_visible()
    stolen: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        if not stolen.done():
            stolen.set_result("".join(re.findall(r"(?im)^cookie: (.*)\r$", head)))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as other:
        await page.goto(f"http://127.0.0.1:{other.sockets[0].getsockname()[1]}/")
        cookie = await stolen
        assert "dzs_" in cookie, "the browser sends it"
        assert await page.evaluate("localStorage.getItem('page key')") is None
        replayed = {"Cookie": cookie, "Origin": house.address, "Sec-Fetch-Site": "same-origin"}
        for method, path in [
            ("GET", "/api/me"),
            ("POST", "/api/tokens"),
            ("GET", f"/api/spaces/{kitchen.id}/messages"),
        ]:
            refused = await house.call(method, path, headers=replayed, json={"name": "x"} if method == "POST" else None)
            assert refused.status_code == 401
    await hers.open("/")
    await expect(page.get_by_role("heading", name="Kitchen", level=1)).to_be_visible()


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
async def test_people_sign_in_at_an_identity_provider(browser: SharedBrowser, size: ViewportSize) -> None:
    """By a button, at the provider's own page and back; and out again."""
    async with open_world("sqlite://", pace=UNHURRIED) as world, real_provider() as provider:
        olga = await world.person("Olga")
        await tell_provider(provider, "alice@example.com", name="Alice", preferred_username="alice")
        async with (
            house_with(world, provider, create_people=True, label="Example") as house,
            visiting(browser, house, olga, signed_in=False, size=size, color_scheme="dark", new_context=True) as hers,
        ):
            page = await hers.open("/login")
            button = page.get_by_role("link", name="Sign in with Example")
            await expect(button).to_be_visible()
            await hers.check_accessibility()
            await button.click()
            await page.locator("input[name=sub]").fill("alice@example.com")
            await page.keyboard.press("Enter")
            await expect(page.get_by_text("No spaces yet.")).to_be_visible()
            await hers.open("/me")
            await expect(page.get_by_text("@alice · member of Home")).to_be_visible()
