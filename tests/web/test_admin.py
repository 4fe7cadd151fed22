"""Looking after a house: who comes in and with what, what agents use and may use, how it is, what is forgotten."""

from __future__ import annotations

import csv
import re
from collections.abc import AsyncGenerator
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import pytest_asyncio
from playwright.async_api import expect

from denizen import reply
from denizen.access import roles
from denizen.access.vault import new_key
from denizen.clock import moment
from denizen.cycles.budgets import BudgetSettings
from denizen.inbox import parking
from denizen.inbox.delivery import DEAD_AFTER
from denizen.storage.database import Tx
from tests.server.conftest import House
from tests.web.conftest import PHONE, WIDE, SharedBrowser, Visit, served_to_browsers, visiting
from tests.web.spending import DAY, spend
from tests.world import UNHURRIED, open_world


@pytest_asyncio.fixture(loop_scope="session")
async def house(ready_sqlite_url: str) -> AsyncGenerator[House]:
    """A house that can keep keys."""
    async with (
        open_world(ready_sqlite_url, pace=UNHURRIED, secret_key=new_key()) as world,
        served_to_browsers(world) as house,
        world.denizen.living(),
    ):
        yield house


async def test_someone_is_invited_comes_in_by_the_link_and_is_let_go(house: House, visit: Visit) -> None:
    noor = await house.world.person("Noor")
    visitor = await visit(noor)
    page = await visitor.open("/admin/people")
    await page.get_by_role("button", name="Invite").click()
    await page.get_by_label("Name").fill("Лукаш")
    await expect(
        page.get_by_text("Choose one in Latin letters, such as @mia. Otherwise it is made up.")
    ).to_be_visible()
    await page.get_by_label("Name").fill("Zoë Лукаш")
    await expect(page.get_by_text("Mentioned as @zoe.")).to_be_visible()
    await page.get_by_label("Role").select_option("admin")
    await visitor.check_accessibility()
    await page.get_by_role("dialog").get_by_role("button", name="Invite").click()
    link = await page.get_by_role("textbox", name="Link").input_value()
    await page.get_by_role("button", name="Done").click()
    row = page.get_by_role("listitem").filter(has_text="@zoe")
    await expect(row).to_contain_text("admin")

    # She opens it in a browser of her own, and the house is open to her.
    other = await visit(noor, signed_in=False)
    await other.open(f"/login#{link.partition('#')[2]}")
    await expect(other.page.get_by_role("link", name="Zoë Лукаш")).to_be_visible()
    await expect(other.page.get_by_role("link", name="Administration")).to_be_visible()

    await page.route("**/api/logins", lambda route: route.fulfill(status=500, body="no"), times=1)
    await page.get_by_role("button", name="Actions for Zoë Лукаш").click()
    await page.get_by_role("menuitem", name="Create sign-in link").click()
    await expect(page.get_by_text("The server sent an unexpected answer (500).")).to_be_visible()

    await page.get_by_role("button", name="Actions for Zoë Лукаш").click()
    await page.get_by_role("menuitem", name="Change role").click()
    await page.get_by_label("Member").check()
    await page.get_by_role("button", name="Change role").click()
    await expect(row).to_contain_text("member")
    await page.get_by_role("button", name="Actions for Zoë Лукаш").click()
    await page.get_by_role("menuitem", name="Remove").click()
    await page.get_by_role("button", name="Remove Zoë Лукаш").click()
    await expect(row).to_have_count(0)
    await other.page.reload()
    await expect(other.page.get_by_label("Access token or link")).to_be_visible()
    await expect(other.page.get_by_text("Your session has ended.")).to_be_visible()


