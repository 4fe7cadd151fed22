"""Budgets: dollars and tokens, of an agent and of its organization, per day and in total.

Before a model call, the most that it may cost is reserved in a row of its own; the row is deleted when the actual cost
is entered. So concurrent calls cannot pass a limit together. What a dead process has reserved for a cycle is void when
its lease is; what it has reserved for a call outside cycles, after `LONGEST_CALL_SECONDS`.

An agent without budget rests: it is suspended by its budget, shows so once wherever a person waits, and resumes by
itself on the next day, or when the budget is raised.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Literal

from pydantic import BaseModel, Field, ValidationError
from sqlalchemy import BigInteger, BindParameter, ColumnElement, Subquery, Table, bindparam, or_, select, update

from denizen.bus.streams import WAKE, AgentBudget, AgentStatus, agent_topic
from denizen.clock import LATEST, SECOND, Clock
from denizen.consciousness import lease as leases
from denizen.consciousness.lease import Lease, fence
from denizen.cycles.ledger import CYCLE_CALL, DAY, LAST_STEP, day_of, settle
from denizen.cycles.spending import TABLES, added_up, spent, spent_on_day, totals
from denizen.errors import InvalidInput
from denizen.ids import AgentId, OrganizationId, new_id
from denizen.inbox import delivery, parking, statuses
from denizen.inbox.delivery import Delivery
from denizen.plans import agenda
from denizen.shapes.vocabulary import BudgetScope as Scope
from denizen.spaces import floor, organization_settings
from denizen.storage.database import (
    Database,
    Statement,
    Tx,
    delete_where,
    insert_or_update,
    select_where,
    statement,
    update_where,
    value,
)
from denizen.storage.schema import agents, call_reservations, organizations, panel_spending, replies, spending
from denizen.storage.schema import leases as leases_table

WARNED_AT: Final = 0.8
"""The share of a limit at which the agent and people are warned."""

LONGEST_CALL_SECONDS: Final = 600
"""How long a model call outside cycles may take, also of a local model; after that, its reservation is void."""
PATIENCE_SECONDS: Final = LONGEST_CALL_SECONDS
"""How long an agent waits for model calls of others to be settled before it rests."""


class BudgetSettings(BaseModel, frozen=True, extra="forbid"):
    """Limits of what an agent, or all agents of an organization together, may use. A day ends at 00:00 UTC."""

    dollars_per_day: Decimal | None = Field(default=None, gt=0)
    tokens_per_day: int | None = Field(default=None, gt=0)
    """Read and written, those that the provider had cached among them."""
    dollars: Decimal | None = Field(default=None, gt=0)
    """For life."""
    tokens: int | None = Field(default=None, gt=0)
    """For life."""

    @property
    def in_dollars(self) -> bool:
        return self.dollars_per_day is not None or self.dollars is not None


def checked(given: Mapping[str, object]) -> BudgetSettings:
    """A budget from outside. Raises `InvalidInput` that says which limit is wrong."""
    try:
        return BudgetSettings.model_validate(given)
    except ValidationError as error:
        problems = "; ".join(f"{each['loc'][0]}: {each['msg']}" for each in error.errors(include_url=False))
        raise InvalidInput(f"Invalid budget. {problems}.") from error


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount of usage, spent or allowed."""

    tokens: int = 0
    micros: int = 0
    """Millionths of a dollar."""

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.tokens + other.tokens, self.micros + other.micros)

    @property
    def columns(self) -> dict[str, int]:
        return {"tokens": self.tokens, "cost_micros": self.micros}


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit in tokens, in dollars or in both."""

    scope: Scope
    tokens: int | None
    micros: int | None

    @property
    def daily(self) -> bool:
        return self.scope.endswith(":day")

    def is_passed_by(self, used: Amount) -> bool:
        in_tokens = self.tokens is not None and used.tokens > self.tokens
        return in_tokens or (self.micros is not None and used.micros > self.micros)

    def share(self, used: Amount) -> float:
        """The used share of the limit: 1 is all."""
        in_tokens = used.tokens / self.tokens if self.tokens else 0.0
        return max(in_tokens, used.micros / self.micros if self.micros else 0.0)

    def is_wider_than(self, other: Limit) -> bool:
        """Whether it allows something that the other does not."""
        return _is_more(self.tokens, other.tokens) or _is_more(self.micros, other.micros)


def _is_more(limit: int | None, before: int | None) -> bool:
    return before is not None and (limit is None or limit > before)


def _limits(budget: BudgetSettings | None, whose: Literal["agent", "organization"]) -> Iterator[Limit]:
    """The total limit first: an agent that has used up both rests for the longer of the two."""
    given = budget or BudgetSettings()
    for scope, tokens, dollars in (
        (f"{whose}:total", given.tokens, given.dollars),
        (f"{whose}:day", given.tokens_per_day, given.dollars_per_day),
    ):
        micros = None if dollars is None else int(dollars * 1_000_000)
        yield Limit(scope, tokens, micros)  # pyright: ignore[reportArgumentType]


def _applying(budget: BudgetSettings | None, whose: Literal["agent", "organization"]) -> list[Limit]:
    return [each for each in _limits(budget, whose) if each.tokens is not None or each.micros is not None]


@dataclass(frozen=True, slots=True)
class ServerLimit:
    """The daily limit of the server, for a call that comes near it."""

    limit: Limit
    unreserved: Amount = Amount()
    """The most that running calls of this process may use without a reservation: they began far from the limit."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """The limits that apply to an agent, as it was loaded, or to a panel."""

    organization_id: OrganizationId
    own: BudgetSettings | None
    shared: bool
    """Whether its organization has limits. Their values are read with each reservation."""
    server: ServerLimit | None = None
    """The server's limit, if this call comes near it."""
    of_panel: bool = False


