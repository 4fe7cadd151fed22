"""Checks a database for violations of the invariants, as far as rows can show them. It changes nothing.

Three forms: `check_quickly` finds missing rows and broken references, `check` reads every row, and `check_deeply` also
recomputes every digest.

A database in use may be checked as well: a read sees one consistent moment, and at each moment all of this holds. Two
things cannot be decided afterwards and are not reported: messages from before a member joined, or from the very same
microsecond, and what happened to agents that were deleted. One thing is assumed: that the attention of a member has not
changed since it joined, because no row records when it changed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, Final

from pydantic import ValidationError
from pydantic_ai.messages import ModelMessage, ToolCallPart, ToolReturnPart
from sqlalchemy import ColumnElement, ForeignKey, FromClause, Select, Table, bindparam, exists, func, or_, select

from denizen.cycles.records import calls_of
from denizen.models import codec
from denizen.panel.rounds import ASSISTANT
from denizen.storage import chain_check
from denizen.storage.chain_check import Broken
from denizen.storage.database import Database, Statement, Tx, long_running, statement, values
from denizen.storage.schema import (
    advisors,
    agents,
    calls,
    cycles,
    effects,
    entities,
    events,
    leases,
    ledger,
    log,
    memberships,
    messages,
    metadata,
    minds,
    organizations,
    overflow,
    panel_reflecting,
    panels,
    passages,
    plans,
    recalls,
    reflecting,
    reflections,
    roster,
    rounds,
    selves,
    signals,
    space_statuses,
    spaces,
    spending,
    stances,
    voice_feelings,
    voice_reflections,
    voice_signals,
    voice_stances,
)
from denizen.tools.prebuilt import SEND_MESSAGE

STATES: Final = ("pending", "taken", "done", "dead")
MESSAGE_EVENTS: Final = ("space_message", "mention")


@dataclass(frozen=True, slots=True)
class Violation:
    """A violation of an invariant."""

    invariant: int
    """The number of the invariant: 0 related rows, 1 one history, 2 messages and inboxes, 3 events, 4 nothing twice, 5
    one thinker, 6 skips, 8 the prompt is a log, 10 nothing is forgotten by accident, 11 everyone who waits is answered,
    or told why.
    """
    sentence: str
    ids: tuple[str, ...] = ()
    """The ids of the rows concerned."""


async def check_database(db: Database, *, deep: bool = True) -> list[Violation]:
    """Returns all violations in the database."""
    return await db.read(check_deeply if deep else check)


@long_running
def check_quickly(tx: Tx) -> list[Violation]:
    """Returns missing rows, broken references, chains without their end, and people who wait without being told why."""
    return [*check_references(tx), *map(_as_violation, chain_check.broken_ends(tx)), *_check_waiting(tx)]


@long_running
def check_deeply(tx: Tx) -> list[Violation]:
    """Returns all violations at this moment, and every row that does not match its digest."""
    return [*check(tx), *map(_as_violation, chain_check.broken(tx))]


def _as_violation(broken: Broken) -> Violation:
    return Violation(1 if broken.of == "agent" else 2, broken.sentence, broken.ids)


@long_running
def check(tx: Tx) -> list[Violation]:
    """Returns all violations at this moment."""
    found: list[Violation] = []
    for (agent_id,) in tx.all(_agents):
        found += _check_agent(_read_agent(tx, agent_id))
        found += _check_requests(tx, agent_id)
    for row in tx.all(_spaces):
        found += _check_space(tx, *row)
    found += _check_waiting(tx)
    found += _check_plans(tx)
    found += _check_reflection(tx)
    found += _check_marks(tx)
    found += _check_leftovers(tx)
    found += [Violation(10, "A cycle has ended without a summary.", row) for row in tx.all(_unsummarized)]
    found += check_references(tx)
    return found


# The rows that are read


@dataclass(frozen=True, slots=True)
class _LogRow:
    seq: int
    cycle_id: str
    kind: str
    encoded: str


@dataclass(frozen=True, slots=True)
class _Effect:
    step: int
    position: int
    tool: str
    state: str
    changes: int
    result: str | None


@dataclass(frozen=True, slots=True)
class _Event:
    id: str
    state: str
    attempts: int
    cycle_id: str | None
    taken_out: bool
    """Whether its message was deleted or forgotten, so that it does not wait any more."""


@dataclass(frozen=True, slots=True)
class _Step:
    """A response and the entry after it, if that holds its results."""

    calls: tuple[ToolCallPart, ...]
    results: tuple[ToolReturnPart, ...] | None


@dataclass(frozen=True, slots=True)
class _Cycle:
    """A cycle with all its rows."""

    id: str
    number: int | None
    outcome: str
    first_seq: int
    steps: int
    tokens: tuple[int, int]
    """Input and output, as the cycle sums them. Their cost is left to the ledger: prices change."""
    entries: tuple[_LogRow, ...]
    effects: tuple[_Effect, ...]
    messages: tuple[tuple[str, str], ...]
    """Id and author of each message posted in it."""
    usage: tuple[tuple[int, int], ...]
    """The ledger's entries for its model calls."""

    @property
    def open(self) -> bool:
        return self.number is None

    def copied_by(self, agent_id: str) -> bool:
        """Whether another agent ran it, and this one is a fork: its messages and cost belong to the other."""
        return self.id == f"{agent_id}-{self.number}"


