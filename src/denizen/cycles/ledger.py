"""The ledger of model costs, and of skipped and failed cycles; rolling back a cycle does not touch it.

Besides its lines it keeps the usage of each agent and each panel per day, so that nobody has to add them up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from sqlalchemy import Table, bindparam, select
from sqlalchemy.dialects import postgresql

from denizen.clock import SECOND
from denizen.ids import AgentId, CycleId, SpaceId
from denizen.models.prices import Price, cost, usage_of
from denizen.storage.database import Statement, Tx, delete_where, insert_into, select_where, statement, storable, value
from denizen.storage.schema import agents, call_reservations, cycles, ledger, panel_spending, spaces, spending

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse

DAY: Final = 86_400 * SECOND
CYCLE_CALL: Final = "cycle"
"""The reservation for the next model call of an agent's cycle, or of its triage."""
LAST_STEP: Final = "last_step"
"""The reservation for the last step of an agent's cycle, kept until the cycle ends."""


def day_of(at: int) -> int:
    """The day of an instant, counted from 1970, in UTC."""
    return at // DAY


@dataclass(frozen=True, slots=True)
class Charge:
    """The cost of one model call."""

    model: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_micros: int | None = None
    """Millionths of a dollar; None if the price is unknown."""
    reserved: bool = False
    """Whether it was reserved in a budget, as a call of a cycle."""

    def __add__(self, other: Charge) -> Charge:
        return Charge(
            other.model or self.model,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            (self.cost_micros or 0) + (other.cost_micros or 0),
        )


NOTHING = Charge()


def charge_of(response: ModelResponse, name: str, prices: Mapping[str, Price], *, reserved: bool = False) -> Charge:
    """The usage of a response, for the ledger."""
    used = usage_of(response)
    dollars = cost(response, prices, asked=name)
    micros = None if dollars is None else int(dollars * 1_000_000)
    return Charge(name, used.input, used.output, used.cache_read, used.cache_write, micros, reserved)


_add = insert_into(
    ledger,
    "agent_id, cycle_id, kind, model, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, "
    "cost_micros, detail, created_at",
)
COUNTED: Final = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost_micros")
PAYER: Final = {spending: "agent_id", panel_spending: "space_id"}
"""The column of each table of usage that says who used it."""


def _adding(table: Table, payers: Table) -> Statement:
    given = {name: bindparam(name, type_=table.c[name].type) for name in COUNTED}
    whose = select(payers.c.organization_id).where(payers.c.id == bindparam("payer")).scalar_subquery()
    keys: dict[str, Any] = {"organization_id": whose, PAYER[table]: bindparam("payer")}
    row = postgresql.insert(table).values(calls=1, day=bindparam("day"), model=bindparam("model"), **keys, **given)
    sums = {name: table.c[name] + row.excluded[name] for name in COUNTED}
    return statement(
        row.on_conflict_do_update(index_elements=list(table.primary_key), set_={"calls": table.c.calls + 1, **sums})
    )


_spend, _spend_of_panel = _adding(spending, agents), _adding(panel_spending, spaces)
_settle_call = delete_where(call_reservations, "payer_id", call_reservations.c.call == CYCLE_CALL)
_settle = delete_where(call_reservations, "payer_id", call_reservations.c.call.in_((CYCLE_CALL, LAST_STEP)))


def enter(
    tx: Tx,
    agent_id: AgentId,
    cycle_id: CycleId,
    kind: Literal["usage", "skip", "failure"],
    charge: Charge = NOTHING,
    detail: str | None = None,
) -> None:
    """Add a line: what a model call cost, or why a cycle was skipped or failed."""
    tx.send(
        _add,
        agent_id=agent_id,
        cycle_id=cycle_id,
        kind=kind,
        model=charge.model,
        input_tokens=charge.input_tokens,
        output_tokens=charge.output_tokens,
        cache_read_tokens=charge.cache_read_tokens,
        cache_write_tokens=charge.cache_write_tokens,
        cost_micros=charge.cost_micros,
        detail=None if detail is None else storable(detail),
        created_at=tx.now,
    )
    _count(tx, _spend, agent_id, charge)
    if kind == "failure" or (kind == "skip" and charge.reserved):
        settle(tx, agent_id)
    elif charge.reserved:
        tx.send(_settle_call, payer_id=agent_id)


def enter_for_panel(tx: Tx, panel_id: SpaceId, charge: Charge) -> None:
    """Record the usage of a model call of this panel. Panels have no lines: their replies keep the usage of each."""
    _count(tx, _spend_of_panel, panel_id, charge)


