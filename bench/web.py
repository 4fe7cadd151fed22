"""What the web client costs whoever uses it: how much is loaded, how soon it can be used, how smoothly it goes.

    python -m bench.web [--messages 5000] [--agents 10] [--seconds 6]

`js_kb` and `css_kb` are what the first page loads, gzipped, in KB of 1,024 bytes; `interactive_ms` the median time from
opening a space to being able to write in it; `dropped_share` the share of frames that were not drawn in time (60 a
second) while ten agents write into one space at once; `heap_mb` what the page holds after a reader has leafed through
5,000 messages, after the garbage is gone, and `heap_at_start_mb` what it held before.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import statistics
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.async_api import Browser, BrowserContext, Page

from denizen import Runtime, reply
from denizen.access import tokens
from denizen.models.scripted import forever
from denizen.server.application import create_app
from denizen.server.context import ServerLimits
from denizen.server.serving import bind, serve_on
from denizen.server.web_files import WEB_FOLDER
from denizen.spaces.directory import Entity, Space
from tests.browser import open_browser

LOADS = 5
FRAMES = """
milliseconds => new Promise(done => {
  // A frame that comes late by n intervals means that n were not drawn.
  let drawn = 0, dropped = 0, last = performance.now();
  const end = last + milliseconds;
  const frame = now => {
    drawn += 1;
    dropped += Math.max(0, Math.round((now - last) / (1000 / 60)) - 1);
    last = now;
    if (now < end) requestAnimationFrame(frame);
    else done(dropped / (drawn + dropped));
  };
  requestAnimationFrame(frame);
})
"""


@dataclass
class House:
    runtime: Runtime
    address: str
    noor: Entity
    secret: str


@asynccontextmanager
async def open_house(folder: Path) -> AsyncGenerator[House]:
    ready, stop = asyncio.Event(), asyncio.Event()
    listener = bind("127.0.0.1", 0)
    async with Runtime(f"sqlite:///{folder / 'denizen.db'}") as runtime, runtime.living(), asyncio.TaskGroup() as tasks:
        app = create_app(
            runtime, limits=ServerLimits(requests_per_minute=0, connections_per_address=0, streams_per_person=0)
        )
        tasks.create_task(serve_on(app, listener, ready=ready, stop=stop))
        await ready.wait()
        noor = await runtime.people.create("Noor")
        _, secret = await runtime.db.write(tokens.create, noor.id, "Bench")
        yield House(runtime, f"http://127.0.0.1:{listener.getsockname()[1]}", noor, secret)
        stop.set()


def sizes() -> dict[str, float]:
    """What index.html loads, gzipped."""
    index = (WEB_FOLDER / "index.html").read_text()
    loaded = set(re.findall(r'(?:src|href)="\.?/?(assets/[^"]+)"', index))
    total = {
        kind: sum((WEB_FOLDER / f"{path}.gz").stat().st_size for path in loaded if path.endswith(kind))
        for kind in (".js", ".css")
    }
    return {"js_kb": round(total[".js"] / 1024, 1), "css_kb": round(total[".css"] / 1024, 1)}


async def signed_in(browser: Browser, house: House) -> BrowserContext:
    context = await browser.new_context(viewport={"width": 1280, "height": 800})
    answer = await context.request.post(f"{house.address}/api/session", data={"secret": house.secret})
    key = (await answer.json())["page_key"]
    await context.add_init_script(f"localStorage.setItem('page key', {key!r})")
    return context


async def interactive(browser: Browser, house: House, space: Space) -> float:
    """Each time with nothing in the browser's cache."""
    waits: list[float] = []
    for _ in range(LOADS):
        context = await signed_in(browser, house)
        page = await context.new_page()
        began = time.perf_counter()
        await page.goto(f"{house.address}/s/{space.id}", wait_until="commit")
        await page.locator("article[data-seq]").first.wait_for()
        await page.get_by_label(f"Message to {space.name}").fill("x")
        waits.append(time.perf_counter() - began)
        await context.close()
    return round(statistics.median(waits) * 1000)


async def dropped(page: Page, house: House, agents: int, seconds: float) -> float:
    """All of them are writing from before the first frame to after the last."""
    text = "Words that come a few at a time, **some** of them loud, and `code` in between.\n\n" * 60

    async def breathe() -> None:
        await asyncio.sleep(0.02)

    model = forever(lambda _, info: reply(text) if info.number < agents else "Done.", pause=breathe, record=False)
    crowd = [await house.runtime.agents.create(f"Agent {number}", model=model) for number in range(agents)]
    hall = await house.runtime.spaces.create("Hall", [house.noor, *crowd], floor="all")
    await page.goto(f"{house.address}/s/{hall.id}")
    await page.get_by_label("Message to Hall").fill("Everyone, please.")
    await page.keyboard.press("Enter")
    await page.locator("article[aria-busy]").nth(min(agents, 3) - 1).wait_for()
    return round(await page.evaluate(FRAMES, seconds * 1000), 4)


async def heap(page: Page) -> float:
    session = await page.context.new_cdp_session(page)
    await session.send("HeapProfiler.collectGarbage")
    metrics = (await session.send("Runtime.getHeapUsage"))["usedSize"]
    await session.detach()
    return round(metrics / 1024 / 1024, 1)


async def leafed(page: Page, house: House, space: Space) -> dict[str, float]:
    """The page has drawn every message, from the last to the first."""
    await page.goto(f"{house.address}/s/{space.id}")
    await page.locator("article[data-seq]").first.wait_for()
    before = await heap(page)
    await page.evaluate(
        """() => new Promise(done => {
          const log = document.querySelector("[role=log]");
          const up = () => {
            if (document.querySelector("article[data-seq='1']")) return done();
            log.dispatchEvent(new WheelEvent("wheel", { bubbles: true })); // a reader's hand
            log.scrollTop = 0;
            requestAnimationFrame(up);
          };
          up();
        })"""
    )
    return {"heap_at_start_mb": before, "heap_mb": await heap(page)}


async def bench(messages: int, agents: int, seconds: float) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        async with open_house(Path(folder)) as house, open_browser() as browser:
            sam = await house.runtime.people.create("Sam")
            archive = await house.runtime.spaces.create("Archive", [house.noor, sam])
            for number in range(messages):
                who = house.noor if number % 3 == 0 or number == messages - 1 else sam
                await house.runtime.spaces.post(
                    archive, who, f"Message {number}, with **some** of what people say. " * 3
                )
            result: dict[str, object] = {"bench": "web", **sizes(), "messages": messages, "agents": agents}
            result["interactive_ms"] = await interactive(browser, house, archive)
            context = await signed_in(browser, house)
            page = await context.new_page()
            result |= await leafed(page, house, archive)
            result["dropped_share"] = await dropped(page, house, agents, seconds)
            await context.close()
            return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=5_000)
    parser.add_argument("--agents", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=6)
    given = parser.parse_args()
    print(json.dumps(asyncio.run(bench(given.messages, given.agents, given.seconds))))


if __name__ == "__main__":
    main()
