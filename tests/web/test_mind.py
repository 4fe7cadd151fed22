"""Looking into an agent: what it does, what it did, what it has before its eyes, what waits, what it means to do."""

from __future__ import annotations

import asyncio
import re
from types import NoneType
from typing import Any, get_args

from playwright.async_api import Page, Route, expect
from pydantic import BaseModel
from pydantic_ai.messages import ModelMessage

from denizen import call, forever, reply, scripted, skip, think
from denizen.agents.definition import AgentDefinition
from denizen.agents.registry import Agent
from denizen.models.scripted import Info, Turn
from denizen.spaces.directory import Entity, Space
from denizen.tools.settings import ClientTool
from tests.server.conftest import House
from tests.web.conftest import ROOT, Visit
from tests.web.minds import a_life


async def home(house: House, *turns: Turn, **more: Any) -> tuple[Entity, Agent, Space]:
    """Noor, who owns the house, and Ada in her kitchen."""
    world = house.world
    noor = await world.person("Noor")
    ada = await world.agent("Ada", *turns, **more)
    return noor, ada, await world.space("Kitchen", noor, ada)


async def test_a_thought_is_seen_as_it_is_thought(house: House, visit: Visit) -> None:
    go_on = asyncio.Event()

    async def later(messages: list[ModelMessage], info: Info) -> Turn:
        del messages, info
        await go_on.wait()
        return reply("Good morning, Noor.")

    note = call("set_memories", memories=[{"key": "tea", "text": "without sugar"}])
    noor, ada, kitchen = await home(house, [think("She told me something."), note], later, "Greeted Noor.")
    visitor = await visit(noor)
    page = await visitor.open(f"/agents/{ada.id}/now")
    await expect(page.get_by_role("heading", name="Ada is asleep.")).to_be_visible()
    await expect(page.get_by_text("No cycles yet.").first).to_be_visible()

    await house.world.say(noor, "I take my tea without sugar.", kitchen)

    now = page.get_by_label("Current activity")
    await expect(now.get_by_role("heading", name="Thinking")).to_be_visible()
    await expect(now.get_by_text("1 event taken")).to_be_visible()
    await expect(now.get_by_text("I take my tea without sugar.")).to_be_visible()
    await expect(now.get_by_role("heading", name="Step 1")).to_be_visible()
    await expect(now.get_by_text("She told me something.")).to_be_visible()
    await expect(now.get_by_text("set_memories")).to_be_visible()
    await expect(now.get_by_text("Result")).to_be_visible()
    await expect(now.get_by_text("Thinking…")).to_be_visible()
    await visitor.check_accessibility()
    go_on.set()

    await expect(page.get_by_role("heading", name="Ada is asleep.")).to_be_visible()
    await page.get_by_label("Recent cycles").get_by_role("link", name=re.compile("Greeted Noor.")).click()
    await expect(page.get_by_role("heading", name="Greeted Noor.")).to_be_visible()


async def test_a_thought_that_waits_for_people_says_for_what_and_goes_on(house: House, visit: Visit) -> None:
    confirm = ClientTool(
        name="confirm_action",
        description="Ask before you do something that cannot be undone.",
        parameters={"type": "object", "properties": {"question": {"type": "string"}}, "required": ["question"]},
    )
    asking = [think("I ask first."), call("confirm_action", question="Shall I order six loaves?")]
    noor, ada, kitchen = await home(house, asking, reply("Ordered."), "Ordered bread.", tools=[confirm])
    visitor = await visit(noor)
    page = await visitor.open(f"/agents/{ada.id}/now")
    await house.world.say(noor, "We need bread.", kitchen)

    now = page.get_by_label("Current activity")
    await expect(now.get_by_role("heading", name="Waiting for an answer")).to_be_visible()
    await expect(now.get_by_text("Shall I order six loaves?")).to_have_count(1)
    await expect(now.get_by_text("waiting for an answer", exact=True)).to_be_visible()
    await expect(page.get_by_role("status").get_by_text("waiting for an answer")).to_be_visible()
    # Whoever comes later is told the same.
    await page.reload()
    await expect(now.get_by_role("heading", name="Waiting for an answer")).to_be_visible()
    await expect(now.get_by_text("Shall I order six loaves?")).to_have_count(1)
    await visitor.check_accessibility()

    (waiting,) = await house.world.denizen.calls.waiting(noor)
    await house.world.denizen.calls.answer(waiting, True, by=noor)
    await expect(page.get_by_role("heading", name="Ada is asleep.")).to_be_visible()
    await expect(page.get_by_label("Recent cycles").get_by_role("link", name="Ordered bread.")).to_be_visible()


