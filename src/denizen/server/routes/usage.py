"""Usage over time, and the budget of the organization."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Annotated, Final

from fastapi import Query

from denizen.access.requesters import find_agent
from denizen.clock import moment
from denizen.cycles import budgets, organization
from denizen.cycles.accounting import MOST_DAYS, Account, By, account
from denizen.cycles.budgets import BudgetSettings
from denizen.cycles.server_budget import ServerBudget, used_today
from denizen.errors import InvalidInput
from denizen.server.auth import Admin, Caller
from denizen.server.router import new_router
from denizen.server.shapes.usage import limits_out, usage_out, used_out
from denizen.shapes.usage import BudgetOut, Limits, ServerUsed, UsageOut
from denizen.spaces import directory
from denizen.storage.database import Tx

router = new_router()

DAYS: Final = 30
"""How many are told where nobody says since when."""


@router.get("/api/usage", summary="Get the usage of agents")
async def get_usage(
    caller: Admin,
    since: Annotated[date | None, Query(description="The first day; by default 29 days before the last.")] = None,
    until: Annotated[date | None, Query(description="The last day; by default today, by UTC.")] = None,
    by: Annotated[By, Query(description="Whether agents or models are told apart as well.")] = "day",
    agent: Annotated[str | None, Query(max_length=100, description="Only this one: its id or `@handle`.")] = None,
    limit: Annotated[int, Query(ge=1, le=50, description="How many agents or models are told apart.")] = 20,
) -> UsageOut:
    """Every day of the period is listed, also without usage. At most 366 days at once."""
    runtime = caller.runtime
    last = until or moment(runtime.clock.now()).date()
    first = since or last - timedelta(days=min(DAYS - 1, (last - date.min).days))
    if first > last:
        raise InvalidInput("since: this is after `until`.")
    if (last - first).days >= MOST_DAYS:
        raise InvalidInput(f"since: at most {MOST_DAYS} days can be read at once.")
    return usage_out(await runtime.db.read(_account, caller, first, last, by, agent, limit), by)


def _account(tx: Tx, caller: Caller, first: date, last: date, by: By, agent: str | None, most: int) -> Account:
    chosen = None if agent is None else find_agent(tx, caller.requester, agent, also_dead=True)
    return account(tx, caller.entity.organization_id, first, last, by=by, agent_id=chosen, most=most)


@router.get("/api/organization/budget", summary="Get the budget of your organization")
async def get_budget(caller: Admin) -> BudgetOut:
    """The limits for all agents together, and what was used today. An agent's own budget is part of its definition."""
    runtime = caller.runtime
    return await runtime.db.read(_budget, caller, runtime.server_budget)


@router.put("/api/organization/budget", summary="Set the budget of your organization")
async def put_budget(caller: Admin, wanted: Limits) -> BudgetOut:
    """Replaces all limits: what is not sent is not limited. Agents that paused because of a smaller limit continue."""
    runtime = caller.runtime
    # By way of text, so that 0.1 is a tenth.
    given = {name: str(value) if isinstance(value, float) else value for name, value in wanted.model_dump().items()}
    budget = budgets.checked(given)
    await runtime.budgets.check_prices(caller.entity.organization_id, budget)
    return await runtime.db.write(_set_budget, caller, budget, runtime.server_budget)


def _budget(tx: Tx, caller: Caller, server: ServerBudget | None) -> BudgetOut:
    home, today = caller.entity.organization_id, moment(tx.now).date()
    # What others use is for those who look after the server, as with /metrics.
    shows_used = server is not None and directory.first_organization(tx) == home
    used = used_today(tx) if shows_used else None
    return BudgetOut(
        limits=limits_out(budgets.organization_budget(tx, home)),
        today=used_out(account(tx, home, today, today).total),
        server=None if server is None else limits_out(server.limits),
        server_today=None if used is None else ServerUsed(dollars=used.micros / 1_000_000, tokens=used.tokens),
    )


def _set_budget(tx: Tx, caller: Caller, wanted: BudgetSettings, server: ServerBudget | None) -> BudgetOut:
    organization.set_budget(tx, caller.requester, caller.entity.organization_id, wanted)
    return _budget(tx, caller, server)
