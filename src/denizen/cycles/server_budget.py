"""The daily limit of the whole server: there from the first start, so that a loop of agents cannot cost a fortune.

It costs no transaction: what the server has used today is read every half minute, or before each call once most of the
limit may be used. Nothing is reserved for it, so that it may be passed by the calls that are under way at that moment.
Calls without a known price count as tokens only: a limit in dollars blocks none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Final

from pydantic_ai.models import Model
from sqlalchemy import BigInteger, Subquery, Table, bindparam, cast, func, select, true

from denizen.clock import SECOND, Clock
from denizen.cycles.budgets import Amount, BudgetSettings, Limit, Refusal
from denizen.cycles.ledger import DAY, day_of
from denizen.models.prices import Price, Usage, expected_cost, is_built_in
from denizen.storage.database import Database, Tx, statement
from denizen.storage.schema import organizations, panel_spending, spending

NEAR: Final = 0.5
"""From this share of the limit on, what was used is read before each call."""
READ_SECONDS: Final = 30
"""How old what was read may be, further away from the limit."""


def _used(table: Table) -> Subquery:
    # By organization, which the key begins with.
    return (
        select(
            cast(func.coalesce(func.sum(table.c.input_tokens + table.c.output_tokens), 0), BigInteger).label("tokens"),
            cast(func.coalesce(func.sum(table.c.cost_micros), 0), BigInteger).label("micros"),
        )
        .where(table.c.organization_id.in_(select(organizations.c.id)), table.c.day == bindparam("day"))
        .subquery()
    )


_by_agents, _by_panels = _used(spending), _used(panel_spending)
_used_today = statement(
    select(_by_agents.c.tokens + _by_panels.c.tokens, _by_agents.c.micros + _by_panels.c.micros).select_from(
        _by_agents.join(_by_panels, true())
    )
)


def used_today(tx: Tx) -> Amount:
    """What all agents and panels of the server have used today, by UTC."""
    row = tx.one(_used_today, day=day_of(tx.now))
    assert row is not None
    return Amount(row[0], row[1])


class ServerBudget:
    """What all organizations of a server together may use in a day, as one process keeps an eye on it."""

    def __init__(self, limits: BudgetSettings, prices: Mapping[str, Price]) -> None:
        micros = None if limits.dollars_per_day is None else int(limits.dollars_per_day * 1_000_000)
        self.limits = limits
        self._limit = Limit("server:day", limits.tokens_per_day, micros)
        self._prices = prices
        self._read_at = -READ_SECONDS * SECOND
        self._known = Amount()
        """What was used when it was last read, and what has been asked for here since."""

    async def refuse(self, db: Database, clock: Clock, name: str, model: Model, most: Usage) -> Refusal | None:
        """Why a call of this size is not made, if it is not. The built-in models are not limited: they cost nothing."""
        if is_built_in(model):
            return None
        dollars = expected_cost(model, most, self._prices, asked=name)
        need = Amount(most.input + most.output, ceil((dollars or 0) * 1_000_000))
        now = clock.now()
        is_old = now - self._read_at >= READ_SECONDS * SECOND or day_of(now) != day_of(self._read_at)
        if is_old or self._limit.share(self._known + need) >= NEAR:
            self._known, self._read_at = await db.read(used_today), now
        if self._limit.is_passed_by(self._known + need):
            return Refusal("server:day", (day_of(now) + 1) * DAY)
        self._known += need
        return None