async def test_a_token_is_made_shown_once_given_a_new_secret_and_revoked(house: House, visit: Visit) -> None:
    noor = await house.world.person("Noor")
    visitor = await visit(noor, size=PHONE, new_context=True)
    await visitor.page.clock.set_fixed_time(moment(house.world.clock.now()))
    page = await visitor.open("/admin/tokens")

    async def status(secret: str, path: str) -> int:
        answer = await house.client.get(path, headers={"Authorization": f"Bearer {secret}"})
        return answer.status_code

    async def shown() -> str:
        field = page.get_by_role("textbox", name="Token")
        secret = await field.input_value()
        await page.get_by_role("button", name="Done").click()
        await expect(field).to_have_count(0)
        return secret

    await page.get_by_role("button", name="New token").click()
    await page.get_by_label("Purpose").fill("Backup script")
    await page.get_by_label("Expires after").select_option("30")
    await visitor.check_accessibility()
    await page.get_by_role("button", name="Create token").click()
    first = await shown()
    row = page.get_by_role("listitem").filter(has_text="Backup script")
    await expect(row).to_contain_text("member")
    await expect(row).to_contain_text("expires 4 Feb")
    assert [await status(first, path) for path in ("/api/me", "/api/usage")] == [200, 403]

    await page.get_by_role("button", name="Actions for Backup script").click()
    await page.get_by_role("menuitem", name="Replace secret").click()
    await page.get_by_role("button", name="Replace secret").click()
    second = await shown()
    assert [await status(each, "/api/me") for each in (first, second)] == [401, 200]

    await page.get_by_role("button", name="Actions for Backup script").click()
    await page.get_by_role("menuitem", name="Revoke").click()
    await page.get_by_role("button", name="Revoke").click()
    await expect(row).to_have_count(0)
    assert await status(second, "/api/me") == 401
    await page.get_by_label("Show expired and revoked").check()
    await expect(row).to_contain_text("revoked")
    await visitor.check_accessibility()


async def test_a_key_is_kept_and_its_models_are_offered(house: House, visit: Visit) -> None:
    noor = await house.world.person("Noor")
    visitor = await visit(noor)
    page = await visitor.open("/admin/keys")
    await expect(page.get_by_text("No keys yet.")).to_be_visible()
    await page.get_by_role("button", name="Add key").click()
    await page.get_by_label("Name").fill("CO_API_KEY")
    await expect(page.get_by_text("Used for models of cohere.")).to_be_visible()
    await page.get_by_label("Key", exact=True).fill("sk-0123456789abcdefghij-zzzz")
    await visitor.check_accessibility()
    await page.get_by_role("button", name="Save").click()
    row = page.get_by_role("listitem").filter(has_text="CO_API_KEY")
    await expect(row).to_contain_text("ends in zzzz")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    assert "0123456789" not in await page.content()

    await visitor.turn_to("/agents/new")
    await expect(page.locator("optgroup[label=cohere]")).to_be_attached()
    await page.go_back()
    await page.get_by_role("button", name="Actions for CO_API_KEY").click()
    await page.get_by_role("menuitem", name="Remove").click()
    await page.get_by_role("button", name="Remove key").click()
    await expect(page.get_by_text("No keys yet.")).to_be_visible()