def allowance(
    organization_id: OrganizationId, own: BudgetSettings | None, shared: BudgetSettings | None
) -> Allowance | None:
    """None if nothing is limited: then thinking needs no extra transaction."""
    has_own, has_shared = bool(_applying(own, "agent")), bool(_applying(shared, "organization"))
    return Allowance(organization_id, own, has_shared) if has_own or has_shared else None


# Before a model call


@dataclass(frozen=True, slots=True)
class Refusal:
    """Not enough budget is left for a model call."""

    scope: Scope
    until: int | None
    """When there is enough again; None: when someone raises the limit."""
    for_now: bool = False
    """Whether it would be enough if the running model calls of others cost nothing."""


def _reserved_for_replies(*where: ColumnElement[bool]) -> Subquery:
    """What is reserved for replies of advisors that are not finished."""
    unfinished = (replies.c.state.in_(("waiting", "running")), replies.c.until >= bindparam("now"))
    return totals(replies.c.reserved_tokens, replies.c.reserved_micros, *unfinished, *where).subquery()


_READ: Final = call_reservations.outerjoin(
    leases_table,
    (leases_table.c.agent_id == call_reservations.c.payer_id)
    & (leases_table.c.epoch == call_reservations.c.epoch)
    & (leases_table.c.until >= bindparam("now")),
)


def _reserved(*where: ColumnElement[bool]) -> Subquery:
    """Reservations for calls that may still be running, except those of the cycle that asks."""
    is_valid = or_(
        leases_table.c.agent_id.is_not(None),
        (call_reservations.c.until > bindparam("now"))
        # No reservation lasts longer: if this one does, the clock was set back since.
        & (call_reservations.c.until <= bindparam("latest", type_=BigInteger)),
    )
    of_others = or_(call_reservations.c.payer_id != bindparam("cycle_of"), call_reservations.c.epoch == 0)
    sums = totals(call_reservations.c.tokens, call_reservations.c.cost_micros, *where, is_valid, of_others)
    return sums.select_from(_READ).subquery()


_used_of_server = added_up(spent_on_day(), [_reserved(), _reserved_for_replies()])
# Reservations under the server's limit wait for each other here. It is the last lock that they take.
_lock_server = statement(
    select(organizations.c.id).order_by(organizations.c.id).limit(1).with_for_update(key_share=True)
)


