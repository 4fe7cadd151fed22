"""How an agent is: what it has in mind, what waits for it, what it means to do, what it has used. Changes nothing.

The one home of these facts: the command line, the API and the web draw what is here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import groupby
from typing import Any, Final

from sqlalchemy import bindparam, func, select

from denizen.agents import registry
from denizen.agents.registry import Agent, Status
from denizen.clock import Instant
from denizen.consciousness import eras, log
from denizen.consciousness.log import Entry, text_of
from denizen.consciousness.window import budget, shown
from denizen.cycles import budgets
from denizen.cycles.accounting import Sums
from denizen.cycles.budgets import BudgetSettings, Resting, Spending
from denizen.cycles.ledger import day_of
from denizen.cycles.records import CycleRecord, cycles_of
from denizen.cycles.usage import Answers, answers_of_cycles
from denizen.ids import AgentId, CycleId
from denizen.inbox import delivery
from denizen.inbox.events import Event
from denizen.models.prices import Usage
from denizen.models.tokens import PER_MESSAGE, estimate
from denizen.plans import agenda, goals, notes
from denizen.plans.agenda import Plan
from denizen.plans.goals import Goal
from denizen.plans.notes import Note
from denizen.reflection.books import AGENTS, PastRun, Stance
from denizen.spaces import directory
from denizen.storage.database import Tx, statement
from denizen.storage.schema import calls as calls_table
from denizen.storage.schema import cycles, events, leases, minds, toolsets
from denizen.storage.schema import log as log_table
from denizen.tools import calls
from denizen.tools.calls import Call

CYCLES_SHOWN: Final = 10
EVENTS_SHOWN: Final = 20
DEAD_SHOWN: Final = 200
DAYS: Final = 7
STANDINGS_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class Window:
    """What the next request would hold, in estimated tokens."""

    limit: int
    """The most a request may have, as it was for the last one."""
    self: int
    tools: int
    layers: int
    """What stands for the cycles before the window."""
    recent: int
    """The cycles that are shown whole."""
    recent_cycles: int
    open: int
    """The cycle that is being thought."""
    era: int
    first_cycle: int | None
    """The oldest that is shown whole."""
    recalled: int = 0
    """Of the recent cycles, what they were shown of their past because it mattered."""
    recalled_texts: tuple[str, ...] = ()

    @property
    def used(self) -> int:
        return self.self + self.tools + self.layers + self.recent + self.open

    @property
    def free(self) -> int:
        return max(self.limit - self.used, 0)


@dataclass(frozen=True, slots=True)
class Lane:
    """One of the two lanes of the inbox."""

    name: str
    """`urgent` or `normal`."""
    waiting: int
    taken: int
    """By the cycle that is being thought."""
    first: tuple[Event, ...]
    """Those that will be taken first and may be taken now."""


@dataclass(frozen=True, slots=True)
class Lived:
    """A cycle, and what its model answered, in short."""

    record: CycleRecord
    answers: Answers

    @property
    def usage(self) -> Usage:
        return self.answers.usage


@dataclass(frozen=True, slots=True)
class Standing:
    """How it stands to one conversation."""

    stance: Stance
    space_name: str
    last: PastRun | None
    """What last became of its state of mind there."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """An agent at one moment."""

    agent: Agent
    at: Instant
    status: Status
    holder: str | None
    """The instance that may think for it now."""
    held_until: Instant | None
    resting: Resting | None
    """Why it rests, where its budget has suspended it."""
    cycle_count: int
    window: Window
    lanes: tuple[Lane, ...]
    dead: tuple[Event, ...]
    goals: tuple[Goal, ...]
    notes: tuple[Note, ...]
    plans: tuple[Plan, ...]
    standings: tuple[Standing, ...]
    """Its profiles and states of mind, those that changed last first."""
    calls: tuple[Call, ...]
    """What it waits for people or services to answer."""
    budget: BudgetSettings | None
    shared_budget: BudgetSettings | None
    today: Sums
    week: Sums
    """The last seven days, today among them."""
    spending: tuple[Spending, ...]
    """The same by day and model."""
    cycles: tuple[Lived, ...]
    """The last ones, the newest first."""


_lease = statement(select(leases.c.holder, leases.c.until).where(leases.c.agent_id == bindparam("agent_id")))
_waiting_calls = statement(
    select(calls_table.c.id)
    .where(calls_table.c.agent_id == bindparam("agent_id"), calls_table.c.state == "waiting")
    .order_by(calls_table.c.created_at, calls_table.c.id)
)


def inspect(tx: Tx, agent_id: AgentId) -> Inspection:
    """The agent as it is now, on one snapshot. Raises `NotFound` where there is none."""
    agent = registry.get(tx, agent_id)
    lease = tx.one(_lease, agent_id=agent_id)
    holder, until = lease if lease is not None and lease[1] >= tx.now else (None, None)
    spent = tuple(budgets.spending_of_agent(tx, agent_id, days=DAYS))
    today = date(1970, 1, 1) + timedelta(days=day_of(tx.now))
    window, count = _window(tx, agent)
    return Inspection(
        agent=agent,
        at=tx.now,
        status=registry.status(tx, agent_id),
        holder=holder,
        held_until=None if until is None else Instant(until),
        resting=budgets.resting(tx, agent_id),
        cycle_count=count,
        window=window,
        lanes=_lanes(tx, agent_id),
        dead=tuple(delivery.dead(tx, agent_id, limit=DEAD_SHOWN)),
        goals=tuple(goals.goals_of(tx, agent_id)),
        notes=tuple(notes.notes_of(tx, agent_id)),
        plans=tuple(agenda.plans_of(tx, agent_id)),
        standings=tuple(standings(tx, agent_id, limit=STANDINGS_SHOWN)),
        calls=tuple(calls.get(tx, row[0]) for row in tx.all(_waiting_calls, agent_id=agent_id)),
        budget=agent.definition.budget,
        shared_budget=agent.shared_budget,
        today=_sum(each for each in spent if each.day == today),
        week=_sum(spent),
        spending=spent,
        cycles=_last_cycles(tx, agent_id),
    )


def standings(tx: Tx, agent_id: AgentId, *, limit: int = 100) -> list[Standing]:
    """How the agent stands to its conversations and why, those that changed last first."""
    return [
        Standing(
            each,
            directory.get_space(tx, each.space_id).name,
            next(iter(AGENTS.runs_of(tx, agent_id, each.space_id, limit=1)), None),
        )
        for each in AGENTS.stances_of(tx, agent_id, limit=limit)
    ]


def _sum(spent: Iterable[Spending]) -> Sums:
    return sum((_sums(each) for each in spent), Sums())


def _sums(each: Spending) -> Sums:
    return Sums(
        each.calls,
        each.input_tokens,
        each.output_tokens,
        each.cache_read_tokens,
        each.cache_write_tokens,
        each.cost_micros,
    )


def _last_cycles(tx: Tx, agent_id: AgentId) -> tuple[Lived, ...]:
    records = cycles_of(tx, agent_id, limit=CYCLES_SHOWN)
    found = answers_of_cycles(tx, agent_id, records[0].number, records[-1].number) if records else {}
    return tuple(Lived(each, found.get(each.number, Answers())) for each in reversed(records))


# The window

_mind = statement(
    select(minds.c.era, minds.c.window_from, minds.c.cycle_count).where(minds.c.agent_id == bindparam("agent_id"))
)
_open_cycle = statement(
    select(cycles.c.id).where(cycles.c.agent_id == bindparam("agent_id"), cycles.c.number.is_(None))
)
_number = statement(select(cycles.c.number).where(cycles.c.id == bindparam("id")))
_last_request = statement(
    select(log_table.c.request)
    .where(log_table.c.agent_id == bindparam("agent_id"), log_table.c.kind == "response")
    .order_by(log_table.c.seq.desc())
    .limit(1)
)
_tools = statement(select(func.length(toolsets.c.tools)).where(toolsets.c.digest == bindparam("digest")))


def _window(tx: Tx, agent: Agent) -> tuple[Window, int]:
    row = tx.one(_mind, agent_id=agent.id)
    assert row is not None
    number, first, count = row
    era = eras.find(tx, agent.id, number)
    unended = tx.one(_open_cycle, agent_id=agent.id)
    open_id = None if unended is None else CycleId(unended[0])
    entries = shown(log.entries(tx, agent.id, first), era.shortened)
    past = [each for each in entries if each.cycle_id != open_id]
    recalled = [each for each in past if each.kind == "recalled"]
    limit, tools = _limits(tx, agent)
    window = Window(
        limit=limit,
        self=PER_MESSAGE + estimate(era.text) if era.text else 0,
        tools=tools,
        layers=PER_MESSAGE + estimate(era.layers) if era.layers else 0,
        recent=_tokens(past),
        recent_cycles=sum(1 for _ in groupby(past, key=lambda each: each.cycle_id)),
        open=_tokens([each for each in entries if each.cycle_id == open_id]),
        era=number,
        first_cycle=_number_of(tx, past[0].cycle_id) if past else None,
        recalled=_tokens(recalled),
        recalled_texts=tuple(text_of(each) for each in recalled),
    )
    return window, count


def _tokens(entries: list[Entry]) -> int:
    return sum(each.tokens for each in entries)


def _number_of(tx: Tx, cycle_id: CycleId) -> int | None:
    row = tx.one(_number, id=cycle_id)
    return None if row is None else row[0]


def _limits(tx: Tx, agent: Agent) -> tuple[int, int]:
    """How many tokens a request may have, and how many its tools are: as it was for the last one."""
    allowed = budget(agent.definition.window, None).request
    row = tx.one(_last_request, agent_id=agent.id)
    made_of: dict[str, Any] = json.loads(row[0]) if row is not None and row[0] is not None else {}
    tools = tx.one(_tools, digest=made_of["tools"]) if "tools" in made_of else None
    return min(made_of.get("budget", allowed), allowed), 0 if tools is None else tools[0] // 4


# The inbox

_by_lane = statement(
    select(events.c.lane, events.c.state, func.count())
    .where(
        events.c.agent_id == bindparam("agent_id"), events.c.state != "done", events.c.state.in_(("pending", "taken"))
    )
    .group_by(events.c.lane, events.c.state)
)


def _lanes(tx: Tx, agent_id: AgentId) -> tuple[Lane, ...]:
    counted = {(lane, state): count for lane, state, count in tx.all(_by_lane, agent_id=agent_id)}
    waiting = delivery.pending(tx, agent_id)
    return tuple(
        Lane(
            name,
            counted.get((lane, "pending"), 0),
            counted.get((lane, "taken"), 0),
            tuple(each for each in waiting if each.lane == name)[:EVENTS_SHOWN],
        )
        for lane, name in ((0, "urgent"), (1, "normal"))
    )
