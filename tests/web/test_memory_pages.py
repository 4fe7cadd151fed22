"""What is remembered, as people see it: of them, of a conversation, by an agent, and for everyone."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from typing import Any

import pytest_asyncio
from playwright.async_api import Locator, expect

from denizen import forever
from denizen.agents.registry import Agent
from denizen.memory import items
from denizen.memory.audience import Owner
from denizen.memory.items import Candidate
from denizen.spaces.directory import Entity, Space
from tests.memory.conftest import answering, known, remembering, utility, written
from tests.server.conftest import House
from tests.web.conftest import PHONE, Visit, served_to_browsers
from tests.world import UNHURRIED, open_world

SUMMARY = "Noor and Ada plan **Sunday's dinner** for six.\n\n- Risotto, with a fennel salad\n- One guest eats no gluten"
LATER = "The dinner is **cancelled**; the rice waits."


@pytest_asyncio.fixture(loop_scope="session")
async def house(ready_sqlite_url: str) -> AsyncGenerator[House]:
    """A house that remembers."""
    async with (
        open_world(ready_sqlite_url, pace=UNHURRIED, memory=remembering()) as world,
        served_to_browsers(world) as house,
        world.denizen.living(),
    ):
        yield house


async def dinner(house: House) -> tuple[Entity, Entity, Agent, Space]:
    """Noor has talked with Ada, and it was summed up once."""
    utility(
        house.world,
        written(
            SUMMARY,
            facts=[known("Six people come to dinner on Sunday.", 1)],
            preferences=[known("Noor likes risotto.", 1, confidence=0.8)],
            open_loops=[known("Who brings the wine is not settled.", 2)],
            todos=[known("Buy rice on Friday.", 2)],
            tags=["dinner"],
        ),
        written(LATER, facts=[known("There is no dinner.", 3, replaces="Six people come to dinner on Sunday.")]),
    )
    noor, mia = await house.world.person("Noor"), await house.world.person("Mia")
    ada = await house.world.agent("Ada", model=forever(answering))
    kitchen = await house.world.space("Kitchen", noor, ada)
    await talk(house, noor, kitchen, "We are six on Sunday, and I like risotto.")
    await talk(house, noor, kitchen, "Who brings the wine? And please remind me of the rice.")
    return noor, mia, ada, kitchen


async def switched(box: Locator) -> None:
    """The box is otherwise the moment that it is clicked, and soon the server knows."""
    async with box.page.expect_response(lambda each: each.request.method == "PATCH"):
        changed = await box.evaluate(
            "box => { const before = box.checked; box.click(); return box.checked !== before }"
        )
    assert changed


async def talk(house: House, who: Entity, space: Space, text: str) -> None:
    await house.world.say(who, text, space)
    await house.world.denizen.run_until_idle()


async def remember(house: House, space: Space, category: str, text: str, *replaced: str, **owner: Any) -> None:
    whose = Owner(organization_id=space.organization_id, **owner)
    source = (await house.world.denizen.spaces.messages(space))[0].id
    kept = [Candidate(category, text, (source,), 80, replaced)]
    await house.world.denizen.db.write(items.remember, whose, space.id, kept)


async def test_what_is_remembered_of_someone_is_found_followed_corrected_and_forgotten(
    house: House, visit: Visit
) -> None:
    noor, mia, _, kitchen = await dinner(house)
    await remember(house, kitchen, "preferences", "Noor takes her tea without sugar.", scope="user", user_id=noor.id)
    await remember(house, kitchen, "facts", "The boiler was mended in May.", scope="organization")
    visitor = await visit(noor)
    page = await visitor.open("/")
    await page.get_by_role("link", name="Memory").click()
    liked = page.get_by_role("region", name="Preferences").get_by_role("listitem")
    await expect(liked.filter(has_text="Noor likes risotto.")).to_contain_text("80% sure")
    await expect(page.get_by_role("region", name="To-dos")).to_contain_text("Buy rice on Friday.")
    await visitor.check_accessibility()

    # Where it was said.
    await liked.filter(has_text="risotto").get_by_role("link", name="said in Kitchen").click()
    await expect(page).to_have_url(re.compile(f"/s/{kitchen.id}/m/1$"))
    await expect(page.get_by_text("We are six on Sunday, and I like risotto.")).to_be_visible()
    await page.go_back()

    # Corrected: what it said before is in its history.
    tea = liked.filter(has_text="tea")
    await tea.get_by_role("button", name=re.compile("^Actions for")).click()
    await page.get_by_role("menuitem", name="Correct").click()
    await expect(page.get_by_role("button", name="Save")).to_be_disabled()
    await page.get_by_label("Correct text").fill("Noor takes her tea with milk.")
    await page.get_by_role("button", name="Save").click()
    await expect(tea).to_contain_text("with milk")
    await expect(tea.get_by_text("without sugar")).to_have_count(0)
    await tea.get_by_role("button", name="1 earlier version").click()
    dialog = page.get_by_role("dialog", name="History of this memory")
    versions = dialog.get_by_role("listitem")
    await expect(versions).to_have_count(2)
    await expect(versions.first).to_contain_text("Corrected by you")
    await expect(versions.first.locator("del")).to_have_text(["without sugar."])
    await expect(versions.first.locator("ins")).to_have_text(["with milk."])
    await expect(versions.first.get_by_text("Current")).to_be_visible()
    await expect(versions.first.get_by_role("button", name=re.compile("^Revert"))).to_have_count(0)
    await visitor.check_accessibility()

    # Reverted, from the menu, and back: the history grows.
    await dialog.get_by_role("button", name="Revert to version 1").click()
    await expect(dialog).to_have_count(0)
    await expect(tea).to_contain_text("without sugar")
    await tea.get_by_role("button", name=re.compile("^Actions for")).click()
    await page.get_by_role("menuitem", name="History").click()
    await expect(versions).to_have_count(3)
    await expect(versions.first).to_contain_text("Reverted by you")
    await dialog.get_by_role("button", name="Revert to version 2").click()
    await expect(dialog).to_have_count(0)
    await expect(tea).to_contain_text("with milk")

    # Found by words, then forgotten for good.
    await page.get_by_role("searchbox", name="Search").fill("tea")
    await page.get_by_role("button", name="Search", exact=True).click()
    found = page.get_by_role("region", name="Found").get_by_role("listitem")
    await expect(found).to_have_count(1)
    await found.get_by_role("button", name=re.compile("^Actions for")).click()
    await page.get_by_role("menuitem", name="Forget").click()
    await expect(page.get_by_role("dialog")).to_contain_text("The messages it came from stay.")
    await visitor.check_accessibility()
    await page.get_by_role("button", name="Forget", exact=True).click()
    await expect(page.get_by_text("No results.")).to_be_visible()
    left = [each.text for each in await house.world.denizen.memory.list(owner=f"user:{noor.id}")]
    assert not any("tea" in text for text in left)

    # Between her and Ada; and for everyone, which a member only reads.
    await page.get_by_role("link", name="With an agent").click()
    await expect(page.get_by_label("Agent")).to_have_value(re.compile("."))
    await visitor.check_accessibility()
    other = await visit(mia, size=PHONE)
    await other.open("/memory/everyone")
    await expect(other.page.get_by_text("The boiler was mended in May.")).to_be_visible()
    await expect(other.page.get_by_text("learned in a space you are not in")).to_be_visible()
    await expect(other.page.get_by_role("button", name=re.compile("^Actions for"))).to_have_count(0)
    await other.page.get_by_role("link", name="About you").click()
    await expect(other.page.get_by_text("No memories yet.")).to_be_visible()
    await other.check_accessibility()


async def test_a_conversation_tells_what_it_came_to_and_what_may_be_remembered(house: House, visit: Visit) -> None:
    noor, _, _, kitchen = await dinner(house)
    visitor = await visit(noor)
    page = await visitor.open(f"/s/{kitchen.id}")
    await page.get_by_role("button", name="Space menu").click()
    await page.get_by_role("menuitem", name="Conversation summary").click()
    dialog = page.get_by_role("dialog", name="Summary of Kitchen")
    await expect(dialog.get_by_text("Sunday's dinner")).to_be_visible()
    await expect(dialog.get_by_role("link", name="message 2", exact=True)).to_be_visible()
    await expect(dialog.get_by_role("region", name="Open loops")).to_contain_text("Who brings the wine")
    await expect(dialog.get_by_role("region", name="To-dos").get_by_role("link", name="Message 2")).to_be_visible()
    await visitor.check_accessibility()

    # Live: it is summed up again while one looks.
    await talk(house, noor, kitchen, "The dinner is off, everyone is ill.")
    await expect(dialog.get_by_text("cancelled")).to_be_visible()
    await dialog.get_by_role("tab", name="Memories").click()
    facts = dialog.get_by_role("region", name="Facts")
    await expect(facts).to_contain_text("There is no dinner.")
    await expect(facts.get_by_text("Six people come")).to_be_hidden()
    await facts.get_by_role("button", name=re.compile("^Actions for")).click()
    await page.get_by_role("menuitem", name="Correct").click()
    await expect(page.get_by_label("Correct text")).to_have_value("There is no dinner.")
    await page.keyboard.press("Escape")
    await expect(page.get_by_label("Correct text")).to_have_count(0)

    # What may be: one scope less, then nothing at all.
    await dialog.get_by_role("tab", name="Settings").click()
    await switched(dialog.get_by_label("Personal"))
    await expect(dialog.get_by_label("Personal")).not_to_be_checked()
    await switched(dialog.get_by_label("Long-term memory for this conversation"))
    await expect(dialog.get_by_label("This conversation", exact=True)).to_be_disabled()
    await visitor.check_accessibility()
    settled = await house.world.denizen.memory.policy(kitchen)
    assert (settled.enabled, settled.scopes.user) == (False, False)

    # Back to what was said.
    await dialog.get_by_role("tab", name="Summary").click()
    await dialog.get_by_role("region", name="Facts").get_by_role("link", name="Message 3").click()
    await expect(dialog).to_have_count(0)
    await expect(page).to_have_url(re.compile("/m/3$"))


async def test_whoever_looks_after_a_house_sees_what_agents_remember_and_switches_it_off(
    house: House, visit: Visit
) -> None:
    noor, mia, ada, kitchen = await dinner(house)
    between = {"scope": "persona", "user_id": mia.id, "agent_id": ada.id}
    await remember(house, kitchen, "facts", "Mia has 2 cats.", **between)
    await remember(house, kitchen, "facts", "Mia has 3 cats.", **between)
    visitor = await visit(noor)
    page = await visitor.open(f"/agents/{ada.id}/memories")
    await expect(page.get_by_role("listitem").filter(has_text="Mia has 2 cats.")).to_contain_text("of Mia")
    await visitor.check_accessibility()

    await visitor.turn_to("/admin/memory")
    findings = page.get_by_role("list", name="Findings").get_by_role("listitem").filter(has_text="contradiction")
    await findings.get_by_role("button", name="Look").click()
    await expect(page.get_by_role("dialog")).to_contain_text("Mia has 3 cats.")
    await visitor.check_accessibility()
    await page.keyboard.press("Escape")
    await switched(page.get_by_label("To-dos"))
    await expect(page.get_by_label("To-dos")).to_be_checked()
    await switched(page.get_by_label("Personal"))
    await expect(page.get_by_label("Personal")).not_to_be_checked()
    await visitor.check_accessibility()
    settings = await house.world.denizen.memory.switches()
    assert settings is not None
    assert (settings.user, "todos" in settings.categories) == (False, True)

    # Everyone can see what is switched off.
    await page.get_by_role("link", name="Memory").first.click()
    await expect(page.get_by_text("Switched off by an admin")).to_be_visible()
