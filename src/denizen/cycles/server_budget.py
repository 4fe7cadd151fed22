"""The daily limit of the whole server, set from the first start, so that a loop of agents cannot cost a fortune.

Far from the limit it needs no transaction: the server's usage of today is read every half minute, and this process
counts the calls that it has begun since. From half of the limit on, each call is reserved like those of budgets, in a
transaction that counts what all instances have spent and reserved. So one instance cannot pass the limit, however many
agents it runs at once. Each further instance can pass it by half of the limit at most, once: with calls that it began
when it had last seen less than half used.

Calls without a known price count as tokens only: a limit in dollars blocks none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from denizen.clock import SECOND, Clock
from denizen.cycles.budgets import Allowance, Amount, BudgetSettings, Limit, ServerLimit
from denizen.cycles.ledger import day_of
from denizen.cycles.spending import added_up, spent_on_day
from denizen.ids import OrganizationId
from denizen.models.prices import Price, Usage, expected_cost, is_built_in
from denizen.storage.database import Database, Tx

if TYPE_CHECKING:
    from pydantic_ai.models import Model

NEAR: Final = 0.5
"""From this share of the limit on, each call is reserved."""
READ_SECONDS: Final = 30
"""How old the last read may be, further away from the limit."""


_used_today = added_up(spent_on_day())


def used_today(tx: Tx) -> Amount:
    """The usage of all agents and panels of the server today, in UTC."""
    row = tx.one(_used_today, day=day_of(tx.now))
    assert row is not None
    return Amount(*row)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class ServerCall:
    """A model call that counts as running for as long as somebody holds this: until it is paid."""

    need: Amount
    """The most that it may use."""
    near: ServerLimit | None
    """The limit under which it has to be reserved; None far from the limit."""

    def allowance(self, own: Allowance | None, organization_id: OrganizationId) -> Allowance | None:
        """The allowance of an agent from its own limits and those of the server."""
        if self.near is None:
            return own
        return replace(own or Allowance(organization_id, None, shared=False), server=self.near)


@dataclass(frozen=True, slots=True)
class KeptCall:
    """The reservation of a call outside cycles, until it is paid."""

    reserved: str | None
    """The id of the reservation, if there is one."""
    server: ServerCall | None


class ServerBudget:
    """The daily limit of all organizations of a server together, as one process tracks it."""

    def __init__(self, limits: BudgetSettings, prices: Mapping[str, Price]) -> None:
        micros = None if limits.dollars_per_day is None else int(limits.dollars_per_day * 1_000_000)
        self.limits = limits
        self._limit = Limit("server:day", limits.tokens_per_day, micros)
        self._prices = prices
        self._read_at = -READ_SECONDS * SECOND
        self._used = Amount()
        """The usage at the last read, plus the most that calls that were running then or began since may use."""
        self._unreserved: WeakSet[ServerCall] = WeakSet()

    async def begin(self, db: Database, clock: Clock, name: str, model: Model, most: Usage) -> ServerCall:
        """Register a call that is about to be made, with the most that it may use. The built-in models are free."""
        if is_built_in(model):
            return ServerCall(Amount(), None)
        dollars = expected_cost(model, most, self._prices, asked=name)
        need = Amount(most.input + most.output, ceil((dollars or 0) * 1_000_000))
        now = clock.now()
        if not 0 <= now - self._read_at < READ_SECONDS * SECOND or day_of(now) != day_of(self._read_at):
            used = await db.read(used_today)
            # After the read: concurrent callers read as well, instead of relying on the old value.
            self._used, self._read_at = used + self._under_way(), now
        if self._limit.share(self._used + need) >= NEAR:
            return ServerCall(need, ServerLimit(self._limit, self._under_way()))
        call = ServerCall(need, None)
        self._used += need
        self._unreserved.add(call)
        return call

    def _under_way(self) -> Amount:
        return sum((each.need for each in self._unreserved), Amount())