@dataclass(frozen=True, slots=True)
class _Agent:
    """An agent with all its rows."""

    id: str
    status: str
    mind: tuple[int, int] | None
    """The number of its cycles, and where its window begins."""
    lease: tuple[str | None, int, int] | None
    cycles: tuple[_Cycle, ...]
    """By number, the open one last."""
    log: tuple[_LogRow, ...]
    events: tuple[_Event, ...]
    skipped: frozenset[str]
    """The cycles that the ledger records as skipped."""


def _where(query: Select[*tuple[Any, ...]], column: Any, name: str) -> Statement:
    return statement(query.where(column == bindparam(name)))


_agents = statement(select(agents.c.id).order_by(agents.c.id))
_agent = _where(select(agents.c.status), agents.c.id, "id")
_mind = _where(select(minds.c.cycle_count, minds.c.window_from), minds.c.agent_id, "id")
_lease = _where(select(leases.c.holder, leases.c.epoch, leases.c.until), leases.c.agent_id, "id")
_cycles = _where(
    select(
        cycles.c.id,
        cycles.c.number,
        cycles.c.outcome,
        cycles.c.first_seq,
        cycles.c.steps,
        cycles.c.input_tokens,
        cycles.c.output_tokens,
    ),
    cycles.c.agent_id,
    "id",
)
_log = _where(select(log.c.seq, log.c.cycle_id, log.c.kind, log.c.message).order_by(log.c.seq), log.c.agent_id, "id")
_events = _where(
    select(events.c.id, events.c.state, events.c.attempts, events.c.cycle_id, messages.c.deleted_at.is_not(None))
    .select_from(events.outerjoin(messages, messages.c.id == events.c.message_id))
    .order_by(events.c.number),
    events.c.agent_id,
    "id",
)
_effects = _where(
    select(
        effects.c.cycle_id,
        effects.c.step,
        effects.c.position,
        effects.c.tool,
        effects.c.state,
        effects.c.changes,
        effects.c.result,
    )
    .join(cycles, cycles.c.id == effects.c.cycle_id)
    .order_by(effects.c.cycle_id, effects.c.step, effects.c.position),
    cycles.c.agent_id,
    "id",
)
_said = _where(
    select(messages.c.cycle_id, messages.c.id, messages.c.author_id)
    .join(cycles, cycles.c.id == messages.c.cycle_id)
    .order_by(messages.c.cycle_id, messages.c.id),
    cycles.c.agent_id,
    "id",
)
_ledger = _where(
    select(ledger.c.cycle_id, ledger.c.kind, ledger.c.input_tokens, ledger.c.output_tokens).order_by(
        ledger.c.cycle_id, ledger.c.number
    ),
    ledger.c.agent_id,
    "id",
)


def _read_agent(tx: Tx, agent_id: str) -> _Agent:
    status = tx.one(_agent, id=agent_id)
    mind, lease = tx.one(_mind, id=agent_id), tx.one(_lease, id=agent_id)
    rows = tuple(_LogRow(*row) for row in tx.all(_log, id=agent_id))
    lines = tx.all(_ledger, id=agent_id)
    return _Agent(
        id=agent_id,
        status=status[0] if status else "",
        mind=None if mind is None else (mind[0], mind[1]),
        lease=None if lease is None else (lease[0], lease[1], lease[2]),
        cycles=_read_cycles(tx, agent_id, rows, lines),
        log=rows,
        events=tuple(_Event(*row) for row in tx.all(_events, id=agent_id)),
        skipped=frozenset(line[0] for line in lines if line[1] == "skip"),
    )


def _read_cycles(
    tx: Tx, agent_id: str, rows: Sequence[_LogRow], lines: Sequence[tuple[Any, ...]]
) -> tuple[_Cycle, ...]:
    done = _by_first(tx.all(_effects, id=agent_id))
    said = _by_first(tx.all(_said, id=agent_id))
    used = _by_first([(line[0], line[2], line[3]) for line in lines if line[1] == "usage"])
    entries: dict[str, list[_LogRow]] = {}
    for row in rows:
        entries.setdefault(row.cycle_id, []).append(row)
    found = [
        _Cycle(
            *row[:5],
            tokens=(row[5], row[6]),
            entries=tuple(entries.get(row[0], ())),
            effects=tuple(_Effect(*each) for each in done.get(row[0], ())),
            messages=tuple((each[0], each[1]) for each in said.get(row[0], ())),
            usage=tuple((each[0], each[1]) for each in used.get(row[0], ())),
        )
        for row in tx.all(_cycles, id=agent_id)
    ]
    return tuple(sorted(found, key=lambda each: (each.open, each.number or 0, each.first_seq)))


def _by_first(rows: Iterable[tuple[Any, ...]]) -> dict[str, list[tuple[Any, ...]]]:
    """Groups the rows by their first column, in order."""
    gathered: dict[str, list[tuple[Any, ...]]] = {}
    for first, *rest in rows:
        gathered.setdefault(first, []).append(tuple(rest))
    return gathered


