"""The state of an agent for people: its window, inbox, plans, usage and history. Read-only.

The only place for these facts: the command line, the API and the web client show what is here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import groupby
from typing import Any, Final

from sqlalchemy import bindparam, func, select

from denizen.agents import registry
from denizen.agents.registry import Agent, Status
from denizen.clock import Instant
from denizen.consciousness import eras, log, privacy
from denizen.consciousness.log import Entry, text_of
from denizen.consciousness.privacy import Reader, stand_in
from denizen.consciousness.recall.fetching import RecalledPassage
from denizen.consciousness.system_prompt import Era
from denizen.consciousness.window import budget, shown
from denizen.cycles import budgets
from denizen.cycles.accounting import Sums
from denizen.cycles.budgets import BudgetRest, BudgetSettings
from denizen.cycles.ledger import day_of
from denizen.cycles.records import CycleRecord, cycles_of
from denizen.cycles.spending import Spending, spending_of_agent
from denizen.cycles.usage import Answers, answers_of_cycles
from denizen.ids import AgentId, CycleId, EntityId, SpaceId
from denizen.inbox import delivery
from denizen.inbox.events import Event
from denizen.models.prices import Usage
from denizen.models.tokens import PER_MESSAGE, estimate
from denizen.plans import agenda, goals, notes
from denizen.plans.agenda import Plan
from denizen.plans.goals import Goal
from denizen.plans.notes import Note
from denizen.reflection.stance_store import AGENTS, PastRun, Stance
from denizen.spaces import directory
from denizen.storage.database import Tx, select_where, statement, value, values
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
    """The content of the next request, in estimated tokens."""

    limit: int
    """The token limit of a request, as for the last one."""
    self: int
    tools: int
    layers: int
    """What stands for the cycles before the window."""
    recent: int
    """The cycles that are shown whole."""
    recent_cycles: int
    open: int
    """The open cycle."""
    era: int
    first_cycle: int | None
    """The oldest cycle that is shown whole."""
    recalled: int = 0
    """The memories that recent cycles were shown."""
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
    """Taken by the open cycle."""
    first: tuple[Event, ...]
    """The events that will be taken first and can be taken now."""


@dataclass(frozen=True, slots=True)
class InspectedCycle:
    """A cycle, and a short version of its model's answers."""

    record: CycleRecord
    answers: Answers
    private: int = 0
    """How many of its entries the reader may not see."""

    @property
    def usage(self) -> Usage:
        return self.answers.usage


