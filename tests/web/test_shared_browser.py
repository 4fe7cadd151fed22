"""Visitors share browser contexts, one after the other, and find nothing of those before them."""

from __future__ import annotations

import pytest
from playwright.async_api import BrowserContext, Route

from tests.server.conftest import House
from tests.web.conftest import PHONE, SharedBrowser, visiting

STATE = """async () => ({
  online: navigator.onLine,
  cookies: document.cookie,
  stored: Object.entries(localStorage),
  scripted: window.scripted,
  clipboard: (await navigator.permissions.query({ name: "clipboard-read" })).state,
  dark: matchMedia("(prefers-color-scheme: dark)").matches,
  still: matchMedia("(prefers-reduced-motion: reduce)").matches,
  width: innerWidth,
})"""
CLEAN = {
    "online": True,
    "cookies": "",
    "stored": [],
    "scripted": None,
    "clipboard": "prompt",
    "dark": False,
    "still": True,
    "width": 1280,
}


async def test_a_visitor_finds_nothing_that_an_earlier_one_left(house: House, browser: SharedBrowser) -> None:
    noor, sam = await house.world.person("Noor"), await house.world.person("Sam")
    contexts: list[BrowserContext] = []

    async def refuse(route: Route) -> None:
        await route.abort()

    async with visiting(browser, house, noor, size=PHONE, color_scheme="dark", reduced_motion="no-preference") as hers:
        contexts.append(hers.context)
        await hers.page.add_init_script("window.scripted = 1")
        page = await hers.open("/icon.svg")
        await page.evaluate("document.cookie = 'taste=sweet'")
        await page.evaluate("localStorage.setItem('draft', 'Tea?')")
        await hers.context.grant_permissions(["clipboard-read"])
        await hers.context.route("**/*", refuse)
        await hers.context.set_offline(True)
        left = await page.evaluate(STATE)
        assert all(left[key] != value for key, value in CLEAN.items()), left
        assert await hers.context.cookies() != []
        assert {"page key", "connect a model: dismissed"} <= {name for name, _ in left["stored"]}

    async with visiting(browser, house, sam, signed_in=False, first_start=True) as his:
        contexts.append(his.context)
        page = await his.open("/icon.svg")
        assert await page.evaluate(STATE) == CLEAN
        assert await his.context.cookies() == []
    assert contexts[0] is contexts[1]


async def test_a_test_that_sets_the_clock_of_a_shared_context_fails(house: House, browser: SharedBrowser) -> None:
    noor = await house.world.person("Noor")
    with pytest.raises(AssertionError, match="new_context"):
        async with visiting(browser, house, noor) as hers:
            await hers.page.clock.set_fixed_time(0)
    async with visiting(browser, house, noor, new_context=True) as hers:
        await hers.page.clock.set_fixed_time(0)