async def test_a_cycle_is_looked_into_asked_of_another_model_and_forked(house: House, visit: Visit) -> None:
    noor, _, kitchen = await home(house, reply("Hello."), "Greeted Noor.", instructions="You look after this house.")
    await house.world.say(noor, "Good morning, Ada.", kitchen)
    await house.world.run()
    house.world.denizen.models.register("other", scripted(reply("Good day."), "Greeted Noor."))
    visitor = await visit(noor)
    page = await visitor.open("/agents/@ada/life/1")

    await expect(page.get_by_role("heading", name="Greeted Noor.")).to_be_visible()
    await expect(page.get_by_text("Good morning, Ada.")).to_be_visible()
    await expect(page.get_by_text("It had replied.")).to_be_visible()
    await page.get_by_text("Exact request").first.click()
    await page.get_by_role("main").get_by_text("System", exact=True).click()
    await page.get_by_role("button", name="Show all").click()
    whole = page.get_by_role("article").get_by_role("paragraph")
    await expect(whole.get_by_text("You look after this house.")).to_be_visible()
    await visitor.check_accessibility()
    await page.get_by_role("button", name="Raw JSON").click()
    await expect(page.get_by_label("The request, json")).to_contain_text('"part_kind": "system-prompt"')

    await page.get_by_role("button", name="Try another model").click()
    asked = page.get_by_label("Another model")
    await asked.get_by_label("Model").fill("other")
    await asked.get_by_role("button", name="Ask", exact=True).click()
    await expect(asked.get_by_role("row", name=re.compile("text: Hello.*text: Good day"))).to_be_visible()
    await expect(asked.get_by_text("Both answers are the same.")).to_be_visible()
    await visitor.check_accessibility()

    await page.get_by_role("button", name="Fork here").click()
    dialog = page.get_by_role("dialog", name="Fork at cycle 1")
    await dialog.get_by_label("Name").fill("Ada as she was")
    await expect(dialog.get_by_label("Handle")).to_have_value("ada-as-she-was")
    await dialog.get_by_label("Handle").fill("ada")
    await dialog.get_by_role("button", name="Fork").click()
    await expect(dialog.get_by_role("alert")).to_be_visible()
    await dialog.get_by_label("Handle").fill("ada-then")
    await dialog.get_by_role("button", name="Fork").click()
    await expect(page.get_by_role("heading", name="Ada as she was", level=1)).to_be_visible()
    await expect(page.get_by_role("link", name=re.compile("Greeted Noor."))).to_be_visible()