# One agent


def _check_agent(agent: _Agent) -> Iterator[Violation]:
    yield from _check_mind(agent)
    yield from _check_order(agent)
    for cycle in agent.cycles:
        yield from _check_cycle(agent, cycle)
    yield from _check_events(agent)
    yield from _check_lease(agent)


def _check_mind(agent: _Agent) -> Iterator[Violation]:
    """The counts in the mind match the rows."""
    if agent.mind is None:
        yield Violation(1, "The agent has no mind.", (agent.id,))
        return
    cycle_count, window_from = agent.mind
    numbers = [cycle.number for cycle in agent.cycles if not cycle.open]
    if numbers != [*range(1, cycle_count + 1)]:
        yield Violation(1, f"The agent counts {cycle_count} cycles, but its cycles are not those numbers.", (agent.id,))
    if not 1 <= window_from <= len(agent.log) + 1:
        yield Violation(1, f"The window begins at {window_from}, where the log has nothing.", (agent.id,))
    unended = [cycle.id for cycle in agent.cycles if cycle.open]
    if len(unended) > 1:
        yield Violation(1, "More than one cycle of the agent is open.", (agent.id, *unended))


def _check_order(agent: _Agent) -> Iterator[Violation]:
    """The log is one history: numbered without gaps, cycle after cycle, in order."""
    if [row.seq for row in agent.log] != [*range(1, len(agent.log) + 1)]:
        yield Violation(1, "The log's numbers have gaps, or do not begin at 1.", (agent.id,))
    lived = [cycle.id for cycle in agent.cycles]
    for cycle_id in {row.cycle_id for row in agent.log} - {*lived, *agent.skipped}:
        yield Violation(1, "The log holds entries of a cycle that does not exist.", (agent.id, cycle_id))
    told = [cycle_id for cycle_id, _ in groupby(agent.log, key=attrgetter("cycle_id")) if cycle_id in lived]
    if told != [cycle.id for cycle in agent.cycles if cycle.entries]:
        yield Violation(1, "The log does not hold the cycles one after the other, in their order.", (agent.id,))


def _check_cycle(agent: _Agent, cycle: _Cycle) -> Iterator[Violation]:
    where = (agent.id, cycle.id)
    if (cycle.outcome in ("open", "paused")) != cycle.open:
        yield Violation(1, f"A cycle {'without' if cycle.open else 'with'} a number is {cycle.outcome}.", where)
    if not cycle.entries:
        yield Violation(1, "A cycle has no entries in the log.", where)
    elif cycle.entries[0].seq != cycle.first_seq or cycle.entries[0].kind != "inbox":
        yield Violation(1, "A cycle does not begin with its inbox, at the number it says.", where)
    if not any(event.cycle_id == cycle.id for event in agent.events):
        yield Violation(3, "A cycle has no events: what it was woken by is lost.", where)
    if not cycle.copied_by(agent.id):
        yield from _check_messages(agent, cycle)
    decoded = _decoded(cycle)
    if decoded is None:
        yield Violation(1, "An entry of the log cannot be read.", where)
        return
    steps = _steps(cycle.entries, decoded)
    yield from _check_answers(agent, cycle, steps)
    yield from _check_effects(agent, cycle, steps)
    if not cycle.copied_by(agent.id):
        yield from _check_usage(agent, cycle, steps)


def _decoded(cycle: _Cycle) -> list[ModelMessage] | None:
    try:
        return [codec.load(row.encoded) for row in cycle.entries]
    except ValidationError:
        return None


def _steps(entries: Sequence[_LogRow], decoded: Sequence[ModelMessage]) -> list[_Step]:
    """Returns the responses of a cycle, each with its results."""
    found: list[_Step] = []
    for position, row in enumerate(entries):
        if row.kind != "response":
            continue
        following = decoded[position + 1] if position + 1 < len(entries) else None
        answered = following is not None and entries[position + 1].kind == "results"
        parts = following.parts if answered and following is not None else ()
        results = tuple(part for part in parts if isinstance(part, ToolReturnPart))
        found.append(_Step(calls_of(decoded[position]), results if answered else None))
    return found


def _check_answers(agent: _Agent, cycle: _Cycle, steps: Sequence[_Step]) -> Iterator[Violation]:
    """No call without its result, no result without its call; only the last response of an open cycle may wait."""
    where = (agent.id, cycle.id)
    for number, step in enumerate(steps):
        waiting = cycle.open and number == len(steps) - 1
        if step.results is None:
            if step.calls and not waiting:
                yield Violation(1, f"The calls of step {number} have no results.", where)
        elif not step.calls or _names(step.calls) != _names(step.results):
            yield Violation(1, f"The results of step {number} are not those of its calls, in their order.", where)
    answers = sum(row.kind == "results" for row in cycle.entries)
    if answers != sum(step.results is not None for step in steps):
        yield Violation(1, "The log holds results that follow no response.", where)
    if not cycle.open and cycle.steps != len(steps):
        yield Violation(1, f"A cycle counts {cycle.steps} steps, but the log holds {len(steps)} responses.", where)


