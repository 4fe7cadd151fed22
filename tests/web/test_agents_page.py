"""Making an agent, and looking after those that are there."""

from __future__ import annotations

import re

from playwright.async_api import expect

from denizen import reply, scripted, tool
from denizen.agents import registry
from denizen.clock import moment
from tests.server.conftest import House
from tests.web.conftest import PHONE, Visit
from tests.web.spending import spend


@tool
def look_up(what: str) -> str:
    """Look something up in the handbook. Give one word."""
    return what


async def test_an_agent_is_made_from_a_template_and_one_is_alone_with_it(house: House, visit: Visit) -> None:
    world = house.world
    noor = await world.person("Noor")
    ada = await world.agent("Ada", tools=[look_up])
    kitchen = await world.space("Kitchen", noor, ada)
    world.denizen.models.register("polite", scripted(reply("Good morning."), "Greeted Noor."))
    visitor = await visit(noor)
    page = await visitor.open("/agents")
    await page.get_by_role("link", name="New agent").click()
    await page.get_by_text("Reviewer").click()
    await expect(page.get_by_label("Name", exact=True)).to_have_value("Vera")
    await expect(page.get_by_label("Role")).to_have_value(re.compile("^You review texts"))
    await expect(page.get_by_text("Mentioned as @vera")).to_be_visible()
    await visitor.check_accessibility()

    # What is wrong is said beside its field: first by the page, then by the server.
    await page.get_by_label("Name", exact=True).fill("")
    await page.get_by_role("button", name="Make the agent").click()
    await expect(page.get_by_text("Enter a name.")).to_be_visible()
    await expect(page.get_by_label("Name", exact=True)).to_be_focused()
    await page.get_by_label("Name", exact=True).fill("Ada")
    await page.get_by_role("button", name="Make Ada").click()
    await expect(page.get_by_text("This handle is taken")).to_be_visible()
    await page.get_by_label("Name", exact=True).fill("Véra Ström")
    await expect(page.get_by_text("Mentioned as @vera-strom")).to_be_visible()

    # Like a draft, what is filled in stays during a look at another screen.
    await page.get_by_role("link", name="Kitchen").click()
    await expect(page.get_by_label("Message to Kitchen")).to_be_visible()
    await visitor.turn_to("/agents/new")
    await expect(page.get_by_label("Name", exact=True)).to_have_value("Véra Ström")
    await expect(page.get_by_label("Role")).to_have_value(re.compile("^You review texts"))
    # A model whose key is not there says what it needs.
    await page.get_by_label("Model", exact=True).select_option("another")
    await page.get_by_label("Model name").fill("cohere:command-r")
    await expect(page.get_by_text("CO_API_KEY")).to_be_visible()
    await page.get_by_label("Model", exact=True).select_option("polite")
    await page.get_by_label("look_up").check()
    await page.get_by_text("# Kitchen").last.click()
    await page.get_by_role("button", name="Make Véra Ström").click()

    await expect(page).to_have_url(re.compile("/s/"))
    await expect(page.get_by_text("Véra Ström created.")).to_be_visible()
    await expect(page.get_by_role("heading", name="Noor and Véra Ström", level=1)).to_be_visible()
    detail = (await house.call("GET", "/api/agents/@vera-strom", noor)).json()
    made = await world.denizen.db.read(registry.get, detail["id"])
    assert (made.definition.model, made.definition.tools, made.definition.zone) == (
        "polite",
        ("look_up",),
        "Europe/Berlin",
    )
    assert made.definition.instructions.startswith("You review texts")
    members = (await house.call("GET", f"/api/spaces/{kitchen.id}", noor)).json()["members"]
    assert {each["name"] for each in members} == {"Noor", "Ada", "Véra Ström"}


async def test_agents_are_listed_with_how_they_are_and_can_rest(house: House, visit: Visit) -> None:
    world = house.world
    noor = await world.person("Noor")
    ada = await world.agent("Ada", reply("Good morning."), "Greeted Noor.", purpose="Looks after this house.")
    bo = await world.agent("Bo", instructions="You weed the garden.")
    await world.say(noor, "Good morning.", await world.space("Kitchen", noor, ada))
    await world.run()
    await spend(world, ada, "small", 1_000, 1.25)
    await spend(world, bo, "openai:of-unknown-price", 1_000, 0)
    visitor = await visit(noor, size=PHONE, new_context=True)
    await visitor.page.clock.set_fixed_time(moment(world.clock.now()))
    page = await visitor.open("/agents")
    row = page.get_by_role("listitem").filter(has_text="@ada")
    await expect(row).to_contain_text("$1.25 this month")
    await expect(row).to_contain_text("last active just now")
    await expect(row).to_contain_text("Looks after this house.")
    other = page.get_by_role("listitem").filter(has_text="@bo")
    await expect(other).to_contain_text("never active")
    await expect(other).to_contain_text("cost unknown this month")
    await expect(other).not_to_contain_text("You weed the garden.")
    await visitor.check_accessibility()

    await page.get_by_role("button", name="Actions for Ada").click()
    await page.get_by_role("menuitem", name="Suspend").click()
    await expect(row).to_contain_text("suspended")
    assert await world.denizen.agents.status(ada) == "suspended"
    await page.get_by_role("button", name="Actions for Ada").click()
    await page.get_by_role("menuitem", name="Resume").click()
    await expect(row).not_to_contain_text("suspended")
    assert await world.denizen.agents.status(ada) == "sleeping"

    await page.get_by_role("button", name="Actions for Bo").click()
    await page.get_by_role("menuitem", name="Talk to Bo").click()
    await expect(page.get_by_role("heading", name="Noor and Bo", level=1)).to_be_visible()


async def test_who_may_not_make_agents_does_not_see_how(house: House, visit: Visit) -> None:
    world = house.world
    await world.person("Noor")
    mia, _ = await world.person("Mia"), await world.agent("Ada")
    visitor = await visit(mia)
    page = await visitor.open("/agents")
    await expect(page.get_by_role("listitem").filter(has_text="@ada")).not_to_contain_text("this month")
    await expect(page.get_by_role("link", name="New agent")).to_have_count(0)
    await expect(page.get_by_role("link", name="Administration")).to_have_count(0)
    await page.get_by_role("button", name="Actions for Ada").click()
    await expect(page.get_by_role("menuitem")).to_have_text(["Talk to Ada"])
    for path, said in [
        ("/agents/new", "Only admins can create agents."),
        ("/admin/keys", "Administration is for admins"),
    ]:
        await visitor.turn_to(path)
        await expect(page.get_by_role("heading", name=said)).to_be_visible()
        await expect(page.get_by_text("You are here as member. Ask Noor for access.")).to_be_visible()
        await visitor.check_accessibility()
