"""People at a browser: a real Chromium, the real server in this process, agents that think with scripted models.

Tests here share one event loop and one browser; each has its own house, and each visitor a context of their own, which
is closed at the end. Whatever a page logs as an error, and whatever its Content-Security-Policy stops, fails the test.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, expect

from denizen.spaces.directory import Entity
from hatch_build import build, is_outdated
from tests.browser import open_browser
from tests.server.conftest import House, served
from tests.servers import exclusive_lock
from tests.world import UNHURRIED, open_world

ROOT = Path(__file__).parent.parent.parent
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
WIDE = {"width": 1280, "height": 800}
PHONE = {"width": 360, "height": 740}
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


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser(_web_client: None) -> AsyncGenerator[Browser]:
    async with open_browser() as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="session")
async def house(ready_sqlite_url: str) -> AsyncGenerator[House]:
    """A house in which agents live, with its door open."""
    async with (
        open_world(ready_sqlite_url, pace=UNHURRIED) as world,
        served(world) as house,
        world.denizen.living(),
    ):
        yield house


@pytest_asyncio.fixture(loop_scope="session")
async def visit(browser: Browser, house: House) -> AsyncGenerator[Visit]:
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
    browser: Browser,
    house: House,
    who: Entity,
    *,
    signed_in: bool = True,
    first_start: bool = False,
    size: dict[str, int] = WIDE,
    **options: Any,
) -> AsyncGenerator[Visitor]:
    """Someone at a browser, until the end. Unless it is a `first_start`, they know that agents have the demo model."""
    settings: Any = {
        "viewport": size,
        "locale": "en-GB",
        "timezone_id": "Europe/Berlin",
        "reduced_motion": "reduce",  # what fades in is half as dark as it will be, and axe would measure that
        **options,
    }
    context = await browser.new_context(**settings)
    try:
        if not first_start:
            await context.add_init_script("localStorage.setItem('connect a model: dismissed', 'yes')")
        if signed_in:
            answer = await context.request.post(f"{house.address}/api/session", data={"secret": await house.token(who)})
            assert answer.ok, await answer.text()
            key = (await answer.json())["page_key"]
            await context.add_init_script(keep_page_key(house.address, key))
        page = await context.new_page()
        visitor = Visitor(house, who, context, page)
        page.on("pageerror", lambda error: visitor.complaints.append(str(error)))
        page.on("console", lambda said: _listen(visitor, said.type, said.text))
        yield visitor
    finally:
        await context.close()


def keep_page_key(address: str, key: str) -> str:
    """A script for pages of the house: they know the half of the session's secret that is not in the cookie, unless
    somebody has signed in or out there since."""
    known = f"localStorage.setItem('page key', {key!r}); localStorage.setItem('visited', '1')"
    return f"if (location.origin === {address!r} && !localStorage.getItem('visited')) {{ {known} }}"


def _listen(visitor: Visitor, kind: str, text: str) -> None:
    # The browser itself logs every answer that is an error, and that a connection broke: that is for the page to tell.
    if kind == "error" and not text.startswith("Failed to load resource"):
        visitor.complaints.append(text)
