# ruff: noqa: INP001  a program beside the pages it draws for, no package
"""Makes the pictures in docs/screenshots: a lively house in a real browser. Run it with `make screenshots`.

    python docs/make_screenshots.py [--to FOLDER] [NAME...]

Every screen of tests/web/screens.py is taken light and dark, wide and on a phone, as NAME-wide-light.png and so on.
The house tells the same story each time (tests/web/pictured.py), at the same time, and whoever lives there has the
same colour.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import random
import struct
import sys
import tempfile
import zlib
from contextlib import AbstractContextManager
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Literal
from unittest.mock import patch

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # for the house and its screens

from playwright.async_api import Browser, Page, StorageState, ViewportSize, expect  # noqa: E402

from denizen.clock import moment  # noqa: E402
from tests.browser import open_browser  # noqa: E402
from tests.web.pictured import Pictured, a_pictured_house  # noqa: E402
from tests.web.screens import SCREENS, show  # noqa: E402

SIZES: dict[str, ViewportSize] = {"wide": {"width": 1440, "height": 900}, "phone": {"width": 390, "height": 780}}
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
MOST_BYTES = 100_000
PATIENCE_MILLISECONDS = 30_000
COLOURS, APART = 256, 6
FEWER_COLOURS = """async ([png, most, apart]) => {
  const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${png}`)).blob());
  const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
  canvas.drawImage(image, 0, 0);
  const pixels = new Uint32Array(canvas.getImageData(0, 0, image.width, image.height).data.buffer);
  const counts = new Map();
  for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
  const parts = (pixel) => [pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255];
  const distance = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
  const palette = [];
  for (const [pixel] of [...counts].sort((a, b) => b[1] - a[1] || a[0] - b[0])) {
    const colour = parts(pixel);
    if (palette.length < most && palette.every((each) => distance(each, colour) > apart)) palette.push(colour);
  }
  const near = new Map([...counts.keys()].map((pixel) => {
    const distances = palette.map((each) => distance(each, parts(pixel)));
    return [pixel, distances.indexOf(Math.min(...distances))];
  }));
  const indices = Uint8Array.from(pixels, (pixel) => near.get(pixel));
  return [image.width, image.height, palette.flat(), indices.toBase64()];
}"""


async def main(names: list[str], folder: Path) -> None:
    with tempfile.TemporaryDirectory() as home, _the_same_ids():
        async with a_pictured_house(f"sqlite:///{home}/denizen.db", Path(home)) as pictured, open_browser() as browser:
            session = await sign_in(pictured, browser)
            for size in SIZES:
                for theme in THEMES:
                    await take(pictured, browser, session, names, folder, size, theme)


def _the_same_ids() -> AbstractContextManager[object]:
    """Ids are made of the time and of chance, and the colours of people follow from them."""
    ticks = count(1_767_000_000_000_000_000, 1_000_000)
    chance = SimpleNamespace(urandom=random.Random(5).randbytes)  # noqa: S311
    return patch.multiple("denizen.ids", time=SimpleNamespace(time_ns=lambda: next(ticks)), os=chance)


async def sign_in(pictured: Pictured, browser: Browser) -> StorageState:
    """One session for all pictures: each is listed where Noor sees what lets her in."""
    context = await browser.new_context()
    secret = pictured.house.secrets[pictured.noor.id]
    address = pictured.house.address
    answer = await context.request.post(f"{address}/api/session", data={"secret": secret})
    session = await context.storage_state()
    key: str = (await answer.json())["page_key"]
    session["origins"] = [
        {
            "origin": address,
            "localStorage": [
                {"name": "page key", "value": key},
                {"name": "connect a model: dismissed", "value": "yes"},
            ],
        }
    ]
    await context.close()
    return session


async def take(
    pictured: Pictured,
    browser: Browser,
    session: StorageState,
    names: list[str],
    folder: Path,
    size: str,
    theme: Literal["light", "dark"],
) -> None:
    """The pictures of these screens are in the folder."""
    context = await browser.new_context(
        storage_state=session,
        viewport=SIZES[size],
        color_scheme=theme,
        locale="en-GB",
        timezone_id="Europe/Berlin",
        reduced_motion="reduce",
    )
    # A browser without a screen refuses notifications; this is how it looks in one that has not been asked yet.
    await context.add_init_script("Object.defineProperty(Notification, 'permission', { get: () => 'default' })")
    await context.clock.set_fixed_time(moment(pictured.world.clock.now()))
    page, desk = await context.new_page(), await context.new_page()
    for name in names:
        await page.bring_to_front()
        await show(SCREENS[name], page, pictured)
        png = await smaller(await page.screenshot(animations="disabled"), desk)
        assert len(png) < MOST_BYTES, f"{name} is too large for the repository"
        (folder / f"{name}-{size}-{theme}.png").write_bytes(png)
    await context.close()


async def smaller(png: bytes, desk: Page) -> bytes:
    """The picture with few colours, the commonest that differ: half as large, and nobody sees it."""
    given = [base64.b64encode(png).decode(), COLOURS, APART]
    width, height, palette, indices = await desk.evaluate(FEWER_COLOURS, given)
    rows = base64.b64decode(indices)
    lines = b"".join(b"\0" + rows[at * width : (at + 1) * width] for at in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    chunks = [(b"IHDR", head), (b"PLTE", bytes(palette)), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Makes the pictures in docs/screenshots.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these screens")
    parser.add_argument("--to", type=Path, default=Path(__file__).with_name("screenshots"), metavar="FOLDER")
    given = parser.parse_args()
    given.to.mkdir(exist_ok=True)
    expect.set_options(timeout=PATIENCE_MILLISECONDS)
    asyncio.run(main(given.names or list(SCREENS), given.to))
