"""What agents have used, put into the books as if they had."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from denizen.agents.registry import Agent
from denizen.cycles import ledger
from denizen.cycles.ledger import Charge
from denizen.ids import CycleId, new_id
from tests.world import World

DAY: Final = 86_400


async def spend(world: World, agent: Agent, model: str, tokens: int, dollars: float, *, cached: int = 0) -> None:
    """The agent has made a call that read so many tokens, some of them from the provider's cache."""
    charge = Charge(model, tokens, tokens // 20, cached, 0, round(dollars * 1_000_000))
    await world.denizen.db.write(ledger.enter, agent.id, CycleId(new_id()), "usage", charge)


async def spend_daily(world: World, agents: Sequence[Agent], *, days: int) -> None:
    """Time has passed, and on every working day each of them has used something, some days more than others."""
    for day in range(days):
        for at, agent in enumerate(agents):
            busy = 1 + (day * 7 + at * 5) % 11
            if day % 7 < 5:
                await spend(
                    world, agent, agent.definition.model, busy * 60_000, busy * 0.19 / (at + 1), cached=busy * 45_000
                )
        world.clock.advance(DAY)
