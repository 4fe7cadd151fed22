"""The screens of administration, of making agents and of the palette, one after the other: for pictures of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final

from playwright.async_api import Page, expect

from denizen.access import roles
from denizen.agents.registry import Agent
from denizen.consciousness import lease as leases
from denizen.cycles import ledger
from denizen.cycles.ledger import Charge
from denizen.ids import CycleId, new_id
from denizen.spaces.directory import Entity
from tests.world import World

DAY: Final = 86_400
_ROOMS: Final = {
    "people": "Invite",
    "tokens": "New token",
    "keys": "Keep a key",
    "budgets": "Each agent",
    "usage": "Together",
    "health": "Instances",
    "settings": "Who may open spaces",
    "forgetting": "Look at what would go",
}


async def spend(world: World, agent: Agent, model: str, tokens: int, dollars: float, *, cached: int = 0) -> None:
    """The agent has made a call that read so many tokens, some of them from the provider's cache."""
    charge = Charge(model, tokens, tokens // 20, cached, 0, round(dollars * 1_000_000))
    await world.denizen.db.write(ledger.enter, agent.id, CycleId(new_id()), "usage", charge)


async def furnish_admin(world: World, owner: Entity, agents: list[Agent]) -> None:
    """People of every role, and a month in which the agents have used something every day; time has passed by it."""
    home = owner.organization_id
    mia, *_ = [await world.person(name, organization=home) for name in ("Mia Okafor", "Sam Lindqvist", "Zoë Brandt")]
    await world.denizen.db.write(roles.set_role, mia.id, "admin")
    for day in range(30):
        for at, agent in enumerate(agents):
            busy = 1 + (day * 7 + at * 5) % 11
            model = "anthropic:claude-sonnet-5-5" if at % 2 == 0 else "openai:gpt-5-mini"
            if day % 7 < 5:
                await spend(world, agent, model, busy * 9_000, busy * 0.021 / (at + 1), cached=busy * 6_800)
        world.clock.advance(DAY)
    for agent in agents:
        await spend(world, agent, "anthropic:claude-sonnet-5-5", 48_000, 1.04, cached=31_000)
    await world.denizen.set_budget(organization=home, dollars_per_day=5)
    # By its own clock a month went by, in which it has not said that it is there.
    await world.denizen.db.write(leases.appear, world.denizen.instance)


async def admin_screens(page: Page) -> AsyncGenerator[str]:
    """Each screen by its name, as soon as it is to be seen. The page is signed in as an owner."""
    origin = "/".join(page.url.split("/")[:3])
    await page.goto(f"{origin}/agents")
    await expect(page.get_by_role("list", name="Agents")).to_be_visible()
    yield "agents"
    await page.goto(f"{origin}/agents/new")
    await expect(page.get_by_text("Spaces it joins")).to_be_visible()
    yield "new-agent"
    for room, told in _ROOMS.items():
        await page.goto(f"{origin}/admin/{room}")
        await expect(page.locator("main").get_by_text(told).first).to_be_visible()
        await expect(page.get_by_role("status", name="Loading")).to_have_count(0)
        if room == "usage":
            await page.get_by_role("tab", name="By agent").click()
            await expect(page.locator(".uplot")).to_be_visible()
        yield f"admin-{room}"
    await page.keyboard.press("Control+k")
    await expect(page.get_by_role("option").first).to_be_visible()
    yield "palette"
    await page.keyboard.press("Escape")
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog", name="Shortcuts")).to_be_visible()
    yield "shortcuts"
    await page.keyboard.press("Escape")
