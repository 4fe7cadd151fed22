"""An agent's plans, timers and heartbeat in the database: what reaches its inbox later, and when."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from sqlalchemy import bindparam, func, select, update

from denizen.clock import Instant
from denizen.errors import InvalidInput, NotFound
from denizen.ids import AgentId, new_id
from denizen.inbox.format import one_line, quoted_name
from denizen.inbox.sources import Source, distinct
from denizen.plans import told_changes
from denizen.plans.limits import checked_text
from denizen.plans.schedule import Schedule, cron, describe, dump, load, next_run, once_after, once_at, say
from denizen.plans.settings import HeartbeatSettings
from denizen.shapes.vocabulary import PlanKind
from denizen.shortening import shortened
from denizen.storage.database import Params, Tx, columns, delete_where, insert_into, statement, update_where, value
from denizen.storage.schema import plans

PLANNED: Final = "planned"
"""Announced with the time of a new plan: a waiting alarm may have to fire earlier."""
MOST_PLANS: Final = 50
NAME_CHARACTERS: Final = 80
INSTRUCTION_CHARACTERS: Final = 2_000
_NEXT_SHOWN: Final = 3
_NEXT_NAME_CHARACTERS: Final = 40
_FACT_CHARACTERS: Final = 200
_NEVER: Final = Instant(0)


@dataclass(frozen=True, slots=True)
class Plan:
    """Something that will reach its agent's inbox. A timer has no name, and its instruction is its reason."""

    id: str
    agent_id: AgentId
    kind: PlanKind
    name: str
    instruction: str
    schedule: Schedule
    state: Literal["waiting", "held", "failed"]
    next_run: Instant
    last_run: Instant | None
    """The time it last ran for."""
    hop: int
    """The hop of the cycle that set it."""
    outside: bool = False
    """Whether the agent made it after reading text from outside."""
    fixed: bool = False
    """Whether its time was given, not computed from the time at which it was set."""


@dataclass(frozen=True, slots=True)
class When:
    """A time as people and models write it: one of the three, and a zone where it matters."""

    cron: str | None = None
    at: str | None = None
    after: str | None = None
    zone: str | None = None

    def schedule(self, home: str, now: Instant) -> Schedule:
        """The schedule, for an agent in the zone `home`."""
        given = [name for name in ("cron", "at", "after") if getattr(self, name) is not None]
        if len(given) != 1:
            raise InvalidInput(f"Use exactly one of cron, at or after; {' and '.join(given) or 'none'} is given.")
        zone = self.zone or home
        if self.cron is not None:
            return cron(self.cron, zone)
        return once_at(self.at, zone, now) if self.at is not None else once_after(self.after or "", zone, now)


@dataclass(frozen=True, slots=True)
class PlanDraft:
    """A plan to be created, or to replace the plan with that name."""

    name: str
    instruction: str
    when: When


_COLUMNS: Final = columns(
    plans, "id, agent_id, kind, name, instruction, schedule, state, next_run, last_run, hop, outside, reckoned_at"
)
_mine = plans.c.agent_id == bindparam("agent_id")
_of = statement(select(*_COLUMNS).where(_mine).order_by(plans.c.next_run, plans.c.id))
_next = statement(
    select(*_COLUMNS)
    .where(_mine, plans.c.kind != "heartbeat", plans.c.state != "failed")
    .order_by(plans.c.next_run, plans.c.id)
    .limit(bindparam("limit"))
)
_count = statement(select(func.count()).select_from(plans).where(_mine, plans.c.kind != "heartbeat"))
_add = insert_into(
    plans, "id, agent_id, kind, name, instruction, schedule, state, next_run, reckoned_at, hop, outside, created_at"
)
_change = update_where(plans, "id", set_="instruction, schedule, state, next_run, reckoned_at, hop, outside")
_remove = delete_where(plans, "id")
_hold = update_where(plans, "agent_id", plans.c.state == "waiting", state="held")
_release = statement(
    update(plans)
    .where(plans.c.agent_id == bindparam("agent"), plans.c.state == "held")
    .values(state="waiting")
    .returning(plans.c.next_run)
)
_clear = delete_where(plans, "agent_id")


