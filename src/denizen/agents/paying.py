"""Charges the summary of a conversation to the first agent in it, or to the panel, within their budgets."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

from pydantic_ai.models import Model

from denizen.agents import registry
from denizen.clock import Clock
from denizen.cycles import budgets, ledger
from denizen.cycles.budgets import Allowance, Amount, BudgetSettings, Refusal, ServerLimit
from denizen.cycles.ledger import Charge
from denizen.cycles.server_budget import ServerBudget
from denizen.ids import CycleId, new_id
from denizen.memory.asking import MemoryUsage, Reserved
from denizen.memory.rolling import ConversationInfo
from denizen.models.prices import Price, Usage, expected_cost
from denizen.panel import costs, panels
from denizen.panel.costs import NoRoom
from denizen.storage.database import Database, Tx


@dataclass(frozen=True, slots=True)
class PayingDeps:
    """The budgets and prices."""

    db: Database
    prices: Mapping[str, Price]
    clock: Clock
    server_budget: ServerBudget | None = None

    async def reserve(self, house: ConversationInfo, name: str, model: Model, need: Usage) -> Reserved:
        """Reserve a call of the model in the budgets, or say why it is refused. Costs nothing without limits."""
        budget = self.server_budget
        call = None if budget is None else await budget.begin(self.db, self.clock, name, model, need)
        server = None if call is None else call.near
        limits = await self.db.read(_limits, house)
        if not limits and server is None:
            return Reserved(held=call)
        # The first read of the price list is slow.
        dollars = await asyncio.to_thread(expected_cost, model, need, self.prices, asked=name)
        if dollars is None and any(each.in_dollars for each in limits):
            why = f"There is a budget in dollars, but the price of {name!r} is unknown: give its price."
            return Reserved(refused=why)
        amount = Amount(need.input + need.output, ceil((dollars or 0) * 1_000_000))
        return await self.db.write(_reserve, house, amount, server)


def _limits(tx: Tx, house: ConversationInfo) -> list[BudgetSettings]:
    shared = budgets.organization_budget(tx, house.organization_id)
    return [each for each in (_own(tx, house), shared) if each is not None]


def _own(tx: Tx, house: ConversationInfo) -> BudgetSettings | None:
    if house.kind == "panel":
        return panels.get(tx, house.space_id).settings.budget
    return registry.get(tx, house.agents[0][0]).definition.budget


def _reserve(tx: Tx, house: ConversationInfo, need: Amount, server: ServerLimit | None) -> Reserved:
    if house.kind == "panel":
        reserved = costs.reserve_beside(tx, house.organization_id, house.space_id, _own(tx, house), need, server)
        return Reserved(refused=reserved.text) if isinstance(reserved, NoRoom) else Reserved(reserved)
    shared = budgets.organization_budget(tx, house.organization_id)
    under = budgets.allowance(house.organization_id, _own(tx, house), shared)
    if server is not None:
        under = replace(under or Allowance(house.organization_id, None, shared=False), server=server)
    if under is None:
        return Reserved()
    call = budgets.reserve_beside(tx, house.agents[0][0], under, need)
    if isinstance(call, Refusal):
        return Reserved(refused=f"The budget ({call.scope}) leaves no room for it.")
    return Reserved(call)


def pay(tx: Tx, house: ConversationInfo, spent: MemoryUsage | None, reserved: Sequence[str]) -> None:
    """Charge the usage of a conversation's summary to an agent in it, or to the panel, and release its reservation."""
    payer_id = house.space_id if house.kind == "panel" else house.agents[0][0]
    for call in reserved:
        budgets.release_call(tx, payer_id, call)
    if spent is None:
        return
    charge = Charge(
        spent.model,
        spent.input_tokens,
        spent.output_tokens,
        spent.cache_read_tokens,
        spent.cache_write_tokens,
        spent.cost_micros,
    )
    if house.kind == "panel":
        ledger.enter_for_panel(tx, house.space_id, charge)
    else:
        # Under an id of its own: the usage of a cycle is that of its own model calls.
        ledger.enter(tx, house.agents[0][0], CycleId(new_id()), "usage", charge, "memory")