def _use_of(payer_id: str, table: Table, *reserved: Subquery) -> Statement:
    """What an agent or a panel has spent, and what it has reserved."""
    whose: BindParameter[str] = bindparam("payer_id")
    in_time = table.c.day.between(bindparam("since"), bindparam("until"))
    reserved_calls = _reserved(call_reservations.c.payer_id == whose)
    return added_up([spent(table, table.c[payer_id] == whose, in_time)], [reserved_calls, *reserved])


# One statement, and so one snapshot: a call settled meanwhile is seen as reserved or as spent, never as neither.
_of_agent = _use_of("agent_id", spending)
_of_panel = _use_of("space_id", panel_spending, _reserved_for_replies(replies.c.space_id == bindparam("payer_id")))
_of_organization = added_up(
    [
        spent(
            each,
            each.c.organization_id == bindparam("organization_id"),
            each.c.day.between(bindparam("since"), bindparam("until")),
        )
        for each in TABLES
    ],
    [
        _reserved(call_reservations.c.organization_id == bindparam("organization_id")),
        _reserved_for_replies(replies.c.organization_id == bindparam("organization_id")),
    ],
)
_reserve = insert_or_update(call_reservations, set_="epoch, until, tokens, cost_micros")


def reserve(tx: Tx, lease: Lease, under: Allowance, need: Amount, last_step: Amount | None = None) -> Refusal | None:
    """Reserve the most that the next model call of a cycle may use, until it is settled; or return why that is refused.

    `last_step` is what the cycle's last step would use in addition. It is reserved as well if there is room for both,
    until the cycle ends; the call is made in any case. An agent that has used most of a limit is warned, once.
    """
    fence(tx, lease)
    refused: Refusal | None = None
    for_both = True
    for limit in _limits_of(tx, under):
        spent, reserved = _used(tx, limit, under, lease.agent_id, cycle_of=lease.agent_id)
        if limit.share(spent) >= WARNED_AT and limit.scope != "server:day":
            _warn(tx, lease.agent_id, limit, spent)
        if limit.is_passed_by(spent + reserved + need) and (refused is None or refused.for_now):
            refused = _refusal(tx, limit, spent + need)
        for_both = for_both and not limit.is_passed_by(spent + reserved + need + (last_step or Amount()))
    if refused is None:
        of_cycle = {"payer_id": lease.agent_id, "organization_id": under.organization_id, "epoch": lease.epoch}
        calls = {CYCLE_CALL: need} if last_step is None else {CYCLE_CALL: need, LAST_STEP: last_step}
        if not for_both:
            calls[LAST_STEP] = Amount()
        tx.many(_reserve, [{**of_cycle, "call": call, "until": 0, **each.columns} for call, each in calls.items()])
    return refused


def reserve_beside(tx: Tx, payer_id: str, under: Allowance, need: Amount) -> str | Refusal:
    """Reserve the most that a model call outside of cycles and replies may use. Returns its id, for `release_call`.

    It is void after `LONGEST_CALL_SECONDS`, so that a process that dies leaves nothing reserved for ever.
    """
    if not under.of_panel:
        # The agent's cycles and its other calls wait meanwhile: the second one sees this reservation.
        leases.lock(tx, AgentId(payer_id))
    refused = no_room(tx, payer_id, under, need)
    if refused is not None:
        return refused
    tx.run(_release_void, payer_id=payer_id, now=tx.now)
    call = new_id()
    until = tx.now + LONGEST_CALL_SECONDS * SECOND
    whose = {"payer_id": payer_id, "organization_id": under.organization_id}
    tx.run(_reserve, **whose, call=call, epoch=0, until=until, **need.columns)
    return call


def no_room(tx: Tx, payer_id: str, under: Allowance, need: Amount) -> Refusal | None:
    """The limit that leaves no room for this amount, if one does."""
    for limit in _limits_of(tx, under):
        spent, reserved = _used(tx, limit, under, payer_id)
        if limit.is_passed_by(spent + reserved + need):
            return _refusal(tx, limit, spent + need)
    return None


