"""Markdown as people and models write it: formulas, tables, task lists, footnotes, diagrams."""

from __future__ import annotations

import os
from typing import Literal
from urllib.parse import unquote

import pytest
from playwright.async_api import Route, ViewportSize, expect

from tests.files.pictures import png
from tests.server.conftest import House
from tests.web.conftest import PHONE, WIDE, Visit

TEXT = """\
The area is \\(a^2 + b_1\\), or $E = m c^2$; it costs $5 and then $6.

$$
\\int_0^1 x^2 \\, dx = \\frac{1}{3}
$$

| name | how much it weighs on an ordinary day | where it is kept until somebody needs it again | and for how long |
|---|---:|---|---|
| tea | 5 | kitchen | a_long_word_that_does_not_break_anywhere_at_all |

- [x] boil water
- [ ] find a cup

Water boils at 100 °C[^1], they say[^why].

[^1]: At sea level.
[^why]: Ask *Ada*.

<script>window.bad = true</script>

\\(\\href{javascript:bad()}{x}\\)
"""


@pytest.mark.parametrize("where", ["wide, light", "phone, dark"])
async def test_formulas_tables_tasks_and_footnotes_are_shown(house: House, visit: Visit, where: str) -> None:
    world = house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    kitchen = await world.space("Kitchen", noor, sam)
    await world.say(sam, TEXT, kitchen)
    dark = where == "phone, dark"
    hers = await visit(noor, size=PHONE if dark else WIDE, color_scheme="dark" if dark else "light")
    page = await hers.open(f"/s/{kitchen.id}")
    message = page.get_by_role("article")

    await expect(message.locator(".katex")).to_have_count(4)
    await expect(message.locator("math annotation").first).to_have_text("a^2 + b_1")
    await expect(message.get_by_text("it costs $5 and then $6.")).to_be_visible()
    # A formula makes no links.
    await expect(message.locator(".katex a")).to_have_count(0)
    assert await message.locator(".katex").first.evaluate("each => getComputedStyle(each).fontFamily.includes('KaTeX')")

    await expect(message.get_by_role("cell", name="kitchen")).to_be_attached()
    boxes = message.get_by_role("checkbox")
    await expect(boxes).to_have_count(2)
    await expect(boxes.first).to_be_checked()
    overflow = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert await page.evaluate(overflow) == 0

    await message.get_by_role("link", name="Footnote 2", exact=True).click()
    note = message.get_by_role("list", name="Footnotes").get_by_role("listitem").nth(1)
    await expect(note).to_be_focused()
    await expect(note).to_contain_text("Ask Ada.")
    await note.get_by_role("link", name="Back to the text of footnote 2").click()
    await expect(message.get_by_role("link", name="Footnote 2", exact=True)).to_be_focused()
    assert page.url.endswith(f"/s/{kitchen.id}")
    assert await page.evaluate("() => window.bad") is None
    await hers.check_accessibility()
    if pictures := os.environ.get("PICTURES"):
        await page.screenshot(path=f"{pictures}/markdown-{'dark' if dark else 'light'}.png")


async def test_formulas_cost_nothing_until_there_is_one(house: House, visit: Visit) -> None:
    world = house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    kitchen = await world.space("Kitchen", noor, sam)
    await world.say(sam, "Tea at $4.", kitchen)
    hers = await visit(noor, new_context=True)
    asked: list[str] = []
    hers.page.on("request", lambda request: asked.append(request.url))
    page = await hers.open(f"/s/{kitchen.id}")
    await expect(page.get_by_text("Tea at $4.")).to_be_visible()
    assert not [each for each in asked if "typeset" in each or "katex" in each.lower()]
    await world.say(sam, "And \\(x\\).", kitchen)
    await expect(page.locator(".katex")).to_be_visible()
    assert [each for each in asked if "typeset" in each]


FLOW = "```mermaid\ngraph LR\n  Kettle --> Tea\n  Tea --> Noor\n```"
HOSTILE = (
    '```mermaid\ngraph LR\n  A["<img src=x onerror=parent.hurt()>"] --> B\n  click A href "javascript:hurt()"\n'
    '%%{init: {"securityLevel": "loose", "themeCSS": "* { background: url(https://evil.example/x) }"}}%%\n```'
)


