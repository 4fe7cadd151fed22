"""What an organization's agents have used over time: by day, and by agent or model. Days are those of UTC."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Final, Literal

from sqlalchemy import BigInteger, Text, bindparam, cast, func, or_, select

from denizen.ids import AgentId, OrganizationId
from denizen.storage.database import Params, Row, Statement, Tx, statement
from denizen.storage.schema import entities, spending

By = Literal["day", "agent", "model"]
FIRST_DAY: Final = date(1970, 1, 1)
MOST_DAYS: Final = 366


@dataclass(frozen=True, slots=True)
class Sums:
    """What was used."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_micros: int = 0

    @property
    def cached_share(self) -> float | None:
        """How much of what was read the provider had kept; None if nothing was read."""
        return self.cache_read_tokens / self.input_tokens if self.input_tokens else None

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.cost_micros + other.cost_micros,
        )


@dataclass(frozen=True, slots=True)
class Group:
    """What one agent has used, or what was used with one model."""

    key: str
    """The id of the agent, or the name of the model."""
    name: str
    total: Sums
    days: tuple[Sums, ...]


@dataclass(frozen=True, slots=True)
class Account:
    """What was used on each day from the first to the last, also on those on which nothing was."""

    first: date
    days: tuple[Sums, ...]
    groups: tuple[Group, ...] = ()
    """Those that cost most."""
    others: int = 0
    """How many more there are."""

    @property
    def total(self) -> Sums:
        return sum(self.days, Sums())


_SUMS: Final = tuple(
    cast(func.sum(column), BigInteger)
    for column in (
        spending.c.calls,
        spending.c.input_tokens,
        spending.c.output_tokens,
        spending.c.cache_read_tokens,
        spending.c.cache_write_tokens,
        spending.c.cost_micros,
    )
)
_in_time = (spending.c.day >= bindparam("first"), spending.c.day <= bindparam("last"))
_agent = bindparam("agent_id", type_=Text())
_wanted = (
    spending.c.organization_id == bindparam("organization_id"),
    *_in_time,
    or_(_agent == "", spending.c.agent_id == _agent),
)


def _by(*columns: Any) -> Statement:
    return statement(select(*columns, *_SUMS).where(*_wanted).group_by(*columns))


_by_day = _by(spending.c.day)
_by_agent = _by(spending.c.agent_id)
_by_model = _by(spending.c.model)
_by_model_and_day = _by(spending.c.model, spending.c.day)
_days_of_agent = statement(
    select(spending.c.day, *_SUMS).where(spending.c.agent_id == bindparam("key"), *_in_time).group_by(spending.c.day)
)
_name = statement(select(entities.c.name).where(entities.c.id == bindparam("id")))


def account(
    tx: Tx,
    organization_id: OrganizationId,
    first: date,
    last: date,
    *,
    by: By = "day",
    agent_id: AgentId | None = None,
    most: int = 20,
) -> Account:
    """What the organization's agents, or one of them, used in these days; at most `most` groups are told apart."""
    where: dict[str, Params] = {
        "organization_id": organization_id,
        "agent_id": agent_id or "",
        "first": (first - FIRST_DAY).days,
        "last": (last - FIRST_DAY).days,
    }
    days = _each_day(first, last, tx.all(_by_day, **where))
    if by == "day":
        return Account(first, days)
    rows = tx.all(_by_agent if by == "agent" else _by_model, **where)
    rows.sort(key=lambda row: (-row[6], -row[2] - row[3], row[0]))
    told = _days_of_agents(tx, rows[:most], where) if by == "agent" else _days_of_models(tx, where)
    groups = tuple(
        Group(
            row[0],
            _named(tx, row[0]) if by == "agent" else row[0],
            Sums(*row[1:]),
            _each_day(first, last, told[row[0]]),
        )
        for row in rows[:most]
    )
    return Account(first, days, groups, max(len(rows) - most, 0))


def _days_of_agents(tx: Tx, rows: Iterable[Row], where: Mapping[str, Params]) -> dict[str, list[Row]]:
    time = {"first": where["first"], "last": where["last"]}
    return {row[0]: tx.all(_days_of_agent, key=row[0], **time) for row in rows}


def _days_of_models(tx: Tx, where: Mapping[str, Params]) -> dict[str, list[Row]]:
    told: defaultdict[str, list[Row]] = defaultdict(list)
    for row in tx.all(_by_model_and_day, **where):
        told[row[0]].append(row[1:])
    return told


def _each_day(first: date, last: date, rows: Iterable[Row]) -> tuple[Sums, ...]:
    used = {row[0]: Sums(*row[1:]) for row in rows}
    start = (first - FIRST_DAY).days
    return tuple(used.get(start + at, Sums()) for at in range((last - first).days + 1))


def _named(tx: Tx, agent_id: str) -> str:
    row = tx.one(_name, id=agent_id)
    return "" if row is None else row[0]
