"""Small tasks that a chat program gives the model of a conversation: to write a title, tags, follow-up questions.

They are no part of an agent's life. The utility model answers, no space or log has them, and the agent or the panel
that was asked pays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pydantic_ai.messages import ModelMessage, ModelRequest, SystemPromptPart, UserPromptPart

from denizen.agents import registry
from denizen.agents.equipment import Equipment
from denizen.agents.registry import Agent
from denizen.cycles.ledger import Charge, charge_of
from denizen.cycles.utility_budget import UtilityBudget
from denizen.errors import InvalidInput
from denizen.panel.asking import PanelDeps
from denizen.panel.costs import PanelPayer
from denizen.panel.panels import Panel
from denizen.reflection.thinking import NamedModel, paid_call

TOKENS: Final = 1_000
"""The longest answer: five questions, or a title."""


@dataclass(frozen=True, slots=True)
class TaskMessage:
    """A message of the task."""

    role: Literal["system", "user"]
    text: str


@dataclass(frozen=True, slots=True)
class SideTaskAnswer:
    """The answer to a task, and what it used."""

    text: str
    spent: Charge


async def answer_for_agent(equipment: Equipment, agent: Agent, lines: Sequence[TaskMessage]) -> SideTaskAnswer:
    """Answer with the utility model of this agent, which pays. Raises `InvalidInput` if the agent is suspended."""
    if await equipment.db.read(registry.status, agent.id) == "suspended":
        raise InvalidInput(f"{agent.name} is suspended. Resume it first.")
    return await _answer(
        await equipment.utility_model_of(agent), equipment.utility_budget_of(agent, "side task"), lines
    )


async def answer_for_panel(deps: PanelDeps, panel: Panel, lines: Sequence[TaskMessage]) -> SideTaskAnswer:
    """The same for a panel."""
    named = await deps.model_for(panel.organization_id, deps.utility_model_of(panel.settings))
    return await _answer(named, UtilityBudget(deps.utility_budget_deps, PanelPayer(panel)), lines)


async def _answer(named: NamedModel, budget: UtilityBudget, lines: Sequence[TaskMessage]) -> SideTaskAnswer:
    parts = [SystemPromptPart(each.text) if each.role == "system" else UserPromptPart(each.text) for each in lines]
    asked: list[ModelMessage] = [ModelRequest(parts=[each]) for each in parts]
    response = await paid_call(budget, named, asked, tokens=TOKENS)
    return SideTaskAnswer(response.text or "", charge_of(response, named[0], budget.deps.prices))
