"""Panels in the browser."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from denizen import forever
from tests.server.conftest import House
from tests.web.conftest import Visit, _web_client, browser, house, visit  # noqa: F401  fixtures
from tests.world import World

GOOD = (
    "What did your teacher say when they recommended The Prosperous Coach?",
    "How many of these potential clients have you worked with before?",
)
BAD = ("What would it mean to risk an authentic encounter?", "What are you protecting?")


async def test_advisors_are_shown_good_and_bad_questions(small_world: World) -> None:
    """In its first three turns an advisor is told to ask one question, with two good and two bad examples, each with
    its reason.

    Docs: panel.md
    """
    denizen, noor = small_world.denizen, await small_world.person("Noor")
    denizen.models.register("echo", forever(lambda messages, info: "Why?"))
    board = await denizen.panels.create("Board", [noor], advisors=["Seth"], model="echo")
    asked = await denizen.panels.ask(board, noor, "Should I open a bakery?")
    await denizen.run_until_idle()

    (seth,) = await denizen.advisors.list(board)
    prompt = (await denizen.rounds.context(asked, seth)).lines[0].text
    examples = [line for line in prompt.splitlines() if line.startswith(("Good: ", "Bad: "))]
    assert [line.split('"')[1] for line in examples] == [*GOOD, *BAD]
    assert all(line.endswith(".)") for line in examples)


async def test_a_panel_can_hide_what_the_others_said(small_world: World) -> None:
    """Each panel decides whether its advisors see what the others said in the previous turn. The context of a reply
    lists what was left out, and why.

    Docs: panel.md
    """
    denizen, noor = small_world.denizen, await small_world.person("Noor")
    denizen.models.register("echo", forever(lambda messages, info: "Why?"))
    board = await denizen.panels.create("Board", [noor], advisors=["Seth", "Buber"], model="echo", show_others=False)
    await denizen.panels.ask(board, noor, "Should I open a bakery?")
    await denizen.run_until_idle()
    asked = await denizen.panels.ask(board, noor, "And when?")
    await denizen.run_until_idle()

    seth, _ = await denizen.advisors.list(board)
    shown = await denizen.rounds.context(asked, seth)
    assert [line.role for line in shown.lines] == ["system", "user", "assistant", "user"]
    assert [each.sentence() for each in shown.omitted] == [
        "What Buber said last was left out: the panel's settings hide it."
    ]


@pytest.mark.asyncio(loop_scope="session")
async def test_each_card_edits_its_advisor_and_its_assertions(house: House, visit: Visit) -> None:  # noqa: F811
    """In the browser each card of an advisor has a button to edit the advisor, and one for its assertions.

    Docs: web.md
    """
    denizen, noor = house.world.denizen, await house.world.person("Noor")
    denizen.models.register("echo", forever(lambda messages, info: "Why?"))
    board = await denizen.panels.create("Board", [noor], advisors=["Seth"], model="echo")
    await denizen.panels.ask(board, noor, "Should I open a bakery?")
    page = await (await visit(noor)).open(f"/panels/{board.id}")
    card = page.get_by_role("article", name="Seth")
    for button, dialog in (("Edit Seth", "Seth"), ("Assertions of Seth", "Assertions of Seth")):
        await card.get_by_role("button", name=button).click()
        await expect(page.get_by_role("dialog", name=dialog)).to_be_visible()
        await page.keyboard.press("Escape")


@pytest.mark.asyncio(loop_scope="session")
async def test_phases_have_a_form(house: House, visit: Visit) -> None:  # noqa: F811
    """In the browser phases are edited in a form: name, last turn and instructions of each.

    Docs: web.md
    """
    noor = await house.world.person("Noor")
    board = await house.world.denizen.panels.create("Board", [noor], advisors=["Seth"])
    page = await (await visit(noor)).open(f"/panels/{board.id}")
    await page.get_by_role("button", name="Panel menu").click()
    await page.get_by_role("menuitem", name="Panel settings").click()
    await page.get_by_label("Name of phase 1").fill("first questions")
    await page.get_by_label("Last turn of phase 1").fill("2")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("dialog")).to_have_count(0)
    phases = (await house.world.denizen.panels.get(board)).settings.phases
    assert [(each.name, each.until_turn) for each in phases] == [("first questions", 2), ("", None)]