async def test_a_life_is_read_back_to_its_beginning_while_it_goes_on(house: House, visit: Visit) -> None:
    world = house.world

    def deciding(messages: list[ModelMessage], info: Info) -> Turn:
        del messages
        return skip("Nothing for me.") if info.number == 30 else f"Thought number {info.number}."

    noor, ada, kitchen = await home(house, model=forever(deciding))
    for at in range(58):
        await world.denizen.agents.trigger(ada, "Bell", text=f"{at}")
        await world.run_after(3_600)
    visitor = await visit(noor)
    page = await visitor.open(f"/agents/{ada.id}/life")

    await expect(page.get_by_role("link", name=re.compile("Thought number 57."))).to_be_visible()
    await expect(page.get_by_text("Skipped Nothing for me.")).to_be_attached()
    await visitor.check_accessibility()
    first = page.get_by_role("link", name=re.compile(r"Thought number 0\."))
    # Whoever scrolls to the end of what was read is given more. Where that fails, it is said, and asked for once.
    asked: list[str] = []

    async def refuse(route: Route) -> None:
        asked.append(route.request.url)
        await route.fulfill(status=400, body="no")

    await page.route("**/cycles?*before=*", refuse)
    await page.get_by_role("link", name=re.compile(r"Thought number 9\.")).scroll_into_view_if_needed()
    await expect(page.get_by_role("alert")).to_have_text(
        "The server sent an unexpected answer (400). Try again in a moment."
    )
    await visitor.check_accessibility()
    assert len(asked) == 1
    await page.unroute("**/cycles?*before=*")
    await page.get_by_role("button", name="Show more").click()
    await expect(first).to_be_attached()
    await first.scroll_into_view_if_needed()
    await expect(page.get_by_role("heading", name=re.compile("5 January"))).to_be_visible()

    await world.say(noor, "Still here?", kitchen)
    await world.run()
    # It is reminded once that she waits.
    newest = page.get_by_role("link", name=re.compile("Thought number 59."))
    await expect(newest).to_be_attached()
    await expect(newest).to_contain_text("Noor in Kitchen")
    await expect(page.get_by_role("link", name=re.compile("Thought number"))).to_have_count(58)


async def test_the_window_and_the_whole_past_can_be_read(house: House, visit: Visit) -> None:
    life = await a_life(house, rounds=2)
    visitor = await visit(life.noor)
    page = await visitor.open(life.at("window"))
    parts = re.compile("Self .* Groups of older cycles .* One line per cycle .* Recent cycles")
    await expect(page.get_by_role("img", name=parts)).to_be_visible()
    await expect(page.get_by_text("You look after this house and everyone in it.")).to_be_visible()
    await page.get_by_role("button", name=re.compile("Groups of older cycles")).click()
    await expect(page.get_by_text(re.compile("Cycles 1 to 10"))).to_be_visible()
    await page.get_by_role("button", name=re.compile("One line per cycle")).click()
    await expect(page.get_by_text(re.compile("Cycles 11 to"))).to_be_visible()
    await page.get_by_role("button", name=re.compile("Recent cycles in full")).click()
    await page.get_by_label(re.compile("Recent cycles")).get_by_role("link").first.click()
    await expect(page.get_by_role("heading", name="Step 1")).to_be_visible()

    await page.get_by_role("link", name="Recall", exact=True).click()
    await page.get_by_role("searchbox", name="Search").fill("violin cellar")
    await page.get_by_label("Author").fill("@noor")
    await page.get_by_role("button", name="Search").click()
    found = page.get_by_label("Results").get_by_role("listitem")
    told = found.filter(has_text="My violin is in the cellar, behind the skis.").first
    await expect(told).to_contain_text("in Kitchen")
    await expect(found.filter(has_text="Ada")).to_have_count(0)
    await told.get_by_role("link", name=re.compile("Cycle")).click()
    await expect(page.get_by_role("heading", name=re.compile("noted it"))).to_be_visible()


async def test_what_waits_is_hastened_and_what_was_given_up_is_tried_again(house: House, visit: Visit) -> None:
    life = await a_life(house, rounds=0)
    visitor = await visit(life.noor)
    page = await visitor.open(life.at("settings"))
    await page.get_by_role("button", name="Suspend Ada").click()
    await page.get_by_role("dialog").get_by_role("button", name="Suspend").click()
    await expect(page.get_by_role("status").get_by_text("suspended")).to_be_visible()

    await life.world.say(life.noor, "It helped, thank you!", life.kitchen)
    await page.get_by_role("link", name="Inbox").click()
    await expect(page.get_by_label("Waiting")).to_contain_text("It helped, thank you!")
    await page.get_by_label("Waiting").get_by_role("button", name="Make urgent").click()
    await expect(page.get_by_label("Urgent")).to_contain_text("It helped, thank you!")

    await page.get_by_role("link", name="Settings").click()
    await page.get_by_role("button", name="Resume Ada").click()
    await page.get_by_role("link", name="Now").click()
    await expect(page.get_by_role("link", name=re.compile("Noor says the boiler runs again."))).to_be_visible()
    await page.get_by_role("link", name="Inbox").click()
    await page.get_by_label("Failed").get_by_role("button", name="Try again").click()
    # It is no better than before.
    await expect(page.get_by_label("Waiting")).to_contain_text("failed once")
    await expect(page.get_by_label("Waiting")).to_contain_text("An unreadable report of the meter.")
    await expect(page.get_by_label("Failed")).to_have_count(0)


