"""Charges what a utility model writes: the summary of a conversation to the first agent in it or to the panel, a
chapter of an agent's history to the agent; within their budgets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic_ai.models import Model

from denizen.agents import registry
from denizen.cycles import budgets
from denizen.cycles.ledger import Charge
from denizen.cycles.utility_budget import AgentPayer, NoRoom, Payer, UtilityBudget, UtilityBudgetDeps
from denizen.memory.asking import MemoryUsage, RequestReservation
from denizen.memory.rolling import ConversationInfo
from denizen.models.prices import Usage
from denizen.panel import panels
from denizen.panel.costs import PanelPayer
from denizen.storage.database import Tx


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """Reserves what summaries may use."""

    deps: UtilityBudgetDeps

    async def reserve(self, place: ConversationInfo, name: str, model: Model, need: Usage) -> RequestReservation:
        """Reserve a call of the model in the budgets, or say why it is refused."""
        payer = await self.deps.db.read(_payer, place)
        return await reserve(UtilityBudget(self.deps, payer), name, model, need)


async def reserve(budget: UtilityBudget, name: str, model: Model, need: Usage) -> RequestReservation:
    """Reserve a call of the model in the budgets of the payer, or say why it is refused."""
    kept = await budget.reserve((name, model), need)
    return (
        RequestReservation(refused=kept.text)
        if isinstance(kept, NoRoom)
        else RequestReservation(kept.reserved, held=kept.server)
    )


def _payer(tx: Tx, place: ConversationInfo) -> Payer:
    if place.kind == "panel":
        return PanelPayer(panels.get(tx, place.space_id))
    agent_id = place.agents[0][0]
    return AgentPayer(agent_id, place.organization_id, registry.get(tx, agent_id).definition.budget, "memory")


def pay(tx: Tx, place: ConversationInfo, spent: MemoryUsage | None, reserved: Sequence[str]) -> None:
    """Charge the usage of a conversation's summary to an agent in it, or to the panel, and release its reservation."""
    charge(tx, _payer(tx, place), spent, reserved)


def charge(tx: Tx, payer: Payer, spent: MemoryUsage | None, reserved: Sequence[str]) -> None:
    """Charge the usage to this payer, and release these reservations."""
    for call in reserved:
        budgets.release_call(tx, payer.id, call)
    if spent is not None:
        line = Charge(
            spent.model,
            spent.input_tokens,
            spent.output_tokens,
            spent.cache_read_tokens,
            spent.cache_write_tokens,
            spent.cost_micros,
        )
        payer.enter(tx, line)