async def test_what_agents_may_use_and_have_used(house: House, visit: Visit, tmp_path: Path) -> None:
    world = house.world
    noor = await world.person("Noor")
    ada, bo = await world.agent("Ada"), await world.agent("Bo")
    for agent, dollars in ((ada, 2.0), (bo, 0.5)):
        await spend(world, agent, "large", 10_000, dollars, cached=5_000)
    world.clock.advance(DAY)
    await spend(world, ada, "small", 10_000, 4.5)
    visitor = await visit(noor, new_context=True)
    await visitor.page.clock.set_fixed_time(moment(world.clock.now()))
    page = await visitor.open("/admin/budgets")

    # All agents together, and one for itself.
    await page.get_by_role("button", name="Change", exact=True).first.click()
    await page.get_by_label("Dollars per day").fill("-1")
    await expect(page.get_by_text("Enter a number above zero.")).to_be_visible()
    await page.get_by_label("Dollars per day").fill("5")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("meter", name="Dollars today")).to_be_visible()
    await expect(page.get_by_text("$4.50 of $5.00")).to_be_visible()
    await page.get_by_role("button", name="Edit the budget of Bo").click()
    await page.get_by_label("Tokens per day").fill("20000")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("listitem").filter(has_text="Bo")).to_contain_text("at most 20k tokens per day")
    await visitor.check_accessibility()
    definition = (await house.call("GET", "/api/agents/@bo", noor)).json()["definition"]
    assert definition["budget"] == {"tokens_per_day": 20_000}

    # What was used: drawn, in numbers, as a file.
    await page.get_by_role("link", name="Usage").click()
    tiles = page.get_by_role("definition")
    await expect(tiles.first).to_have_text("$7.00")
    await expect(tiles.nth(4)).to_have_text("33%")  # of what was read, the provider had kept
    await expect(page.locator(".uplot canvas")).to_be_visible()
    await page.get_by_role("tab", name="By agent").click()
    table = page.get_by_role("table")
    await expect(table.get_by_role("row").nth(1)).to_contain_text("Ada")
    await expect(table.get_by_role("row").nth(1)).to_contain_text("$6.50")
    await expect(table.get_by_role("row").last).to_contain_text("$7.00")
    await visitor.check_accessibility()
    await page.get_by_label("Time").select_option("7")
    await expect(page.get_by_role("button", name="CSV")).to_be_enabled()
    await expect(page.get_by_role("caption")).to_contain_text("2025-12-31")
    async with page.expect_download() as waiting:
        await page.get_by_role("button", name="CSV").click()
    await (await waiting.value).save_as(tmp_path / "usage.csv")
    with (tmp_path / "usage.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert sum(float(row["dollars"]) for row in rows) == 7.0
    assert {row["agent"] for row in rows} == {"Ada", "Bo"}
    await page.get_by_role("tab", name="By model").click()
    await expect(table.get_by_role("row").nth(1)).to_contain_text("small")


@pytest.mark.parametrize(("size", "scheme"), [(WIDE, "light"), (PHONE, "dark")])
async def test_administration_shows_the_size_of_the_database(
    house: House, visit: Visit, size: Any, scheme: str, tmp_path: Path
) -> None:
    world = house.world
    noor = await world.person("Noor")
    kitchen = await world.space("Kitchen", noor)
    await world.denizen.organizations.create("Elsewhere")
    await house.call("GET", "/api/organization/size", noor)
    for _ in range(50):
        await world.denizen.spaces.post(kitchen, noor, "A long story. " * 500)
    world.clock.advance(DAY)
    hers = await visit(noor, size=size, color_scheme=scheme)
    page = await hers.open("/admin/usage")
    sizes = page.get_by_role("region", name="Size of each organization")
    await expect(sizes.get_by_role("row")).to_have_count(3)
    await expect(sizes.get_by_role("row", name="Elsewhere")).to_be_visible()
    await expect(page.get_by_text("Growth per day").first).to_be_visible()
    await hers.check_accessibility()
    await sizes.scroll_into_view_if_needed()
    await page.screenshot(path=tmp_path / "size.png")


async def test_the_daily_limit_of_the_server_is_shown_with_where_to_change_it(
    ready_sqlite_url: str, browser: SharedBrowser
) -> None:
    limits = BudgetSettings(dollars_per_day=Decimal(10), tokens_per_day=1_000_000)
    async with open_world(ready_sqlite_url, server_budget=limits) as world, served_to_browsers(world) as house:
        noor, ada = await world.person("Noor"), await world.agent("Ada")
        await spend(world, ada, "large", 10_000, 2.5)
        async with visiting(browser, house, noor) as visitor:
            page = await visitor.open("/admin/budgets")
            server = page.get_by_role("region", name="This server")
            await expect(server.get_by_role("meter", name="Dollars today, whole server")).to_be_visible()
            await expect(server).to_contain_text("$2.50 of $10.00")
            await expect(server).to_contain_text("Change it under [budget] in denizen.toml")
            await visitor.check_accessibility()


async def test_health_says_of_each_agent_whether_it_can_think_and_what_to_do(house: House, visit: Visit) -> None:
    world = house.world
    noor = await world.person("Noor")
    ada = await world.agent("Ada", reply("Here."), "Answered.")
    await world.agent("Bo")
    kitchen = await world.space("Kitchen", noor, ada)
    await world.say(noor, "Good morning.", kitchen)

    def reject_key(tx: Tx) -> None:
        parking.park(tx, ada.id, "key", provider="OpenAI")

    await world.denizen.db.write(reject_key)
    visitor = await visit(noor)
    page = await visitor.open("/admin/health")
    agents = page.get_by_role("list", name="Agents")
    of_ada = agents.get_by_role("listitem").filter(has_text="@ada")
    await expect(page.get_by_role("region", name="Agents")).to_contain_text("1 of 2 can run now.")
    await expect(of_ada).to_contain_text("Cannot run")
    await expect(of_ada).to_contain_text("OpenAI rejected the API key of Ada. Check it under Administration")
    await expect(of_ada).to_contain_text("1 message waits, the oldest came")
    await expect(agents.get_by_role("listitem").filter(has_text="@bo")).to_contain_text("Can run")
    await visitor.check_accessibility()
    await of_ada.get_by_role("button", name="Have Ada try again").click()
    await world.run()
    await page.reload()
    await expect(of_ada).to_contain_text("Can run")
    assert await world.transcript(kitchen) == ["Noor: Good morning.", "Ada: Here."]


async def test_a_house_says_how_it_is_and_what_it_is_called(house: House, visit: Visit) -> None:
    world = house.world
    noor = await world.person("Noor")
    ada = await world.agent("Ada", *[RuntimeError("No.")] * (DEAD_AFTER + 3))
    visitor = await visit(noor)
    page = await visitor.open("/admin/health")
    await expect(page.get_by_text("All good")).to_be_visible()
    await expect(page.get_by_role("list", name="Instances")).to_contain_text("answers you")
    await visitor.check_accessibility()

    await world.say(noor, "Good morning.", await world.space("Kitchen", noor, ada))
    for _ in range(DEAD_AFTER):
        await world.run_after(3_600)
    await page.reload()
    await expect(page.get_by_role("status", name="Alerts")).to_contain_text("1 event was given up")
    of_ada = page.get_by_role("list", name="Agents").get_by_role("listitem").filter(has_text="@ada")
    await expect(of_ada).to_contain_text("Needs attention")
    given_up = page.get_by_role("list", name="Failed events").get_by_role("link", name="Ada")
    await expect(given_up).to_have_attribute("href", f"/agents/{ada.id}/inbox?state=dead")

    await page.get_by_role("link", name="Organization").click()
    await page.get_by_label("Name").fill("The old mill")
    await page.get_by_label("Who can create spaces").select_option("admin")
    # What is not a number of days is said beside it: an empty field does not mean for ever.
    days, save = page.get_by_label("Keep messages for (days)"), page.get_by_role("button", name="Save")
    for wrong in ("", "-5", "1.5", "40000"):
        await days.fill(wrong)
        await expect(days).to_have_accessible_description(re.compile("Type a whole number of days, from 0 to 36500."))
        await expect(save).to_be_disabled()
    await days.fill("400")
    await page.get_by_label("Archive messages before they are removed").check()
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("complementary").get_by_text("The old mill")).to_be_visible()
    await visitor.check_accessibility()
    told = (await house.call("GET", "/api/organization", noor)).json()
    assert (told["name"], told["settings"]["spaces_by"]) == ("The old mill", "admin")
    assert (told["settings"]["keep_days"], told["settings"]["archive_expired"]) == (400, True)


