"""The cards of a panel in the browser: editing an advisor and its assertions, phases, and what an advisor was shown."""

from __future__ import annotations

import pytest
from playwright.async_api import Locator, Page, ViewportSize, expect
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage

from denizen.models.scripted import Info, Turn, call, forever
from denizen.panel.panels import Panel
from denizen.spaces.directory import Entity
from tests.server.conftest import House
from tests.web.conftest import PHONE, WIDE, Visit, Visitor

SIZES = pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])


def speak(messages: list[ModelMessage], info: Info) -> Turn:
    if info.tools == ("report",):
        return call("report", verdicts=[{"passed": True, "why": "It asks."}])
    return "Whom will you bake for?"


async def board(house: House, **settings: object) -> tuple[Entity, Panel]:
    """A panel of Noor with two advisors, who have answered two messages."""
    denizen, noor = house.world.denizen, await house.world.person("Noor")
    denizen.models.register("voices", forever(speak))
    advisors = ["Seth Godin", "Martin Buber"]
    panel = await denizen.panels.create("Board", [noor], model="voices", advisors=advisors, **settings)  # pyright: ignore[reportArgumentType]
    for text in ("Should I open a bakery?", "And when?"):
        await denizen.panels.ask(panel, noor, text)
    return noor, panel


async def open_board(visit: Visit, who: Entity, panel: Panel, size: ViewportSize) -> tuple[Visitor, Page]:
    visitor = await visit(who, size=size)
    page = await visitor.open(f"/panels/{panel.id}")
    await expect(last_turn(page).get_by_text("All 2 have answered")).to_be_visible()
    return visitor, page


def last_turn(page: Page) -> Locator:
    return page.get_by_role("article", name="Turn 2")


@SIZES
async def test_an_advisor_and_its_assertions_are_edited_from_its_card(
    house: House, visit: Visit, size: ViewportSize
) -> None:
    noor, panel = await board(house)
    visitor, page = await open_board(visit, noor, panel, size)
    card = last_turn(page).get_by_role("article", name="Martin Buber")

    # With the keyboard: the dialog closes to the button that opened it.
    edit = card.get_by_role("button", name="Edit Martin Buber")
    await edit.focus()
    await page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Martin Buber")
    await dialog.get_by_label("Description").fill("You look for the encounter.")
    await visitor.check_accessibility()
    await dialog.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await expect(edit).to_be_focused()

    await card.get_by_role("button", name="Assertions of Martin Buber").click()
    dialog = page.get_by_role("dialog", name="Assertions of Martin Buber")
    await expect(dialog.get_by_label("Assertion 1", exact=True)).to_be_focused()
    await page.keyboard.type("asks before it advises")
    await dialog.get_by_role("button", name="Add assertion").click()
    await expect(dialog.get_by_label("Assertion 2", exact=True)).to_be_focused()
    await visitor.check_accessibility()
    await dialog.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("dialog")).to_have_count(0)

    _, buber = await house.world.denizen.advisors.list(panel)
    assert buber.description == "You look for the encounter."
    assert buber.settings.assertions == ("asks before it advises",)
    box = page.get_by_label("Message to Board")
    await box.fill("Well?")
    await box.press("Enter")
    third = page.get_by_role("article", name="Turn 3").get_by_role("article", name="Martin Buber")
    await expect(third).to_contain_text("1 of 1 assertions met")


@SIZES
async def test_phases_are_edited_in_a_form(house: House, visit: Visit, size: ViewportSize) -> None:
    noor, panel = await board(house)
    visitor, page = await open_board(visit, noor, panel, size)
    await page.get_by_role("button", name="Panel menu").click()
    await page.get_by_role("menuitem", name="Panel settings").click()
    dialog, save = page.get_by_role("dialog"), page.get_by_role("button", name="Save")
    await expect(dialog.get_by_label("Name of phase 1")).to_have_value("question")
    await expect(dialog.get_by_label("Last turn of phase 1")).to_have_value("3")
    await visitor.check_accessibility()

    await dialog.get_by_label("Last turn of phase 1").fill("")
    await expect(dialog.get_by_text("Only the last phase can have no end.")).to_be_visible()
    await expect(save).to_be_disabled()
    await dialog.get_by_label("Last turn of phase 1").fill("1")
    await dialog.get_by_label("Instructions of phase 1").fill("Ask once.")
    await dialog.get_by_role("button", name="Add phase").click()
    await expect(dialog.get_by_label("Name of phase 3")).to_be_focused()
    await page.keyboard.type("objection")
    await dialog.get_by_label("Instructions of phase 3").fill("Object.")
    await dialog.get_by_role("button", name="Move phase 3 up").click()
    await dialog.get_by_label("Last turn of phase 2").fill("4")
    await visitor.check_accessibility()
    await save.click()
    await expect(page.get_by_role("dialog")).to_have_count(0)

    phases = (await house.world.denizen.panels.get(panel)).settings.phases
    assert [(each.name, each.until_turn) for each in phases] == [("question", 1), ("objection", 4), ("", None)]
    assert [each.instructions for each in phases[:2]] == ["Ask once.", "Object."]


@SIZES
async def test_the_others_are_hidden_and_the_context_says_so(house: House, visit: Visit, size: ViewportSize) -> None:
    noor, panel = await board(house)
    visitor, page = await open_board(visit, noor, panel, size)
    await page.get_by_role("button", name="Panel menu").click()
    await page.get_by_role("menuitem", name="Panel settings").click()
    await page.get_by_label("Advisors see what the others said").uncheck()
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("dialog")).to_have_count(0)

    box = page.get_by_label("Message to Board")
    await box.fill("Well?")
    await box.press("Enter")
    card = page.get_by_role("article", name="Turn 3").get_by_role("article", name="Seth Godin")
    await card.get_by_role("button", name="Context of Seth Godin").click()
    left_out = page.get_by_role("dialog").get_by_role("region", name="Left out").get_by_role("listitem")
    await expect(left_out).to_have_text(
        [
            "What Martin Buber said last was left out: the panel's settings hide it.",
            "Replies of the others in earlier turns were left out: only their previous turn is ever shown.",
        ]
    )
    await visitor.check_accessibility()


async def test_on_a_phone_the_words_below_a_round_stand_above_its_buttons(house: House, visit: Visit) -> None:
    noor, panel = await board(house)
    denizen = house.world.denizen

    def refuse(messages: list[ModelMessage], info: Info) -> Turn:
        raise ModelHTTPError(status_code=400, model_name="m", body={"error": {"message": "Not like this."}})

    denizen.models.register("refusing", forever(refuse))
    for name in ("Hannah Arendt", "Simone Weil"):
        await denizen.advisors.add(panel, {"name": name, "model": "refusing"})
    await denizen.panels.ask(panel, noor, "Where?")
    page = await (await visit(noor, size=PHONE)).open(f"/panels/{panel.id}")
    turn = page.get_by_role("article", name="Turn 3")
    await expect(turn.get_by_role("button", name="Ask 2 again")).to_be_visible()
    words = await turn.get_by_text("2 of 4 have answered, 2 failed").bounding_box()
    button = await turn.get_by_role("button", name="Ask 2 again").bounding_box()
    assert words
    assert button
    assert words["y"] + words["height"] <= button["y"]
    assert words["width"] > PHONE["width"] / 2
