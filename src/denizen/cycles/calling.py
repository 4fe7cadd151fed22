"""Carrying out the calls of one response: our own inside the transaction that records them, outside ones between two.

A call is keyed by cycle, step and position. Whatever instant the process dies at, the next one sees which calls are
done, which were about to be made, and which have not begun.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Final, Literal
from uuid import UUID, uuid5

from pydantic_ai.messages import ModelRequest, ToolCallPart, ToolReturnPart
from sqlalchemy import bindparam, update

from denizen.bus.streams import AgentStatus, CycleChanged, agent_topic
from denizen.clock import SECOND
from denizen.consciousness import lease as leases
from denizen.consciousness import log, privacy
from denizen.consciousness.lease import Lease, fence
from denizen.consciousness.log import Entry
from denizen.cycles import answering, ledger
from denizen.cycles.answering import Outgoing
from denizen.cycles.ledger import NOTHING, Charge
from denizen.cycles.phases import FREE, Phase
from denizen.cycles.records import OpenCycle, calls_of
from denizen.cycles.written_calls import are_written
from denizen.errors import DenizenError, InvalidInput, NotAMember, NotFound
from denizen.ids import AgentId, CallId, CycleId, MessageId, SpaceId, new_id
from denizen.storage.database import Tx, statement, storable
from denizen.storage.schema import cycles
from denizen.tools import calls, effects, generous, guard, hops
from denizen.tools.calls import Mode, New
from denizen.tools.effects import EffectRecord
from denizen.tools.errands import LATE_SECONDS
from denizen.tools.hops import Shown, hop_of_plan
from denizen.tools.prebuilt import MERGED
from denizen.tools.tool import AskTool, Done, Hand, OutsideTool, OwnTool, Tool, Toolbox

ANSWER_SECONDS: Final = 7 * 86_400
"""How long a service that has taken a request may take to answer it."""
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
    prepared: Mapping[int, object] = field(default_factory=dict[int, object])
    """What own tools have prepared for their calls, by position."""
    streamed: Mapping[int, str] = field(default_factory=dict[int, str])
    """The ids under which the text of calls has been streaming, by position."""
    charge: Charge = NOTHING
    asked: frozenset[int] = frozenset()
    """The calls that people were asked to answer, by position."""
    shown: Shown = hops.NOTHING
    """What the request held beside the events of the cycle, where something is to be sent."""

    @property
    def written_as_text(self) -> bool:
        """Whether the model wrote its calls as text: it may have copied them."""
        return are_written(self.response.message)


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
    errands: Mapping[int, CallId] = field(default_factory=dict[int, CallId])
    """The calls that go on while the cycle does not wait for them, by position."""
    paused: bool = False
    """Whether the cycle waits for answers: then the lease is given up."""


@dataclass(frozen=True, slots=True)
class Finished:
    """An outside call has come back, or has not in time."""

    result: str
    late: bool = False
    """Whether it still goes on."""
    failed: bool = False


_enter = statement(update(cycles).where(cycles.c.id == bindparam("cycle")).values(active_space_id=bindparam("space")))
_pause = statement(
    # As after a shutdown: going on is no attempt.
    update(cycles).where(cycles.c.id == bindparam("cycle")).values(outcome="paused", handed_back=1)
)
_progress = statement(update(cycles).where(cycles.c.id == bindparam("cycle")).values(attempts=0))


def carry_on(
    tx: Tx, lease: Lease, cycle: OpenCycle, step: Step, toolbox: Toolbox, finished: Mapping[int, Finished]
) -> Progress:
    """Store the response if it is new, record the outside calls that have finished, and run our own calls in order.

    Stops where outside calls are to be made, with an intent stored for each. Where only people's answers are missing,
    the cycle is paused and its lease given up. When no call is left, the results of all are the next entry of the log.
    """
    fence(tx, lease)
    if not step.stored:
        store_response(tx, lease.agent_id, cycle, (step.response,), step.charge)
    desk = _Desk(tx, lease, cycle, step, toolbox)
    for position, outcome in finished.items():
        desk.complete(position, outcome)
    if step.asked:
        desk.hear_answers()
    intended = desk.work()
    entry = None
    if len(desk.results) == len(step.calls):
        entry = results_entry(step.response.seq + 1, cycle.id, step.calls, desk.results)
        log.append(tx, lease.agent_id, [entry])
    paused = entry is None and not intended
    _announce(tx, lease.agent_id, cycle.id)
    if paused:
        pause(tx, lease, cycle)
    return Progress(
        tuple(desk.recorded), tuple(desk.sent_to), desk.active_space_id, intended, entry, desk.errands, paused
    )


def pause(tx: Tx, lease: Lease, cycle: OpenCycle) -> None:
    """The cycle waits for people. Nobody holds the agent meanwhile: whoever hears of an answer first goes on."""
    tx.run(_pause, cycle=cycle.id)
    leases.release(tx, lease)
    tx.announce(agent_topic(lease.agent_id), AgentStatus(lease.agent_id, "paused", lease.epoch).to_payload())


def store_response(tx: Tx, agent_id: AgentId, cycle: OpenCycle, entries: Sequence[Entry], charge: Charge) -> None:
    """The model's answer is in the log, whatever happens next: it is never asked for again."""
    log.append(tx, agent_id, entries)
    ledger.enter(tx, agent_id, cycle.id, "usage", charge)
    if cycle.attempts:
        tx.run(_progress, cycle=cycle.id)