async def test_something_is_looked_at_then_forgotten_with_a_receipt(house: House, visit: Visit) -> None:
    world = house.world
    noor = await world.person("Noor")
    ada = await world.agent("Ada", reply("I see."), "Heard a secret.")
    kitchen = await world.space("Kitchen", noor, ada)
    await world.say(noor, "The treasure is under the stairs.", kitchen)
    await world.run()
    visitor = await visit(noor)
    page = await visitor.open("/admin/forgetting")
    await expect(page.get_by_text("Nothing forgotten yet.")).to_be_visible()
    await page.get_by_label("Text of the message, or its ID").fill(str(UUID(int=0)))
    await page.get_by_role("button", name="Preview").click()
    await expect(page.get_by_role("alert")).to_contain_text("There is no message")
    await page.get_by_label("Text of the message, or its ID").fill("treasure")
    await page.get_by_label("under the stairs").check()
    await page.get_by_role("button", name="Preview").click()
    await expect(page.get_by_role("dialog").get_by_text("messages", exact=True)).to_be_visible()
    await visitor.check_accessibility()
    assert any("treasure" in line for line in await world.transcript(kitchen)), "a look changes nothing"
    await expect(page.get_by_role("button", name="Forget permanently")).to_be_disabled()
    await page.get_by_label("Type “forget” to confirm").fill("forget")
    await page.get_by_role("button", name="Forget permanently").click()
    await expect(page.get_by_role("list", name="Receipts")).to_contain_text("forgotten by Noor")
    assert not any("treasure" in line for line in await world.transcript(kitchen))
    await visitor.check_accessibility()