def _names(parts: Sequence[ToolCallPart] | Sequence[ToolReturnPart]) -> list[tuple[str, str]]:
    return [(part.tool_name, part.tool_call_id) for part in parts]


# Nothing twice


def _check_messages(agent: _Agent, cycle: _Cycle) -> Iterator[Violation]:
    """Each message posted in the cycle is the one effect of one call, and each such effect is a message."""
    where = (agent.id, cycle.id)
    sent = sum(effect.tool == SEND_MESSAGE and effect.changes == 1 for effect in cycle.effects)
    if sent != len(cycle.messages):
        sentence = f"A cycle recorded {sent} sent messages, but {len(cycle.messages)} messages are of that cycle."
        yield Violation(4, sentence, where)
    for message_id, author_id in cycle.messages:
        if author_id != agent.id:
            yield Violation(4, "A message is of a cycle of another than its author.", (*where, message_id))


def _check_effects(agent: _Agent, cycle: _Cycle, steps: Sequence[_Step]) -> Iterator[Violation]:
    """Each effect belongs to a call, and the model was told its result."""
    where = (agent.id, cycle.id)
    for effect in cycle.effects:
        at = f"step {effect.step}, position {effect.position}"
        call = _call_of(effect, steps)
        if call is None:
            if not _is_delivered_text(effect, steps):
                yield Violation(4, f"An effect of {effect.tool} at {at} belongs to no call.", where)
            continue
        # A cycle that was cut short for good says that the result is unknown.
        if effect.state == "intent" and (effect.step != len(steps) - 1 or cycle.outcome == "acted"):
            yield Violation(4, f"A call of {effect.tool} at {at} was begun and its end never recorded.", where)
        if effect.state == "done" and not _was_told(effect, steps[effect.step]):
            yield Violation(4, f"The model was told another result of {effect.tool} at {at} than is recorded.", where)
    yield from _check_unrecorded(agent, cycle, steps)


def _call_of(effect: _Effect, steps: Sequence[_Step]) -> ToolCallPart | None:
    calls = steps[effect.step].calls if effect.step < len(steps) else ()
    call = calls[effect.position] if effect.position < len(calls) else None
    return call if call is not None and call.tool_name == effect.tool else None


def _was_told(effect: _Effect, step: _Step) -> bool:
    """Whether the model was told the recorded result; also true if it has been told nothing yet."""
    told = (step.results or ())[effect.position : effect.position + 1]
    return all(each.content == effect.result for each in told)


def _is_delivered_text(effect: _Effect, steps: Sequence[_Step]) -> bool:
    """Whether it is a text that the model wrote without a call, posted in its name because a person waited."""
    is_text = effect.step < len(steps) and not steps[effect.step].calls
    return effect.tool == SEND_MESSAGE and is_text and effect.position == 0


def _check_unrecorded(agent: _Agent, cycle: _Cycle, steps: Sequence[_Step]) -> Iterator[Violation]:
    """A call with a result was executed; only the last step of a cycle may have been refused or cut short as
    a whole.
    """
    recorded = {(effect.step, effect.position) for effect in cycle.effects}
    for number, step in enumerate(steps[: len(steps) if cycle.open else -1]):
        missing = [at for at in range(len(step.calls)) if (number, at) not in recorded]
        if step.results is not None and missing:
            yield Violation(4, f"Step {number} has results of calls that were never recorded.", (agent.id, cycle.id))


def _check_usage(agent: _Agent, cycle: _Cycle, steps: Sequence[_Step]) -> Iterator[Violation]:
    """The ledger has each model call of the cycle once, and when it has ended their sum is the cycle's."""
    where = (agent.id, cycle.id)
    if len(cycle.usage) != len(steps):
        sentence = f"The ledger holds {len(cycle.usage)} model calls of a cycle with {len(steps)} responses."
        yield Violation(4, sentence, where)
    sums = tuple(sum(column) for column in zip(*cycle.usage, strict=True)) or (0, 0)
    if not cycle.open and sums != cycle.tokens:
        yield Violation(4, f"The ledger sums a cycle's usage to {sums}, the cycle to {cycle.tokens}.", where)


# Requests and summaries

_requests = _where(
    select(log.c.seq, log.c.request).where(log.c.kind == "response", log.c.request.is_not(None)).order_by(log.c.seq),
    log.c.agent_id,
    "id",
)
_eras = _where(select(selves.c.era), selves.c.agent_id, "id")
_unsummarized = statement(
    select(cycles.c.agent_id, cycles.c.id).where(cycles.c.number.is_not(None), cycles.c.summary.is_(None))
)


def _check_requests(tx: Tx, agent_id: str) -> Iterator[Violation]:
    """Every request can be put together again: its self is stored, and its entries came before its response."""
    known = set(values(tx, _eras, id=agent_id))
    for seq, request in tx.all(_requests, id=agent_id):
        made_of = json.loads(request)
        if not {"era", "from", "to"} <= made_of.keys():
            continue  # It was not made of parts: what the model was asked is not known.
        if made_of["era"] not in known:
            yield Violation(8, "The self that a request began with is missing.", (agent_id, str(seq)))
        if not made_of["from"] <= made_of["to"] < seq:
            yield Violation(8, "A request holds entries that did not come before its response.", (agent_id, str(seq)))


