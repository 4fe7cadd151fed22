"""Messages that mean harm, or are merely odd: nothing runs, nothing is loaded, and the page stays usable."""

from __future__ import annotations

from contextlib import suppress
from urllib.parse import quote

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import expect

from tests.server.conftest import House
from tests.web.conftest import Visit
from tests.web.test_conversation import write

HOSTILE = [
    "<script>window.hacked = 1</script><b onclick=hack()>bold</b>",
    "<img src=x onerror='window.hacked = 1'><svg onload='window.hacked = 1'></svg>",
    "[press](javascript:window.hacked=1) [here](data:text/html,<script>window.hacked=1</script>) <javascript:hack()>",
    '![tracked](https://evil.example/pixel.png) ![x](http://evil.example/a"onerror="window.hacked=1)',
    "<style>body { display: none }</style><iframe src='https://evil.example'></iframe><form action=/api/session>",
    "<a href='https://evil.example' style='position:fixed;inset:0' class='x'>everything</a>",
    "```html\n</code></pre><script>window.hacked = 1</script>\n```",
    "```<img src=x onerror=window.hacked=1>\ncode\n```",
    "@noor<img src=x onerror=window.hacked=1> @<script>window.hacked=1</script>",
    "\u202eright to left \u2067override\u2069 \u202dand back",
    "שלום עולם, مرحبا بالعالم and English",
    "Z̴̛͓a̶̡l̵̨g̷o" + "\u0301" * 3_000,
    "👩‍👩‍👧‍👦" * 500 + "\U000e0041\ufeff\u200b",
    "unbroken" * 12_500,  # 100,000 characters
    ("long line " * 8_000)[:80_000] + "\n" + "a\n" * 9_000,
    "[" * 5_000 + "](x)" * 100,
    "**" * 4_000 + "~~`" * 2_000,
    "> " * 3_000 + "deep",
    "- " * 1_500 + "nested",
    "| a " * 900 + "|\n" + "|---" * 900 + "|\n" + "| b " * 900 + "|",
    "```\n" * 5_000,
    "# \x00\x01\x1b[31m control \ufffe",
]

LEAF = """
async total => {
  // Through the whole conversation, as a person does: what is wrong with each message that comes by.
  const log = document.querySelector("[role=log]");
  const frame = () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  const forbidden = "script, iframe, img, form, style, [onclick], [onerror], .markdown [style], a:not([rel])";
  const seen = {};
  log.scrollTop = 0;
  for (; !(total in seen); await frame()) {
    for (const each of document.querySelectorAll("article[data-seq]")) {
      const wrong = [...each.querySelectorAll(forbidden)].map(it => it.outerHTML.slice(0, 80));
      if (each.scrollWidth > each.clientWidth + 1) wrong.push("wider than the screen");
      seen[each.dataset.seq] = wrong.join(", ");
    }
    log.scrollTop += log.clientHeight * 0.7;
  }
  return seen;
}
"""


async def test_no_message_does_harm(house: House, visit: Visit) -> None:
    world = house.world
    noor, mallory = await world.person("Noor"), await world.person("Mallory <script>window.hacked=1</script>")
    kitchen = await world.space("Kitchen", noor, mallory)
    for text in HOSTILE:
        await world.say(mallory, text, kitchen)
    hers = await visit(noor)
    asked: list[str] = []
    hers.page.on("request", lambda request: asked.append(request.url))
    page = await hers.open(f"/s/{kitchen.id}/m/1")

    await expect(page.locator("article[data-seq='1']")).to_be_visible()
    seen = await page.evaluate(LEAF, len(HOSTILE))
    assert sorted(map(int, seen)) == list(range(1, len(HOSTILE) + 1))
    assert {seq: wrong for seq, wrong in seen.items() if wrong} == {}
    assert await page.evaluate("window.hacked") is None
    assert [url for url in asked if not url.startswith((house.address, "data:"))] == []
    links = await page.locator("article a[href]").evaluate_all("all => all.map(each => [each.protocol, each.rel])")
    assert all(protocol in ("http:", "https:", "mailto:") and "noopener" in rel for protocol, rel in links)
    # And it is as good to write in as ever.
    await write(page, "Stop that.")
    await expect(page.get_by_role("article", name="Noor: Stop that.")).to_be_in_viewport()


ATTACK = b"<html xmlns='http://www.w3.org/1999/xhtml'><script>document.title = `hacked`</script></html>"
FILES = {
    "<img src=x onerror=window.hacked=1>.html": "text/html",
    'a"><script>window.hacked=1</script>.xhtml': "application/xhtml+xml",
    "drawing.svg": "image/svg+xml",
    "sniffed.png": "image/png",
    "page.txt": "text/plain",
    "plan.pdf": "application/pdf",
    "odd": "text/html;charset=utf-7",
    "javascript:alert(1)": "",
}


async def test_no_file_does_harm(house: House, visit: Visit) -> None:
    """Neither by its name, nor where the list of messages shows it, nor opened from there by its link."""
    denizen, world = house.world.denizen, house.world
    noor, mallory = await world.person("Noor"), await world.person("Mallory")
    kitchen = await world.space("Kitchen", noor, mallory)
    found = [await denizen.files.upload(mallory, ATTACK, name=name, media_type=FILES[name]) for name in FILES]
    await denizen.spaces.post(kitchen, mallory, "Look at these.", files=found)
    page = await (await visit(noor)).open(f"/s/{kitchen.id}")
    files = page.get_by_role("list", name="Files", exact=True)
    await expect(files.get_by_role("listitem")).to_have_count(len(FILES))
    shown = await files.get_by_role("link").evaluate_all("all => all.map(each => each.href)")
    assert [each for each in shown if not each.startswith(f"{house.address}/files/")] == []
    # What the viewer shows has no link there, and is opened by its address all the same.
    links = [
        f"{house.address}/files/{each.id}/{denizen.files.sign(each)}/{quote(each.name, safe='')}" for each in found
    ]
    for link in links:
        tab = await page.context.new_page()
        with suppress(PlaywrightError):  # A file that is downloaded opens no page.
            await tab.goto(link)
        assert await tab.title() != "hacked", link
        await tab.close()
    assert await page.evaluate("window.hacked") is None