async def test_goals_notes_and_plans_are_given_changed_and_taken_away(house: House, visit: Visit) -> None:
    noor, ada, _ = await home(house)
    visitor = await visit(noor)
    page = await visitor.open(f"/agents/{ada.id}/plans")
    await expect(page.get_by_text("No plans or timers. Only messages wake it.")).to_be_visible()

    await page.get_by_role("button", name="Add a plan").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Name").fill("Morning round")
    await dialog.get_by_label("Message to the agent").fill("Look whether the windows are closed.")
    # Nobody needs to know cron for days and a time.
    for day in ("Tue", "Wed", "Thu", "Fri", "Mon"):
        await dialog.get_by_role("button", name=day, pressed=True).click()
    await expect(dialog.get_by_role("alert")).to_have_text("Choose at least one day.")
    await dialog.get_by_role("button", name="Mon").click()
    await dialog.get_by_label("At", exact=True).fill("07:00")
    await expect(dialog.get_by_label("Time zone")).to_have_value("Europe/Berlin")
    await visitor.check_accessibility()
    await dialog.get_by_role("button", name="Save").click()
    plans = page.get_by_label("Plans", exact=True)
    await expect(plans).to_contain_text("every Monday at 07:00")  # in the reader's zone
    # Cron says more. What it does not understand is told, and stays.
    await _choose(page, "Actions for Morning round", "Edit")
    await expect(dialog.get_by_role("button", name="Mon", pressed=True)).to_be_visible()
    await dialog.get_by_label("When").select_option("By a cron expression")
    await expect(dialog.get_by_label("Cron")).to_have_value("0 7 * * MON")
    await dialog.get_by_label("Cron").fill("every morning")
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog.get_by_role("alert")).to_be_visible()
    await visitor.check_accessibility()
    await dialog.get_by_label("Cron").fill("0 7 1 * *")
    await dialog.get_by_role("button", name="Save").click()
    await expect(plans).to_contain_text("0 7 1 * *, Europe/Berlin")

    await page.get_by_role("button", name="Add a goal").click()
    await dialog.get_by_label("Goal").fill("Keep the pantry stocked.")
    await dialog.get_by_label("Priority").select_option("high")
    await dialog.get_by_role("button", name="Save").click()
    goals = page.get_by_label("Goals", exact=True)
    await expect(goals).to_contain_text("high priority")
    await _choose(page, "Actions for Keep the pantry stocked.", "Edit")
    await dialog.get_by_label("Status").select_option("done")
    await dialog.get_by_role("button", name="Save").click()
    await expect(goals).to_contain_text("done")

    await page.get_by_role("button", name="Add a note").click()
    await dialog.get_by_label("Key").fill("tea")
    await dialog.get_by_label("Note").fill("Noor takes it without sugar.")
    await dialog.get_by_role("button", name="Save").click()
    await expect(page.get_by_label("Notes", exact=True)).to_contain_text("without sugar")
    await _choose(page, "Actions for tea", "Delete")
    await page.get_by_role("dialog", name="Delete “tea”?").get_by_role("button", name="Cancel").click()
    await expect(page.get_by_label("Notes", exact=True)).to_contain_text("without sugar")
    await _choose(page, "Actions for tea", "Delete")
    await page.get_by_role("dialog", name="Delete “tea”?").get_by_role("button", name="Delete").click()
    await expect(page.get_by_text("No notes yet.")).to_be_visible()
    await _choose(page, "Actions for Morning round", "Delete")
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await expect(page.get_by_text("No plans or timers. Only messages wake it.")).to_be_visible()


