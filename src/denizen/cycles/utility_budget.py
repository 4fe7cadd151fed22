"""Pays for model calls outside of cycles and replies: reflection, summaries, suggestions.

The agent or the panel that the call is for pays: the most that the call may use is reserved in its budgets and those of
its organization and the server, and what it used is entered when it has ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, Protocol

from pydantic_ai.messages import ModelResponse

from denizen.clock import Clock
from denizen.cycles import budgets, ledger, watching
from denizen.cycles.budgets import Amount, BudgetSettings, Refusal
from denizen.cycles.ledger import Charge, charge_of
from denizen.cycles.server_budget import KeptCall, ServerBudget
from denizen.errors import InvalidInput
from denizen.ids import AgentId, CycleId, OrganizationId, new_id
from denizen.models.prices import Price, Usage, expected_cost
from denizen.reflection.thinking import NamedModel
from denizen.shapes.vocabulary import BudgetScope
from denizen.storage.database import Database, Tx
from denizen.telemetry.metrics import Metrics


class Payer(Protocol):
    """An agent or a panel."""

    @property
    def id(self) -> str: ...
    @property
    def organization_id(self) -> OrganizationId: ...
    @property
    def budget(self) -> BudgetSettings | None: ...
    @property
    def is_panel(self) -> bool: ...

    def refusal(self, scope: BudgetScope) -> str:
        """Says which limit leaves no room."""
        ...

    def enter(self, tx: Tx, charge: Charge) -> None:
        """Records what a call has used."""
        ...


@dataclass(frozen=True, slots=True)
class AgentPayer:
    """An agent that pays."""

    id: AgentId
    organization_id: OrganizationId
    budget: BudgetSettings | None
    purpose: str
    """What the lines in its ledger say."""
    is_panel: bool = False

    def refusal(self, scope: BudgetScope) -> str:
        return f"The budget ({scope}) is not enough for this."

    def enter(self, tx: Tx, charge: Charge) -> None:
        # Under an id of its own: the usage of a cycle is that of its own model calls.
        ledger.enter(tx, self.id, CycleId(new_id()), "usage", charge, self.purpose)


@dataclass(frozen=True, slots=True)
class NoRoom:
    """Why a call may not be made."""

    text: str


@dataclass(frozen=True, slots=True)
class UtilityBudgetDeps:
    """Prices, budgets and where usage is counted."""

    db: Database
    clock: Clock
    prices: Mapping[str, Price]
    server_budget: ServerBudget | None = None
    metrics: Metrics | None = None


@dataclass(frozen=True, slots=True)
class UtilityBudget:
    """The budgets of one payer."""

    deps: UtilityBudgetDeps
    payer: Payer

    async def reserve(self, named: NamedModel, most: Usage) -> KeptCall | NoRoom:
        """Reserves the most that the call may use. Without limits this writes nothing."""
        deps, payer = self.deps, self.payer
        shared = await deps.db.read(budgets.organization_budget, payer.organization_id)
        under, call = budgets.allowance(payer.organization_id, payer.budget, shared), None
        if deps.server_budget is not None:
            call = await deps.server_budget.begin(deps.db, deps.clock, *named, most)
            under = call.allowance(under, payer.organization_id)
        if under is None:
            return KeptCall(None, call)
        # The price list takes time to read, the first time.
        dollars = await asyncio.to_thread(expected_cost, named[1], most, deps.prices, asked=named[0])
        if dollars is None and any(each is not None and each.in_dollars for each in (payer.budget, shared)):
            return NoRoom(f"There is a budget in dollars, but the price of {named[0]!r} is unknown: give its price.")
        need = Amount(most.input + most.output, ceil((dollars or 0) * 1_000_000))
        under = replace(under, of_panel=payer.is_panel)
        reserved = await deps.db.write(budgets.reserve_beside, payer.id, under, need)
        return NoRoom(payer.refusal(reserved.scope)) if isinstance(reserved, Refusal) else KeptCall(reserved, call)

    async def keep(self, named: NamedModel, most: Usage) -> KeptCall:
        """Like `reserve`, but raises `InvalidInput` if there is no room."""
        kept = await self.reserve(named, most)
        if isinstance(kept, NoRoom):
            raise InvalidInput(kept.text)
        return kept

    async def pay(self, named: NamedModel, kept: Any, response: ModelResponse | None) -> None:
        """Records the usage of the call, if there was an answer, and releases its reservation."""
        charges = [] if response is None else [charge_of(response, named[0], self.deps.prices)]
        if self.deps.metrics is not None:
            for charge in charges:
                watching.count(self.deps.metrics, charge)
        if charges or kept.reserved is not None:
            await self.deps.db.write(pay, self.payer, charges, kept.reserved)


def pay(tx: Tx, payer: Payer, charges: Iterable[Charge], reserved: str | None) -> None:
    """Records the usage of calls, and releases their reservation."""
    for charge in charges:
        payer.enter(tx, charge)
    if reserved is not None:
        budgets.release_call(tx, payer.id, reserved)