def plan_of(row: tuple[Any, ...]) -> Plan:
    id, agent_id, kind, name, instruction, schedule, state, due, ran, hop, outside, reckoned_at = row
    told = kind, name, instruction, load(schedule), state
    return Plan(id, agent_id, *told, due, ran, hop, bool(outside), reckoned_at == _NEVER)


def plans_of(tx: Tx, agent_id: AgentId) -> list[Plan]:
    """The agent's plans, timers and heartbeat, the next one first."""
    return [plan_of(row) for row in tx.all(_of, agent_id=agent_id)]


def set_plans(
    tx: Tx, agent_id: AgentId, drafts: Sequence[PlanDraft], *, hop: int = 0, outside: bool = False
) -> list[Plan]:
    """Set these plans, each in place of one with its name. All of them or, with an error, none."""
    home, suspended = told_changes.zone_of(tx, agent_id)
    told_changes.lock(tx, agent_id)
    planned = [_planned(tx, agent_id, draft, home, suspended, hop) for draft in drafts]
    wanted = {plan.name: replace(plan, outside=outside) for plan in planned}
    there = {plan.name: plan for plan in plans_of(tx, agent_id) if plan.kind == "plan"}
    _make_room(tx, agent_id, len(wanted.keys() - there.keys()))
    made: list[Plan] = []
    for name, plan in wanted.items():
        made.append(_replace(tx, there[name], plan) if name in there else _insert(tx, plan))
    return made


def set_timer(tx: Tx, agent_id: AgentId, reason: str, when: When, *, hop: int = 0, outside: bool = False) -> Plan:
    """Wake the agent at that time, once, with the reason."""
    home, suspended = told_changes.zone_of(tx, agent_id)
    told_changes.lock(tx, agent_id)
    text = checked_text("The reason of a timer", reason, INSTRUCTION_CHARACTERS)
    plan = _plan(tx, agent_id, "timer", "", text, when.schedule(home, tx.now), suspended, hop)
    _make_room(tx, agent_id, 1)
    return _insert(tx, replace(plan, outside=outside, fixed=when.at is not None))


def _planned(tx: Tx, agent_id: AgentId, draft: PlanDraft, home: str, suspended: bool, hop: int) -> Plan:
    name = checked_text("The name of a plan", one_line(draft.name), NAME_CHARACTERS)
    text = checked_text(f"The instruction of the plan {name!r}", draft.instruction, INSTRUCTION_CHARACTERS)
    plan = _plan(tx, agent_id, "plan", name, text, draft.when.schedule(home, tx.now), suspended, hop)
    return replace(plan, fixed=draft.when.at is not None)


def _plan(
    tx: Tx, agent_id: AgentId, kind: PlanKind, name: str, text: str, schedule: Schedule, suspended: bool, hop: int
) -> Plan:
    due = next_run(schedule, tx.now)
    if due is None:
        raise InvalidInput(f"This schedule has no future time: {describe(schedule)}.")
    return Plan(new_id(), agent_id, kind, name, text, schedule, "held" if suspended else "waiting", due, None, hop)


def _make_room(tx: Tx, agent_id: AgentId, more: int) -> None:
    count = (value(tx, _count, agent_id=agent_id) or 0) + more
    if more and count > MOST_PLANS:
        raise InvalidInput(
            f"That would be {count} plans and timers, but at most {MOST_PLANS} are allowed. Delete some first."
        )


def _insert(tx: Tx, plan: Plan) -> Plan:
    tx.run(_add, agent_id=plan.agent_id, kind=plan.kind, name=plan.name, created_at=tx.now, **_as_row(tx, plan))
    tx.announce(PLANNED, {"at": plan.next_run})
    return plan


def _replace(tx: Tx, old: Plan, new: Plan) -> Plan:
    replacing = replace(new, id=old.id, agent_id=old.agent_id, kind=old.kind, name=old.name, last_run=old.last_run)
    tx.run(_change, **_as_row(tx, replacing))
    tx.announce(PLANNED, {"at": new.next_run})
    return replacing