async def _choose(page: Page, menu: str, item: str) -> None:
    await page.get_by_role("button", name=menu).click()
    await page.get_by_role("menuitem", name=item).click()


async def test_settings_that_are_not_saved_are_still_there_after_a_look_elsewhere(house: House, visit: Visit) -> None:
    noor, ada = await house.world.person("Noor"), await house.world.agent("Ada")
    page = await (await visit(noor)).open(f"/agents/{ada.id}/settings")
    instructions = page.get_by_label("Instructions", exact=True)
    before = await instructions.input_value()
    for is_kept in (True, False):
        await instructions.fill("You look after the house.")
        if not is_kept:
            await page.get_by_role("button", name="Discard").click()
        await page.get_by_role("link", name="Window", exact=True).click()
        await expect(page.get_by_role("heading", name="Self")).to_be_visible()
        await page.get_by_role("link", name="Settings", exact=True).click()
        await expect(instructions).to_have_value("You look after the house." if is_kept else before)
        await expect(page.get_by_text("Not saved yet." if is_kept else "All changes saved.")).to_be_visible()


async def test_two_people_who_edit_an_agent_at_once_do_not_overwrite_each_other_unseen(
    house: House, visit: Visit
) -> None:
    """The later one to save replaced what the other had just written, and neither was told."""
    noor, ada = await house.world.person("Noor"), await house.world.agent("Ada")
    visitor = await visit(noor)
    mine, theirs = visitor.page, await visitor.context.new_page()
    for page in (mine, theirs):
        await page.goto(f"{house.address}/agents/{ada.id}/settings")
        await page.get_by_label("Instructions", exact=True).fill(f"You are {'mine' if page is mine else 'theirs'}.")
    await theirs.get_by_label("Purpose").fill("Keeps the house")
    await theirs.get_by_role("button", name="Save").click()
    await expect(theirs.get_by_text("All changes saved.")).to_be_visible()

    await mine.get_by_label("Maximum steps").fill("7")
    await mine.get_by_role("button", name="Save").click()
    await expect(mine.get_by_role("alert")).to_contain_text("You both changed Instructions: saving replaces theirs.")
    await expect(mine.get_by_label("Purpose")).to_have_value("Keeps the house")
    await expect(mine.get_by_label("Instructions", exact=True)).to_have_value("You are mine.")
    await expect(mine.get_by_label("Maximum steps")).to_have_value("7")
    definition = (await house.call("GET", f"/api/agents/{ada.id}", noor)).json()["definition"]
    assert definition["instructions"] == "You are theirs."
    await visitor.check_accessibility()

    await mine.get_by_role("button", name="Save").click()
    await expect(mine.get_by_text("All changes saved.")).to_be_visible()
    await expect(mine.get_by_role("alert")).to_be_hidden()
    definition = (await house.call("GET", f"/api/agents/{ada.id}", noor)).json()["definition"]
    assert (definition["instructions"], definition["purpose"]) == ("You are mine.", "Keeps the house")


