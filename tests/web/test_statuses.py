"""Why an agent has not answered stands in the space, with what one can do about it."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from playwright.async_api import expect

from denizen.bus.streams import entity_topic
from denizen.errors import ModelKeyRejected
from denizen.inbox import statuses
from denizen.inbox.statuses import CAUSES, Cause
from denizen.models.scripted import forever, reply, skip
from denizen.spaces.directory import Space
from denizen.storage.database import Tx
from tests.server.conftest import House
from tests.web.conftest import PHONE, Visit
from tests.web.test_conversation import write


async def test_an_agent_that_did_not_reply_is_asked_for_an_answer(house: House, visit: Visit) -> None:
    world = house.world
    noor = await world.person("Noor")
    bo = await world.agent("Bo", skip("Nothing to add."), reply("Four o'clock."), "Answered.")
    kitchen = await world.space("Kitchen", noor, bo)
    hers = await visit(noor, size=PHONE)
    page = await hers.open(f"/s/{kitchen.id}")
    await write(page, "When is tea?")

    notice = page.get_by_role("status").filter(has_text="Bo read this and did not reply.")
    await expect(notice).to_be_visible()
    await hers.check_accessibility()
    await notice.get_by_role("button", name="Ask for an answer").click()
    await expect(page.get_by_role("article", name="Bo: Four o'clock.")).to_be_visible()
    await expect(notice).to_have_count(0)


async def test_a_rejected_key_is_told_and_trying_again_brings_the_answer(house: House, visit: Visit) -> None:
    world = house.world
    noor = await world.person("Noor")
    bo = await world.agent("Bo", ModelKeyRejected("status_code: 401"), reply("Here."), "Answered.")
    kitchen = await world.space("Kitchen", noor, bo)
    hers = await visit(noor)
    page = await hers.open(f"/s/{kitchen.id}")
    await write(page, "Hello?")

    notice = page.get_by_role("status").filter(has_text="rejected the API key of Bo")
    await expect(notice).to_be_visible()
    # It is there for whoever comes later, too.
    await page.reload()
    await expect(notice).to_be_visible()
    await notice.get_by_role("button", name="Try again").click()
    await expect(page.get_by_role("article", name="Bo: Here.")).to_be_visible()
    await expect(notice).to_have_count(0)


@pytest.mark.parametrize(("hours", "shown"), [(2, "Next try: 14:00."), (20, "Next try: 2 Mar, 08:00.")])
async def test_the_next_try_is_told_with_its_day_only_if_that_is_another(
    house: House, visit: Visit, hours: int, shown: str
) -> None:
    """Somebody who waits for two minutes is not told the date."""
    world = house.world
    noor = await world.person("Noor")
    bo = await world.agent("Bo")
    kitchen = await world.space("Kitchen", noor, bo)
    noon = datetime(2026, 3, 1, 12, tzinfo=ZoneInfo("Europe/Berlin"))
    retry_at = int((noon + timedelta(hours=hours)).timestamp() * 1_000_000)
    await world.denizen.db.write(lambda tx: statuses.show(tx, bo.id, kitchen.id, "failing", retry_at=retry_at))
    visitor = await visit(noor, new_context=True)
    await visitor.page.clock.set_fixed_time(noon)
    page = await visitor.open(f"/s/{kitchen.id}")
    await expect(page.get_by_role("status").filter(has_text="Bo has trouble answering.")).to_contain_text(shown)


ACTIONS = {
    "try_again": "Try again",
    "ask": "Ask for an answer",
    "settings": "Open settings",
    "resume": "Resume",
    "budget": "Open settings",
}


async def test_every_cause_is_shown_in_its_words_with_its_actions(house: House, visit: Visit) -> None:
    """As REST tells it: tests/scenarios/test_every_surface.py has what brings each about."""
    world = house.world
    noor = await world.person("Noor")
    bo = await world.agent("Bo")
    rooms: dict[Cause, Space] = {cause: await world.space(cause, noor, bo) for cause in CAUSES}
    await world.denizen.agents.suspend(bo)

    def show(tx: Tx) -> None:
        for cause, room in rooms.items():
            detail: dict[str, Any] = {"provider": "OpenAI", "model": "gpt-x", "count": 5, "limit": "steps"}
            statuses.show(tx, bo.id, room.id, cause, **detail)

    await world.denizen.db.write(show)
    page = await (await visit(noor)).open("/")
    for cause, room in rooms.items():
        [told] = (await house.call("GET", f"/api/spaces/{room.id}", noor)).json()["statuses"]
        await page.get_by_role("link", name=cause, exact=True).click()
        notice = page.get_by_role("status").filter(has_text=told["text"])
        await expect(notice).to_be_visible()
        for action in told["actions"]:
            labelled = notice.get_by_role("button", name=ACTIONS[action])
            await expect(labelled.or_(notice.get_by_role("link", name=ACTIONS[action]))).to_be_visible()


async def test_a_panel_in_which_nobody_can_answer_tells_why_and_is_asked_again(house: House, visit: Visit) -> None:
    world = house.world
    noor = await world.person("Noor")
    world.denizen.models.register("m", forever(lambda *_: ModelKeyRejected("status_code: 401")))
    board = await world.denizen.panels.create("Board", [noor], advisors=["Seth", "Buber"], model="m")
    hers = await visit(noor)
    page = await hers.open("/")
    await page.get_by_role("link", name="Board").click()
    await page.get_by_label("Message to Board").fill("Hello?")
    await page.get_by_label("Message to Board").press("Enter")

    notice = page.get_by_role("status").filter(has_text="The advisors could not answer: the provider rejected the API")
    await expect(notice).to_be_visible()
    await hers.check_accessibility()
    world.denizen.models.register("m", forever(lambda *_: "Here."))
    await notice.get_by_role("button", name="Try again").click()
    await expect(page.get_by_text("Here.")).to_have_count(2)
    await expect(notice).to_have_count(0)
    assert await world.denizen.spaces.statuses(board.id) == []


async def test_agents_that_stopped_answering_each_other_are_let_go_on(house: House, visit: Visit) -> None:
    world = house.world
    noor = await world.person("Noor")
    ada = await world.agent("Ada", *[reply("Yes, @bo."), "Answered."] * 3)
    bo = await world.agent("Bo", *[reply("No, @ada."), "Answered."] * 3)
    hall = await world.space("Hall", noor, ada, bo, floor="all", agent_run_limit=2)
    hers = await visit(noor)
    page = await hers.open(f"/s/{hall.id}")
    await world.say(ada, "Is it so, @bo?", hall)

    notice = page.get_by_role("status").filter(has_text="The agents have stopped answering each other")
    await expect(notice).to_be_visible()
    await hers.check_accessibility()
    before = len(await world.denizen.spaces.messages(hall))
    await notice.get_by_role("button", name="Let them continue").click()
    await expect(page.get_by_role("article").nth(before)).to_be_visible()

    await page.get_by_role("button", name="Space menu").click()
    await page.get_by_role("menuitem", name="Settings").click()
    await page.get_by_role("dialog").get_by_label("Which agents answer").select_option("addressed")
    await page.get_by_role("dialog").get_by_role("button", name="Save").click()
    await expect(page.get_by_role("dialog")).to_have_count(0)
    [shown] = (await house.call("GET", "/api/spaces", noor)).json()["spaces"]
    assert shown["floor"] == "addressed"


async def test_a_notice_to_a_person_is_shown_wherever_they_are(house: House, visit: Visit) -> None:
    """Here: that somebody else made an access token for them."""
    noor, mia = await house.world.person("Noor"), await house.world.person("Mia")
    page = await (await visit(mia)).open("/agents")
    await expect(page.get_by_role("heading", name="Agents").first).to_be_visible()
    while not house.world.denizen.bus.attention(entity_topic(mia.id)):  # noqa: ASYNC110
        await asyncio.sleep(0)  # until the page listens: a notice is for those who are there
    made = await house.call("POST", "/api/tokens", noor, json={"name": "Builds", "entity": "@mia"})
    assert made.status_code == 201
    await expect(page.get_by_text("Noor (@noor) created the access token 'Builds' for you.")).to_be_visible()
