"""Who pays for summing a conversation up: the first agent in it, or the panel. Within their budgets, as for all else.

Nothing is kept for such a call while it runs: what is kept for an agent is kept for its cycle. So a limit may be passed
by what one pass uses beside a cycle that began meanwhile, not by more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from pydantic_ai.models import Model

from denizen.agents import registry
from denizen.clock import Clock
from denizen.cycles import budgets, ledger
from denizen.cycles.budgets import Amount, BudgetSettings
from denizen.cycles.ledger import Charge
from denizen.cycles.server_budget import ServerBudget
from denizen.ids import CycleId, new_id
from denizen.memory.asking import Spent
from denizen.memory.rolling import House
from denizen.models.prices import Price, Usage, expected_cost
from denizen.panel import costs, panels
from denizen.storage.database import Database, Tx


@dataclass(frozen=True, slots=True)
class Purse:
    """What there is to spend, and what things cost."""

    db: Database
    prices: Mapping[str, Price]
    clock: Clock
    server_budget: ServerBudget | None = None

    async def room_for(self, house: House, name: str, model: Model, need: Usage) -> str | None:
        """Why the budgets have no room for a call of the model, if they have none. No limits, no transaction more."""
        if self.server_budget is not None:
            refused = await self.server_budget.refuse(self.db, self.clock, name, model, need)
            if refused is not None:
                return costs.refusal(refused.scope)
        limits = await self.db.read(_limits, house)
        if not limits:
            return None
        # Reading the price list takes its time, the first time.
        dollars = await asyncio.to_thread(expected_cost, model, need, self.prices, asked=name)
        if dollars is None and any(each.in_dollars for each in limits):
            return f"There is a budget in dollars, and nobody here knows what {name!r} costs: give its price."
        return await self.db.write(_lacking, house, Amount(need.input + need.output, ceil((dollars or 0) * 1_000_000)))


def _limits(tx: Tx, house: House) -> list[BudgetSettings]:
    shared = budgets.organization_budget(tx, house.organization_id)
    return [each for each in (_own(tx, house), shared) if each is not None]


def _own(tx: Tx, house: House) -> BudgetSettings | None:
    if house.kind == "panel":
        return panels.get(tx, house.space_id).settings.budget
    return registry.get(tx, house.agents[0][0]).definition.budget


def _lacking(tx: Tx, house: House, need: Amount) -> str | None:
    if house.kind == "panel":
        scope = costs.lacking(tx, house.organization_id, house.space_id, _own(tx, house), need)
        return None if scope is None else costs.refusal(scope)
    shared = budgets.organization_budget(tx, house.organization_id)
    under = budgets.allowance(house.organization_id, _own(tx, house), shared)
    refused = None if under is None else budgets.affordable(tx, house.agents[0][0], under, need)
    return None if refused is None else f"The budget ({refused.scope}) leaves no room for it."


def pay(tx: Tx, house: House, spent: Spent) -> None:
    """What summing a conversation up has used is on the account of an agent in it, or of the panel."""
    charge = Charge(
        spent.model,
        spent.input_tokens,
        spent.output_tokens,
        spent.cache_read_tokens,
        spent.cache_write_tokens,
        spent.cost_micros,
    )
    if house.kind == "panel":
        costs.enter(tx, house.organization_id, house.space_id, charge)
    else:
        # Under an id of its own: what a cycle used is what its own model calls did.
        ledger.enter(tx, house.agents[0][0], CycleId(new_id()), "usage", charge, "memory")