def _count(tx: Tx, adding: Statement, payer: str, charge: Charge) -> None:
    if charge.model is None:
        return
    tx.send(
        adding,
        payer=payer,
        day=day_of(tx.now),
        model=charge.model,
        input_tokens=charge.input_tokens,
        output_tokens=charge.output_tokens,
        cache_read_tokens=charge.cache_read_tokens,
        cache_write_tokens=charge.cache_write_tokens,
        cost_micros=charge.cost_micros or 0,
    )


def settle(tx: Tx, agent_id: AgentId) -> None:
    """Release the reservations for the agent's cycle: they have been paid, or will not be used."""
    tx.send(_settle, payer_id=agent_id)


RECENT_ENDS: Final = 100
"""How many recent ends of an agent's cycles are read to find that of one."""
UNORDERED: Final = 60 * SECOND
"""How far the order of the ledger and that of time may differ: concurrent lines are numbered as they arrive."""
LAST: Final = 2**62

_line = statement(
    select(ledger.c.number, ledger.c.created_at)
    .where(ledger.c.number <= bindparam("last"))
    .order_by(ledger.c.number.desc())
    .limit(1)
)
_between = select_where(
    ledger,
    "cycle_id, model, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_micros",
    "agent_id",
    ledger.c.number > bindparam("after"),
    ledger.c.number <= bindparam("last"),
    order_by="number",
)
_kept_before = select_where(
    cycles,
    "ended_at",
    "agent_id",
    cycles.c.number.is_not(None),
    cycles.c.ended_at <= bindparam("at"),
    order_by="number desc",
    limit=1,
)
_end_before = statement(
    select(ledger.c.created_at)
    # Must match the condition of the partial index exactly.
    .where(ledger.c.agent_id == bindparam("agent_id"), ledger.c.kind != "usage")
    .where(ledger.c.number < bindparam("number"), ledger.c.cycle_id != bindparam("cycle_id"))
    .order_by(ledger.c.number.desc())
    .limit(1)
)
_ends = (
    select(ledger.c.number, ledger.c.cycle_id, ledger.c.detail)
    # Must match the condition of the partial index exactly.
    .where(ledger.c.agent_id == bindparam("agent_id"), ledger.c.kind != "usage")
    .order_by(ledger.c.number.desc())
    .limit(RECENT_ENDS)
    .subquery("ends")
)
_end = select_where(_ends, "number, detail", "cycle_id", order_by="number desc", limit=1)


@dataclass(frozen=True, slots=True)
class CycleFailure:
    """The line of a cycle that was skipped, or that failed for the last time."""

    number: int
    why: str


def end_of(tx: Tx, agent_id: AgentId, cycle_id: CycleId) -> CycleFailure | None:
    """How a cycle of this agent was skipped or failed, if it was recent."""
    for number, detail in tx.all(_end, agent_id=agent_id, cycle_id=cycle_id):
        return CycleFailure(number, detail or "")
    return None


def spent(tx: Tx, agent_id: AgentId, cycle_id: CycleId, *, up_to: int = LAST) -> Charge:
    """The cost of a cycle that is not kept, up to that line."""
    return spent_between(tx, agent_id, line_before(tx, agent_id, cycle_id, up_to), up_to).get(cycle_id, NOTHING)


def spent_between(tx: Tx, agent_id: AgentId, after: int, last: int) -> dict[CycleId, Charge]:
    """The costs of the agent's cycles, from the lines after `after` up to `last`."""
    found: dict[CycleId, Charge] = {}
    for cycle_id, *charge in tx.all(_between, agent_id=agent_id, after=after, last=last):
        found[cycle_id] = found.get(cycle_id, NOTHING) + Charge(*charge)
    return found


def line_before(tx: Tx, agent_id: AgentId, cycle_id: CycleId, last: int) -> int:
    """A line before all lines of a cycle that is not kept, whose last line is known.

    An agent runs one cycle after the other: all its lines came after the end of the cycle before.
    """
    line = tx.one(_line, last=last)
    if line is None:
        return 0
    kept = value(tx, _kept_before, agent_id=agent_id, at=line[1])
    end = value(tx, _end_before, agent_id=agent_id, number=last, cycle_id=cycle_id)
    since = max(kept or 0, end or 0)
    return line_at(tx, since - UNORDERED) if since else 0


def line_at(tx: Tx, at: int) -> int:
    """The number of the last line that is not newer; by binary search, because lines are indexed by number only."""
    newest = tx.one(_line, last=LAST)
    if newest is None or newest[1] <= at:
        return LAST if newest is None else newest[0]
    low, high = 0, newest[0]
    while high - low > 1:
        middle = (low + high) // 2
        line = tx.one(_line, last=middle)
        if line is None or line[1] <= at:
            low = middle
        else:
            high = line[0]
    return low
