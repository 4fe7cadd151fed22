"""`denizen.budgets`: what agents may use, and what they have used."""

from __future__ import annotations

from decimal import Decimal

from denizen.access.requesters import THIS_PROCESS, Requester
from denizen.agents import registry
from denizen.api.arguments import number_of
from denizen.api.subject import AgentRef, OrganizationRef, Subject
from denizen.cycles import budgets
from denizen.cycles.budgets import BudgetRest, BudgetSettings
from denizen.cycles.organization import set_budget
from denizen.cycles.spending import Spending, spending_of_agent, spending_of_all
from denizen.ids import OrganizationId


class Budgets(Subject):
    """The budget of an organization, and what its agents and panels spend. An agent's own budget is part of its
    definition: `denizen.agents.create(…, budget=…)`.

    ```python
    await denizen.budgets.set(tokens_per_day=2_000_000)
    assert (await denizen.budgets.get()).tokens_per_day == 2_000_000
    assert await denizen.budgets.spending(ada) == []
    ```
    """

    async def set(
        self,
        organization: OrganizationRef | None = None,
        *,
        dollars_per_day: Decimal | float | None = None,
        tokens_per_day: int | None = None,
        dollars: Decimal | float | None = None,
        tokens: int | None = None,
        by: Requester = THIS_PROCESS,
    ) -> None:
        """Limit what all agents of the organization may use together, by the day and in all. None is no limit.

        Agents that rest because of a limit that is raised go on.
        """
        given = {
            "dollars_per_day": dollars_per_day,
            "tokens_per_day": tokens_per_day,
            "dollars": dollars,
            "tokens": tokens,
        }
        home, budget = await self._runtime.organization_id(organization), budgets.checked(given)
        await self.check_prices(home, budget)
        await self._runtime.db.write(set_budget, by, home, budget)

    async def get(self, organization: OrganizationRef | None = None) -> BudgetSettings | None:
        """What all agents of the organization may use together; None: there is no limit."""
        return await self._runtime.db.read(
            budgets.organization_budget, await self._runtime.organization_id(organization)
        )

    async def resting(self, agent: AgentRef) -> BudgetRest | None:
        """Why and until when the agent rests, where a budget has suspended it."""
        return await self._read_agent(agent, budgets.resting)

    async def spending(
        self, agent: AgentRef | None = None, *, days: int = 30, organization: OrganizationRef | None = None
    ) -> list[Spending]:
        """What the agent used on the last days, by model; without one, each agent and panel of the organization."""
        days = number_of(days, "days", 1, 36_500)
        if agent is not None:
            return await self._read_agent(agent, spending_of_agent, days=days)
        home = await self._runtime.organization_id(organization)
        return await self._runtime.db.read(spending_of_all, home, days=days)

    async def check_prices(self, organization_id: OrganizationId, budget: BudgetSettings) -> None:
        """Raises `PriceUnknown` where the budget is in dollars and the price of an agent's model is unknown."""
        if budget.in_dollars:
            living = await self._runtime.db.read(registry.living_agents, organization_id)
            priced = [(organization_id, agent.definition) for agent, _ in living]
            await self._runtime.equipment().check_prices(priced)
