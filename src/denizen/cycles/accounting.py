"""Usage of an organization's agents and panels over time: by day, and by agent or model. Days are in UTC."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from sqlalchemy import BigInteger, Text, bindparam, case, cast, func, or_, select

from denizen.cycles.ledger import COUNTED
from denizen.cycles.spending import EVERYBODY, FIRST_DAY, is_unpriced
from denizen.ids import AgentId, OrganizationId
from denizen.shapes.vocabulary import UsageBy as By
from denizen.shapes.vocabulary import UsageKind as Kind
from denizen.storage.database import Params, Row, Statement, Tx, select_where, statement, value
from denizen.storage.schema import entities, spaces

MOST_DAYS: Final = 366


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums of usage."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_micros: int = 0
    unpriced_calls: int = 0
    """Calls whose price is unknown: `cost_micros` is without them."""

    @property
    def cached_share(self) -> float | None:
        """The share of input tokens that the provider had cached; None if there were no input tokens."""
        return self.cache_read_tokens / self.input_tokens if self.input_tokens else None

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.cost_micros + other.cost_micros,
            self.unpriced_calls + other.unpriced_calls,
        )


@dataclass(frozen=True, slots=True)
class Group:
    """The usage of one agent or panel, or of one model."""

    key: str
    """The id of the agent or panel, or the name of the model."""
    name: str
    kind: Kind
    total: Sums
    days: tuple[Sums, ...]


@dataclass(frozen=True, slots=True)
class Account:
    """The usage of each day from the first to the last, including days without any."""

    first: date
    days: tuple[Sums, ...]
    groups: tuple[Group, ...] = ()
    """The most expensive groups."""
    others: int = 0
    """How many further groups there are."""

    @property
    def total(self) -> Sums:
        return sum(self.days, Sums())


# Agents and panels share the budget of their organization.
_used = EVERYBODY
_unpriced = case((is_unpriced(_used), _used.c.calls), else_=0)
_SUMS: Final = (
    *(cast(func.sum(_used.c[name]), BigInteger) for name in ("calls", *COUNTED)),
    cast(func.sum(_unpriced), BigInteger),
)
_agent = bindparam("agent_id", type_=Text())
_wanted = (
    _used.c.organization_id == bindparam("organization_id"),
    _used.c.day >= bindparam("first"),
    _used.c.day <= bindparam("last"),
    or_(_agent == "", _used.c.payer == _agent),
)


def _by(*columns: Any) -> Statement:
    return statement(select(*columns, *_SUMS).where(*_wanted).group_by(*columns))


_by_day = _by(_used.c.day)
_by_payer = _by(_used.c.payer)
_by_payer_and_day = _by(_used.c.payer, _used.c.day)
_by_model = _by(_used.c.model)
_by_model_and_day = _by(_used.c.model, _used.c.day)
_name = select_where(entities, "name", "id")
_panel_name = select_where(spaces, "name", "id")


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
    """The usage of the organization's agents and panels, or of one of them, in these days; at most `most` groups.

    By agent, panels are separate groups as well.
    """
    where: dict[str, Params] = {
        "organization_id": organization_id,
        "agent_id": agent_id or "",
        "first": (first - FIRST_DAY).days,
        "last": (last - FIRST_DAY).days,
    }
    days = _each_day(first, last, tx.all(_by_day, **where))
    if by == "day":
        return Account(first, days)
    of_all, of_each_day = (_by_payer, _by_payer_and_day) if by == "agent" else (_by_model, _by_model_and_day)
    used = [(key, Sums(*sums)) for key, *sums in tx.all(of_all, **where)]
    used.sort(key=lambda each: (-each[1].cost_micros, -each[1].input_tokens - each[1].output_tokens, each[0]))
    told = _days_of(tx, of_each_day, where)
    groups = tuple(
        Group(
            key,
            *(_named(tx, key) if by == "agent" else (key, "model")),
            sums,
            _each_day(first, last, told[key]),
        )
        for key, sums in used[:most]
    )
    return Account(first, days, groups, max(len(used) - most, 0))


def _days_of(tx: Tx, each: Statement, where: Mapping[str, Params]) -> dict[str, list[Row]]:
    told: defaultdict[str, list[Row]] = defaultdict(list)
    for key, *day_and_sums in tx.all(each, **where):
        told[key].append(tuple(day_and_sums))
    return told


def _each_day(first: date, last: date, rows: Iterable[Row]) -> tuple[Sums, ...]:
    used = {day: Sums(*sums) for day, *sums in rows}
    start = (first - FIRST_DAY).days
    return tuple(used.get(start + at, Sums()) for at in range((last - first).days + 1))


def _named(tx: Tx, who: str) -> tuple[str, Kind]:
    name = value(tx, _name, id=who)
    if name is not None:
        return name, "agent"
    panel_name = value(tx, _panel_name, id=who)
    return ("", "agent") if panel_name is None else (panel_name, "panel")