# Events, leases


def _check_events(agent: _Agent) -> Iterator[Violation]:
    ended = {cycle.id for cycle in agent.cycles if not cycle.open} | agent.skipped
    unended = {cycle.id for cycle in agent.cycles if cycle.open}
    for event in agent.events:
        problem = _problem_of(event, ended, unended)
        if problem is not None:
            yield Violation(3, problem, (agent.id, event.id))


def _problem_of(event: _Event, ended: set[str], unended: set[str]) -> str | None:
    match event.state:
        case "taken" if event.cycle_id not in unended:
            return "An event is taken by a cycle that is not the agent's open one."
        case "done" if event.cycle_id not in ended and not (event.taken_out and event.cycle_id is None):
            return "An event is done, but no cycle of its agent ended with it."
        case "pending" | "dead" if event.cycle_id is not None:
            return f"An event is {event.state} and yet belongs to a cycle."
        case state if state not in STATES:
            return f"An event is in a state that there is not: {state!r}."
        case _:
            return None


def _check_lease(agent: _Agent) -> Iterator[Violation]:
    if agent.lease is None:
        yield Violation(5, "The agent has no lease, so nobody can think for it.", (agent.id,))
        return
    holder, epoch, until = agent.lease
    if (holder is None) != (until == 0):
        yield Violation(5, "A lease runs without a holder, or is held without an end.", (agent.id,))
    if epoch < (1 if holder is not None or agent.cycles else 0):
        yield Violation(5, f"Someone has thought for the agent, but its lease is in epoch {epoch}.", (agent.id,))
    if holder is not None and agent.status != "active":
        yield Violation(5, f"The agent is {agent.status}, and yet someone may think for it.", (agent.id,))


# One space


_spaces = statement(select(spaces.c.id, spaces.c.last_seq).order_by(spaces.c.id))
_messages = _where(
    select(
        messages.c.id,
        messages.c.seq,
        messages.c.author_id,
        messages.c.mentions,
        messages.c.created_at,
        func.coalesce(messages.c.edited_at, messages.c.deleted_at),
    ).order_by(messages.c.seq),
    messages.c.space_id,
    "id",
)
_listeners = statement(
    select(memberships.c.entity_id, memberships.c.attention, memberships.c.joined_at, entities.c.handle)
    .join(agents, agents.c.id == memberships.c.entity_id)
    .join(entities, entities.c.id == memberships.c.entity_id)
    .where(memberships.c.space_id == bindparam("id"), agents.c.status != "dead")
    .order_by(memberships.c.entity_id)
)
_heard = statement(
    select(events.c.agent_id, events.c.message_id, events.c.type, events.c.space_id, entities.c.handle)
    .join(messages, messages.c.id == events.c.message_id)
    .join(entities, entities.c.id == events.c.agent_id)
    .where(messages.c.space_id == bindparam("id"), events.c.type.in_(MESSAGE_EVENTS))
    .order_by(events.c.number)
)


@dataclass(frozen=True, slots=True)
class _Message:
    id: str
    seq: int
    author_id: str
    mentions: frozenset[str]
    created_at: int
    changed_at: int | None
    """When it was last edited or deleted; its earlier mentions are not stored."""


def _check_space(tx: Tx, space_id: str, last_seq: int) -> Iterator[Violation]:
    said = [
        _Message(id, seq, author, frozenset(json.loads(mentions or "[]")), at, changed_at)
        for id, seq, author, mentions, at, changed_at in tx.all(_messages, id=space_id)
    ]
    if [message.seq for message in said] != [*range(1, last_seq + 1)]:
        yield Violation(2, f"The space counts {last_seq} messages, but does not hold those numbers.", (space_id,))
    heard = tx.all(_heard, id=space_id)
    yield from _check_unheard(space_id, said, {(row[0], row[1]) for row in heard}, tx.all(_listeners, id=space_id))
    yield from _check_heard(space_id, {message.id: message for message in said}, heard)


def _check_unheard(
    space_id: str, said: Sequence[_Message], heard: set[tuple[str, str]], listeners: Sequence[tuple[Any, ...]]
) -> Iterator[Violation]:
    """Every agent that attends to a message has it in the inbox."""
    for agent_id, attention, joined_at, handle in listeners:
        for message in said:
            attends = attention == "all" or (attention == "mentions" and handle in message.mentions)
            reached = message.author_id != agent_id and joined_at < message.created_at
            if attends and reached and (agent_id, message.id) not in heard:
                yield Violation(2, "A message is not in an inbox that attends to it.", (space_id, message.id, agent_id))