_release_call = delete_where(call_reservations, "payer_id, call")
_release_void = delete_where(
    call_reservations, "payer_id", call_reservations.c.epoch == 0, call_reservations.c.until <= bindparam("now")
)


def release_call(tx: Tx, payer_id: str, call: str) -> None:
    """Release the reservation of this call: it has been paid, or was not made."""
    tx.run(_release_call, payer_id=payer_id, call=call)


async def reserve_soon(
    db: Database, clock: Clock, lease: Lease, under: Allowance, need: Amount, last_step: Amount | None = None
) -> Refusal | None:
    """Like `reserve`, but if only running calls of others are in the way, wait for them to be settled."""
    refused = await db.write(reserve, lease, under, need, last_step)
    for _ in range(PATIENCE_SECONDS):
        if refused is None or not refused.for_now:
            break
        await clock.sleep(1)
        refused = await db.write(reserve, lease, under, need, last_step)
    return refused


def _limits_of(tx: Tx, under: Allowance) -> list[Limit]:
    # Replies of a panel have no lock of their own: they wait for each other at their organization.
    locked = under.shared or under.of_panel
    shared = _applying(_read_shared(tx, under.organization_id), "organization") if locked else []
    return _applying(under.own, "agent") + shared + ([] if under.server is None else [under.server.limit])


def _refusal(tx: Tx, limit: Limit, without_others: Amount) -> Refusal:
    until = _midnight(tx) if limit.daily else None
    return Refusal(limit.scope, until, for_now=not limit.is_passed_by(without_others))


def _midnight(tx: Tx) -> int:
    """When this day ends."""
    return (day_of(tx.now) + 1) * DAY


def _validity(tx: Tx) -> dict[str, int]:
    return {"now": tx.now, "latest": tx.now + LONGEST_CALL_SECONDS * SECOND}


def _used(tx: Tx, limit: Limit, under: Allowance, payer_id: str, *, cycle_of: str = "") -> tuple[Amount, Amount]:
    """What is spent of this limit, and what is reserved of it, except for the cycle of the agent `cycle_of`."""
    if under.server is not None and limit is under.server.limit:
        return _used_of_whole_server(tx, under.server, cycle_of=cycle_of)
    use, whose = _of_organization, {"organization_id": under.organization_id}
    if limit.scope.startswith("agent:"):
        use, whose = _of_panel if under.of_panel else _of_agent, {"payer_id": payer_id}
    # Not of later days: the clock may have been ahead for a while.
    since, until = (day_of(tx.now),) * 2 if limit.daily else (0, day_of(LATEST))
    row = tx.one(use, since=since, until=until, cycle_of=cycle_of, **whose, **_validity(tx))
    assert row is not None
    tokens, micros, reserved_tokens, reserved_micros = row
    return Amount(tokens, micros), Amount(reserved_tokens, reserved_micros)


def _used_of_whole_server(tx: Tx, server: ServerLimit, *, cycle_of: str = "") -> tuple[Amount, Amount]:
    """What is spent today of the server's limit, and what is reserved of it. Concurrent callers wait meanwhile."""
    tx.one(_lock_server)
    row = tx.one(_used_of_server, day=day_of(tx.now), cycle_of=cycle_of, **_validity(tx))
    assert row is not None
    tokens, micros, reserved_tokens, reserved_micros = row
    return Amount(tokens, micros), Amount(reserved_tokens, reserved_micros) + server.unreserved


def _warn(tx: Tx, agent_id: AgentId, limit: Limit, spent: Amount) -> None:
    # A total limit has no day: its warning is given once for each value that was set.
    when = day_of(tx.now) if limit.daily else f"{limit.micros}:{limit.tokens}"
    id, text = f"budget:{limit.scope}:{when}", warning(limit, spent)
    if delivery.find(tx, agent_id, id) is not None:
        return
    delivery.deliver(tx, [Delivery(agent_id, id, "notice", tx.now, wakes=False, payload={"text": text})])
    frame = AgentBudget(agent_id, limit.scope, round(limit.share(spent), 4), text)
    tx.announce(agent_topic(agent_id), frame.to_payload())


