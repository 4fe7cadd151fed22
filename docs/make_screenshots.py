# ruff: noqa: INP001  a program beside the pages it draws for, no package
"""Makes the pictures in docs/screenshots: a lively house in a real browser. Run it with `make screenshots`.

    python docs/make_screenshots.py [NAME...]

Every screen is taken light and dark, wide and on a phone. Agents think with scripted models, so that the pictures tell
the same story each time; the clock is set back to a Monday morning.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # for tests.browser, which finds or installs one

from playwright.async_api import Page, ViewportSize  # noqa: E402
from pydantic_ai.messages import ModelMessage  # noqa: E402

from denizen import Runtime, call, forever, reply, scripted, tool  # noqa: E402
from denizen.access import tokens  # noqa: E402
from denizen.clock import Instant, SystemClock, instant  # noqa: E402
from denizen.models.scripted import Info, Turn, think  # noqa: E402
from denizen.panel.panels import Panel  # noqa: E402
from denizen.panel.rounds import Round  # noqa: E402
from denizen.server.application import create_app  # noqa: E402
from denizen.server.serving import bind, serve_on  # noqa: E402
from denizen.spaces import directory  # noqa: E402
from denizen.spaces.directory import Entity, Space  # noqa: E402
from denizen.tools.settings import ClientTool  # noqa: E402
from tests.browser import open_browser  # noqa: E402
from tests.world import as_text  # noqa: E402

FOLDER = Path(__file__).with_name("screenshots")
SIZES: dict[str, ViewportSize] = {"wide": {"width": 1280, "height": 800}, "phone": {"width": 390, "height": 780}}
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
MOST_BYTES = 200_000
MIGRATION = """The migration only adds a column, so that old and new instances can run side by side:

```python
def upgrade() -> None:
    op.add_column("messages", Column("edited_at", Time))  # expand
```"""


SAID = {
    "Martin Buber": "You speak of the street, the rent, the ovens. **Whom do you see** when the door opens at seven? "
    "Name one person, and say what you would ask her.",
    "A baker of thirty years": "Who gets up at two? I did, for thirty years. The bread is the easy part:\n\n"
    "- flour and gas went up by a third\n- an oven breaks on a Saturday\n\nWhat can you pay yourself in the first "
    "winter?",
    "Hannah Arendt": "To begin is to show yourself to others, who may answer otherwise than you wished. What, exactly, "
    "do you begin here that was not in the world before?",
    "The bank": "What do you do if *half* as many come as you have reckoned?",
    "Antigone": "You ask whether it pays. Which law do you follow when it does not?",
}
VOTES = {
    "Martin Buber": ("wait", 0.6),
    "A baker of thirty years": ("wait", 0.9),
    "Hannah Arendt": ("sign", 0.7),
    "The bank": ("wait", 0.8),
    "Antigone": ("sign", 0.5),
}
TOGETHER = """## Agreements

Nobody doubts that you can bake. All ask **for whom**, and what the first winter costs.

## Disagreements

The baker and the bank want the figures first; Arendt and Antigone hold that a beginning is not reckoned.

## To decide

Whether you sign before or after you know your first ten customers by name."""


def advise(messages: list[ModelMessage], info: Info) -> Turn:
    """What each of the advisors says."""
    system = as_text(messages[0])
    who = next((name for name in SAID if f"You are {name}" in system), "")
    if info.tools == ("vote",):
        position, confidence = VOTES[who]
        return call("vote", position=position, confidence=confidence, reason="The lease runs for ten years.")
    return [think("What is left out here?"), SAID[who]] if who else TOGETHER


class PictureClock(SystemClock):
    """The machine's clock, set back to a Monday morning."""

    def __init__(self) -> None:
        self._offset = super().now() - instant(datetime(2026, 1, 5, 9, 30, tzinfo=UTC))

    def now(self) -> Instant:
        return Instant(super().now() - self._offset)


@dataclass
class House:
    """A lively house: who lives there, where they talk, and the address of its door."""

    runtime: Runtime
    address: str
    noor: Entity
    kitchen: Space
    release: Space
    board: Panel


@dataclass(frozen=True)
class Shot:
    """A screen: where it is, and what is done before the picture is taken."""

    path: Callable[[House], str]
    ready: Callable[[Page], Awaitable[object]]


async def _conversation(page: Page) -> None:
    await page.get_by_text("I will write the notes").wait_for()
    await page.get_by_role("region", name="Bo asks").wait_for()


async def _vote(page: Page) -> None:
    vote = page.get_by_role("region", name="Vote: Sign the lease by Friday?")
    await vote.get_by_text("Leading: wait").wait_for()
    # Only the list: what stands around it stays.
    await vote.evaluate("element => { element.closest('[tabindex]').scrollTop = element.offsetTop - 16 }")


async def _search(page: Page) -> None:
    await page.get_by_label("Words").fill("checklist")
    await page.get_by_role("button", name="Search").click()
    await page.get_by_role("list", name="Results").get_by_role("link").first.wait_for()


SHOTS: dict[str, Shot] = {
    "conversation": Shot(lambda house: f"/s/{house.release.id}", _conversation),
    "kitchen": Shot(
        lambda house: f"/s/{house.kitchen.id}", lambda page: page.get_by_text("blue kettle").first.wait_for()
    ),
    "panel": Shot(
        lambda house: f"/panels/{house.board.id}?m=1", lambda page: page.get_by_text("Leading: wait").wait_for()
    ),
    "vote": Shot(lambda house: f"/panels/{house.board.id}", _vote),
    "search": Shot(lambda _: "/search", _search),
    "agents": Shot(lambda _: "/agents", lambda page: page.get_by_text("You are an engineer").wait_for()),
    "me": Shot(lambda _: "/me", lambda page: page.get_by_text("What lets you in").wait_for()),
}
"""By name: each becomes NAME-wide-light.png and so on."""


