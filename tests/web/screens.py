"""Every screen of the web client, in the house in the pictures: what is shown there, and how one gets there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from playwright.async_api import Locator, Page, expect

from tests.web.pictured import Pictured

Go = Callable[[Page], Awaitable[object]]


@dataclass(frozen=True)
class Screen:
    """Where it is, what is done there, and what is to be seen then."""

    path: Callable[[Pictured], str]
    told: str
    go: Go | None = None


async def show(screen: Screen, page: Page, pictured: Pictured) -> None:
    """The page shows it, and all of it was read."""
    await page.goto(f"{pictured.house.address}{screen.path(pictured)}")
    await come_to(screen, page)


async def come_to(screen: Screen, page: Page) -> None:
    """The same, where the page has been led there already."""
    if screen.go is not None:
        await screen.go(page)
    await expect(page.get_by_text(screen.told).locator("visible=true").first).to_be_visible()
    await expect(page.get_by_role("status", name="Loading")).to_have_count(0)
    await page.evaluate("() => document.fonts.ready")


def _mind(tab: str, who: str = "ada") -> Callable[[Pictured], str]:
    return lambda _: f"/agents/@{who}/{tab}"


def _at(path: str) -> Callable[[Pictured], str]:
    return lambda _: path


async def _scroll_to(place: Locator) -> None:
    # Only the list: what stands around it stays.
    await place.evaluate("element => { element.closest('[tabindex]').scrollTop = element.offsetTop - 16 }")


async def _picture(page: Page) -> None:
    picture = await page.get_by_role("img", name="Latency by day").element_handle()
    await page.wait_for_function("each => each.complete && each.naturalWidth > 0", arg=picture)


async def _vote(page: Page) -> None:
    vote = page.get_by_role("region", name="Vote: Sign the lease by Friday?")
    await vote.get_by_text("Leading: wait").wait_for()
    await _scroll_to(vote)


async def _advisors(page: Page) -> None:
    await page.get_by_role("button", name="Advisors: 5").click()


async def _minds(page: Page) -> None:
    # There is something to open once it is known how they stand.
    await page.get_by_role("button", name="State of mind of Martin Buber").last.wait_for()
    await page.get_by_role("button", name="Panel menu").click()
    await page.get_by_role("menuitem", name="States of mind").press("Enter")


async def _mind_of_one(page: Page) -> None:
    await page.get_by_role("button", name="State of mind of Martin Buber").last.click()


async def _search(page: Page) -> None:
    await page.get_by_label("Words").fill("violin")
    await page.get_by_role("button", name="Search").click()


async def _template(page: Page) -> None:
    await page.get_by_text("Reviewer").click()


async def _lines(page: Page) -> None:
    await page.get_by_role("button", name="One line per cycle").click()


async def _summary(page: Page) -> None:
    await page.get_by_role("button", name="Space menu").click()
    await page.get_by_role("menuitem", name="Conversation summary").click()


async def _by_agent(page: Page) -> None:
    await page.get_by_role("tab", name="By agent").click()
    await page.locator(".uplot").wait_for()


async def _palette(page: Page) -> None:
    await page.get_by_role("heading", level=1).wait_for()
    await page.keyboard.press("Control+k")
    await page.get_by_role("option").first.wait_for()


SCREENS: Final[dict[str, Screen]] = {
    "conversation": Screen(lambda house: f"/s/{house.release.id}", "Shall I deploy", _picture),
    "palette": Screen(_at("/agents"), "Kitchen", _palette),
    "search": Screen(_at("/search"), "behind the skis", _search),
    "panel": Screen(lambda house: f"/panels/{house.board.id}?m=1", "Leading: wait"),
    "vote": Screen(lambda house: f"/panels/{house.board.id}", "Leading: wait", _vote),
    "advisors": Screen(lambda house: f"/panels/{house.board.id}", "New advisor", _advisors),
    "minds": Screen(lambda house: f"/panels/{house.board.id}", "Explain the margin", _minds),
    "advisor-mind": Screen(lambda house: f"/panels/{house.board.id}", "go on like this", _mind_of_one),
    "agents": Screen(_at("/agents"), "Answers technical questions"),
    "new-agent": Screen(_at("/agents/new"), "Mentioned as @vera", _template),
    "mind-now": Screen(_mind("now", "bo"), "Shall I deploy"),
    "mind-life": Screen(_mind("life"), "Took on the release notes"),
    "mind-cycle": Screen(_mind("life/1"), "noted it"),
    "mind-window": Screen(_mind("window"), "Cycles that left the window", _lines),
    "mind-inbox": Screen(_mind("inbox"), "An unreadable report"),
    "mind-plans": Screen(_mind("plans"), "Morning round"),
    "mind-recall": Screen(_mind("recall?q=violin"), "behind the skis"),
    "mind-memories": Screen(_mind("memories"), "Mia has 2 cats."),
    "mind-stances": Screen(_mind("stance", "vera"), "encouraging"),
    "mind-stance": Screen(lambda house: f"/agents/@vera/stance/{house.thesis.id}", "go on like this"),
    "mind-settings": Screen(_mind("settings"), "Heartbeat"),
    "memory": Screen(_at("/memory/you"), "tea with milk"),
    "summary": Screen(lambda house: f"/s/{house.kitchen.id}", "household", _summary),
    "me": Screen(_at("/me"), "Sessions and tokens"),
    "admin-people": Screen(_at("/admin/people"), "Zoë Brandt"),
    "admin-tokens": Screen(_at("/admin/tokens"), "Backup script"),
    "admin-models": Screen(_at("/admin/models"), "Found on this machine"),
    "admin-keys": Screen(_at("/admin/keys"), "ends in Qr7A"),
    "admin-budgets": Screen(_at("/admin/budgets"), "of $5.00"),
    "admin-usage": Screen(_at("/admin/usage"), "Together", _by_agent),
    "admin-memory": Screen(_at("/admin/memory"), "contradiction"),
    "admin-health": Screen(_at("/admin/health"), "Instances"),
    "admin-settings": Screen(_at("/admin/settings"), "Who can create spaces"),
    "admin-audit": Screen(_at("/admin/audit"), "created an access token for"),
    "admin-forgetting": Screen(_at("/admin/forgetting"), "Preview"),
}