def warning(limit: Limit, spent: Amount) -> str:
    """The warning for an agent that has used most of a limit."""
    who, whose = ("You have", "your") if limit.scope.startswith("agent:") else ("Your organization has", "its")
    period = " for today" if limit.daily else ""
    then = "until 00:00 UTC" if limit.daily else "until it is raised"
    percent = int(limit.share(spent) * 100)
    used = ", ".join(_used_of(limit, spent))
    return f"{who} used {percent} % of {whose} budget{period} ({used}). When it is used up, you rest {then}."


def _used_of(limit: Limit, spent: Amount) -> Iterator[str]:
    if limit.micros is not None:
        yield f"${spent.micros / 1_000_000:,.2f} of ${limit.micros / 1_000_000:,.2f}"
    if limit.tokens is not None:
        yield f"{spent.tokens:,} of {limit.tokens:,} tokens"


# Resting


_IS_HELD = agents.c.held_by.is_not(None)  # must match the condition of the partial index exactly
_hold = update_where(agents, "id", agents.c.status == "active", set_="held_by, held_until", status="suspended")


def hold(tx: Tx, lease: Lease, refusal: Refusal) -> None:
    """Suspend the agent by its budget, show so in spaces in which a person waits for it, and release the lease.

    If its owner has suspended it meanwhile, that stays.
    """
    fence(tx, lease)
    agent_id = lease.agent_id
    settle(tx, agent_id)
    if tx.run(_hold, id=agent_id, held_by=refusal.scope, held_until=refusal.until) == 0:
        return
    floor.hand_over(tx, agent_id)
    epoch = leases.seize(tx, agent_id)
    agenda.hold(tx, agent_id)
    notice = Delivery(
        agent_id, f"budget:rest:{epoch}", "notice", tx.now, wakes=False, payload={"text": _NOTICES[refusal.scope]}
    )
    delivery.deliver(tx, [notice])
    tx.announce(agent_topic(agent_id), AgentStatus(agent_id, "suspended", epoch).to_payload())
    statuses.show_where_someone_waits(tx, agent_id, "budget", retry_at=refusal.until, scope=refusal.scope)


_MEANWHILE: Final = "The spaces in which somebody wrote to you meanwhile showed so."
_NOTICES: Final[dict[Scope, str]] = {
    "agent:day": f"Your budget for the day was used up, so you rested. {_MEANWHILE}",
    "agent:total": f"Your budget was used up, so you rested. {_MEANWHILE}",
    "organization:day": f"Your organization's budget for the day was used up, so you rested. {_MEANWHILE}",
    "organization:total": f"Your organization's budget was used up, so you rested. {_MEANWHILE}",
    "server:day": f"The server's limit for the day was used up, so you rested. {_MEANWHILE}",
}


@dataclass(frozen=True, slots=True)
class BudgetRest:
    """An agent that its budget has suspended."""

    scope: Scope
    until: int | None
    """When it resumes by itself; None: when the limit is raised."""


_why = select_where(agents, "held_by, held_until", "id", _IS_HELD)


def resting(tx: Tx, agent_id: AgentId) -> BudgetRest | None:
    """Why and until when the agent rests; None if its budget does not keep it from thinking."""
    row = tx.one(_why, id=agent_id)
    return None if row is None else BudgetRest(*row)


# Resuming


_go_on = (
    update(agents)
    .where(agents.c.id == bindparam("agent"), _IS_HELD, agents.c.status == "suspended")
    .values(status="active", held_by=None, held_until=None)
)
_release = statement(_go_on)
# Nothing rests for longer than until midnight: if it does, the clock was set back since.
_release_due = statement(
    _go_on.where(or_(agents.c.held_until <= bindparam("now"), agents.c.held_until > bindparam("midnight")))
)
# Not ordered by id: the partial index has the few that rest, ordering would read all agents.
_all_held = statement(select(agents.c.id, agents.c.held_until).where(_IS_HELD))


async def release_due(db: Database) -> None:
    """Resume agents whose day has come. Mostly one read."""
    for agent_id in await db.read(_due):
        await db.write(go_on_if_due, agent_id)