@dataclass(frozen=True, slots=True)
class InspectedStance:
    """The agent's stance in one conversation."""

    stance: Stance
    space_name: str
    last: PastRun | None
    """The last change of its state of mind there."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """An agent at one moment."""

    agent: Agent
    at: Instant
    status: Status
    holder: str | None
    """The instance that holds its lease now."""
    held_until: Instant | None
    resting: BudgetRest | None
    """Why its budget has suspended it, if so."""
    cycle_count: int
    window: Window
    lanes: tuple[Lane, ...]
    dead: tuple[Event, ...]
    goals: tuple[Goal, ...]
    notes: tuple[Note, ...]
    plans: tuple[Plan, ...]
    standings: tuple[InspectedStance, ...]
    """Its profiles and states of mind, last changed first."""
    calls: tuple[Call, ...]
    """What it waits for people or services to answer."""
    budget: BudgetSettings | None
    shared_budget: BudgetSettings | None
    today: Sums
    week: Sums
    """The last seven days, including today."""
    spending: tuple[Spending, ...]
    """The same by day and model."""
    cycles: tuple[InspectedCycle, ...]
    """The last cycles, newest first."""
    era: Era
    """The current self, and what stands before the window."""


_lease = select_where(leases, "holder, until", "agent_id")
_waiting_calls = select_where(
    calls_table, "id", "agent_id", calls_table.c.state == "waiting", order_by="created_at, id"
)


def inspect(tx: Tx, agent_id: AgentId, person: EntityId | None = None) -> Inspection:
    """The agent as it is now, on one snapshot, as far as this person may read it; None: who runs the server.

    Raises `NotFound` if there is no such agent.
    """
    agent = registry.get(tx, agent_id)
    reader = privacy.reader(tx, agent_id, person)
    lease = tx.one(_lease, agent_id=agent_id)
    holder, until = lease if lease is not None and lease[1] >= tx.now else (None, None)
    spent = tuple(spending_of_agent(tx, agent_id, days=DAYS))
    today = date(1970, 1, 1) + timedelta(days=day_of(tx.now))
    window, era, count = _window(tx, agent, reader)
    return Inspection(
        agent=agent,
        at=tx.now,
        status=registry.status(tx, agent_id),
        holder=holder,
        held_until=None if until is None else Instant(until),
        resting=budgets.resting(tx, agent_id),
        cycle_count=count,
        window=window,
        lanes=_lanes(tx, agent_id, reader),
        dead=tuple(readable_event(each, reader) for each in delivery.dead(tx, agent_id, limit=DEAD_SHOWN)),
        goals=tuple(readable_goals(goals.goals_of(tx, agent_id), reader)),
        notes=tuple(readable_notes(notes.notes_of(tx, agent_id), reader)),
        plans=tuple(readable_plans(agenda.plans_of(tx, agent_id), reader)),
        standings=tuple(standings(tx, agent_id, reader, limit=STANDINGS_SHOWN)),
        calls=tuple(_call(calls.get(tx, each), reader) for each in values(tx, _waiting_calls, agent_id=agent_id)),
        budget=agent.definition.budget,
        shared_budget=agent.shared_budget,
        today=_sum(each for each in spent if each.day == today),
        week=_sum(spent),
        spending=spent,
        cycles=_last_cycles(tx, agent_id, reader),
        era=era,
    )


def standings(tx: Tx, agent_id: AgentId, reader: Reader, *, limit: int = 100) -> list[InspectedStance]:
    """The agent's stances in its conversations, with reasons, last changed first. A single entry stands for all that
    may not be read."""
    found = AGENTS.stances_of(tx, agent_id, limit=limit)
    shown = [
        InspectedStance(
            each,
            directory.get_space(tx, each.space_id).name,
            next(iter(AGENTS.runs_of(tx, agent_id, each.space_id, limit=1)), None),
        )
        for each in found
        if not reader.hides_space(each.space_id)
    ]
    left_out = len(found) - len(shown)
    nowhere = Stance(SpaceId(""), None, "", 0)
    return [*shown, InspectedStance(nowhere, stand_in(left_out), None)] if left_out else shown


# Access of the reader


def readable_event(event: Event, reader: Reader) -> Event:
    """The event, or a placeholder if the reader may not see it."""
    if not reader.hides_event(event):
        return event
    nobody = {"space_id": None, "space_name": None, "sender_id": None, "sender_name": None, "sender_kind": None}
    return replace(event, text=stand_in(1), message_id=None, payload={}, **nobody)


def readable_goals(found: Iterable[Goal], reader: Reader) -> list[Goal]:
    hidden = reader.hidden_facts()
    return [replace(each, text=stand_in(1)) if goals.fact(each)[0] in hidden else each for each in found]


def readable_notes(found: Sequence[Note], reader: Reader) -> list[Note]:
    """The notes that may be read; a single one stands for all the others, because their keys reveal something too."""
    hidden = reader.hidden_facts()
    shown = [each for each in found if notes.fact(each)[0] not in hidden]
    left_out = len(found) - len(shown)
    return [*shown, Note(stand_in(left_out), "")] if left_out else shown


def readable_plans(found: Iterable[Plan], reader: Reader) -> list[Plan]:
    hidden = reader.hidden_facts()
    return [
        replace(each, name=stand_in(1), instruction=stand_in(1)) if f"plan:{each.id}" in hidden else each
        for each in found
    ]


def _call(call: Call, reader: Reader) -> Call:
    if not reader.hides_space(call.space_id) and not reader.hides_cycle(call.cycle_id):
        return call
    return replace(call, space_id=None, arguments=json.dumps(stand_in(1)), result=None)


def readable_record(tx: Tx, record: CycleRecord, reader: Reader) -> tuple[CycleRecord, int]:
    """The cycle, and how many of its entries may not be read; if any, its summary says so."""
    if not reader.hides_cycle(record.id):
        return record, 0
    count = log.count_of_cycle(tx, reader.agent_id, record.number)
    return replace(record, summary=stand_in(count)), count


_id_of_number = select_where(cycles, "id", "agent_id, number")


def readable_passages(tx: Tx, found: Iterable[RecalledPassage], reader: Reader) -> list[RecalledPassage]:
    """The recalled passages that may be read, by their space and the cycle they are from."""
    return [each for each in found if not _hides_passage(tx, each, reader)]


def _hides_passage(tx: Tx, found: RecalledPassage, reader: Reader) -> bool:
    if not reader.closed:
        return False
    if found.kind == "note":
        return any(f"note:{found.text}".startswith(f"{fact}: ") for fact in reader.hidden_facts())
    cycle_id = value(tx, _id_of_number, agent_id=reader.agent_id, number=found.cycle)
    return reader.hides_space(found.space_id) or (cycle_id is not None and reader.hides_cycle(cycle_id))


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
        each.unpriced_calls,
    )


def _last_cycles(tx: Tx, agent_id: AgentId, reader: Reader) -> tuple[InspectedCycle, ...]:
    records = cycles_of(tx, agent_id, limit=CYCLES_SHOWN)
    found = answers_of_cycles(tx, agent_id, records[0].number, records[-1].number) if records else {}
    return tuple(_lived(tx, each, found.get(each.number, Answers()), reader) for each in reversed(records))


def _lived(tx: Tx, record: CycleRecord, answers: Answers, reader: Reader) -> InspectedCycle:
    shown, private = readable_record(tx, record, reader)
    return InspectedCycle(shown, replace(answers, tools={}) if private else answers, private)


# The window

_mind = select_where(minds, "era, window_from, cycle_count", "agent_id")
_open_cycle = select_where(cycles, "id", "agent_id", cycles.c.number.is_(None))
_number = select_where(cycles, "number", "id")
_last_request = select_where(
    log_table, "request", "agent_id", log_table.c.kind == "response", order_by="seq desc", limit=1
)
_tools = statement(select(func.length(toolsets.c.tools)).where(toolsets.c.digest == bindparam("digest")))


def _window(tx: Tx, agent: Agent, reader: Reader) -> tuple[Window, Era, int]:
    row = tx.one(_mind, agent_id=agent.id)
    assert row is not None
    number, first, count = row
    era = eras.find(tx, agent.id, number)
    open_id: CycleId | None = value(tx, _open_cycle, agent_id=agent.id)
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
        recalled_texts=tuple(
            stand_in(len(run.entries)) if run.hidden else text_of(run.entries[0]) for run in reader.runs(recalled)
        ),
    )
    return window, replace(era, text=reader.self_of(era), layers=reader.layers_of(era)), count


def _tokens(entries: list[Entry]) -> int:
    return sum(each.tokens for each in entries)


def _number_of(tx: Tx, cycle_id: CycleId) -> int | None:
    return value(tx, _number, id=cycle_id)


def _limits(tx: Tx, agent: Agent) -> tuple[int, int]:
    """How many tokens a request may have, and how many its tools take, as for the last one."""
    allowed = budget(agent.definition.window, None).request
    made_of: dict[str, Any] = json.loads(value(tx, _last_request, agent_id=agent.id) or "{}")
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


def _lanes(tx: Tx, agent_id: AgentId, reader: Reader) -> tuple[Lane, ...]:
    counted = {(lane, state): count for lane, state, count in tx.all(_by_lane, agent_id=agent_id)}
    waiting = delivery.pending(tx, agent_id)
    return tuple(
        Lane(
            name,
            counted.get((lane, "pending"), 0),
            counted.get((lane, "taken"), 0),
            tuple(readable_event(each, reader) for each in waiting if each.lane == name)[:EVENTS_SHOWN],
        )
        for lane, name in ((0, "urgent"), (1, "normal"))
    )