def _as_row(tx: Tx, plan: Plan) -> dict[str, Params]:
    """The columns that a new plan of the same name replaces."""
    return {
        "id": plan.id,
        "instruction": plan.instruction,
        "schedule": dump(plan.schedule),
        "state": plan.state,
        "next_run": plan.next_run,
        "reckoned_at": _NEVER if plan.fixed else tx.now,
        "hop": plan.hop,
        "outside": int(plan.outside),
    }


def remove_plans(tx: Tx, agent_id: AgentId, names: Iterable[str]) -> list[Plan]:
    """Remove plans by name, or timers by id. Returns what was removed."""
    told_changes.lock(tx, agent_id)
    there = {key: plan for plan in plans_of(tx, agent_id) for key in (plan.id, plan.name) if key}
    found = {name: there.get(name) or there.get(one_line(name)) for name in names}
    gone: dict[str, Plan] = {}
    for name, plan in found.items():
        if plan is None:
            raise NotFound("plan", name)
        if plan.kind == "heartbeat":
            raise InvalidInput("The heartbeat is part of the agent's definition; only its owner can change it.")
        gone[plan.id] = plan
    for plan_id in gone:
        tx.run(_remove, id=plan_id)
    return list(gone.values())


def keep_heartbeat(tx: Tx, agent_id: AgentId, settings: HeartbeatSettings | None) -> None:
    """Set the agent's heartbeat, or remove it. One that has not changed continues as it was."""
    told_changes.lock(tx, agent_id)
    old = next((plan for plan in plans_of(tx, agent_id) if plan.kind == "heartbeat"), None)
    if settings is None:
        if old is not None:
            tx.run(_remove, id=old.id)
        return
    home, suspended = told_changes.zone_of(tx, agent_id)
    schedule = settings.schedule(home)
    if old is not None and (old.schedule, old.instruction) == (schedule, settings.instruction):
        return
    new = _plan(tx, agent_id, "heartbeat", "Heartbeat", settings.instruction, schedule, suspended, 0)
    if old is None:
        _insert(tx, new)
    else:
        _replace(tx, old, new)


def hold(tx: Tx, agent_id: AgentId) -> None:
    """Put off everything of this agent until `release`."""
    tx.run(_hold, agent_id=agent_id)


def release(tx: Tx, agent_id: AgentId) -> None:
    """Make everything that came due meanwhile due now, once each."""
    for (due,) in tx.all(_release, agent=agent_id):
        tx.announce(PLANNED, {"at": due})


def clear(tx: Tx, agent_id: AgentId) -> None:
    """Remove all plans of the agent."""
    tx.run(_clear, agent_id=agent_id)


def prefetch_next_few(tx: Tx, agent_id: AgentId) -> None:
    """Announce `next_few`."""
    tx.prefetch(_next, agent_id=agent_id, limit=_NEXT_SHOWN + 1)


def next_few(tx: Tx, agent_id: AgentId) -> tuple[list[str], tuple[Source, ...]]:
    """The next plans and timers with their times, a few words each, for the head of the inbox message.

    And which of them the agent made after reading text from outside.
    """
    rows = tx.all(_next, agent_id=agent_id, limit=_NEXT_SHOWN + 1)
    shown = [plan_of(row) for row in rows[:_NEXT_SHOWN]]
    lines = [*map(_in_short, shown), *(['and more: read_entry("plans")'] if len(rows) > _NEXT_SHOWN else [])]
    return lines, distinct(Source("plan", plan.name or plan.kind) for plan in shown if plan.outside)


def _in_short(plan: Plan) -> str:
    short = shortened(one_line(plan.name or plan.instruction), _NEXT_NAME_CHARACTERS)
    what = f"timer ({short})" if plan.kind == "timer" else short
    return f"{what} at {say(plan.next_run, plan.schedule.zone)}"


def fact(plan: Plan) -> tuple[str, str] | None:
    """The line about a plan for the agent, with its key. The same from run to run; None for timers."""
    if plan.kind == "timer":
        return None
    # The whole instruction comes with the event.
    short = shortened(one_line(plan.instruction), _FACT_CHARACTERS)
    return f"plan:{plan.id}", f"{quoted_name(plan.name)} ({describe(plan.schedule)}): {short}"
