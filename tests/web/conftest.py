"""People at a browser: a real Chromium, the real server in this process, agents that think with scripted models.

Tests here share one event loop and one browser; each test has its own server and database. Each visitor has a browser
context to themselves, with empty storage, and a new page (`SharedBrowser`). Whatever a page logs as an error, and
whatever its Content-Security-Policy stops, fails the test.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from socket import socket
from typing import Any, Final, Literal

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, CDPSession, Page, ViewportSize, expect

from denizen.errors import PortTaken
from denizen.server.serving import bind
from denizen.spaces.directory import Entity
from hatch_build import build, is_outdated
from tests.browser import open_browser
from tests.server.conftest import House, served
from tests.servers import exclusive_lock
from tests.world import UNHURRIED, World, open_world

ROOT = Path(__file__).parent.parent.parent
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
WIDE: Final[ViewportSize] = {"width": 1280, "height": 800}
PHONE: Final[ViewportSize] = {"width": 360, "height": 740}
_CONTEXT_OPTIONS: Final[dict[str, Any]] = {
    "viewport": WIDE,
    "locale": "en-GB",
    "timezone_id": "Europe/Berlin",
    "reduced_motion": "reduce",  # what fades in is half as dark as it will be, and axe would measure that
}
# Said in the page: what axe finds is long, and most of it is that all is well. What hinders nobody is not looked for.
_HINDRANCES = """async () => {
  const isMild = ({ impact }) => impact === "minor" || impact === "moderate";
  const rules = Object.fromEntries(axe._audit.rules.filter(isMild).map(({ id }) => [id, { enabled: false }]));
  // Nothing is loaded from elsewhere.
  const { violations } = await axe.run(document, { resultTypes: ["violations"], rules, preload: false });
  const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  const where = (nodes) => nodes.slice(0, 3).map(({ html }) => `  ${html.slice(0, 200)}`);
  return serious.map(({ id, help, nodes }) => [`${id}: ${help}`, ...where(nodes)].join("\\n"));
}"""
# Said in the page, after axe: the same few colours are read for every element, each time by a parser for all there are.
_REMEMBER_COLORS = """() => {
  const colors = axe.commons.color.Color.prototype;
  const parse = colors.parseString;
  const known = new Map();
  colors.parseString = function (text) {
    const { r, g, b, alpha } = known.get(text) ?? parse.call(this, text);
    known.set(text, { r, g, b, alpha });
    return Object.assign(this, { r, g, b, alpha });
  };
}"""
SECONDS = 15
"""A loaded machine draws slowly: this is how long something may take to be on the screen."""

expect.set_options(timeout=SECONDS * 1000)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here) and pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@dataclass
class Visitor:
    """Someone at a browser of their own. `page` is the tab they look at."""

    house: House
    who: Entity
    context: BrowserContext
    page: Page
    complaints: list[str] = field(default_factory=list)
    """What the page has logged as an error."""

    async def open(self, path: str = "/") -> Page:
        await self.page.goto(f"{self.house.address}{path}")
        return self.page

    async def turn_to(self, path: str) -> Page:
        """The client that is open leads there, as by a link of its own: nothing is loaded anew."""
        await turn_to(self.page, path)
        return self.page

    async def check_accessibility(self) -> None:
        """Nothing on the screen is a serious hindrance to anyone (axe)."""
        if not await self.page.evaluate("() => 'axe' in window"):
            await self.page.evaluate(AXE.read_text())
            await self.page.evaluate(_REMEMBER_COLORS)
        # What has just changed is drawn: a page half in the dark is hard to read for anyone.
        await self.page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        serious = await self.page.evaluate(_HINDRANCES)
        assert not serious, "\n".join(serious)


async def turn_to(page: Page, path: str) -> None:
    await page.evaluate("path => history.pushState(null, '', path)", path)


Visit = Callable[..., Awaitable[Visitor]]


@pytest.fixture(scope="session")
def _web_client(run_folder: Path) -> None:
    """It is built; `make test` has seen to it, whoever runs one test alone has not."""
    with exclusive_lock(run_folder / "web.lock"):
        if is_outdated(ROOT):
            build(ROOT)


@dataclass(frozen=True)
class _KeptContext:
    """A browser context that visitors use one after the other. `anchor` is a page that stays open, and with it the
    process that has compiled the web client."""

    context: BrowserContext
    anchor: Page
    devtools: CDPSession


class SharedBrowser:
    """The browser of all tests of a worker. It keeps contexts for later visitors, and empties them in between.

    A new context starts a new process, which loads and compiles the web client again. That takes more CPU than most
    tests need for everything else.
    """

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._unused: list[_KeptContext] = []

    @asynccontextmanager
    async def open_context(self, house: House, *, is_new: bool, **options: Any) -> AsyncGenerator[BrowserContext]:
        """An empty context until the end. Only a new one has an empty cache; one with `options` of its own is new."""
        if is_new or options:
            context = await self._browser.new_context(**_CONTEXT_OPTIONS | options)
            try:
                yield context
            finally:
                await context.close()
            return
        kept = self._unused.pop() if self._unused else await self._new_context(house)
        try:
            yield kept.context
            await _empty(kept, house)
        except BaseException:
            await kept.context.close()
            raise
        self._unused.append(kept)

    async def _new_context(self, house: House) -> _KeptContext:
        context = await self._browser.new_context(**_CONTEXT_OPTIONS)
        anchor = await context.new_page()
        await anchor.goto(f"{house.address}/icon.svg")
        return _KeptContext(context, anchor, await context.new_cdp_session(anchor))


async def _empty(kept: _KeptContext, house: House) -> None:
    """Undoes what a visitor can do to a context. What cannot be undone fails the test."""
    hours_off = abs(await kept.anchor.evaluate("Date.now()") / 1000 - time.time()) / 3600
    assert hours_off < 1, "A test that sets the clock of its browser needs a new_context."
    for page in kept.context.pages:
        if page is not kept.anchor:
            await page.close()
    await kept.context.unroute_all()
    await kept.context.set_offline(False)
    await kept.context.clear_permissions()
    await kept.devtools.send("Storage.clearDataForOrigin", {"origin": house.address, "storageTypes": "all"})


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser(_web_client: None) -> AsyncGenerator[SharedBrowser]:
    # Without this, each page has a process of its own, and none finds what another one has compiled.
    async with open_browser("--process-per-site") as browser:
        yield SharedBrowser(browser)


_last_port = 0


def _listen() -> socket:
    """Listens on the port of the last server if it is free: the browser has the files from there in its cache."""
    global _last_port
    try:
        listener = bind("127.0.0.1", _last_port)
    except PortTaken:
        listener = bind("127.0.0.1", 0)
    _last_port = listener.getsockname()[1]
    return listener


@asynccontextmanager
async def served_to_browsers(world: World, **more: Any) -> AsyncGenerator[House]:
    async with served(world, listener=_listen(), **more) as house:
        yield house


@pytest_asyncio.fixture(loop_scope="session")
async def house(ready_sqlite_url: str) -> AsyncGenerator[House]:
    """A house in which agents live, with its door open."""
    async with (
        open_world(ready_sqlite_url, pace=UNHURRIED) as world,
        served_to_browsers(world) as house,
        world.denizen.living(),
    ):
        yield house


@pytest_asyncio.fixture(loop_scope="session")
async def visit(browser: SharedBrowser, house: House) -> AsyncGenerator[Visit]:
    """`await visit(noor)`: she is signed in, at a browser of her own."""
    async with AsyncExitStack() as stack:
        visitors: list[Visitor] = []

        async def come(who: Entity, *, at: House = house, **options: Any) -> Visitor:
            visitor = await stack.enter_async_context(visiting(browser, at, who, **options))
            visitors.append(visitor)
            return visitor

        yield come
        complaints = [each for visitor in visitors for each in visitor.complaints]
        assert complaints == []


@asynccontextmanager
async def visiting(
    browser: SharedBrowser,
    house: House,
    who: Entity,
    *,
    signed_in: bool = True,
    first_start: bool = False,
    size: ViewportSize = WIDE,
    color_scheme: Literal["light", "dark"] = "light",
    reduced_motion: Literal["reduce", "no-preference"] = "reduce",
    new_context: bool = False,
    **options: Any,
) -> AsyncGenerator[Visitor]:
    """Someone at a browser, until the end. Unless it is a `first_start`, they know that agents have the demo model.

    Ask for a `new_context` to set the clock, to add a script to the context (rather than to the page), or where it
    matters that the browser has never loaded the web client.
    `options` are those of `Browser.new_context`.
    """
    async with browser.open_context(house, is_new=new_context, **options) as context, AsyncExitStack() as scripts:
        page = await context.new_page()
        if size != WIDE:
            await page.set_viewport_size(size)
        if (color_scheme, reduced_motion) != ("light", "reduce"):
            await page.emulate_media(color_scheme=color_scheme, reduced_motion=reduced_motion)
        if not first_start:
            # A frame without an origin has no storage.
            dismissed = "if (self.origin !== 'null') localStorage.setItem('connect a model: dismissed', 'yes')"
            await scripts.enter_async_context(await context.add_init_script(dismissed))
        if signed_in:
            # Once more where the connection to the server before this one was kept, and is closed.
            answer = await context.request.post(
                f"{house.address}/api/session", data={"secret": await house.token(who)}, max_retries=1
            )
            assert answer.ok, await answer.text()
            key = (await answer.json())["page_key"]
            await scripts.enter_async_context(await context.add_init_script(keep_page_key(house.address, key)))
        visitor = Visitor(house, who, context, page)
        page.on("pageerror", lambda error: visitor.complaints.append(str(error)))
        page.on("console", lambda said: _listen_to(visitor, said.type, said.text))
        yield visitor


def keep_page_key(address: str, key: str) -> str:
    """A script for pages of the house: they know the half of the session's secret that is not in the cookie, unless
    somebody has signed in or out there since."""
    known = f"localStorage.setItem('page key', {key!r}); localStorage.setItem('visited', '1')"
    return f"if (self.origin === {address!r} && !localStorage.getItem('visited')) {{ {known} }}"


def _listen_to(visitor: Visitor, kind: str, text: str) -> None:
    # The browser itself logs every answer that is an error, and that a connection broke: that is for the page to tell.
    if kind == "error" and not text.startswith("Failed to load resource"):
        visitor.complaints.append(text)
