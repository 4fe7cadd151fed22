"""Checks one agent: its history, cycles, effects, events and lease."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Final

from pydantic import ValidationError
from pydantic_ai.messages import ModelMessage, ToolCallPart, ToolReturnPart
from sqlalchemy import select

from denizen.checks.agent_rows import AgentRows, CycleRows, EffectRow, EventRow, LogRow, read_agent
from denizen.checks.violation import Violation, rows_of
from denizen.cycles.records import calls_of
from denizen.models import codec
from denizen.storage.database import Tx, statement, values
from denizen.storage.schema import agents, cycles, log, selves
from denizen.tools.prebuilt import SEND_MESSAGE

STATES: Final = ("pending", "taken", "done", "dead")


@dataclass(frozen=True, slots=True)
class AnsweredCalls:
    """A response and the entry after it, if that holds its results."""

    calls: tuple[ToolCallPart, ...]
    results: tuple[ToolReturnPart, ...] | None


_agents = statement(select(agents.c.id).order_by(agents.c.id))


def check_agents(tx: Tx) -> Iterator[Violation]:
    """Returns what is wrong with any agent."""
    for (agent_id,) in tx.all(_agents):
        yield from _check_agent(read_agent(tx, agent_id))
        yield from _check_requests(tx, agent_id)
    for row in tx.all(_unsummarized):
        yield Violation(10, "A cycle has ended without a summary.", row)


def _check_agent(agent: AgentRows) -> Iterator[Violation]:
    yield from _check_mind(agent)
    yield from _check_order(agent)
    for cycle in agent.cycles:
        yield from _check_cycle(agent, cycle)
    yield from _check_events(agent)
    yield from _check_lease(agent)


def _check_mind(agent: AgentRows) -> Iterator[Violation]:
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


def _check_order(agent: AgentRows) -> Iterator[Violation]:
    """The log is one history: numbered without gaps, cycle after cycle, in order."""
    if [row.seq for row in agent.log] != [*range(1, len(agent.log) + 1)]:
        yield Violation(1, "The log's numbers have gaps, or do not begin at 1.", (agent.id,))
    lived = [cycle.id for cycle in agent.cycles]
    for cycle_id in {row.cycle_id for row in agent.log} - {*lived, *agent.skipped}:
        yield Violation(1, "The log holds entries of a cycle that does not exist.", (agent.id, cycle_id))
    told = [cycle_id for cycle_id, _ in groupby(agent.log, key=attrgetter("cycle_id")) if cycle_id in lived]
    if told != [cycle.id for cycle in agent.cycles if cycle.entries]:
        yield Violation(1, "The log does not hold the cycles one after the other, in their order.", (agent.id,))


def _check_cycle(agent: AgentRows, cycle: CycleRows) -> Iterator[Violation]:
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


def _decoded(cycle: CycleRows) -> list[ModelMessage] | None:
    try:
        return [codec.load(row.encoded) for row in cycle.entries]
    except ValidationError:
        return None


def _steps(entries: Sequence[LogRow], decoded: Sequence[ModelMessage]) -> list[AnsweredCalls]:
    """Returns the responses of a cycle, each with its results."""
    found: list[AnsweredCalls] = []
    for position, row in enumerate(entries):
        if row.kind != "response":
            continue
        following = decoded[position + 1] if position + 1 < len(entries) else None
        answered = following is not None and entries[position + 1].kind == "results"
        parts = following.parts if answered and following is not None else ()
        results = tuple(part for part in parts if isinstance(part, ToolReturnPart))
        found.append(AnsweredCalls(calls_of(decoded[position]), results if answered else None))
    return found


def _check_answers(agent: AgentRows, cycle: CycleRows, steps: Sequence[AnsweredCalls]) -> Iterator[Violation]:
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


def _check_messages(agent: AgentRows, cycle: CycleRows) -> Iterator[Violation]:
    """Each message posted in the cycle is the one effect of one call, and each such effect is a message."""
    where = (agent.id, cycle.id)
    sent = sum(effect.tool == SEND_MESSAGE and effect.changes == 1 for effect in cycle.effects)
    if sent != len(cycle.messages):
        sentence = f"A cycle recorded {sent} sent messages, but {len(cycle.messages)} messages are of that cycle."
        yield Violation(4, sentence, where)
    for message_id, author_id in cycle.messages:
        if author_id != agent.id:
            yield Violation(4, "A message is of a cycle of another than its author.", (*where, message_id))


def _check_effects(agent: AgentRows, cycle: CycleRows, steps: Sequence[AnsweredCalls]) -> Iterator[Violation]:
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


def _call_of(effect: EffectRow, steps: Sequence[AnsweredCalls]) -> ToolCallPart | None:
    calls = steps[effect.step].calls if effect.step < len(steps) else ()
    call = calls[effect.position] if effect.position < len(calls) else None
    return call if call is not None and call.tool_name == effect.tool else None


def _was_told(effect: EffectRow, step: AnsweredCalls) -> bool:
    """Whether the model was told the recorded result; also true if it has been told nothing yet."""
    told = (step.results or ())[effect.position : effect.position + 1]
    return all(each.content == effect.result for each in told)


def _is_delivered_text(effect: EffectRow, steps: Sequence[AnsweredCalls]) -> bool:
    """Whether it is a text that the model wrote without a call, posted in its name because a person waited."""
    is_text = effect.step < len(steps) and not steps[effect.step].calls
    return effect.tool == SEND_MESSAGE and is_text and effect.position == 0


def _check_unrecorded(agent: AgentRows, cycle: CycleRows, steps: Sequence[AnsweredCalls]) -> Iterator[Violation]:
    """A call with a result was executed; only the last step of a cycle may have been refused or cut short as
    a whole.
    """
    recorded = {(effect.step, effect.position) for effect in cycle.effects}
    for number, step in enumerate(steps[: len(steps) if cycle.open else -1]):
        missing = [at for at in range(len(step.calls)) if (number, at) not in recorded]
        if step.results is not None and missing:
            yield Violation(4, f"Step {number} has results of calls that were never recorded.", (agent.id, cycle.id))


def _check_usage(agent: AgentRows, cycle: CycleRows, steps: Sequence[AnsweredCalls]) -> Iterator[Violation]:
    """The ledger has each model call of the cycle once, and when it has ended their sum is the cycle's."""
    where = (agent.id, cycle.id)
    if len(cycle.usage) != len(steps):
        sentence = f"The ledger holds {len(cycle.usage)} model calls of a cycle with {len(steps)} responses."
        yield Violation(4, sentence, where)
    sums = tuple(sum(column) for column in zip(*cycle.usage, strict=True)) or (0, 0)
    if not cycle.open and sums != cycle.tokens:
        yield Violation(4, f"The ledger sums a cycle's usage to {sums}, the cycle to {cycle.tokens}.", where)


_requests = rows_of(
    select(log.c.seq, log.c.request).where(log.c.kind == "response", log.c.request.is_not(None)).order_by(log.c.seq),
    log.c.agent_id,
)
_eras = rows_of(select(selves.c.era), selves.c.agent_id)
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


def _check_events(agent: AgentRows) -> Iterator[Violation]:
    ended = {cycle.id for cycle in agent.cycles if not cycle.open} | agent.skipped
    unended = {cycle.id for cycle in agent.cycles if cycle.open}
    for event in agent.events:
        problem = _problem_of(event, ended, unended)
        if problem is not None:
            yield Violation(3, problem, (agent.id, event.id))


def _problem_of(event: EventRow, ended: set[str], unended: set[str]) -> str | None:
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


def _check_lease(agent: AgentRows) -> Iterator[Violation]:
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