def _due(tx: Tx) -> list[AgentId]:
    midnight = _midnight(tx)
    return [agent_id for agent_id, until in tx.all(_all_held) if until is not None and not tx.now < until <= midnight]


def go_on_if_due(tx: Tx, agent_id: AgentId) -> None:
    """Resume the agent if its rest is over."""
    if tx.run(_release_due, agent=agent_id, now=tx.now, midnight=_midnight(tx)):
        _wake(tx, agent_id)


def _wake(tx: Tx, agent_id: AgentId) -> None:
    agenda.release(tx, agent_id)
    statuses.clear(tx, agent_id, ["budget"])
    tx.announce(agent_topic(agent_id), AgentStatus(agent_id, "sleeping", leases.epoch_of(tx, agent_id)).to_payload())
    tx.announce(WAKE, {"agents": [agent_id]})


_held_by = select_where(agents, "held_by", "id", _IS_HELD)


def reconsider(tx: Tx, agent_id: AgentId, before: BudgetSettings | None, after: BudgetSettings | None) -> None:
    """Resume an agent that rests because of its own budget, if that has been raised."""
    held_by = value(tx, _held_by, id=agent_id)
    if held_by in _raised(before, after, "agent") and tx.run(_release, agent=agent_id):
        _wake(tx, agent_id)


def _raised(
    before: BudgetSettings | None, after: BudgetSettings | None, whose: Literal["agent", "organization"]
) -> set[Scope]:
    pairs = zip(_limits(before, whose), _limits(after, whose), strict=True)
    return {new.scope for old, new in pairs if new.is_wider_than(old)}


_of_server = statement(select(agents.c.id).where(_IS_HELD, agents.c.held_by == "server:day"))


async def reconsider_server(db: Database) -> None:
    """At the start of a server, perhaps with a higher limit: let agents that rest because of the limit try again."""
    if await db.read(_any_of_server):
        await db.write(_release_of_server)


def _any_of_server(tx: Tx) -> bool:
    return tx.one(_of_server) is not None


def _release_of_server(tx: Tx) -> None:
    for (agent_id,) in tx.all(_of_server):
        if tx.run(_release, agent=agent_id):
            _wake(tx, agent_id)


# An organization's budget


# Agents that are awake reload before their next cycle, and so see whether anything is limited.
_renew_agents = update_where(agents, "organization_id", agents.c.status != "dead", version=agents.c.version + 1)
_resting = select_where(agents, "id, held_by", "organization_id", _IS_HELD, order_by="id")


def _read_shared(tx: Tx, organization_id: OrganizationId) -> BudgetSettings | None:
    # The agents of an organization that has limits reserve one after the other.
    return budget_in(organization_settings.lock(tx, organization_id))


def budget_in(settings: Mapping[str, Any]) -> BudgetSettings | None:
    """The budget in the stored settings of an organization."""
    given = settings.get("budget")
    return None if given is None else BudgetSettings.model_validate(given)


def set_organization_budget(tx: Tx, organization_id: OrganizationId, budget: BudgetSettings | None) -> None:
    """Set the budget of all agents of the organization together; agents that rested because of a lower one resume."""
    settings = organization_settings.lock(tx, organization_id)
    before = budget_in(settings)
    settings.pop("budget", None)
    if budget is not None and _applying(budget, "organization"):
        settings["budget"] = budget.model_dump(mode="json", exclude_none=True)
    organization_settings.store(tx, organization_id, settings)
    tx.run(_renew_agents, organization_id=organization_id)
    parking.retry_organization(tx, organization_id)
    raised = _raised(before, budget, "organization")
    for agent_id, held_by in tx.all(_resting, organization_id=organization_id):
        if held_by in raised and tx.run(_release, agent=agent_id):
            _wake(tx, agent_id)


def organization_budget(tx: Tx, organization_id: OrganizationId) -> BudgetSettings | None:
    """The budget of all agents of the organization together; None if it is not limited."""
    return budget_in(organization_settings.read(tx, organization_id))
