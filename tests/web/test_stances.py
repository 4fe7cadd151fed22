"""How agents and advisors stand to a conversation, as people see it: profile, state of mind, what moved it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest_asyncio
from playwright.async_api import Locator, Page, expect
from pydantic_ai.messages import ModelMessage

from denizen import call, reply, scripted
from denizen.agents.registry import Agent
from denizen.models.scripted import Info, Turn, forever
from denizen.panel.panels import Panel
from denizen.spaces.directory import Entity, Space
from tests.server.conftest import House
from tests.web.conftest import PHONE, Visit, served_to_browsers
from tests.world import UNHURRIED, as_text, open_world

PRESETS = {
    "presets": [{"id": "short", "label": "Short", "addonPromptKeys": ["concise"]}, {"id": "plain"}],
    "rules": [{"id": "asked", "presetId": "short", "anyKeywords": ["briefly"]}],
    "routing": {"defaultPresetId": "plain"},
}
TALK = [
    "Briefly: I hate this, it is terrible and awful.",
    "I don't understand this step yet.",
    "Wonderful, that is great, I love it. Thank you!",
]


@pytest_asyncio.fixture(loop_scope="session")
async def house(ready_sqlite_url: str, tmp_path: Path) -> AsyncGenerator[House]:
    """A house with profiles."""
    presets = tmp_path / "presets.json"
    presets.write_text(json.dumps(PRESETS))
    async with (
        open_world(ready_sqlite_url, pace=UNHURRIED, presets=presets) as world,
        served_to_browsers(world) as house,
        world.denizen.living(),
    ):
        yield house


async def grown(house: House, *more: Turn) -> tuple[Entity, Agent, Space]:
    """Noor was frustrated, then confused, then satisfied, and Ada has seen it."""
    world = house.world
    turns = [
        call("adjust", mood="empathetic", user_skill="novice", reason="They have tried three times."),
        call("adjust", mood="patient", task_complexity="complex", reason="It has to be said more simply."),
        call("adjust", mood="encouraging", user_skill="intermediate", reason="It works: go on like this."),
    ]
    world.denizen.models.register("utility", scripted(*turns, *more, name="utility"))
    reflection = {"profile": "standard", "model": "utility"}
    ada = await world.agent("Ada", *[reply("I see."), "Listened."] * 8, reflection=reflection)
    noor = await world.person("Noor")
    desk = await world.space("Desk", noor, ada)
    for text in TALK:
        await world.say(noor, text, desk)
        await world.denizen.run_until_idle()
        world.clock.advance(7_200)
    return noor, ada, desk


async def test_a_stance_is_understood_set_and_reset(house: House, visit: Visit) -> None:
    noor, ada, desk = await grown(house)
    visitor = await visit(noor)
    page = await visitor.open(f"/agents/{ada.id}/now")
    await page.get_by_role("link", name="Stance").click()
    place = page.get_by_role("list", name="Conversations").get_by_role("link", name="Desk")
    await expect(place).to_contain_text("encouraging")
    await visitor.check_accessibility()
    await page.get_by_role("textbox", name="A message").fill("Tell me briefly.")
    await page.get_by_role("button", name="See").click()
    await expect(page.get_by_text("the message has 'briefly'")).to_be_visible()
    await place.click()

    # Which profile, and why; how it is, and what moved it.
    await expect(page.get_by_role("heading", name="In Desk Ada is encouraging.")).to_be_visible()
    profile = page.get_by_role("region", name="Profile", exact=True)
    await expect(profile).to_contain_text("Short")
    await expect(profile).to_contain_text("rule 'asked': the message has 'briefly' (first turn)")
    told = page.get_by_role("list", name="Changes, newest first").get_by_role("listitem")
    await expect(told.first).to_contain_text("It works: go on like this.")
    await expect(told.last).to_contain_text("Noor seems frustrated")
    await expect(told.last.get_by_role("link", name="Cycle 1")).to_be_visible()
    await expect(told.nth(-2)).to_contain_text("Mood: empathetic, Their skill: novice")
    await visitor.check_accessibility()

    await page.get_by_role("button", name="Set by hand").click()
    await page.get_by_label("Mood").select_option("curious")
    await visitor.check_accessibility()
    await page.get_by_role("button", name="Set", exact=True).click()
    await expect(page.get_by_role("heading", name="Ada is curious.")).to_be_visible()
    await expect(told.first).to_contain_text("set by hand")
    await page.get_by_role("button", name="Reset").click()
    await page.get_by_role("dialog").get_by_role("button", name="Reset").click()
    await expect(page.get_by_role("heading", name="Ada is neutral.")).to_be_visible()

    # Settings of this conversation alone.
    settings = page.get_by_role("region", name="Conversation settings")
    await settings.get_by_label("Profile").select_option("plain")
    await settings.get_by_label("Reflection", exact=True).select_option("off")
    await settings.get_by_role("button", name="Save").click()
    await expect(settings.get_by_role("button", name="Clear")).to_be_visible()
    stance = await house.world.denizen.reflection.stance(ada, desk)
    assert dict(stance.overrides) == {"preset": "plain", "reflection": {"profile": "off"}}
    await settings.get_by_role("button", name="Clear").click()
    await expect(settings.get_by_role("button", name="Clear")).to_have_count(0)
    assert (await house.world.denizen.reflection.stance(ada, desk)).overrides == {}


async def test_a_metaprompt_is_tried_before_it_changes_anything(house: House, visit: Visit) -> None:
    noor, ada, desk = await grown(
        house,
        call("adjust", mood="focused", reason="Less talk."),
        *["no answer of the shape"] * 2,
        call("adjust", mood="creative", reason="Try something else."),
    )
    visitor = await visit(noor, size=PHONE)
    page = await visitor.open(f"/agents/{ada.id}/stance/{desk.id}")
    trial = page.get_by_role("region", name="Try a metaprompt")
    came = trial.get_by_role("status", name="Result")

    async def mood() -> str:
        return (await house.world.denizen.reflection.stance(ada, desk)).state.mood

    await trial.get_by_label("Metaprompt").select_option("Custom")
    await trial.get_by_label("Prompt text").fill("You are {{current_mood}}. Stay so?")
    await trial.get_by_role("button", name="Ask").click()
    await expect(came).to_contain_text("Less talk.")
    await came.get_by_text("Prompt").click()
    await expect(came).to_contain_text("You are encouraging. Stay so?")
    await visitor.check_accessibility()
    assert await mood() == "encouraging"
    await came.get_by_role("button", name="Apply").click()
    await expect(page.get_by_role("heading", name="Ada is focused.")).to_be_visible()

    # An answer that cannot be used is asked for once more, then changes nothing, whoever wanted it to.
    await trial.get_by_label("Metaprompt").select_option("confusion_clarification")
    await trial.get_by_label("Parse the answer as a state of mind").check()
    await trial.get_by_role("button", name="Ask").click()
    await expect(came).to_contain_text("failed")
    assert await mood() == "focused"
    await trial.get_by_role("button", name="Ask").click()
    await expect(page.get_by_role("heading", name="Ada is creative.")).to_be_visible()
    await expect(came).to_contain_text("holds")


# Of the voices of a panel, for those who are in it

_MOVED = {
    "Seth Godin": call("adjust", mood="empathetic", user_skill="novice", reason="They have tried three times."),
    "Martin Buber": call("adjust", mood="patient", reason="One thing after the other."),
}


async def board(house: House, *tried: Turn, reflection: dict[str, Any]) -> tuple[Entity, Panel]:
    """A panel of two. Each makes its own of what Noor says first; then the model answers what is tried by hand."""
    denizen, moved, more = house.world.denizen, dict(_MOVED), list(tried)

    def ponder(messages: list[ModelMessage], _info: Info) -> Turn:
        who = as_text(messages[0]).removeprefix("You are ").partition(",")[0]
        return moved.pop(who, None) or more.pop(0)

    denizen.models.register("voices", forever(lambda _messages, _info: "I see."))
    denizen.models.register("utility", forever(ponder, name="utility"))
    await house.world.person("Owner")
    noor = await house.world.person("Noor")
    advisors = [{"name": "Seth Godin", "colour": "#b3322b"}, "Martin Buber"]
    return noor, await denizen.panels.create("Board", [noor], advisors=advisors, model="voices", reflection=reflection)


def _card(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name="Answers").get_by_role("article", name=name)


async def test_how_each_advisor_stands_is_seen_as_it_changes_set_reset_and_tried(house: House, visit: Visit) -> None:
    less, other = call("adjust", mood="focused", reason="Less talk."), call("adjust", mood="creative")
    useless = ["nothing of use"] * 2
    noor, panel = await board(house, less, *useless, other, reflection={"profile": "basic", "model": "utility"})
    visitor = await visit(noor)
    page = await visitor.open(f"/panels/{panel.id}")
    await page.get_by_label("Message to Board").fill(TALK[0])
    await page.get_by_role("button", name="Ask", exact=True).click()

    # What came of the turn is on the cards as soon as it is so.
    seth, buber = _card(page, "Seth Godin"), _card(page, "Martin Buber")
    await expect(seth.get_by_title("They have tried three times.")).to_have_text("empathetic")
    await expect(buber.get_by_title("One thing after the other.")).to_have_text("patient")
    await page.get_by_role("button", name="Panel menu").click()
    await page.get_by_role("menuitem", name="States of mind").click()
    rows = page.get_by_role("list", name="States of mind").get_by_role("button")
    await expect(rows).to_have_text([
        "Seth GodinThey have tried three times.empathetic",
        "Martin BuberOne thing after the other.patient",
    ])  # fmt: skip
    await expect(rows.first).to_be_focused()
    await visitor.check_accessibility()
    await page.keyboard.press("Enter")

    # One of them: the profile and why, how it is, and what moved it.
    dialog = page.get_by_role("dialog", name="States of mind")
    await expect(dialog.get_by_role("heading", name="Seth Godin is empathetic.")).to_be_visible()
    profile = dialog.get_by_role("region", name="Profile", exact=True)
    await expect(profile).to_contain_text("rule 'asked': the message has 'briefly' (first turn)")
    told = dialog.get_by_role("list", name="Changes, newest first").get_by_role("listitem")
    await expect(told.last).to_contain_text("Noor seems frustrated")
    await expect(told.last).to_contain_text("Turn 1")
    await expect(told.first).to_contain_text("Mood: empathetic, Their skill: novice")
    await visitor.check_accessibility()
    await dialog.get_by_role("button", name="Set by hand").click()
    await page.get_by_label("Mood").select_option("cautious")
    await page.get_by_role("button", name="Set", exact=True).click()
    await expect(dialog.get_by_role("heading", name="Seth Godin is cautious.")).to_be_visible()
    await expect(told.first).to_contain_text("set by hand")
    await expect(told.first).to_contain_text("Noor")
    await expect(page.get_by_role("dialog")).to_have_count(1)
    advisor = (await house.world.denizen.advisors.list(panel))[0]
    await house.world.denizen.advisors.set_state_of_mind(panel, advisor, mood="curious")
    await expect(dialog.get_by_role("heading", name="Seth Godin is curious.")).to_be_visible()
    await dialog.get_by_role("button", name="Reset").click()
    await page.get_by_role("dialog", name="Reset the state of mind?").get_by_role("button", name="Reset").click()
    await expect(dialog.get_by_role("heading", name="Seth Godin is neutral.")).to_be_visible()
    await expect(page.get_by_role("dialog")).to_have_count(1)
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await expect(buber).to_contain_text("patient")
    await expect(seth.get_by_text("curious")).to_have_count(0)

    # From a card, of whoever speaks there. A metaprompt is tried before it changes anything.
    await buber.get_by_role("button", name="State of mind of Martin Buber").click()
    await expect(dialog.get_by_role("button", name="Everyone")).to_be_focused()
    trial = dialog.get_by_role("region", name="Try a metaprompt")
    came = trial.get_by_role("status", name="Result")
    await trial.get_by_label("Metaprompt").select_option("Custom")
    await trial.get_by_label("Prompt text").fill("You are {{current_mood}}. Stay so?")
    await trial.get_by_role("button", name="Ask").click()
    await expect(came).to_contain_text("Less talk.")
    await came.get_by_text("Prompt").click()
    await expect(came).to_contain_text("You are patient. Stay so?")
    await expect(dialog.get_by_role("heading", name="Martin Buber is patient.")).to_be_visible()
    await came.get_by_role("button", name="Apply").click()
    await expect(dialog.get_by_role("heading", name="Martin Buber is focused.")).to_be_visible()
    await trial.get_by_label("Metaprompt").select_option("confusion_clarification")
    await trial.get_by_label("Parse the answer as a state of mind").check()
    await trial.get_by_role("button", name="Ask").click()
    await expect(came).to_contain_text("failed")
    await trial.get_by_role("button", name="Ask").click()
    await expect(dialog.get_by_role("heading", name="Martin Buber is creative.")).to_be_visible()
    await expect(came).to_contain_text("holds")


async def test_a_panel_and_an_advisor_are_set_to_reflect(house: House, visit: Visit) -> None:
    """On a phone, in the dark. What the form does not show stays as it is."""
    own = {"id": "own", "prompt_template": "Well?", "trigger": {"type": "manual"}}
    noor, panel = await board(house, reflection={"metaprompts": [own]})
    visitor = await visit(noor, size=PHONE, color_scheme="dark")
    page = await visitor.open(f"/panels/{panel.id}")

    async def choose(item: str) -> None:
        await page.get_by_role("button", name="Panel menu").click()
        await page.get_by_role("menuitem", name=item, exact=True).click()

    # The panel.
    await choose("Panel settings")
    reflection = page.get_by_label("Reflection", exact=True)
    await expect(reflection).to_have_value("off")
    await expect(page.get_by_text("Other settings, unchanged: metaprompts.")).to_be_visible()
    await reflection.select_option("tutor")
    await page.get_by_label("Reflection model").fill("utility")
    await visitor.check_accessibility()
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("dialog")).to_have_count(0)
    kept = (await house.world.denizen.panels.get(panel)).settings.reflection
    assert (kept.profile, kept.model, [each.id for each in kept.metaprompts]) == ("tutor", "utility", ["own"])

    # One advisor otherwise, and as the panel again.
    async def edit_buber(profile: str) -> None:
        await choose("Advisors")
        await page.get_by_role("button", name="Edit Martin Buber").click()
        await page.get_by_text("Group, model, reflection").click()
        await reflection.select_option(profile)
        await visitor.check_accessibility()
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_role("list", name="Advisors")).to_be_visible()
        await page.keyboard.press("Escape")
        await choose("States of mind")

    buber = page.get_by_role("list", name="States of mind").get_by_role("button", name="Martin Buber")
    await edit_buber("off")
    await expect(buber).to_contain_text("Reflection is off.")
    await visitor.check_accessibility()
    await buber.click()
    await expect(page.get_by_text("its state of mind changes only when someone sets it")).to_be_visible()
    await page.keyboard.press("Escape")
    await edit_buber("Panel default")
    await expect(buber).to_contain_text("No changes yet.")
    assert [each.settings.reflection for each in await house.world.denizen.advisors.list(panel)] == [None, None]
    await buber.click()
    await page.get_by_role("combobox", name="Metaprompt").select_option("own")
    await page.get_by_role("button", name="Everyone").click()
    await page.get_by_role("button", name="Reflection settings").click()
    await expect(page.get_by_role("dialog", name="Panel settings")).to_be_visible()
    await expect(reflection).to_have_value("tutor")