def store_reminder(
    tx: Tx,
    lease: Lease,
    cycle: OpenCycle,
    entries: Sequence[Entry],
    charge: Charge,
    sending: Outgoing | None = None,
) -> EffectRecord | None:
    """The model's text, and the reminder that somebody waits, are in the log; the text is sent where it belongs."""
    fence(tx, lease)
    store_response(tx, lease.agent_id, cycle, entries, charge)
    sent = None if sending is None else answering.deliver_text(tx, lease.agent_id, cycle, sending, entries)
    _announce(tx, lease.agent_id, cycle.id)
    return sent


def store_note(tx: Tx, lease: Lease, cycle: OpenCycle, note: Entry) -> None:
    """What the model is told before its next step is in the log."""
    fence(tx, lease)
    log.append(tx, lease.agent_id, [note])
    _announce(tx, lease.agent_id, cycle.id)


def _announce(tx: Tx, agent_id: AgentId, cycle_id: CycleId) -> None:
    """Whoever watches the agent may look how far its cycle has come."""
    tx.announce(agent_topic(agent_id), CycleChanged(agent_id, cycle_id, "step").to_payload())


class _Desk:
    """The calls of one response being worked through, inside one transaction."""

    def __init__(self, tx: Tx, lease: Lease, cycle: OpenCycle, step: Step, toolbox: Toolbox) -> None:
        self._tx = tx
        self._tools = toolbox.by_name
        self._lease = lease
        self._agent_id = lease.agent_id
        self._cycle = cycle
        self._step = step
        self._waiting: set[int] = set()
        self.results = dict(step.results)
        self.recorded: list[EffectRecord] = []
        self.errands: dict[int, CallId] = {}
        self.sent_to: list[str] = []
        self.active_space_id = cycle.active_space_id

    def work(self) -> tuple[int, ...]:
        """Run what can be run, in order; gives the outside calls to be made before anything after them may run."""
        intended: list[int] = []
        for position, call in enumerate(self._step.calls):
            if position in self.results:
                continue
            tool = self._tools.get(call.tool_name)
            together = isinstance(tool, OutsideTool | AskTool) and tool.independent
            if (intended or self._waiting) and not together:
                break
            if position in self._step.asked:
                # Its answer is still to come.
                self._waiting.add(position)
            elif (refusal := self._refused(tool, call)) is not None:
                self._record(position, Done(refusal))
            elif isinstance(tool, AskTool):
                self._ask(position, tool)
            elif isinstance(tool, OutsideTool):
                if self._send_off(position, tool):
                    intended.append(position)
            else:
                self._record(position, self._run_own(tool, position, call))
            if not together and position not in self.results:
                break
        return tuple(intended)

    def _refused(self, tool: Tool | None, call: ToolCallPart) -> str | None:
        """Why the call is not made, if it is not."""
        if not self._step.phase.allows(call.tool_name):
            return _refusal(InvalidInput(_not_now(call.tool_name, self._step.phase)))
        if not isinstance(tool, OutsideTool | AskTool):
            return None
        return _problem(tool, call) or self._stopped(tool, call)

    def _stopped(self, tool: OutsideTool | AskTool, call: ToolCallPart) -> str | None:
        """What people see of a call, or are asked, is guarded as what is said to them."""
        space_id = self.active_space_id
        if isinstance(tool, OutsideTool) and (space_id is None or not tool.visible):
            return None
        arguments = call.args_as_json_str()
        stopped = guard.crossing_of_call(
            self._tx,
            self._agent_id,
            self._cycle.id,
            space_id,
            arguments,
            self._cycle.events,
            self._cycle.remembered,
        )
        return None if stopped is None else stopped.told_of_call

    def _ask(self, position: int, tool: AskTool) -> None:
        """Somebody is asked: the cycle waits for the answer, or goes on without it."""
        new = self._new_call(position, tool.mode, seconds=tool.seconds, shown=tool.visible)
        calls.make(self._tx, self._agent_id, replace(new, approval=tool.approval))
        if tool.mode == "async":
            self._record(position, Done(_pending(new.id), changes=True))
            return
        self._intend(position, "asked")
        self._waiting.add(position)

    def _send_off(self, position: int, tool: OutsideTool) -> bool:
        """An outside call is about to be made; whether its result is waited for."""
        if tool.mode == "background":
            new = self._new_call(position, "background", seconds=LATE_SECONDS, shown=tool.visible)
            new = replace(new, runner=self._lease.holder, on_crash=tool.on_crash)
            calls.make(self._tx, self._agent_id, new)
            self.errands[position] = new.id
            self._record(position, Done(_pending(new.id), changes=True))
            return False
        if tool.mode == "async":
            new = self._new_call(position, "service", seconds=ANSWER_SECONDS, shown=tool.visible)
            calls.make(self._tx, self._agent_id, new)
        elif tool.visible:
            calls.make(self._tx, self._agent_id, self._new_call(position, "visible", shown=True))
        self._intend(position, "intent")
        return True

    def _new_call(self, position: int, mode: Mode, *, seconds: float | None = None, shown: bool = False) -> New:
        call = self._step.calls[position]
        return New(
            id=call_id(self._cycle.id, self._step, position),
            cycle_id=self._cycle.id,
            step=self._step.number,
            position=position,
            tool=call.tool_name,
            mode=mode,
            space_id=self.active_space_id,
            arguments=call.args_as_json_str(),
            shown=shown and self.active_space_id is not None,
            hop=hop_of_plan(self._cycle.events),
            expires_at=None if seconds is None else self._tx.now + int(seconds * SECOND),
        )

    def complete(self, position: int, outcome: Finished) -> None:
        """An outside call has come back, or its time is over."""
        call = self._step.calls[position]
        capped = self._cap(generous.noted(self._tools.get(call.tool_name), call.args, outcome.result))
        effects.complete(self._tx, self._cycle.id, self._step.number, position, capped)
        self._keep(position, "done", True, capped)
        if outcome.late:
            new = replace(self._new_call(position, "late", seconds=LATE_SECONDS), runner=self._lease.holder)
            self.errands[position] = calls.run_on(self._tx, self._agent_id, new)
            return
        tool = self._tools.get(call.tool_name)
        if isinstance(tool, OutsideTool) and (tool.visible or tool.mode == "async"):
            self._show_result(position, outcome, capped)

    def _show_result(self, position: int, outcome: Finished, capped: str) -> None:
        """Whoever sees the call sees its result. A service that did not take the work will not answer it either."""
        shown = calls.of_step(self._tx, self._cycle.id, self._step.number).get(position)
        if shown is None:
            return
        if shown.mode == "visible":
            calls.settle(self._tx, shown, "answered", capped)
        elif outcome.failed:
            calls.settle(self._tx, shown, "cancelled", capped)

    def hear_answers(self) -> None:
        """What people have answered, or that they have not, is the result of what they were asked."""
        for position, call in calls.of_step(self._tx, self._cycle.id, self._step.number).items():
            over = call.state != "waiting" or call.released_at is not None
            if position in self._step.asked and position not in self.results and over:
                capped = self._cap(calls.told_of(call))
                effects.complete(self._tx, self._cycle.id, self._step.number, position, capped)
                self._keep(position, "done", True, capped)

    def _intend(self, position: int, state: Literal["intent", "asked"]) -> None:
        name = self._step.calls[position].tool_name
        effects.intend(self._tx, self._cycle.id, self._step.number, position, name, state)
        self.recorded.append(EffectRecord(self._step.number, position, name, state, True, None))

    def _record(self, position: int, done: Done) -> None:
        if done.entered is not None:
            self.active_space_id = done.entered
            self._tx.run(_enter, cycle=self._cycle.id, space=done.entered)
        if done.sent_to is not None:
            self.sent_to.append(done.sent_to)
        sources = done.sources if done.entered is None else done.sources | {done.entered}
        privacy.add_sources(self._tx, self._agent_id, self._cycle.id, sources)
        capped = self._cap(done.content)
        name = self._step.calls[position].tool_name
        effects.record(self._tx, self._cycle.id, self._step.number, position, name, result=capped, changes=done.changes)
        self._keep(position, "done", done.changes, capped)

    def _keep(self, position: int, state: Any, changes: bool, result: str) -> None:
        name = self._step.calls[position].tool_name
        self.recorded.append(EffectRecord(self._step.number, position, name, state, changes, result))
        self.results[position] = result

    def _run_own(self, tool: Tool | None, position: int, call: ToolCallPart) -> Done:
        if not isinstance(tool, OwnTool):
            return Done(_refusal(InvalidInput(_no_such_tool(call.tool_name, self._tools))))
        hand = Hand(
            self._agent_id,
            self._cycle.id,
            self.active_space_id,
            self._cycle.events,
            self._step.characters,
            _message_id(self._step.streamed.get(position)),
            self._step.prepared.get(position),
            self._cycle.remembered,
            self._step.shown,
        )
        try:
            done = tool.run(self._tx, hand, generous.check(tool, call.args))
            return replace(done, content=generous.noted(tool, call.args, done.content))
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


