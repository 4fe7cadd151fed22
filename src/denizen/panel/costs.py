"""Budgets of panels: the panel's own and the organization's limit its calls; their costs are estimated beforehand.

Panels share the limits of their organization with its agents: a reservation of either counts for both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import ceil
from typing import TYPE_CHECKING, Final

from denizen.cycles import budgets, ledger
from denizen.cycles.budgets import Allowance, Amount, BudgetSettings, Refusal, ServerLimit
from denizen.cycles.ledger import Charge
from denizen.ids import OrganizationId, SpaceId
from denizen.models.pictures import picture_tokens
from denizen.models.prices import Price, Usage, expected_cost
from denizen.models.tokens import estimate
from denizen.panel import panels
from denizen.panel.context import RequestMessage
from denizen.panel.panels import Panel
from denizen.shapes.vocabulary import BudgetScope
from denizen.storage.database import Tx, update_where
from denizen.storage.schema import replies

if TYPE_CHECKING:
    from pydantic_ai.models import Model

_reserve = update_where(replies, "round_id, voice, part, epoch", set_="reserved_tokens, reserved_micros")


def allowance(panel: Panel, server: ServerLimit | None) -> Allowance:
    """The limits that apply to a panel."""
    return Allowance(panel.organization_id, panel.settings.budget, shared=True, server=server, of_panel=True)


def reserve(
    tx: Tx, key: tuple[str, str, str], epoch: int, panel_id: SpaceId, under: Allowance, need: Amount
) -> Refusal | None:
    """Reserves the most that a call may use until its reply ends; returns why there is no room, if so."""
    refused = budgets.no_room(tx, panel_id, under, need)
    if refused is None:
        tx.run(
            _reserve,
            round_id=key[0],
            voice=key[1],
            part=key[2],
            epoch=epoch,
            reserved_tokens=need.tokens,
            reserved_micros=need.micros,
        )
    return refused


@dataclass(frozen=True, slots=True)
class PanelPayer:
    """A panel that pays for model calls outside of its replies."""

    panel: Panel
    is_panel: bool = True

    @property
    def id(self) -> SpaceId:
        return self.panel.id

    @property
    def organization_id(self) -> OrganizationId:
        return self.panel.organization_id

    @property
    def budget(self) -> BudgetSettings | None:
        return self.panel.settings.budget

    def refusal(self, scope: BudgetScope) -> str:
        return refusal(scope)

    def enter(self, tx: Tx, charge: Charge) -> None:
        panels.hold(tx, self.id)
        ledger.enter_for_panel(tx, self.id, charge)


def most(lines: Sequence[RequestMessage], output: int, model: Model, prices: Mapping[str, Price], name: str) -> Amount:
    """The most that a request may use."""
    tokens = tokens_of(lines)
    dollars = expected_cost(model, Usage(tokens, output), prices, asked=name) or Decimal(0)
    return Amount(tokens + output, ceil(dollars * 1_000_000))


def is_priced(model: Model, prices: Mapping[str, Price], name: str) -> bool:
    """Whether the price of the model is known."""
    return expected_cost(model, Usage(1, 1), prices, asked=name) is not None


def refusal(scope: BudgetScope) -> str:
    """Returns why an advisor was not asked, for people."""
    whose, period = scope.replace("agent", "panel").split(":")
    until = " It goes on at 00:00 UTC." if period == "day" else ""
    for_how_long = " for today" if period == "day" else ""
    return f"The budget of the {whose}{for_how_long} is used up.{until}"


def tokens_of(lines: Sequence[RequestMessage]) -> int:
    seen = sum(picture_tokens(each.width, each.height) for line in lines for each in line.pictures)
    return sum(estimate(line.text) + 4 for line in lines) + seen


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
    voice: str,
    name: str,
    lines: Sequence[RequestMessage],
    limit: int,
    model: Model,
    prices: Mapping[str, Price],
    asked: str,
) -> CostEstimate:
    """Estimates the cost of asking this advisor."""
    tokens, usual = tokens_of(lines), min(TYPICAL_TOKENS, limit)
    likely = expected_cost(model, Usage(tokens, usual), prices, asked=asked)
    worst = expected_cost(model, Usage(tokens, limit), prices, asked=asked)
    return CostEstimate(voice, name, asked, tokens, usual, limit, _micros(likely), _micros(worst))


def _micros(dollars: Decimal | None) -> int | None:
    return None if dollars is None else ceil(dollars * 1_000_000)