@pytest.mark.parametrize(("size", "scheme"), [(PHONE, "light"), (WIDE, "dark")])
async def test_a_diagram_is_drawn_in_a_frame_of_its_own(
    house: House, visit: Visit, size: ViewportSize, scheme: Literal["light", "dark"]
) -> None:
    """What is not a diagram stays code, and nothing in one can reach the page."""
    world = house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    kitchen = await world.space("Kitchen", noor, sam)
    hers = await visit(noor, size=size, color_scheme=scheme)
    requests: list[str] = []
    hers.page.on("request", lambda request: requests.append(request.url))
    page = await hers.open(f"/s/{kitchen.id}")
    await world.say(sam, "Soup.", kitchen)
    await expect(page.get_by_role("article", name="Sam: Soup.")).to_be_visible()
    assert not any("diagram" in each for each in requests)

    await world.say(sam, FLOW, kitchen)
    picture = page.get_by_role("img", name="Diagram, as its source says: graph LR")
    await expect(picture).to_be_visible()
    assert await picture.evaluate("img => img.decode().then(() => img.naturalWidth > 40 && img.naturalHeight > 20)")
    assert "Kettle" in unquote(await picture.get_attribute("src") or "")
    frame = next(each for each in page.frames if each.url.endswith("/diagram.html"))
    assert await frame.evaluate("() => self.origin") == "null"
    await page.get_by_text("Source", exact=True).click()
    await expect(page.get_by_role("region", name="Code, mermaid")).to_contain_text("Kettle --> Tea")
    await hers.check_accessibility()

    await world.say(sam, "```mermaid\nthis is no diagram\n```", kitchen)
    await expect(page.get_by_role("region", name="Code, mermaid").last).to_contain_text("this is no diagram")
    await page.evaluate("() => { window.hurt = () => { window.wasHurt = true; }; }")
    await world.say(sam, HOSTILE, kitchen)
    await expect(page.get_by_role("article").last).to_contain_text("graph LR")
    await world.say(sam, FLOW.replace("Noor", "Sam"), kitchen)  # drawn after the other
    await expect(page.get_by_role("img", name="Diagram, as its source says: graph LR").last).to_be_visible()
    assert not await page.evaluate("() => window.wasHurt ?? false")
    assert not [each for each in requests if not each.startswith((house.address, "data:"))]


PICTURED = "![A cat](https://pictures.example/cat.png) and ![a dog](http://pictures.example/dog.png)"
_BLOCKED = """
  () => new Promise(resolve => {
    document.addEventListener("securitypolicyviolation", event => resolve(event.effectiveDirective), {once: true});
    new Image().src = "https://pictures.example/tracker.png";
  })
"""


@pytest.mark.parametrize("where", ["wide, light", "phone, dark"])
async def test_pictures_of_other_sites_are_shown_if_the_organization_allows_it(
    house: House, visit: Visit, where: str
) -> None:
    world = house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    kitchen = await world.space("Kitchen", noor, sam)
    await world.say(sam, PICTURED, kitchen)
    dark = where == "phone, dark"
    hers = await visit(noor, new_context=True, size=PHONE if dark else WIDE, color_scheme="dark" if dark else "light")
    asked: list[dict[str, str]] = []

    async def answer(route: Route) -> None:
        asked.append(route.request.headers)
        await route.fulfill(body=png(40, 30), content_type="image/png")

    await hers.page.context.route("**://pictures.example/**", answer)
    page = await hers.open(f"/s/{kitchen.id}")
    message = page.get_by_role("article")
    await expect(message.get_by_role("link", name="A cat")).to_have_attribute(
        "href", "https://pictures.example/cat.png"
    )
    assert await page.evaluate(_BLOCKED) == "img-src"
    assert ["pictures.example/tracker.png" in each for each in hers.complaints] == [True]
    hers.complaints.clear()
    assert asked == []

    await hers.turn_to("/admin/settings")
    await page.get_by_label("Show pictures of other sites in messages").check()
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("Saved.")).to_be_visible()
    await hers.check_accessibility()

    await hers.open(f"/s/{kitchen.id}")
    cat = message.get_by_role("img", name="A cat")
    await expect(cat).to_be_visible()
    assert await cat.evaluate("each => each.naturalWidth") == 40
    assert [each.get("referer") for each in asked] == [None]
    # Only over https.
    await expect(message.get_by_role("link", name="a dog")).to_be_visible()
    await hers.check_accessibility()


async def test_a_picture_of_another_site_that_cannot_be_loaded_is_a_link(house: House, visit: Visit) -> None:
    world = house.world
    noor = await world.person("Noor")
    kitchen = await world.space("Kitchen", noor)
    await world.say(noor, PICTURED, kitchen)
    allowed = {"settings": {"remote_pictures": True}}
    assert (await house.call("PATCH", "/api/organization", noor, json=allowed)).status_code == 200
    hers = await visit(noor, new_context=True)
    await hers.page.context.route("**://pictures.example/**", lambda route: route.abort())
    page = await hers.open(f"/s/{kitchen.id}")
    await expect(page.get_by_role("article").get_by_role("link", name="A cat")).to_be_visible()


RIGHT_TO_LEFT = """\
שלום לכולם, קראו `bake(now)` קודם:

- לחם
- מים

> כך אמרה נועה.

1. ראשון
"""
_SIDES = """
each => { const { paddingLeft, paddingRight, borderLeftWidth, borderRightWidth } = getComputedStyle(each);
  return [paddingLeft, paddingRight, borderLeftWidth, borderRightWidth].map((side) => parseFloat(side) > 0); }
"""


async def test_text_from_right_to_left_has_its_bullets_and_quotation_marks_on_the_right(
    house: House, visit: Visit
) -> None:
    world = house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    kitchen = await world.space("Kitchen", noor, sam)
    await world.say(sam, RIGHT_TO_LEFT, kitchen)
    page = await (await visit(noor, size=PHONE)).open(f"/s/{kitchen.id}")
    message = page.get_by_role("article")

    await expect(message.get_by_text("לחם")).to_be_visible()
    for kind in ("ul", "ol"):
        assert await message.locator(kind).evaluate(_SIDES) == [False, True, False, False]
    assert await message.locator("blockquote").evaluate(_SIDES) == [False, True, False, True]
    # Code is read from left to right everywhere.
    assert await message.locator("code").evaluate("each => getComputedStyle(each).direction") == "ltr"