def _check_heard(space_id: str, said: Mapping[str, _Message], heard: Sequence[tuple[Any, ...]]) -> Iterator[Violation]:
    """A message in an inbox was posted there, by another, and is there once."""
    for (agent_id, message_id), times in Counter((row[0], row[1]) for row in heard).items():
        if times > 1:
            yield Violation(2, f"A message is {times} times in one inbox.", (space_id, message_id, agent_id))
    for agent_id, message_id, kind, event_space, handle in heard:
        message = said[message_id]
        ids = (space_id, message_id, agent_id)
        if event_space != space_id:
            yield Violation(2, "An event says that its message is of another space.", ids)
        if message.author_id == agent_id:
            yield Violation(2, "An agent is told its own message.", ids)
        if (kind == "mention") != (handle in message.mentions) and message.changed_at is None:
            yield Violation(2, f"A message is a {kind} for an agent whom it does not so address.", ids)


# Waiting people

_later = messages.alias("later")
_told_why = exists().where(
    space_statuses.c.space_id == events.c.space_id, space_statuses.c.agent_id == events.c.agent_id
)
_later_there = (_later.c.space_id == messages.c.space_id, _later.c.seq > messages.c.seq)
_author_went_on = exists().where(*_later_there, _later.c.author_id == messages.c.author_id)
_agent_spoke = exists().where(*_later_there, _later.c.author_id == events.c.agent_id)
_waiting = (
    select(events.c.agent_id, events.c.id)
    .join(messages, messages.c.id == events.c.message_id)
    .join(agents, agents.c.id == events.c.agent_id)
    # Nobody waits for an agent that has left the space since.
    .join(
        memberships,
        (memberships.c.space_id == events.c.space_id)
        & (memberships.c.entity_id == events.c.agent_id)
        & (memberships.c.joined_at <= messages.c.created_at),
    )
    .where(events.c.waits == 1, messages.c.deleted_at.is_(None), ~_told_why)
    .order_by(events.c.number)
)
_set_aside = statement(_waiting.where(events.c.state == "dead", ~_author_went_on))
_held_up = statement(
    _waiting.where(
        events.c.state.in_(("pending", "taken")),
        or_(agents.c.status != "active", agents.c.parked_until > bindparam("now")),
    )
)
_other = events.alias("other")
_waits_anew = exists().where(
    _other.c.agent_id == events.c.agent_id,
    _other.c.state != "done",
    _other.c.space_id == events.c.space_id,
    _other.c.number > events.c.number,
    _other.c.waits == 1,
)
_asked_back = exists().where(calls.c.cycle_id == events.c.cycle_id, calls.c.space_id == events.c.space_id)
_ended = statement(
    _waiting.where(
        events.c.state == "done", ~_author_went_on, ~_agent_spoke, ~_asked_back, ~_waits_anew, agents.c.status != "dead"
    )
)


def _check_waiting(tx: Tx) -> Iterator[Violation]:
    """A person who waits for an answer that does not come by itself is told why in the space."""
    for agent_id, event_id in tx.all(_set_aside):
        yield Violation(11, "Somebody waits for an answer to a message that was set aside.", (agent_id, event_id))
    for agent_id, event_id in tx.all(_held_up, now=tx.now):
        sentence = "Somebody waits for an agent that is parked, suspended or deleted, and is not told so."
        yield Violation(11, sentence, (agent_id, event_id))
    for agent_id, event_id in tx.all(_ended):
        yield Violation(11, "A message has no answer, and whoever waits for it is not told so.", (agent_id, event_id))


# Rows without an owner


_lost_events = statement(
    select(events.c.agent_id, events.c.id)
    .where(events.c.type.in_(MESSAGE_EVENTS))
    # An imported one whose message stayed on the other server has the text itself.
    .where(
        (events.c.message_id.is_(None) & events.c.payload.is_(None))
        | (events.c.message_id.is_not(None) & events.c.message_id.not_in(select(messages.c.id)))
    )
    .order_by(events.c.number)
)
_skips = select(ledger.c.cycle_id).where(ledger.c.kind == "skip")
_known = select(cycles.c.id)
_traces = {
    "the cycle records": statement(select(cycles.c.id).where(cycles.c.id.in_(_skips))),
    "the log": statement(select(log.c.cycle_id).where(log.c.cycle_id.in_(_skips)).distinct()),
    "the effects": statement(select(effects.c.cycle_id).where(effects.c.cycle_id.in_(_skips)).distinct()),
    "the long results": statement(select(overflow.c.cycle_id).where(overflow.c.cycle_id.in_(_skips)).distinct()),
    "a space": statement(select(messages.c.cycle_id).where(messages.c.cycle_id.in_(_skips)).distinct()),
}
_strays = {
    "An effect": statement(
        select(effects.c.cycle_id)
        .where(effects.c.cycle_id.not_in(_known), effects.c.cycle_id.not_in(_skips))
        .distinct()
    ),
    "A long result": statement(
        select(overflow.c.cycle_id)
        .where(overflow.c.cycle_id.not_in(_known), overflow.c.cycle_id.not_in(_skips))
        .distinct()
    ),
    "A message": statement(
        select(messages.c.cycle_id)
        .where(messages.c.cycle_id.is_not(None))
        .where(messages.c.cycle_id.not_in(_known), messages.c.cycle_id.not_in(_skips))
        .distinct()
    ),
}