def call_id(cycle_id: CycleId, step: Step, position: int) -> CallId:
    """Under which a call is known outside: the id under which its arguments were streaming, else one made of its place,
    so that it is the same after a crash."""
    streamed = step.streamed.get(position)
    return CallId(streamed or str(uuid5(UUID(cycle_id), f"{step.number}:{position}")))


def _message_id(streamed: str | None) -> MessageId | None:
    return None if streamed is None else MessageId(streamed)


def _pending(id: CallId) -> str:
    told = "The result will come as an event. Go on with other things, or end the cycle."
    return json.dumps({"status": "pending", "call": id, "message": told}, ensure_ascii=False)


def _problem(tool: OutsideTool | AskTool, call: ToolCallPart) -> str | None:
    try:
        generous.check(tool, call.args)
    except InvalidInput as error:
        return _refusal(error)
    return None


def _no_such_tool(name: str, tools: Collection[str]) -> str:
    """What the model is told that calls a tool which does not exist, so that it finds the right one."""
    if name in MERGED:
        return f"There is no tool {name!r} any more. Use {MERGED[name]} instead."
    near = get_close_matches(name, tools, n=3, cutoff=0.7)
    if near:
        return f"There is no tool {name!r}. Did you mean {' or '.join(near)}?"
    return f"There is no tool {name!r}. Your tools are: {', '.join(tools)}."


def _not_now(tool: str, phase: Phase) -> str:
    return f"{tool} may not be called in this phase of the cycle. Allowed are: {', '.join(phase.tools or ())}, skip."


REFUSED: Final = '{"success": false'
"""What the result of a call that was refused begins with."""


def _refusal(error: DenizenError) -> str:
    return json.dumps({"success": False, "error": error.code, "message": str(error)}, ensure_ascii=False)
