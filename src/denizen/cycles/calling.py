"""Carrying out the calls of one response: our own inside the transaction that records them, outside ones between two.

A call is keyed by cycle, step and position. Whatever instant the process dies at, the next one sees which calls are
done, which were about to be made, and which have not begun.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic_ai.messages import ModelRequest, ToolCallPart, ToolReturnPart
from sqlalchemy import bindparam, update

from denizen.consciousness import log
from denizen.consciousness.lease import Lease, fence
from denizen.consciousness.log import Entry
from denizen.cycles import ledger
from denizen.cycles.ledger import NOTHING, Charge
from denizen.cycles.phases import FREE, Phase
from denizen.cycles.records import OpenCycle, calls_of
from denizen.errors import DenizenError, InvalidInput, NotAMember, NotFound
from denizen.ids import AgentId, CycleId, MessageId, SpaceId, new_id
from denizen.storage.database import Tx, statement, storable
from denizen.storage.schema import cycles
from denizen.tools import effects
from denizen.tools.effects import EffectRecord
from denizen.tools.tool import Done, Hand, OutsideTool, OwnTool, Toolbox

UNKNOWN_OUTCOME: Final = (
    "The process stopped while this tool was running. Whether it did its work is unknown: it may have. "
    "Check before you call it again."
)
_POINTER_CHARACTERS: Final = 150
"""At most as long is the line that says where a cut text goes on."""


@dataclass(frozen=True, slots=True)
class Step:
    """One response of the model and how far its calls have come."""

    number: int
    response: Entry
    calls: tuple[ToolCallPart, ...]
    results: Mapping[int, str]
    """What is known of the calls so far, by position."""
    stored: bool
    """Whether the response is in the log already."""
    characters: int
    """How long each result may be."""
    phase: Phase = FREE
    """Which tools may be called."""
    streamed: Mapping[int, MessageId] = field(default_factory=dict[int, MessageId])
    """The ids under which the text of calls has been streaming, by position."""
    charge: Charge = NOTHING


@dataclass(frozen=True, slots=True)
class Progress:
    """What one transaction of a step has come to."""

    effects: tuple[EffectRecord, ...]
    """The calls that are newly recorded."""
    sent_to: tuple[str, ...]
    """The names of the spaces in which something was newly said, in order."""
    active_space_id: SpaceId | None
    intended: tuple[int, ...]
    """The outside calls that are to be made now, by position."""
    results: Entry | None
    """The results of all calls, once there are none left."""


_enter = statement(update(cycles).where(cycles.c.id == bindparam("cycle")).values(active_space_id=bindparam("space")))
_progress = statement(update(cycles).where(cycles.c.id == bindparam("cycle")).values(attempts=0))


def carry_on(
    tx: Tx, lease: Lease, cycle: OpenCycle, step: Step, toolbox: Toolbox, finished: Mapping[int, str]
) -> Progress:
    """Store the response if it is new, record the outside calls that have finished, and run our own calls in order.

    Stops where outside calls are to be made, with an intent stored for each; when no call is left, the results of all
    are the next entry of the log.
    """
    fence(tx, lease)
    if not step.stored:
        store_response(tx, lease.agent_id, cycle, (step.response,), step.charge)
    desk = _Desk(tx, lease.agent_id, cycle, step)
    for position, result in finished.items():
        desk.complete(position, result)
    intended = desk.work(toolbox)
    entry = None
    if len(desk.results) == len(step.calls):
        entry = results_entry(step.response.seq + 1, cycle.id, step.calls, desk.results)
        log.append(tx, lease.agent_id, [entry])
    return Progress(tuple(desk.recorded), tuple(desk.sent_to), desk.active_space_id, intended, entry)


def store_response(tx: Tx, agent_id: AgentId, cycle: OpenCycle, entries: Sequence[Entry], charge: Charge) -> None:
    """The model's answer is in the log, whatever happens next: it is never asked for again."""
    log.append(tx, agent_id, entries)
    ledger.enter(tx, agent_id, cycle.id, "usage", charge)
    if cycle.attempts:
        tx.run(_progress, cycle=cycle.id)


def store_reminder(tx: Tx, lease: Lease, cycle: OpenCycle, entries: Sequence[Entry], charge: Charge) -> None:
    """The model's text, and the reminder that nobody has heard it, are in the log."""
    fence(tx, lease)
    store_response(tx, lease.agent_id, cycle, entries, charge)