_fired_timers = statement(
    select(plans.c.agent_id, plans.c.id)
    .join(events, (events.c.agent_id == plans.c.agent_id) & events.c.id.like("timer:" + plans.c.id + ":%"))
    .where(plans.c.kind == "timer")
)
_plans_of_the_dead = statement(
    select(plans.c.agent_id, plans.c.id).join(agents, agents.c.id == plans.c.agent_id).where(agents.c.status == "dead")
)


def _check_plans(tx: Tx) -> Iterator[Violation]:
    for agent_id, plan_id in tx.all(_fired_timers):
        yield Violation(4, "A timer has gone off, and waits to go off again.", (agent_id, plan_id))
    for agent_id, plan_id in tx.all(_plans_of_the_dead):
        yield Violation(5, "A dead agent has a plan.", (agent_id, plan_id))


# States of mind

_MINDS_OF_VOICES = (voice_stances, voice_feelings, voice_signals, voice_reflections)


def _beyond(table: Table, column: str, limit: ColumnElement[int], source: FromClause, *ids: str) -> Statement:
    """Selects the rows whose number is above the limit."""
    return statement(select(*(table.c[name] for name in ids)).select_from(source).where(table.c[column] > limit))


def _of_minds(table: Table, column: str, *ids: str) -> Statement:
    source = table.join(minds, minds.c.agent_id == table.c.agent_id)
    return _beyond(table, column, minds.c.cycle_count, source, "agent_id", *ids)


def _of_panels(table: Table, column: str, *ids: str) -> Statement:
    source = table.join(panels, panels.c.space_id == table.c.space_id)
    return _beyond(table, column, panels.c.turns, source, "space_id", *ids)


def _nobodys(table: Table) -> Statement:
    known = exists().where(advisors.c.space_id == table.c.space_id, advisors.c.id == table.c.voice)
    return statement(select(table.c.space_id, table.c.voice).where(table.c.voice != ASSISTANT, ~known).distinct())


def _twice(table: Table, when: str, *what: str) -> Statement:
    """Selects duplicates of the same turn."""
    same = [table.c[name] for name in what]
    return statement(
        select(*same).where(table.c[when].is_not(None)).group_by(*same, table.c[when]).having(func.count() > 1)
    )


_REFLECTED = (
    ("The agent has reflected on a cycle that it has not lived.", _of_minds(reflecting, "cycle")),
    (
        "The agent has reflected on more turns than it has lived cycles.",
        _of_minds(stances, "reflected_turns", "space_id"),
    ),
    ("A signal is of a cycle that was not lived.", _of_minds(signals, "cycle", "space_id")),
    ("A metaprompt was asked after a cycle that was not lived.", _of_minds(reflections, "cycle", "space_id")),
    (
        "A metaprompt was asked twice after one cycle.",
        _twice(reflections, "cycle", "agent_id", "space_id", "metaprompt"),
    ),
    ("The panel has reflected on a turn that there was not.", _of_panels(panel_reflecting, "turn")),
    ("A voice has reflected on more turns than there were.", _of_panels(voice_stances, "reflected_turns", "voice")),
    ("A signal is of a turn that there was not.", _of_panels(voice_signals, "turn", "voice")),
    ("A metaprompt was asked after a turn that there was not.", _of_panels(voice_reflections, "turn", "voice")),
    (
        "A metaprompt was asked twice after one turn.",
        _twice(voice_reflections, "turn", "space_id", "voice", "metaprompt"),
    ),
    ("A signal was seen twice after one turn.", _twice(voice_signals, "turn", "space_id", "voice", "name")),
    *(("A state of mind is of nobody who answers in the panel.", _nobodys(each)) for each in _MINDS_OF_VOICES),
)


def _check_reflection(tx: Tx) -> Iterator[Violation]:
    """Each cycle and turn is reflected on once, and nothing else is."""
    for sentence, query in _REFLECTED:
        for row in tx.all(query):
            yield Violation(4, sentence, tuple(str(each) for each in row))


# Marks of text from outside

_earlier = log.alias("earlier")
_UNMARKED: Final = (
    (
        "An entry holds text from outside, and its cycle is not marked.",
        statement(
            select(log.c.agent_id, log.c.cycle_id)
            .distinct()
            .join(cycles, cycles.c.id == log.c.cycle_id)
            .where(log.c.outside.is_not(None), func.coalesce(cycles.c.outside_from, log.c.seq + 1) > log.c.seq)
        ),
    ),
    (
        "The request of a response held text from outside, and the response is not marked.",
        statement(
            select(log.c.agent_id, log.c.cycle_id, log.c.seq).where(
                log.c.kind == "response",
                log.c.outside.is_(None),
                exists().where(
                    _earlier.c.agent_id == log.c.agent_id,
                    _earlier.c.cycle_id == log.c.cycle_id,
                    _earlier.c.seq < log.c.seq,
                    _earlier.c.outside.is_not(None),
                ),
            )
        ),
    ),
    (
        "A cycle held text from outside, and the mind of its agent is not marked.",
        statement(
            select(cycles.c.agent_id)
            .distinct()
            .join(minds, minds.c.agent_id == cycles.c.agent_id)
            .where(cycles.c.number.is_not(None), cycles.c.outside_from.is_not(None), minds.c.outside == 0)
        ),
    ),
    (
        "A message was made from text from outside, and is not marked.",
        statement(
            select(messages.c.author_id, messages.c.id)
            .join(cycles, cycles.c.id == messages.c.cycle_id)
            .where(cycles.c.outside_from <= cycles.c.first_seq, messages.c.outside == 0)
        ),
    ),
)