async def main(names: list[str]) -> None:
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        clock = PictureClock()
        async with Runtime(f"sqlite:///{home}/denizen.db", clock=clock) as runtime, runtime.living():
            listener = bind("127.0.0.1", 0)
            ready, stop = asyncio.Event(), asyncio.Event()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(serve_on(create_app(runtime), listener, ready=ready, stop=stop))
                await ready.wait()
                house = await settle(runtime, f"http://127.0.0.1:{listener.getsockname()[1]}")
                await take(house, names or list(SHOTS))
                stop.set()


async def settle(runtime: Runtime, address: str) -> House:
    """People and agents have moved in, and talked; one agent waits for an answer."""

    @tool(visible=True)
    async def run_tests(suite: str) -> str:
        """Run a test suite."""
        return f"{suite}: 1,204 passed, 0 failed in 71 s"

    confirm = ClientTool(
        name="confirm_action",
        description="Ask before you do something that cannot be undone.",
        parameters={"type": "object", "properties": {"question": {"type": "string"}}, "required": ["question"]},
    )
    noor, sam = await runtime.create_person("Noor"), await runtime.create_person("Sam Okafor")
    mia = await runtime.create_person("Mia")
    ada = await runtime.create_agent(
        "Ada",
        model=scripted(
            reply(
                "I will write the notes while Bo deploys:\n\n- **Spaces** remember how far you have read\n"
                "- `denizen backup` can run while everything goes on\n- A question to people survives a restart"
            ),
            "Done.",
        ),
        instructions="You look after this house. You welcome people, keep in mind what they ask you to remember, and "
        "pass messages on.",
    )
    bo = await runtime.create_agent(
        "Bo",
        model=scripted(
            call("run_tests", suite="release"),
            call("confirm_action", question="All **1,204 tests** passed. Shall I deploy `v2.1` to production?"),
            reply("Deployed."),
            "Deployed.",
        ),
        tools=[run_tests, confirm],
        instructions="You are an engineer: careful, precise, a little dry. You answer technical questions and check "
        "things.",
    )
    kitchen = await runtime.create_space("Kitchen", [noor, sam, mia])
    lobby = await runtime.create_space("Lobby", [noor, mia])
    release = await runtime.create_space("Release", [noor, sam, bo, ada])
    for name, others in (("Noor and Ada", [noor, ada]), ("Noor and Bo", [noor, bo])):
        await runtime.create_space(name, others, private=True)
    for who, text in (
        (mia, "Good morning! Who moved the blue kettle?"),
        (sam, "It is on the balcony. Long story."),
        (noor, "There is **cake** in the fridge, help yourselves."),
        (mia, "You are the best."),
    ):
        await runtime.post(kitchen, who, text)
    await runtime.post(lobby, mia, "The electrician comes at eleven.")
    # Nobody wakes for what stands here already.
    for agent in (ada, bo):
        await runtime.db.write(directory.attend, release.id, agent.id, "none")
    for who, text in (
        (sam, "Morning. The release checklist is done, but for the migration."),
        (
            bo.entity,
            MIGRATION,
        ),
        (noor, "Good. @bo run the tests, please, and deploy if they pass. @ada, could you write the notes?"),
    ):
        await runtime.post(release, who, text)
    for agent in (ada, bo):
        await runtime.db.write(directory.attend, release.id, agent.id, "all")
    await runtime.post(release, sam, "I keep an eye on the graphs.")
    return House(runtime, address, noor, kitchen, release, await _advised(runtime, noor))


async def _advised(runtime: Runtime, noor: Entity) -> Panel:
    """A panel that was asked, put together what was said, and voted."""
    runtime.models.register("advisors", forever(advise))
    board = await runtime.create_panel("Bakery", [noor], advisors=list(SAID), model="advisors", synthesis="always")
    asked = await runtime.ask_panel(
        board, noor, "I could take over the empty shop at the corner and open a **bakery**. Should I sign the lease?"
    )
    await _complete(runtime, asked)
    vote = await runtime.vote(asked, "Sign the lease by Friday?", by=noor)
    await _complete(runtime, vote)
    return board


async def _complete(runtime: Runtime, asked: Round) -> None:
    while not (await runtime.round(asked)).all_completed:  # noqa: ASYNC110  nobody else is kept waiting here
        await asyncio.sleep(0.05)


async def take(house: House, names: list[str]) -> None:
    """The pictures of these screens are in the folder."""
    _, secret = await house.runtime.db.write(tokens.create, house.noor.id, "Backup script")
    async with open_browser() as browser:
        for size, viewport in SIZES.items():
            for theme in THEMES:
                context = await browser.new_context(
                    viewport=viewport, color_scheme=theme, locale="en-GB", timezone_id="Europe/Berlin"
                )
                await context.clock.set_fixed_time(datetime(2026, 1, 5, 9, 31, tzinfo=UTC))
                await context.request.post(f"{house.address}/api/session", data={"secret": secret})
                page = await context.new_page()
                for name in names:
                    await page.goto(f"{house.address}{SHOTS[name].path(house)}")
                    await SHOTS[name].ready(page)
                    await page.evaluate("() => document.fonts.ready")
                    path = FOLDER / f"{name}-{size}-{theme}.png"
                    await page.screenshot(path=path, animations="disabled")
                    assert path.stat().st_size < MOST_BYTES, f"{path.name} is too large for the repository"
                await context.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