class _Desk:
    """The calls of one response being worked through, inside one transaction."""

    def __init__(self, tx: Tx, agent_id: AgentId, cycle: OpenCycle, step: Step) -> None:
        self._tx = tx
        self._agent_id = agent_id
        self._cycle = cycle
        self._step = step
        self.results = dict(step.results)
        self.recorded: list[EffectRecord] = []
        self.sent_to: list[str] = []
        self.active_space_id = cycle.active_space_id

    def work(self, toolbox: Toolbox) -> tuple[int, ...]:
        """Run what can be run, in order; gives the outside calls to be made before anything after them may run."""
        intended: list[int] = []
        for position, call in enumerate(self._step.calls):
            if position in self.results:
                continue
            if not self._step.phase.allows(call.tool_name):
                if intended:
                    break
                self._record(position, Done(_refusal(InvalidInput(_not_now(call.tool_name, self._step.phase)))))
                continue
            tool = toolbox.by_name.get(call.tool_name)
            outside = tool if isinstance(tool, OutsideTool) else None
            if intended and (outside is None or not outside.independent):
                break
            if outside is not None and (problem := _problem(outside, call)) is not None:
                self._record(position, Done(problem))
            elif outside is not None:
                self._intend(position)
                intended.append(position)
                if not outside.independent:
                    break
            else:
                self._record(position, self._run_own(tool, position, call))
        return tuple(intended)

    def complete(self, position: int, result: str) -> None:
        """An outside call has come back."""
        capped = self._cap(result)
        effects.complete(self._tx, self._cycle.id, self._step.number, position, capped)
        self._keep(position, "done", True, capped)

    def _intend(self, position: int) -> None:
        name = self._step.calls[position].tool_name
        effects.intend(self._tx, self._cycle.id, self._step.number, position, name)
        self.recorded.append(EffectRecord(self._step.number, position, name, "intent", True, None))

    def _record(self, position: int, done: Done) -> None:
        if done.entered is not None:
            self.active_space_id = done.entered
            self._tx.run(_enter, cycle=self._cycle.id, space=done.entered)
        if done.sent_to is not None:
            self.sent_to.append(done.sent_to)
        capped = self._cap(done.content)
        name = self._step.calls[position].tool_name
        effects.record(self._tx, self._cycle.id, self._step.number, position, name, result=capped, changes=done.changes)
        self._keep(position, "done", done.changes, capped)

    def _keep(self, position: int, state: Any, changes: bool, result: str) -> None:
        name = self._step.calls[position].tool_name
        self.recorded.append(EffectRecord(self._step.number, position, name, state, changes, result))
        self.results[position] = result

    def _run_own(self, tool: OwnTool[Any] | OutsideTool | None, position: int, call: ToolCallPart) -> Done:
        if not isinstance(tool, OwnTool):
            return Done(_refusal(InvalidInput(f"There is no tool {call.tool_name!r}.")))
        hand = Hand(
            self._agent_id,
            self._cycle.id,
            self.active_space_id,
            self._cycle.events,
            self._step.characters,
            self._step.streamed.get(position),
        )
        try:
            return tool.run(self._tx, hand, tool.check(call.args))
        except (InvalidInput, NotFound, NotAMember) as error:
            # Own tools refuse before they write, so the transaction is whole.
            return Done(_refusal(error))

    def _cap(self, text: str) -> str:
        """The text as it goes into the log: whole if short enough, else cut, with a pointer to where it is whole."""
        text = storable(text)
        if len(text) <= self._step.characters:
            return text
        kept_as = new_id()
        log.keep_long_text(self._tx, self._agent_id, self._cycle.id, kept_as, text)
        shown = max(self._step.characters - _POINTER_CHARACTERS, 0)
        pointer = f'read_entry("result:{kept_as}", offset={shown})'
        return f"{text[:shown]}\n… [cut at {shown:,} of {len(text):,} characters; {pointer} shows the rest]"


def results_entry(seq: int, cycle_id: CycleId, calls: Sequence[ToolCallPart], results: Mapping[int, str]) -> Entry:
    """The one message that answers all calls of a response, in their order."""
    parts = [
        ToolReturnPart(call.tool_name, results[position], call.tool_call_id) for position, call in enumerate(calls)
    ]
    return log.entry(seq, cycle_id, "results", ModelRequest(parts=parts))


def answer_open_calls(cycle: OpenCycle, seq: int, told: str) -> Entry | None:
    """Results for the calls of the last response, if it has none yet: no call may stay without its result."""
    calls = calls_of(cycle.entries[-1].message)
    if not calls:
        return None
    done = {each.position: each.result for each in cycle.effects if each.step == cycle.steps - 1}
    results = {at: told if done.get(at) is None else str(done[at]) for at in range(len(calls))}
    return results_entry(seq, cycle.id, calls, results)


def _problem(tool: OutsideTool, call: ToolCallPart) -> str | None:
    try:
        tool.check(call.args)
    except InvalidInput as error:
        return _refusal(error)
    return None


def _not_now(tool: str, phase: Phase) -> str:
    return f"{tool} may not be called in this phase of the cycle. Allowed are: {', '.join(phase.tools or ())}, skip."


def _refusal(error: DenizenError) -> str:
    return json.dumps({"success": False, "error": error.code, "message": str(error)}, ensure_ascii=False)