async def test_the_audit_log_is_searched_by_person_kind_and_time(house: House, visit: Visit) -> None:
    world = house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    await world.denizen.db.write(roles.set_role, sam.id, "admin")
    visitor = await visit(noor)
    page = await visitor.open("/admin/audit")
    changes = page.get_by_role("list", name="Changes")
    # Signing in is the first thing that anybody did.
    await expect(changes.get_by_role("listitem")).to_have_count(1)
    await expect(changes).to_contain_text("Noor signed in")
    await house.call("PATCH", f"/api/entities/{sam.id}", noor, json={"role": "member"})
    await house.call("PUT", "/api/keys/A_KEY", noor, json={"value": "secret-value-of-a-key", "whose": "organization"})
    await house.call("PUT", "/api/organization/budget", noor, json={"tokens_per_day": 50_000})
    page = await visitor.open("/admin/audit")
    await expect(changes).to_contain_text("Noor changed the name or role of Sam")
    await expect(changes).to_contain_text("role: admin → member")
    await expect(changes).to_contain_text("after: tokens per day 50,000")
    await expect(page.get_by_text("secret-value")).to_have_count(0)
    await visitor.check_accessibility()
    # With the keyboard alone.
    await page.get_by_label("Person").focus()
    await page.keyboard.press("Tab")
    await page.keyboard.type("Keys")
    await expect(changes.get_by_role("listitem")).to_have_count(1)
    await expect(changes).to_contain_text("Noor saved the key A_KEY")
    await page.get_by_label("Person").select_option("Sam")
    await expect(page.get_by_text("No changes match these filters.")).to_be_visible()
    await visitor.check_accessibility()
    await page.get_by_role("button", name="Clear filters").click()
    await expect(changes.get_by_role("listitem")).to_have_count(4)
    await page.get_by_label("From").fill("2099-01-01")
    await expect(page.get_by_text("No changes match these filters.")).to_be_visible()
    async with page.expect_download() as download:
        await page.get_by_role("button", name="Clear filters").click()
        await page.get_by_role("button", name="Export").click()
    assert (await (await download.value).path()).read_text().count("\n") == 4


async def test_an_owner_opens_a_private_space_where_its_cycle_is_shown(house: House, visit: Visit) -> None:
    world = house.world
    noor, sam = await world.person("Noor"), await world.person("Sam")
    ada = await world.agent("Ada", reply("I keep it."), "Kept the nightingale.")
    den = await world.space("Den", sam, ada, private=True)
    await world.say(sam, "The word is nightingale.", den)
    await world.run()
    visitor = await visit(noor, size=PHONE)
    page = await visitor.open(f"/agents/{ada.id}/life/1")
    await expect(page.get_by_role("region", name="Private")).to_contain_text("Only its members can read it.")
    await expect(page.get_by_text("nightingale")).to_have_count(0)
    await visitor.check_accessibility()
    await page.get_by_role("button", name="Open for an hour…").click()
    await page.get_by_label("Reason").fill("A complaint has come.")
    await visitor.check_accessibility()
    await page.get_by_role("button", name="Open for an hour", exact=True).click()
    await expect(page.get_by_text("The word is nightingale.").first).to_be_visible()
    hers = await visit(sam)
    theirs = await hers.open(f"/s/{den.id}")
    await expect(theirs.get_by_text("Reason: A complaint has come.")).to_be_visible()
