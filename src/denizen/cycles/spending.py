"""Reads the usage of agents and panels: sums for budgets, and each day for reports. `ledger` records it.

Agents and panels have a table each, because their rows refer to an agent or to a panel; the columns are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from functools import reduce
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    FromClause,
    Select,
    Subquery,
    Table,
    and_,
    bindparam,
    cast,
    func,
    not_,
    or_,
    select,
    true,
    union_all,
)

from denizen.cycles.ledger import COUNTED, PAYER, day_of
from denizen.ids import AgentId, OrganizationId, SpaceId
from denizen.models.prices import FREE
from denizen.storage.database import Statement, Tx, statement
from denizen.storage.schema import organizations, panel_spending, spending

TABLES: Final = (spending, panel_spending)
FIRST_DAY: Final = date(1970, 1, 1)


# Sums of tokens and millionths of a dollar


def totals(tokens: ColumnElement[Any], micros: ColumnElement[Any], *where: ColumnElement[bool]) -> Select[int, int]:
    """Selects the sums of both, as `tokens` and `micros`; 0 without rows."""
    return select(
        cast(func.coalesce(func.sum(tokens), 0), BigInteger).label("tokens"),
        cast(func.coalesce(func.sum(micros), 0), BigInteger).label("micros"),
    ).where(*where)


def spent(table: Table, *where: ColumnElement[bool]) -> Subquery:
    """The totals of one of `TABLES`."""
    return totals(table.c.input_tokens + table.c.output_tokens, table.c.cost_micros, *where).subquery()


def spent_on_day() -> list[Subquery]:
    """The totals of the whole server on `day`."""
    # By organization, which is the first column of the key.
    here = select(organizations.c.id)
    return [spent(each, each.c.organization_id.in_(here), each.c.day == bindparam("day")) for each in TABLES]


def added_up(*groups: list[Subquery]) -> Statement:
    """Selects tokens and micros of each group of totals, in one statement and so from one snapshot."""
    sums = [
        sum(part.c[name] for part in parts[1:]) + parts[0].c[name] for parts in groups for name in ("tokens", "micros")
    ]

    def beside(left: FromClause, right: FromClause) -> FromClause:
        return left.join(right, true())

    return statement(select(*sums).select_from(reduce(beside, (part for parts in groups for part in parts))))


# Each day


def _columns(table: Table) -> Iterator[ColumnElement[Any]]:
    yield from (table.c.day, table.c[PAYER[table]].label("payer"), table.c.model, table.c.calls)
    yield from (table.c[name] for name in COUNTED)


def is_unpriced(row: FromClause) -> ColumnElement[bool]:
    """Whether the calls of a row cost something that is not known: no dollars were counted for their tokens, and the
    model is one of a provider, not one of ours or one that was registered here.
    """
    ours = [row.c.model.startswith(f"{each}:", autoescape=True) for each in sorted(FREE)]
    of_provider = and_(row.c.model.contains(":", autoescape=True), not_(or_(*ours)))
    return and_(row.c.cost_micros == 0, row.c.input_tokens + row.c.output_tokens > 0, of_provider)


EVERYBODY: Final = union_all(*(select(each.c.organization_id, *_columns(each)) for each in TABLES)).subquery()
"""The rows of agents and panels: organization, day, payer, model, calls, and what is counted."""


@dataclass(frozen=True, slots=True)
class Spending:
    """The usage of one agent, or one panel, on one day with one model."""

    day: date
    agent_id: AgentId | None
    """None for a panel."""
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost_micros: int
    """Millionths of a dollar; 0 where the price is unknown."""
    panel_id: SpaceId | None = None

    @property
    def unpriced_calls(self) -> int:
        """The calls whose price is unknown."""
        provider, colon, _ = self.model.partition(":")
        costs = bool(self.input_tokens + self.output_tokens and colon and provider not in FREE)
        return self.calls if costs and not self.cost_micros else 0


def _history(table: Table, whose: str) -> Statement:
    return statement(
        select(*_columns(table))
        .where(table.c[whose] == bindparam("whose"), table.c.day > bindparam("after"))
        .order_by(table.c.day, table.c[PAYER[table]], table.c.model)
    )


_of_agent = _history(spending, PAYER[spending])
_of_all_agents, _of_all_panels = (_history(each, "organization_id") for each in TABLES)


def spending_of_agent(tx: Tx, agent_id: AgentId, *, days: int) -> list[Spending]:
    """The agent's usage in the last `days` days, including today, oldest first."""
    return list(_read(tx, _of_agent, agent_id, days, of_panels=False))


def spending_of_all(tx: Tx, organization_id: OrganizationId, *, days: int) -> list[Spending]:
    """The same for every agent and every panel of the organization."""
    agents = _read(tx, _of_all_agents, organization_id, days, of_panels=False)
    panels = _read(tx, _of_all_panels, organization_id, days, of_panels=True)
    return sorted([*agents, *panels], key=lambda each: each.day)


def _read(tx: Tx, which: Statement, whose: str, days: int, *, of_panels: bool) -> Iterator[Spending]:
    for day, payer, *counts in tx.all(which, whose=whose, after=day_of(tx.now) - days):
        agent_id, panel_id = (None, SpaceId(payer)) if of_panels else (AgentId(payer), None)
        yield Spending(FIRST_DAY + timedelta(days=day), agent_id, *counts, panel_id=panel_id)
