"""Usage and budgets of panels: recorded by day, limited by the panel's and the organization's budget, estimated
beforehand.

Panels share the limits of their organization with its agents: a reservation of either counts for both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import BigInteger, bindparam, cast, func, select, update
from sqlalchemy.dialects import postgresql

from denizen.cycles import budgets
from denizen.cycles.budgets import Amount, BudgetSettings, ServerLimit
from denizen.cycles.ledger import Charge, day_of
from denizen.ids import OrganizationId, SpaceId
from denizen.models.prices import Price, Usage, expected_cost
from denizen.models.tokens import estimate
from denizen.panel.context import Line
from denizen.storage.database import Statement, Tx, statement
from denizen.storage.schema import panel_spending, replies

if TYPE_CHECKING:
    from pydantic_ai.models import Model

_COUNTED: Final = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost_micros")


def _adding() -> Statement:
    given = {name: bindparam(name, type_=panel_spending.c[name].type) for name in _COUNTED}
    keys: dict[str, Any] = {name: bindparam(name) for name in ("organization_id", "day", "space_id", "model")}
    row = postgresql.insert(panel_spending).values(calls=1, **keys, **given)
    sums = {name: panel_spending.c[name] + row.excluded[name] for name in _COUNTED}
    return statement(
        row.on_conflict_do_update(
            index_elements=list(panel_spending.primary_key), set_={"calls": panel_spending.c.calls + 1, **sums}
        )
    )


_spend = _adding()
_of_panel = statement(
    select(
        cast(func.coalesce(func.sum(panel_spending.c.input_tokens + panel_spending.c.output_tokens), 0), BigInteger),
        cast(func.coalesce(func.sum(panel_spending.c.cost_micros), 0), BigInteger),
    ).where(panel_spending.c.space_id == bindparam("space_id"), panel_spending.c.day >= bindparam("since"))
)
_kept_here = statement(
    select(
        cast(func.coalesce(func.sum(replies.c.reserved_tokens), 0), BigInteger),
        cast(func.coalesce(func.sum(replies.c.reserved_micros), 0), BigInteger),
    ).where(
        replies.c.state.in_(("waiting", "running")),
        replies.c.space_id == bindparam("space_id"),
        replies.c.until >= bindparam("now"),
    )
)
_reserve = statement(
    update(replies)
    .where(
        replies.c.round_id == bindparam("round"),
        replies.c.voice == bindparam("of"),
        replies.c.part == bindparam("which"),
        replies.c.epoch == bindparam("at_epoch"),
    )
    .values(reserved_tokens=bindparam("tokens"), reserved_micros=bindparam("micros"))
)


def enter(tx: Tx, organization_id: OrganizationId, panel_id: SpaceId, charge: Charge) -> None:
    """Records the usage of a model call of this panel."""
    if charge.model is None:
        return
    tx.run(
        _spend,
        organization_id=organization_id,
        day=day_of(tx.now),
        space_id=panel_id,
        model=charge.model,
        input_tokens=charge.input_tokens,
        output_tokens=charge.output_tokens,
        cache_read_tokens=charge.cache_read_tokens,
        cache_write_tokens=charge.cache_write_tokens,
        cost_micros=charge.cost_micros or 0,
    )


def reserve(
    tx: Tx,
    key: tuple[str, str, str],
    epoch: int,
    organization_id: OrganizationId,
    panel_id: SpaceId,
    own: BudgetSettings | None,
    need: Amount,
    server: ServerLimit | None = None,
) -> str | None:
    """Reserves the most that a call may use until its reply ends; returns the limit that leaves no room, if
    one does.
    """
    scope = lacking(tx, organization_id, panel_id, own, need, server)
    if scope is None:
        tx.run(_reserve, round=key[0], of=key[1], which=key[2], at_epoch=epoch, tokens=need.tokens, micros=need.micros)
    return scope


@dataclass(frozen=True, slots=True)
class NoRoom:
    """A limit leaves no room for a call."""

    scope: str

    @property
    def text(self) -> str:
        return refusal(self.scope)


def reserve_beside(
    tx: Tx,
    organization_id: OrganizationId,
    panel_id: SpaceId,
    own: BudgetSettings | None,
    need: Amount,
    server: ServerLimit | None = None,
) -> str | NoRoom:
    """Reserves the most that a call outside the replies may use; returns its id for `budgets.release_call`."""
    scope = lacking(tx, organization_id, panel_id, own, need, server)
    return NoRoom(scope) if scope is not None else budgets.add_reservation(tx, organization_id, panel_id, need)


def lacking(
    tx: Tx,
    organization_id: OrganizationId,
    panel_id: SpaceId,
    own: BudgetSettings | None,
    need: Amount,
    server: ServerLimit | None = None,
) -> str | None:
    """Returns the limit that leaves no room for this amount, if one does."""
    shared = budgets.shared_limits(tx, organization_id)
    for limit in shared:
        if limit.is_passed_by(budgets.used_by_all(tx, limit, organization_id) + need):
            return limit.scope
    for limit in budgets.own_limits(own):
        since = day_of(tx.now) if limit.daily else 0
        # Before the usage: a call that is paid in between counts twice, rather than not at all.
        beside, kept = budgets.reserved_for(tx, panel_id), tx.one(_kept_here, space_id=panel_id, now=tx.now)
        spent = tx.one(_of_panel, space_id=panel_id, since=since)
        assert spent is not None
        assert kept is not None
        if limit.is_passed_by(Amount(*spent) + Amount(*kept) + beside + need):
            return limit.scope.replace("agent", "panel")
    if server is not None:
        used, reserved = budgets.used_of_server(tx, server)
        if server.limit.is_passed_by(used + reserved + need):
            return server.limit.scope
    return None


def most(lines: Sequence[Line], output: int, model: Model, prices: Mapping[str, Price], name: str) -> Amount:
    """The most that a request may use."""
    tokens = tokens_of(lines)
    dollars = expected_cost(model, Usage(tokens, output), prices, asked=name) or Decimal(0)
    return Amount(tokens + output, ceil(dollars * 1_000_000))


def is_priced(model: Model, prices: Mapping[str, Price], name: str) -> bool:
    """Whether the price of the model is known."""
    return expected_cost(model, Usage(1, 1), prices, asked=name) is not None


def refusal(scope: str) -> str:
    """Returns why an advisor was not asked, for people."""
    whose, period = scope.split(":")
    until = " It goes on at 00:00 UTC." if period == "day" else ""
    for_how_long = " for today" if period == "day" else ""
    return f"The budget of the {whose}{for_how_long} is used up.{until}"


def tokens_of(lines: Sequence[Line]) -> int:
    return sum(estimate(line.text) + 4 for line in lines)


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """The estimated usage of one advisor, for a reply of the usual length."""

    voice: str
    name: str
    model: str
    input_tokens: int
    output_tokens: int
    most_output_tokens: int
    cost_micros: int | None
    """None if the price is unknown."""
    most_micros: int | None


TYPICAL_TOKENS: Final = 400
"""The length of a reply of two to four paragraphs."""


def foretold(
    voice: str, name: str, lines: Sequence[Line], limit: int, model: Model, prices: Mapping[str, Price], asked: str
) -> CostEstimate:
    """Estimates the cost of asking this advisor."""
    tokens, usual = tokens_of(lines), min(TYPICAL_TOKENS, limit)
    likely = expected_cost(model, Usage(tokens, usual), prices, asked=asked)
    worst = expected_cost(model, Usage(tokens, limit), prices, asked=asked)
    return CostEstimate(voice, name, asked, tokens, usual, limit, _micros(likely), _micros(worst))


def _micros(dollars: Decimal | None) -> int | None:
    return None if dollars is None else ceil(dollars * 1_000_000)


_history = statement(
    select(
        panel_spending.c.day,
        panel_spending.c.model,
        *(panel_spending.c[name] for name in ("calls", *_COUNTED)),
    )
    .where(panel_spending.c.space_id == bindparam("space_id"), panel_spending.c.day > bindparam("after"))
    .order_by(panel_spending.c.day, panel_spending.c.model)
)


def spent(tx: Tx, panel_id: SpaceId, *, days: int) -> list[tuple[Any, ...]]:
    """Returns the panel's usage in the last so many days, by day and model."""
    return [tuple(row) for row in tx.all(_history, space_id=panel_id, after=day_of(tx.now) - days)]
