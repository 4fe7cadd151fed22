"""A panel in the browser: advisors who answer at once, and what a person does with their answers."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

from playwright.async_api import Locator, Page, Route, expect
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage

from denizen.models.scripted import Info, Turn, call, forever, think
from tests.server.conftest import House
from tests.web.conftest import PHONE, Visit
from tests.world import as_text

VOTES = {"Seth Godin": ("open it", 0.9), "Martin Buber": ("wait", 0.8), "Ada": ("open it", 0.4)}


class Voices:
    """A model that speaks as whoever it is asked to be. Buber refuses the first time; Ada waits until she may go on."""

    def __init__(self) -> None:
        self.refuses = True
        self.may_go_on = asyncio.Event()

    def speak(self, messages: list[ModelMessage], info: Info) -> Turn:
        system = as_text(messages[0])
        who = system.partition("You are ")[2].partition(".")[0]
        if info.tools == ("vote",):
            position, confidence = VOTES[who]
            return call("vote", position=position, confidence=confidence, reason=f"So {who} sees it.")
        if info.tools == ("suggest",):
            named = (("A baker of thirty years", "role"), ("Diogenes", "challenger"))
            return call("suggest", advisors=[
                {"name": name, "kind": kind, "description": "You speak plainly.", "reason": f"{name} knows bread."}
                for name, kind in named
            ])  # fmt: skip
        if info.tools == ("report",):
            return call("report", verdicts=[{"passed": True, "why": "It asks."}])
        if "## Agreements" in system:
            return "## Agreements\n\nAll want **bread**.\n\n## To decide\n\nWhen to open."
        if who == "Martin Buber" and self.refuses:
            self.refuses = False
            raise ModelHTTPError(status_code=400, model_name="m", body={"error": {"message": "Not like this."}})
        return [think(f"{who} ponders."), f"**{who}** asks: whom will you bake for, and who gets up at two?"]

    async def hesitate(self) -> None:
        await self.may_go_on.wait()


async def test_advisors_answer_at_once_and_a_person_works_with_what_they_say(house: House, visit: Visit) -> None:
    world = house.world
    noor, voices = await world.person("Noor"), Voices()
    world.denizen.models.register("voices", forever(voices.speak))
    world.denizen.models.register("slow", forever(voices.speak, pause=voices.hesitate))
    board = await world.denizen.panels.create(
        "Board", [noor], model="voices",
        advisors=[
            {"name": "Seth Godin", "assertions": ["asks before it advises"]},
            "Martin Buber",
            {"name": "Ada", "model": "slow", "colour": "#b3322b"},
        ],
    )  # fmt: skip
    visitor = await visit(noor, color_scheme="dark")
    page = await visitor.open("/")
    await page.get_by_role("link", name="Board").click()
    await expect(page.get_by_role("heading", name="No questions yet.")).to_be_visible()

    # Who answers, and what it costs, is told before; each card stands for itself.
    box = page.get_by_label("Message to Board")
    await box.fill("Should I open a bakery?")
    await expect(
        page.get_by_text(re.compile("Seth Godin, Martin Buber, Ada · about .* free of charge"))
    ).to_be_visible()
    # While it is sent, one can write on.
    may_be_sent = asyncio.Event()

    async def hold(route: Route) -> None:
        await may_be_sent.wait()
        await route.continue_()

    await page.route("**/rounds", hold, times=1)
    await box.press("Enter")
    await box.press_sequentially(" Or a café?")
    may_be_sent.set()
    await expect(box).to_have_value("Or a café?")
    await box.fill("")
    seth, buber, ada = (_card(page, name) for name in ("Seth Godin", "Martin Buber", "Ada"))
    await expect(seth).to_contain_text("Seth Godin asks: whom will you bake for")
    await expect(seth).to_contain_text("question 1 of 3")
    await expect(seth).to_contain_text("1 of 1 assertions met")
    await expect(buber).to_contain_text("has failed")
    await expect(ada).to_contain_text("thinking")
    await expect(page.get_by_text("1 of 3 has answered, 1 failed")).to_be_visible()
    await expect(seth.get_by_text("Seth Godin ponders.")).to_be_hidden()
    await seth.get_by_text("Thinking").click()
    await expect(seth.get_by_text("Seth Godin ponders.")).to_be_visible()
    await visitor.check_accessibility()

    # One is stopped, one asked again, and both answer in the end.
    await ada.get_by_role("button", name="Stop Ada").click()
    await expect(ada).to_contain_text("was stopped")
    await expect(page.get_by_text("1 of 3 has answered, 1 failed, 1 stopped")).to_be_visible()
    await buber.get_by_role("button", name="Ask Martin Buber again").click()
    await expect(buber).to_contain_text("who gets up at two?")
    voices.may_go_on.set()
    await ada.get_by_role("button", name="Ask Ada again").click()
    await expect(ada).to_contain_text("who gets up at two?")
    await expect(page.get_by_text("All 3 have answered")).to_be_visible()

    await seth.get_by_role("button", name="Context of Seth Godin").click()
    shown = page.get_by_role("dialog")
    await expect(shown).to_contain_text("Exactly as it was sent")
    await expect(shown.get_by_role("listitem").last).to_contain_text("Should I open a bakery?")
    await page.keyboard.press("Escape")

    # What they said is put together; they vote, and answer each other.
    await page.get_by_role("button", name="Synthesize").click()
    await expect(page.get_by_role("article", name="Synthesis")).to_contain_text("All want bread.")
    await page.get_by_role("button", name="Vote", exact=True).click()
    await page.get_by_role("dialog").get_by_label("Question").fill("Open it?")
    await page.get_by_role("dialog").get_by_role("button", name="Vote").click()
    vote = page.get_by_role("region", name="Vote: Open it?")
    await expect(vote).to_contain_text("Leading: open it")
    await expect(vote).to_contain_text("Most different: Seth Godin and Martin Buber.")
    row = vote.get_by_role("row").filter(has_text="Seth Godin").last
    await expect(row.get_by_role("cell")).to_have_text(["", "0.8", "0.0"])
    await visitor.check_accessibility()
    await vote.get_by_role("button", name="Cross-talk").click()
    await page.get_by_role("button", name="Start").click()
    talk = page.get_by_role("region", name="Cross-talk")
    await expect(talk).to_contain_text("All 3 have answered")

    # One alone is asked by @; what was there is there again after a reload.
    await box.press_sequentially("@mar")
    await expect(page.get_by_role("option")).to_have_text(["Martin Buber@martin-buber"])
    await box.press("Enter")
    await box.press_sequentially("And you?")
    await box.press("Enter")
    second = page.get_by_role("article", name="Turn 2")
    await expect(second.get_by_role("article")).to_have_count(1)
    await expect(second).to_contain_text("question 2 of 3")
    await page.reload()
    await expect(page.get_by_role("article", name="Turn 1")).to_contain_text("Leading: open it")
    await expect(second).to_be_in_viewport()
    await expect(page.get_by_role("heading", name="Board", level=1)).to_be_in_viewport()
    async with page.expect_download() as waiting:
        await page.get_by_role("button", name="Panel menu").click()
        await page.get_by_role("menuitem", name="Download the transcript").click()
    assert "**Martin Buber**" in _read(await (await waiting.value).path())
    assert (await world.denizen.panels.get(board)).turns == 2


_IN_COLUMNS = """
([cards, columns]) => new Set(cards.map((card) => Math.round(card.getBoundingClientRect().x))).size === columns
"""
ADVICE = "One loaf for each of the ten streets around you, and the eleventh for whoever asks."


class Gate:
    """What a model waits at before each piece of its text."""

    def __init__(self) -> None:
        self._pieces = asyncio.Semaphore(0)

    async def wait(self) -> None:
        await self._pieces.acquire()

    def let(self, pieces: int) -> None:
        for _ in range(pieces):
            self._pieces.release()


async def test_a_round_is_read_as_it_is_written_copied_and_stopped_as_a_whole(house: House, visit: Visit) -> None:
    world = house.world
    noor, quick, slow = await world.person("Noor"), Gate(), Gate()
    world.denizen.models.register("quick", forever(lambda _, __: ADVICE, pause=quick.wait))
    world.denizen.models.register("slow", forever(lambda _, __: ADVICE, pause=slow.wait))
    await world.denizen.panels.create(
        "Board", [noor], model="slow",
        advisors=[
            {"name": "Seth Godin", "model": "quick", "colour": "#b3322b"},
            {"name": "Martin Buber", "group": "Philosophers"},
            {"name": "Hannah Arendt", "group": "Philosophers"},
        ],
    )  # fmt: skip
    visitor = await visit(noor, size={"width": 1440, "height": 900})
    await visitor.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = await visitor.open("/")
    await page.get_by_role("link", name="Board").click()
    box = page.get_by_label("Message to Board")
    await box.fill("How many loaves?")
    await box.press("Enter")

    # In its card, and on the full screen, the text grows as it is written.
    seth = _card(page, "Seth Godin")
    await expect(seth).to_contain_text("thinking")
    await expect(seth).to_have_css("border-top-color", "rgb(179, 50, 43)")
    quick.let(2)
    await expect(seth).to_contain_text("One loaf for each of the")
    await expect(seth).to_contain_text("writing")
    await expect(seth).not_to_contain_text("streets")
    await seth.get_by_role("button", name="Show Seth Godin full screen").click()
    full = page.get_by_role("dialog", name="Seth Godin")
    quick.let(1)
    await expect(full).to_contain_text("One loaf for each of the ten streets")
    quick.let(100)
    await expect(full).to_contain_text(ADVICE)
    await visitor.check_accessibility()
    await page.keyboard.press("Escape")
    await seth.get_by_role("button", name="Copy the reply of Seth Godin").click()
    await expect(seth.get_by_role("button", name="Copied")).to_be_visible()
    assert await page.evaluate("navigator.clipboard.readText()") == ADVICE

    # As many cards beside each other as there is room for.
    cards = page.get_by_role("region", name="Answers").get_by_role("article")
    for width, columns in ((1440, 3), (1000, 2), (390, 1)):
        await page.set_viewport_size({"width": width, "height": 900})
        await page.wait_for_function(_IN_COLUMNS, arg=[await cards.element_handles(), columns])

    # Whoever has not answered is stopped, and asked again.
    await expect(page.get_by_text("1 of 3 has answered")).to_be_visible()
    await page.get_by_role("button", name="Stop all").click()
    await expect(page.get_by_text("1 of 3 has answered, 2 stopped")).to_be_visible()
    await expect(_card(page, "Hannah Arendt")).to_contain_text("was stopped")
    await visitor.check_accessibility()
    slow.let(1_000)
    await page.get_by_role("button", name="Ask 2 again").click()
    await expect(page.get_by_text("All 3 have answered")).to_be_visible()

    # A group is asked together, and switched off together.
    await box.press_sequentially("@phil")
    await expect(page.get_by_role("option")).to_have_text(["Everyone of Philosophers@philosophers"])
    await box.press("Enter")
    await box.press_sequentially("And what for?")
    await expect(page.get_by_text("Martin Buber, Hannah Arendt · about")).to_be_visible()
    await box.press("Enter")
    await expect(page.get_by_role("article", name="Turn 2")).to_contain_text("All 2 have answered")
    await page.get_by_role("button", name="Advisors: 3").click()
    await page.get_by_role("button", name="Switch Philosophers off").click()
    for name in ("Martin Buber", "Hannah Arendt"):
        await expect(page.get_by_role("switch", name=f"{name} is active")).not_to_be_checked()
    await expect(page.get_by_role("switch", name="Seth Godin is active")).to_be_checked()
    await visitor.check_accessibility()
    await page.keyboard.press("Escape")
    await box.fill("And you?")
    await expect(page.get_by_text("Seth Godin · about")).to_be_visible()


async def test_a_panel_is_opened_and_its_advisors_are_suggested_made_and_ordered(house: House, visit: Visit) -> None:
    world = house.world
    noor, voices = await world.person("Noor"), Voices()
    world.denizen.models.register("voices", forever(voices.speak))
    visitor = await visit(noor, size=PHONE)
    page = await visitor.open("/")
    await page.get_by_role("button", name="Open menu").click()
    await page.get_by_role("button", name="New panel").click()
    await page.get_by_label("Name").fill("Bakery")
    await page.get_by_role("button", name="Create panel").click()
    await expect(page).to_have_url(re.compile("/panels/"))
    await expect(page.get_by_text("a plain assistant answers.").last).to_be_visible()

    await page.get_by_role("button", name="Panel menu").click()
    await page.get_by_role("menuitem", name="Panel settings").click()
    await page.get_by_label("Model", exact=True).fill("voices")
    await visitor.check_accessibility()
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await page.get_by_label("What is your topic?").fill("Whether to open a bakery")
    await page.get_by_role("button", name="Suggest advisors").click()
    await expect(page.get_by_role("list", name="Suggestions")).to_contain_text("Diogenes knows bread.")
    await visitor.check_accessibility()
    await page.get_by_role("button", name="Add all 2").click()
    await expect(page.get_by_role("list", name="Who answers").get_by_role("listitem")).to_have_text(
        ["A baker of thirty years", "Diogenes"]
    )

    await page.get_by_role("button", name="Advisors: 2").click()
    await page.get_by_role("button", name="New advisor").click()
    await page.get_by_label("Name").fill("Martin Buber")
    await page.get_by_label("Description").fill("You look for the encounter.")
    await page.get_by_text("Group, model, reflection, assertions, phases").click()
    await page.get_by_label("Group").fill("Philosophers")
    await page.get_by_role("button", name="Add phase").click()
    await expect(page.get_by_text("Write what the advisor has to do.")).to_be_visible()
    await expect(page.get_by_role("button", name="Add advisor")).to_be_disabled()
    await page.get_by_label("Name of phase 1").fill("listening")
    await page.get_by_label("Instructions of phase 1").fill("Listen.")
    await visitor.check_accessibility()
    await page.get_by_role("button", name="Add advisor").click()

    listed = page.get_by_role("list", name="Advisors").get_by_role("listitem")
    await expect(listed).to_have_count(3)
    await page.get_by_role("button", name="Move Martin Buber up").click()
    await expect(listed.nth(1)).to_contain_text("Martin Buber")
    await page.get_by_role("button", name="Edit Martin Buber").focus()
    await page.keyboard.press("Alt+ArrowUp")
    await expect(listed.first).to_contain_text("Martin Buber")
    await page.get_by_role("switch", name="Diogenes is active").uncheck()
    await page.get_by_role("button", name="Remove A baker of thirty years").click()
    await expect(listed).to_have_count(2)
    await visitor.check_accessibility()
    # What is seen at once was done by the server, too.
    await expect(page.get_by_role("list", name="Advisors")).to_have_attribute("aria-busy", "false")
    async with page.expect_download() as waiting:
        await page.get_by_role("button", name="Export").click()
    taken = json.loads(_read(await (await waiting.value).path()))
    assert [(each["name"], each.get("active", True)) for each in taken["advisors"]] == [
        ("Martin Buber", True),
        ("Diogenes", False),
    ]

    # They come back from the file, instead of those who are there.
    one = json.dumps({**taken, "advisors": taken["advisors"][:1]}).encode()
    await page.get_by_role("button", name="Import", exact=True).click()
    await page.get_by_label("File exported from a panel").set_input_files(
        {"name": "advisors.json", "mimeType": "application/json", "buffer": one}
    )
    await page.get_by_label("Replace the current advisors").check()
    await page.get_by_role("button", name="Import 1").click()
    await expect(listed).to_have_count(1)
    await page.get_by_role("button", name="Remove Martin Buber").click()
    await expect(page.get_by_text("No advisors yet")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)

    # Without advisors, a plain assistant answers.
    await page.get_by_label("Message to Bakery").fill("Well?")
    await page.get_by_role("button", name="Ask", exact=True).click()
    turn = page.get_by_role("article", name="Turn 1")
    await expect(turn.get_by_role("article")).to_have_count(1)
    await expect(turn).to_contain_text("whom will you bake for")
    await expect(page.get_by_role("button", name="Vote")).to_have_count(0)
    await visitor.check_accessibility()


def _card(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name="Answers").get_by_role("article", name=name)


def _read(path: Path) -> str:
    return path.read_text()
