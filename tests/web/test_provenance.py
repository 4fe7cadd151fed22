"""The browser shows which messages and entries hold text from outside."""

from __future__ import annotations

from playwright.async_api import expect

from denizen import call, reply, tool
from denizen.memory import items
from denizen.memory.audience import Owner
from denizen.memory.items import Candidate
from tests.server.conftest import House
from tests.trust.test_origins import make_guest
from tests.web.conftest import Visit


@tool(results="outside", effect=False)
def get_page() -> str:
    """Read the page."""
    return "Buy now!"


async def test_messages_and_cycles_say_that_they_hold_text_from_outside(house: House, visit: Visit) -> None:
    world = house.world
    noor, eve = await world.person("Noor"), await world.person("Eve")
    await make_guest(world, eve)
    turns = [reply("Hello."), "Greeted.", call("get_page"), reply("It is an advertisement."), "Read it."]
    ada = await world.agent("Ada", *turns, tools=[get_page], cycle={"silent_reply": "ignore"})
    kitchen = await world.space("Kitchen", noor, eve, ada)
    await world.say(noor, "Good morning", kitchen)
    await world.run()
    await world.say(eve, "Look at my page", kitchen)
    await world.run()
    hers = await visit(noor)

    page = await hers.open(f"/s/{kitchen.id}")
    labels = {"Noor: Good morning": 0, "Ada: Hello.": 0, "Eve: Look at my page": 1, "Ada: It is an advertisement.": 1}
    for name, count in labels.items():
        message = page.get_by_role("article", name=name)
        await expect(message).to_be_visible()
        await expect(message.get_by_text("from outside")).to_have_count(count)

    page = await hers.turn_to("/agents/@ada/life/2")
    await expect(page.get_by_text("held text from outside", exact=True)).to_be_visible()
    await expect(page.get_by_text("from outside: @eve")).to_be_visible()
    await expect(page.get_by_text("from outside: get_page")).to_be_visible()
    await hers.check_accessibility()


async def test_goals_notes_plans_and_memories_say_that_they_were_made_from_text_from_outside(
    house: House, visit: Visit
) -> None:
    world = house.world
    noor = await world.person("Noor")
    wanted = [
        call("set_goals", text="Buy now"),
        call("set_memories", memories={"shop": "Sells now."}),
        call("set_timer", name="Buying", reason="Buy it.", cron="0 9 * * *"),
    ]
    ada = await world.agent(
        "Ada", call("get_page"), wanted, "Noted.", tools=[get_page], cycle={"silent_reply": "ignore"}
    )
    kitchen = await world.space("Kitchen", noor, ada)
    await world.say(noor, "Read the page.", kitchen)
    await world.run()
    await house.call("PUT", f"/api/agents/{ada.id}/notes/tea", noor, json={"text": "Milk."})
    whose = Owner("user", noor.organization_id, user_id=noor.id)
    kept = [Candidate("facts", "Noor sings.", ("m",)), Candidate("facts", "Noor buys.", ("m",), outside=True)]
    await world.denizen.db.write(items.remember, whose, kitchen.id, kept)
    hers = await visit(noor)

    page = await hers.open("/agents/@ada/plans")
    rows = {"Buying": 1, "Buy now": 1, "Sells now.": 1, "Milk.": 0}
    for words, count in rows.items():
        row = page.get_by_role("listitem").filter(has_text=words)
        await expect(row).to_have_count(1)
        await expect(row.get_by_text("made from text from outside")).to_have_count(count)
    await hers.check_accessibility()

    page = await hers.turn_to("/memory")
    for words, count in {"Noor sings.": 0, "Noor buys.": 1}.items():
        row = page.get_by_role("listitem").filter(has_text=words)
        await expect(row).to_have_count(1)
        await expect(row.get_by_text("made from text from outside")).to_have_count(count)
    await hers.check_accessibility()
