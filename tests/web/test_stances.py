"""How an agent stands to a conversation, as whoever looks after it sees it: profile, state of mind, what moved it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest_asyncio
from playwright.async_api import expect

from denizen import call, reply, scripted
from denizen.agents.registry import Agent
from denizen.models.scripted import Turn
from denizen.spaces.directory import Entity, Space
from tests.server.conftest import House, served
from tests.web.conftest import PHONE, Visit
from tests.world import UNHURRIED, open_world

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
        served(world) as house,
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
    told = page.get_by_role("list", name="What moved it").get_by_role("listitem")
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
    settings = page.get_by_role("region", name="Settings of this conversation")
    await settings.get_by_label("Profile").select_option("plain")
    await settings.get_by_label("Reflection").select_option("off")
    await settings.get_by_role("button", name="Save").click()
    await expect(settings.get_by_role("button", name="Take them away")).to_be_visible()
    stance = await house.world.denizen.stance(ada, desk)
    assert dict(stance.overrides) == {"preset": "plain", "reflection": {"profile": "off"}}
    await settings.get_by_role("button", name="Take them away").click()
    await expect(settings.get_by_role("button", name="Take them away")).to_have_count(0)
    assert (await house.world.denizen.stance(ada, desk)).overrides == {}


async def test_a_metaprompt_is_tried_before_it_changes_anything(house: House, visit: Visit) -> None:
    noor, ada, desk = await grown(
        house,
        call("adjust", mood="focused", reason="Less talk."),
        "no answer of the shape",
        call("adjust", mood="creative", reason="Try something else."),
    )
    visitor = await visit(noor, size=PHONE)
    page = await visitor.open(f"/agents/{ada.id}/stance/{desk.id}")
    trial = page.get_by_role("region", name="Try a metaprompt")
    came = trial.get_by_role("status", name="What came of it")

    async def mood() -> str:
        return (await house.world.denizen.stance(ada, desk)).state.mood

    await trial.get_by_label("Metaprompt").select_option("In words of your own")
    await trial.get_by_label("Words").fill("You are {{current_mood}}. Stay so?")
    await trial.get_by_role("button", name="Ask").click()
    await expect(came).to_contain_text("Less talk.")
    await came.get_by_text("What it was asked").click()
    await expect(came).to_contain_text("You are encouraging. Stay so?")
    await visitor.check_accessibility()
    assert await mood() == "encouraging"
    await came.get_by_role("button", name="Set it so").click()
    await expect(page.get_by_role("heading", name="Ada is focused.")).to_be_visible()

    # An answer that cannot be used changes nothing, whoever wanted it to.
    await trial.get_by_label("Metaprompt").select_option("confusion_clarification")
    await trial.get_by_label("Let the answer change").check()
    await trial.get_by_role("button", name="Ask").click()
    await expect(came).to_contain_text("failed")
    assert await mood() == "focused"
    await trial.get_by_role("button", name="Ask").click()
    await expect(page.get_by_role("heading", name="Ada is creative.")).to_be_visible()
    await expect(came).to_contain_text("holds")
