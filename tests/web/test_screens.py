"""Every screen is for everyone: light and dark, wide and on a phone."""

from __future__ import annotations

from pathlib import Path

import pytest

from denizen.clock import moment
from tests.web.conftest import PHONE, SharedBrowser, visiting
from tests.web.pictured import a_pictured_house
from tests.web.screens import SCREENS, come_to

_OVERFLOWING = """
[...document.querySelectorAll("main *, dialog *")]
  .filter((each) => each.getBoundingClientRect().right > innerWidth + 1
    && !each.closest("pre, table, svg, summary, nav, [role=tablist], .visually-hidden"))
  .map((each) => each.outerHTML.slice(0, 120))
"""


@pytest.mark.timeout(300)  # they are many, and each takes a second
async def test_every_screen_is_for_everyone(ready_sqlite_url: str, tmp_path: Path, browser: SharedBrowser) -> None:
    """Nothing hinders anyone (axe), nothing is wider than a phone, and nothing is logged as an error.

    Here they are dark and narrow; light and wide, the tests of what is done on them look.
    """
    async with (
        a_pictured_house(ready_sqlite_url, tmp_path) as pictured,
        visiting(browser, pictured.house, pictured.noor, size=PHONE, color_scheme="dark", new_context=True) as visitor,
    ):
        await visitor.context.clock.set_fixed_time(moment(pictured.world.clock.now()))
        await visitor.open("/me")
        for name, screen in SCREENS.items():
            # It leads on by itself, which is quicker; what stands over everything goes when it is loaded anew.
            is_covered = await visitor.page.locator("dialog[open]").count()
            await (visitor.open if is_covered else visitor.turn_to)(screen.path(pictured))
            await come_to(screen, visitor.page)
            await visitor.check_accessibility()
            assert await visitor.page.evaluate(_OVERFLOWING) == [], name
        assert visitor.complaints == []