def _check_marks(tx: Tx) -> Iterator[Violation]:
    """What is based on text from outside is marked so."""
    for sentence, query in _UNMARKED:
        for row in tx.all(query):
            yield Violation(1, sentence, tuple(str(each) for each in row))


def _check_leftovers(tx: Tx) -> Iterator[Violation]:
    for agent_id, event_id in tx.all(_lost_events):
        yield Violation(2, "An inbox holds the event of a message that does not exist.", (agent_id, event_id))
    for where, query in _traces.items():
        for (cycle_id,) in tx.all(query):
            yield Violation(6, f"A skipped cycle left a trace in {where}.", (cycle_id,))
    for what, query in _strays.items():
        for (cycle_id,) in tx.all(query):
            yield Violation(4, f"{what} is of a cycle that does not exist.", (cycle_id,))


_SHOWN: Final = 5
"""The most missing ids that are named."""


def _broken(key: ForeignKey) -> Statement:
    """Selects the values of a column that refer to a missing row, and how many rows hold each."""
    target = key.column.table.alias("target")
    missing = ~exists(select(target.c[key.column.name]).where(target.c[key.column.name] == key.parent))
    return statement(
        select(key.parent, func.count())
        .where(key.parent.is_not(None), missing)
        .group_by(key.parent)
        .order_by(key.parent)
    )


_references: Final = [
    (table.name, key.parent.name, key.column.table.name, _broken(key))
    for table in metadata.sorted_tables
    for key in sorted(table.foreign_keys, key=lambda each: each.parent.name)
]


_of_models = (
    select(ledger.c.agent_id, ledger.c.model, func.sum(ledger.c.input_tokens + ledger.c.output_tokens).label("tokens"))
    .where(ledger.c.model.is_not(None))
    .group_by(ledger.c.agent_id, ledger.c.model)
    .subquery()
)
_spent = (
    select(func.coalesce(func.sum(spending.c.input_tokens + spending.c.output_tokens), 0))
    .where(spending.c.agent_id == _of_models.c.agent_id, spending.c.model == _of_models.c.model)
    .scalar_subquery()
)
_kept = select(func.count()).where(passages.c.agent_id == recalls.c.agent_id).scalar_subquery()
_incomplete: Final = (
    (
        "An agent has no definition.",
        statement(
            select(entities.c.id).where(
                entities.c.kind == "agent", ~exists(select(agents.c.id).where(agents.c.id == entities.c.id))
            )
        ),
    ),
    (
        "A question is missing that its cycle waits for.",
        statement(
            select(effects.c.cycle_id)
            .join(cycles, cycles.c.id == effects.c.cycle_id)
            .where(
                effects.c.state == "asked",
                cycles.c.number.is_(None),
                ~exists(select(calls.c.id)).where(
                    calls.c.cycle_id == effects.c.cycle_id,
                    calls.c.step == effects.c.step,
                    calls.c.position == effects.c.position,
                ),
            )
        ),
    ),
    *(
        (
            f"{'An' if kind[0] in 'aeiou' else 'A'} {kind} is missing.",
            statement(select(roster.c.id).where(roster.c.kind == kind, roster.c.id.not_in(select(table.c.id)))),
        )
        for kind, table in (
            ("organization", organizations),
            ("entity", entities),
            ("space", spaces),
            ("question", calls),
        )
    ),
    (
        "A member of a space is missing.",
        statement(
            select(roster.c.id, roster.c.member_id).where(
                roster.c.kind == "member",
                ~exists(select(memberships.c.space_id)).where(
                    memberships.c.space_id == roster.c.id, memberships.c.entity_id == roster.c.member_id
                ),
            )
        ),
    ),
    (
        "A panel has no settings.",
        statement(
            select(rounds.c.space_id)
            .where(~exists(select(panels.c.space_id).where(panels.c.space_id == rounds.c.space_id)))
            .distinct()
        ),
    ),
    (
        "The spending of an agent is less than what its model calls used.",
        statement(select(_of_models.c.agent_id, _of_models.c.model).where(_of_models.c.tokens > _spent)),
    ),
    (
        "Passages of an agent's past are missing.",
        statement(select(recalls.c.agent_id).where(recalls.c.passages != _kept)),
    ),
)


@long_running
def check_references(tx: Tx) -> list[Violation]:
    """Returns every row that refers to a missing one, or has lost a part."""
    found: list[Violation] = []
    for sentence, query in _incomplete:
        found += [Violation(0, sentence, tuple(map(str, row))) for row in tx.all(query)]
    for table, column, target, query in _references:
        if rows := tx.all(query):
            count = sum(each[1] for each in rows)
            sentence = f"{count:,} {'row' if count == 1 else 'rows'} of {table}: {column} is not in {target}."
            found.append(Violation(0, sentence, tuple(str(each[0]) for each in rows[:_SHOWN])))
    return found