async def test_settings_say_what_is_wrong_beside_its_field_and_keep_what_is_right(house: House, visit: Visit) -> None:
    noor, ada, kitchen = await home(house)
    visitor = await visit(noor)
    page = await visitor.open(f"/agents/{ada.id}/settings")
    await page.get_by_label("Name").fill("Ada Lovelace")
    await page.get_by_label("Maximum steps").fill("many")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("Enter a number.")).to_be_visible()
    await expect(page.get_by_label("Maximum steps")).to_be_focused()

    await page.get_by_label("Maximum steps").fill("7")
    await page.get_by_label("Time zone", exact=True).fill("Europe/Berln")
    await page.get_by_role("button", name="Save").click()
    zone = page.get_by_label("Time zone", exact=True)
    await expect(zone).to_have_attribute("aria-invalid", "true")
    await expect(zone).to_have_accessible_description(re.compile("Europe/Berlin"))
    await visitor.check_accessibility()
    await zone.fill("Europe/Berlin")
    await page.get_by_label("Awareness").select_option("urgent")
    await page.get_by_label("Prompt size").select_option("small")
    await page.get_by_label("After it has read text from outside").select_option("ask")
    await page.get_by_label("Seconds to wait for an approval").fill("600")
    await page.get_by_label("Rules", exact=True).fill('[{"tool": "send_*", "do": "deny"}]')
    await page.get_by_label("Heartbeat on").check()
    await page.get_by_label("Interval in minutes").fill("30")
    await page.get_by_label("Tools", exact=True).fill('["nowhere"]')
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("This server has no tool 'nowhere'.")).to_be_visible()
    await page.get_by_label("Tools", exact=True).fill("")
    await page.get_by_role("button", name="Save").click()

    await expect(page.get_by_role("heading", name="Ada Lovelace", level=1)).to_be_visible()
    await expect(page.get_by_text("All changes saved.")).to_be_visible()
    definition = (await house.call("GET", f"/api/agents/{ada.id}", noor)).json()["definition"]
    assert (definition["zone"], definition["cycle"]) == ("Europe/Berlin", {"awareness": "urgent", "max_steps": 7})
    assert definition["heartbeat"]["every_minutes"] == 30
    assert definition["profile"] == "small"
    rules = [{"tool": "send_*", "do": "deny"}]
    assert definition["effects"] == {"after_outside_text": "ask", "approval_seconds": 600, "rules": rules}

    await page.get_by_label("Kitchen").select_option("mentions")
    await expect(page.get_by_text("Saved for Kitchen.")).to_be_visible()
    space = (await house.call("GET", f"/api/spaces/{kitchen.id}", noor)).json()
    assert [each["attention"] for each in space["members"] if each["handle"] == "ada"] == ["mentions"]

    await page.get_by_role("button", name="Delete Ada Lovelace").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await expect(page.get_by_text("No agents yet.")).to_be_visible()


async def test_members_see_what_everyone_may_know(house: House, visit: Visit) -> None:
    noor, ada, _ = await home(house, purpose="Looks after this house.", instructions="Hide the treasure.")
    mia = await house.world.person("Mia")
    visitor = await visit(mia)
    for tab, come in (("now", visitor.open), ("settings", visitor.turn_to)):
        page = await come(f"/agents/{ada.id}/{tab}")
        await expect(page.get_by_role("heading", name="Ada", level=1)).to_be_visible()
        await expect(page.get_by_text("Looks after this house.")).to_be_visible()
        await expect(page.get_by_text("treasure")).to_have_count(0)
        await expect(page.get_by_role("navigation", name="Mind of Ada")).to_have_count(0)
    await visitor.check_accessibility()
    await visitor.turn_to("/agents/@nobody/now")
    await expect(page.get_by_text("Agent not found.")).to_be_visible()
    assert noor.name == "Noor"


def test_every_field_of_a_definition_can_be_said_in_the_form() -> None:
    form = (ROOT / "web" / "src" / "mind" / "fields.ts").read_text()
    offered = set(re.findall(r'path: "([\w.]+)"', form)) - {"name"}

    assert {path.partition(".")[0] for path in offered} == set(AgentDefinition.model_fields)
    for name in ("cycle", "window", "urgent", "effects", "private_guard", "budget", "heartbeat"):
        part = _part(AgentDefinition.model_fields[name].annotation)
        assert {path.partition(".")[2] for path in offered if path.startswith(f"{name}.")} == set(part.model_fields)


def _part(annotation: Any) -> type[BaseModel]:
    """The settings themselves, of those that may be missing as well."""
    return next(each for each in (annotation, *get_args(annotation)) if isinstance(each, type) and each is not NoneType)
