"""Carries out the calls of one response: own tools inside the transaction that records them, outside ones between two.

A call is keyed by cycle, step and position. Whenever the process dies, the next one sees which calls are done, which
were about to be made, and which have not begun.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, cast
from uuid import UUID, uuid5

from pydantic import JsonValue
from pydantic_ai.messages import (
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from denizen.access import audit
from denizen.access.audit import Actor
from denizen.bus.streams import AgentStatus, CycleChanged, agent_topic
from denizen.clock import SECOND
from denizen.consciousness import lease as leases
from denizen.consciousness import log, privacy
from denizen.consciousness.lease import Lease, fence
from denizen.consciousness.log import Entry
from denizen.cycles import answering, ledger
from denizen.cycles.answering import CheckedText
from denizen.cycles.call_results import refusal_result
from denizen.cycles.ledger import NOTHING, Charge
from denizen.cycles.records import OpenCycle, calls_of
from denizen.cycles.stopped_answers import NOT_RUN
from denizen.cycles.written_calls import are_written
from denizen.errors import InvalidInput, NotAMember, NotFound
from denizen.ids import AgentId, CallId, CycleId, EntityId, FileId, MessageId, SpaceId, new_id
from denizen.inbox.outside import parsed
from denizen.inbox.sources import Source, distinct
from denizen.inbox.stop_requests import StopRequest
from denizen.models.pictures import Picture, first_picture
from denizen.models.request import is_whole
from denizen.nearest import nearest
from denizen.spaces import directory, posting
from denizen.storage.database import Tx, storable, update_where
from denizen.storage.schema import cycles
from denizen.tools import (
    argument_parsing,
    calls,
    declaring,
    effects,
    grants,
    hops,
    privacy_guard,
    private_word_search,
    results,
)
from denizen.tools.background_calls import LATE_SECONDS
from denizen.tools.calls import Call, Mode, New
from denizen.tools.effects import EffectRecord
from denizen.tools.hops import SeenMessages, hop_of_plan
from denizen.tools.prebuilt import MERGED, READ_ENTRY, SEND_MESSAGE
from denizen.tools.privacy_guard import CheckedAhead, FoundWords
from denizen.tools.tool import AskTool, Done, Hand, OutsideTool, OwnTool, Tool, Toolbox
from denizen.trust import origins
from denizen.trust.policy import Decision, PlannedCall, Speaker, decide
from denizen.trust.values import has_link, read_values

ANSWER_SECONDS: Final = 7 * 86_400
"""How long a service that has accepted a request may take to answer it."""
CUT_OFF_CALL: Final = (
    "Your response reached its limit of tokens in the middle of this call, so it was not made. "
    "Call again with shorter arguments, or in several calls."
)
MOST_CUT_OFF: Final = 2
"""How often in a cycle a model is told that its answer was cut off; after that the answer is taken as it is."""
_CUT_OFF_NOTE: Final = (
    "[NOTE] Your last response reached its limit of {tokens:,} tokens and was cut off. Nobody has seen it. "
    "Answer again and write less, or send it in several messages."
)
_ASKING: Final = (
    "The server that carries this out has asked the people here a question, and waits for the answer. The result will "
    "reach you as an event."
)
MOST_PICTURES: Final = 5
"""How many pictures are shown at most that were opened in one step."""
_POINTER_CHARACTERS: Final = 150
"""The maximum length of the line that says where a cut text continues."""


@dataclass(frozen=True, slots=True)
class ResponseStep:
    """One response of the model and the state of its calls."""

    number: int
    response: Entry
    calls: tuple[ToolCallPart, ...]
    results: Mapping[int, str]
    """The results of the calls so far, by position."""
    stored: bool
    """Whether the response is in the log already."""
    characters: int
    """How long each result may be."""
    allowed: frozenset[str] | None = None
    """The tools that may be called; None means all."""
    prepared: Mapping[int, object] = field(default_factory=dict[int, object])
    """What own tools have prepared for their calls, and which words of other calls are private, by position."""
    streamed: Mapping[int, str] = field(default_factory=dict[int, str])
    """The ids under which the text of calls has been streaming, by position."""
    charge: Charge = NOTHING
    asked: frozenset[int] = frozenset()
    """The calls that people were asked to answer, by position."""
    shown: SeenMessages = hops.NOTHING
    """What the request held besides the events of the cycle, if something is to be sent."""
    stopped_by: StopRequest | None = None
    """The request of a person who stopped this response: its messages are sent, no other call runs."""
    stopped_at: int | None = None
    """The position of the call whose message is not complete because of that."""
    sees: bool = False
    """Whether the model can be shown pictures."""

    @property
    def cut_off(self) -> int | None:
        """The position of the call that the model could not finish because the response reached its token limit."""
        message = self.response.message
        reached = isinstance(message, ModelResponse) and message.finish_reason == "length"
        return len(self.calls) - 1 if reached and self.calls and not is_whole(self.calls[-1]) else None

    @property
    def written_as_text(self) -> bool:
        """Whether the model wrote its calls as text: it may have copied them."""
        return are_written(self.response.message)


@dataclass(frozen=True, slots=True)
class Progress:
    """The result of one transaction of a step."""

    effects: tuple[EffectRecord, ...]
    """The calls that were newly recorded."""
    sent_to: tuple[str, ...]
    """The names of the spaces to which new messages were sent, in order."""
    active_space_id: SpaceId | None
    intended: tuple[int, ...]
    """The outside calls that are to be made now, by position."""
    results: Entry | None
    """The results of all calls, once no call is left."""
    background_calls: Mapping[int, CallId] = field(default_factory=dict[int, CallId])
    """The calls that continue in the background, by position."""
    paused: bool = False
    """Whether the cycle waits for answers: then the lease is given up."""
    outside_from: int | None = None
    """As `OpenCycle.outside_from`, including the new results."""
    spoke_in: frozenset[str] = frozenset()
    """The ids of those spaces."""


@dataclass(frozen=True, slots=True)
class FinishedCall:
    """An outside call has returned, or timed out."""

    result: str
    late: bool = False
    """Whether it is still running."""
    failed: bool = False
    files: tuple[FileId, ...] = ()
    """Uploads of the agent that belong to the result."""


_enter = update_where(cycles, "id", set_="active_space_id")
_pause = update_where(cycles, "id", outcome="paused", handed_back=1)
"""As after a shutdown: continuing does not count as an attempt."""
_progress = update_where(cycles, "id", attempts=0, interruptions=0)


def carry_on(
    tx: Tx, lease: Lease, cycle: OpenCycle, step: ResponseStep, toolbox: Toolbox, finished: Mapping[int, FinishedCall]
) -> Progress:
    """Store the response if it is new, record the outside calls that have finished, and run our own calls in order.

    Stops where outside calls are to be made, with an intent stored for each. Where only people's answers are missing,
    the cycle is paused and its lease given up. When no call is left, the results of all are the next entry of the log.
    """
    fence(tx, lease, lambda tx: _prefetch(tx, lease.agent_id, cycle, step))
    if not step.stored:
        store_response(tx, lease.agent_id, cycle, (step.response,), step.charge)
    desk = _CallRunner(tx, lease, cycle, step, toolbox)
    for position, outcome in finished.items():
        desk.complete(position, outcome)
    if step.asked:
        desk.hear_answers()
    intended = desk.work()
    entry = None
    if len(desk.results) == len(step.calls):
        outside = None if desk.outside_from is None else effects.outside_of_step(tx, cycle.id, step.number)
        entry = results_entry(step.response.seq + 1, cycle.id, step.calls, desk.results, outside)
        log.append(tx, lease.agent_id, [entry])
    paused = entry is None and not intended
    _announce(tx, lease.agent_id, cycle.id)
    if paused:
        pause(tx, lease, cycle)
    return Progress(
        tuple(desk.recorded),
        tuple(desk.sent_to),
        desk.active_space_id,
        intended,
        entry,
        desk.background_calls,
        paused,
        desk.outside_from,
        desk.spoke_in,
    )


def _prefetch(tx: Tx, agent_id: AgentId, cycle: OpenCycle, step: ResponseStep) -> None:
    if any(call.tool_name == SEND_MESSAGE for call in step.calls):
        privacy_guard.prefetch_private_spaces(tx, agent_id)
        if cycle.active_space_id is not None:
            directory.prefetch_member(tx, cycle.active_space_id, agent_id)
            if step.number > 0:
                posting.prefetch_newest(tx, cycle.active_space_id)


def pause(tx: Tx, lease: Lease, cycle: OpenCycle) -> None:
    """Pause the cycle until people answer. Nobody holds the agent meanwhile: any instance may continue."""
    tx.run(_pause, id=cycle.id)
    leases.release(tx, lease)
    tx.announce(agent_topic(lease.agent_id), AgentStatus(lease.agent_id, "paused", lease.epoch).to_payload())


def store_response(tx: Tx, agent_id: AgentId, cycle: OpenCycle, entries: Sequence[Entry], charge: Charge) -> None:
    """Store the model's answer in the log: whatever happens next, it is never requested again."""
    log.append(tx, agent_id, entries)
    ledger.enter(tx, agent_id, cycle.id, "usage", charge)
    if cycle.attempts or cycle.interruptions:
        tx.run(_progress, id=cycle.id)


def store_reminder(
    tx: Tx,
    lease: Lease,
    cycle: OpenCycle,
    entries: Sequence[Entry],
    charge: Charge,
    sending: CheckedText | None = None,
) -> EffectRecord | None:
    """Store the model's text, and the reminder that somebody waits; send the text where it belongs."""
    fence(tx, lease)
    store_response(tx, lease.agent_id, cycle, entries, charge)
    sent = None if sending is None else answering.deliver_text(tx, lease.agent_id, cycle, sending, entries)
    _announce(tx, lease.agent_id, cycle.id)
    return sent


def cut_off_note(seq: int, cycle_id: CycleId, tokens: int) -> Entry:
    """Tells the model that its answer was cut off."""
    part = UserPromptPart(_CUT_OFF_NOTE.format(tokens=tokens))
    return log.entry(seq, cycle_id, "note", ModelRequest(parts=[part]))


def store_note(tx: Tx, lease: Lease, cycle: OpenCycle, note: Entry) -> None:
    """Store a note for the model before its next step."""
    fence(tx, lease)
    log.append(tx, lease.agent_id, [note])
    _announce(tx, lease.agent_id, cycle.id)


def _announce(tx: Tx, agent_id: AgentId, cycle_id: CycleId) -> None:
    """Tell watchers of the agent that its cycle has progressed."""
    tx.announce(agent_topic(agent_id), CycleChanged(agent_id, cycle_id, "step").to_payload())


class _CallRunner:
    """Runs the calls of one response inside one transaction."""

    def __init__(self, tx: Tx, lease: Lease, cycle: OpenCycle, step: ResponseStep, toolbox: Toolbox) -> None:
        self._tx = tx
        self._tools = toolbox.by_name
        self._lease = lease
        self._agent_id = lease.agent_id
        self._cycle = cycle
        self._step = step
        self._waiting: set[int] = set()
        self.results = dict(step.results)
        self.recorded: list[EffectRecord] = []
        self.background_calls: dict[int, CallId] = {}
        self.sent_to: list[str] = []
        self.spoke_in: frozenset[str] = frozenset()
        self.active_space_id = cycle.active_space_id
        self.outside_from = cycle.outside_from
        self._approved: dict[int, Call] = {}
        self._toolbox = toolbox

    def work(self) -> tuple[int, ...]:
        """Run what can be run, in order. Returns the outside calls to be made before anything after them may run."""
        intended: list[int] = []
        for position, call in enumerate(self._step.calls):
            if position in self.results:
                continue
            tool = self._tools.get(call.tool_name)
            together = isinstance(tool, OutsideTool | AskTool) and tool.independent
            if (intended or self._waiting) and not together:
                break
            if position in self._approved and isinstance(tool, OutsideTool):
                if self._send_off(position, tool, "approved", self._approved[position]):
                    intended.append(position)
            elif position in self._step.asked:
                # Its answer is still to come.
                self._waiting.add(position)
            elif self._step.stopped_by is not None and call.tool_name != SEND_MESSAGE:
                self._record(position, Done(NOT_RUN))
            elif position == self._step.cut_off:
                self._record(position, Done(refusal_result(InvalidInput(CUT_OFF_CALL))))
            elif (refusal := self._refused(tool, call)) is not None:
                self._record(position, Done(refusal))
            elif isinstance(tool, AskTool):
                self._ask(position, tool, call)
            elif isinstance(tool, OutsideTool):
                if self._attempt(position, tool, call):
                    intended.append(position)
            else:
                self._record(position, self._run_own(tool, position, call))
            if not together and position not in self.results:
                break
        return tuple(intended)

    def _refused(self, tool: Tool | None, call: ToolCallPart) -> str | None:
        """Why the call is refused whatever the policy says; None if it is not."""
        allowed = self._step.allowed
        if allowed is not None and call.tool_name not in allowed:
            named = ", ".join(name for name in self._tools if name in allowed)
            return refusal_result(
                InvalidInput(f"{call.tool_name} may not be called in this step. Allowed are: {named}.")
            )
        return _problem(tool, call) if isinstance(tool, OutsideTool | AskTool) else None

    def _private_words(self, position: int, call: ToolCallPart) -> FoundWords | None:
        """Private words in the call that the people who see it, or are asked about it, may not know."""
        ahead = cast("CheckedAhead | None", self._step.prepared.get(position))
        given = None if ahead is None else ahead.written.forms
        return privacy_guard.private_words(
            self._tx,
            self._agent_id,
            self._cycle.id,
            self.active_space_id,
            private_word_search.forms_of_call(call.args_as_json_str()) if given is None else given,
            self._cycle.events,
            self._cycle.remembered,
            ahead,
        )

    def _refuse(self, position: int, tool: OutsideTool | AskTool, decided: Decision, found: FoundWords | None) -> None:
        privacy_guard.record_refusal(self._tx, self._agent_id, self._cycle.id, tool.name, decided, found)
        self._record(position, Done(decided.told))

    def _ask(self, position: int, tool: AskTool, call: ToolCallPart) -> None:
        """Ask somebody: the cycle waits for the answer, or continues without it."""
        found = self._private_words(position, call)
        question = PlannedCall(tool.name, {}, tells="question", private=None if found is None else found.words)
        decided = decide(question, self._toolbox.effects)
        if decided.action == "deny":
            self._refuse(position, tool, decided, found)
            return
        new = self._new_call(position, tool.mode, seconds=tool.seconds, shown=tool.visible)
        calls.make(self._tx, self._agent_id, replace(new, approval=tool.approval))
        if tool.mode == "async":
            self._record(position, Done(_pending(new.id), changes=True))
            return
        self._intend(position, "asked")
        self._waiting.add(position)

    def _attempt(self, position: int, tool: OutsideTool, call: ToolCallPart) -> bool:
        """Make an outside call, refuse it, or ask for approval. Returns whether the cycle waits for its result."""
        found = self._private_words(position, call) if tool.visible and self.active_space_id is not None else None
        decided = self._decide(tool, call, found)
        if decided.action == "ask":
            if grants.take(self._tx, self._agent_id, tool.name, call.args_as_json_str()):
                decided = Decision("allow", "approved")
            else:
                # The people who are asked see the call.
                found = self._private_words(position, call)
                decided = self._decide(tool, call, found) if found is not None else decided
        if decided.action == "allow":
            return self._send_off(position, tool, decided.rule)
        if decided.action == "deny":
            self._refuse(position, tool, decided, found)
        else:
            self._ask_approval(position, tool, decided)
        return False

    def _decide(self, tool: OutsideTool, call: ToolCallPart, found: FoundWords | None) -> Decision:
        settings, private = self._toolbox.effects, None if found is None else found.words
        arguments = argument_parsing.check(tool, call.args)
        nothing_held = self._step.response.outside is None and not settings.rules and not self._step.written_as_text
        if nothing_held or private is not None:
            # Nothing else decides in this case, so nothing else is read.
            return decide(PlannedCall(tool.name, arguments, effect=tool.effect, private=private), settings)
        held = origins.held(self._tx, self._agent_id, self._cycle, self._step.response)
        done = effects.of_cycle(self._tx, self._cycle.id)
        named = declaring.declared(done)
        space = None if self.active_space_id is None else directory.get_space(self._tx, self.active_space_id)
        speakers = {event.sender_id: event for event in self._cycle.events if event.sender_id is not None}
        return decide(
            PlannedCall(
                tool.name,
                arguments,
                effect=tool.effect or (tool.link_is_effect and has_link(arguments)),
                outside=[each.name or each.kind for each in held.outside],
                trusted=read_values(self._toolbox.instructions, *(each.text for each in held.trusted)),
                declared=None if named is None else named.tools,
                declared_before_reading=named is not None and named.before_reading,
                needs_trusted=tool.needs_trusted,
                written_as_text=self._step.written_as_text,
                kinds=tool.kinds,
                made=_made(done, self._tools),
                space=() if space is None else (space.id, space.name),
                speakers=[Speaker(each.sender_handle or "", each.sender_role or "") for each in speakers.values()],
            ),
            settings,
        )

    def _ask_approval(self, position: int, tool: OutsideTool, decided: Decision) -> None:
        """Ask a person whether the call may be made; the cycle waits for the answer."""
        seconds = self._toolbox.effects.approval_seconds
        new = self._new_call(position, "pause", seconds=seconds, shown=True)
        calls.make(self._tx, self._agent_id, replace(new, approval=True, why=decided.why))
        agent = directory.get_entity(self._tx, EntityId(self._agent_id))
        detail: dict[str, JsonValue] = {"tool": tool.name, "rule": decided.rule, "cycle": self._cycle.id}
        audit.record(self._tx, agent.organization_id, Actor(agent.id), "ask_approval", agent.id, **detail)
        self._intend(position, "asked", decided.rule)
        self._waiting.add(position)

    def _send_off(self, position: int, tool: OutsideTool, rule: str, approved: Call | None = None) -> bool:
        """Prepare an outside call that is about to be made. Returns whether the cycle waits for its result."""
        if tool.mode == "background":
            new = self._new_call(position, "background", seconds=LATE_SECONDS, shown=tool.visible)
            self._open_call(replace(new, runner=self._lease.holder, on_crash=tool.on_crash), approved)
            self.background_calls[position] = new.id
            if approved is None:
                self._record(position, Done(_pending(new.id), changes=True))
            else:
                self._complete(position, _pending(new.id))
            return False
        if tool.mode == "async":
            self._open_call(self._new_call(position, "service", seconds=ANSWER_SECONDS, shown=tool.visible), approved)
        elif tool.visible:
            self._open_call(self._new_call(position, "visible", shown=True), approved)
        if approved is None:
            self._intend(position, "intent", rule)
        else:
            effects.approve(self._tx, self._cycle.id, self._step.number, position)
            self.recorded.append(EffectRecord(self._step.number, position, tool.name, "intent", True, None))
        return True

    def _open_call(self, new: New, approved: Call | None) -> None:
        if approved is None:
            calls.make(self._tx, self._agent_id, new)
        else:
            calls.reopen(self._tx, approved, new)

    def _new_call(self, position: int, mode: Mode, *, seconds: float | None = None, shown: bool = False) -> New:
        call = self._step.calls[position]
        tool = self._tools.get(call.tool_name)
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
            outside=isinstance(tool, OutsideTool) and tool.results == "outside",
        )

    def complete(self, position: int, outcome: FinishedCall) -> None:
        """Record an outside call that has returned or timed out."""
        call = self._step.calls[position]
        told = argument_parsing.noted(self._tools.get(call.tool_name), call.args, self._result_told(position, outcome))
        capped = self._complete(position, told, self._source_of_result(position, outcome))
        results.give(self._tx, self._agent_id, outcome.files)
        if outcome.late:
            new = replace(self._new_call(position, "late", seconds=LATE_SECONDS), runner=self._lease.holder)
            self.background_calls[position] = calls.run_on(self._tx, self._agent_id, new)
            return
        tool = self._tools.get(call.tool_name)
        if isinstance(tool, OutsideTool) and (tool.visible or tool.mode == "async"):
            self._show_result(position, outcome, capped)

    def _result_told(self, position: int, outcome: FinishedCall) -> str:
        """The result; of a service that has accepted the work and answers later, that its answer is pending."""
        tool = self._tools.get(self._step.calls[position].tool_name)
        answers_later = isinstance(tool, OutsideTool) and tool.mode == "async"
        if outcome.late and calls.waits_for_person(self._tx, self._cycle.id, self._step.number, position):
            return _ASKING
        accepted = not (outcome.failed or outcome.late or outcome.result == calls.UNKNOWN_OUTCOME)
        if not answers_later or not accepted:
            return outcome.result
        return _pending(call_id(self._cycle.id, self._step, position), outcome.result)

    def _complete(self, position: int, result: str, outside: Sequence[Source] = ()) -> str:
        """Mark the intended or asked call as done. Returns the result as the log has it."""
        capped = self._cap(result)
        effects.complete(self._tx, self._cycle.id, self._step.number, position, capped, outside)
        self._keep(position, "done", True, capped, outside)
        return capped

    def _source_of_result(self, position: int, outcome: FinishedCall) -> tuple[Source, ...]:
        """The tool as the source, unless its results are trusted or the result is our own text."""
        name = self._step.calls[position].tool_name
        tool = self._tools.get(name)
        trusted = isinstance(tool, OutsideTool) and tool.results == "trusted"
        ours = outcome.late or outcome.result == calls.UNKNOWN_OUTCOME
        return () if trusted or ours else (Source("tool", name),)

    def _show_result(self, position: int, outcome: FinishedCall, capped: str) -> None:
        """Show the result to everyone who sees the call. A service that refused the work will not answer it either."""
        shown = calls.of_step(self._tx, self._cycle.id, self._step.number).get(position)
        if shown is None:
            return
        if shown.mode == "visible":
            calls.settle(self._tx, shown, "answered", capped)
        elif outcome.failed:
            calls.settle(self._tx, shown, "cancelled", capped)

    def hear_answers(self) -> None:
        """Take people's answers, or their absence, as the results of the questions."""
        for position, call in calls.of_step(self._tx, self._cycle.id, self._step.number).items():
            over = call.state != "waiting" or call.released_at is not None
            if position not in self._step.asked or position in self.results or not over:
                continue
            if self._is_approved(call):
                self._approved[position] = call
                continue
            source = calls.source_of_answer(self._tx, call)
            self._complete(position, calls.told_of(call), () if source is None else (source,))

    def _is_approved(self, call: Call) -> bool:
        """Whether a person has approved this effect, and the approval was not used before."""
        return (
            call.asks_approval
            and call.state == "answered"
            and grants.verdict(call.result or "").confirmed
            and grants.take(self._tx, self._agent_id, call.tool, call.arguments)
        )

    def _intend(self, position: int, state: Literal["intent", "asked"], rule: str | None = None) -> None:
        name = self._step.calls[position].tool_name
        effects.intend(self._tx, self._cycle.id, self._step.number, position, name, state, rule)
        self.recorded.append(EffectRecord(self._step.number, position, name, state, True, None))

    def _record(self, position: int, done: Done) -> None:
        if done.entered is not None:
            self.active_space_id = done.entered
            self._tx.run(_enter, id=self._cycle.id, active_space_id=done.entered)
        if done.sent_to is not None:
            self.sent_to.append(done.sent_to)
            self.spoke_in |= done.sources
        sources = done.sources if done.entered is None else done.sources | {done.entered}
        # The spaces of its events were recorded when it took them.
        new = sources.difference(event.space_id or "" for event in self._cycle.events)
        privacy.add_sources(self._tx, self._agent_id, self._cycle.id, new)
        capped = self._cap(done.content)
        name = self._step.calls[position].tool_name
        which = (self._cycle.id, self._step.number, position, name)
        effects.record(self._tx, *which, result=capped, changes=done.changes, outside=done.outside)
        self._keep(position, "done", done.changes, capped, done.outside)

    def _keep(self, position: int, state: Any, changes: bool, result: str, outside: Sequence[Source] = ()) -> None:
        if outside and self.outside_from is None:
            # The next request holds it. The other calls of this response were decided without it.
            self.outside_from = self._step.response.seq + 1
            origins.mark_cycle(self._tx, self._cycle.id, self.outside_from)
        name = self._step.calls[position].tool_name
        self.recorded.append(EffectRecord(self._step.number, position, name, state, changes, result, tuple(outside)))
        self.results[position] = result

    def _run_own(self, tool: Tool | None, position: int, call: ToolCallPart) -> Done:
        if not isinstance(tool, OwnTool):
            return Done(refusal_result(InvalidInput(_no_such_tool(call.tool_name, self._tools))))
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
            self._step.response.outside is not None,
            # The messages of a response that was stopped were shown before.
            {} if self._step.stopped_by is not None else self._cycle.stopped,
            self._step.stopped_by if position == self._step.stopped_at else None,
            sees=self._step.sees,
            is_first=self._step.number == 0 and not self.results,
        )
        try:
            parsed = argument_parsing.read(tool, call.args)
            done = tool.run(self._tx, hand, argument_parsing.check(tool, call.args, parsed))
            content = argument_parsing.noted(tool, call.args, done.content, parsed)
            return done if content == done.content else replace(done, content=content)
        except (InvalidInput, NotFound, NotAMember) as error:
            # Own tools refuse before they write, so the transaction is consistent.
            return Done(refusal_result(error))

    def _cap(self, text: str) -> str:
        """The text for the log: whole if short enough, otherwise cut, with a pointer to the whole text."""
        text = storable(text)
        if len(text) <= self._step.characters:
            return text
        kept_as = new_id()
        log.keep_long_text(self._tx, self._agent_id, self._cycle.id, kept_as, text)
        shown = max(self._step.characters - _POINTER_CHARACTERS, 0)
        pointer = f'read_entry("result:{kept_as}", offset={shown})'
        return f"{text[:shown]}\n… [cut at {shown:,} of {len(text):,} characters; {pointer} shows the rest]"


def results_entry(
    seq: int,
    cycle_id: CycleId,
    calls: Sequence[ToolCallPart],
    results: Mapping[int, str],
    outside: tuple[Source, ...] | None = None,
) -> Entry:
    """The one message that answers all calls of a response, in their order. `outside`: the sources of text from outside
    in the results."""
    parts: list[ModelRequestPart] = [
        ToolReturnPart(call.tool_name, results[position], call.tool_call_id) for position, call in enumerate(calls)
    ]
    parts += [UserPromptPart(each.line()) for each in _pictures_in(calls, results)]
    return log.entry(seq, cycle_id, "results", ModelRequest(parts=parts), outside=outside)


def _pictures_in(calls: Sequence[ToolCallPart], results: Mapping[int, str]) -> list[Picture]:
    """The pictures that were opened: their line is the first of that result, and nobody else can write it there."""
    opened = [results[at] for at, call in enumerate(calls) if call.tool_name == READ_ENTRY.name]
    return [each for each in map(first_picture, opened) if each is not None][:MOST_PICTURES]


def answer_open_calls(cycle: OpenCycle, seq: int, told: str) -> Entry | None:
    """Results for the calls of the last response, if they have none yet: no call may stay without its result."""
    calls = calls_of(cycle.entries[-1].message)
    if not calls:
        return None
    last = [each for each in cycle.effects if each.step == cycle.steps - 1]
    done = {each.position: each.result for each in last}
    results = {at: told if done.get(at) is None else str(done[at]) for at in range(len(calls))}
    outside = distinct(source for each in last for source in each.outside)
    return results_entry(seq, cycle.id, calls, results, outside or None)


def call_id(cycle_id: CycleId, step: ResponseStep, position: int) -> CallId:
    """The id of a call for the outside: the id under which its arguments were streaming, otherwise one made from its
    position, so that it is the same after a crash."""
    streamed = step.streamed.get(position)
    return CallId(streamed or str(uuid5(UUID(cycle_id), f"{step.number}:{position}")))


def _message_id(streamed: str | None) -> MessageId | None:
    return None if streamed is None else MessageId(streamed)


def _pending(id: CallId, response: str = "") -> str:
    """The result of a call whose real result comes later; `response` is the first answer of the service."""
    told = "The result will come as an event. Go on with other things, or end the cycle."
    fields = {"status": "pending", "call": id, "message": told} | ({"response": response} if response else {})
    return json.dumps(fields, ensure_ascii=False)


def _problem(tool: OutsideTool | AskTool, call: ToolCallPart) -> str | None:
    try:
        argument_parsing.check(tool, call.args)
    except InvalidInput as error:
        return refusal_result(error)
    return None


def _made(done: Sequence[EffectRecord], tools: Mapping[str, Tool]) -> frozenset[tuple[str, str]]:
    """Ids that effects of this cycle have created, with the arguments that they may be used for."""
    found: set[tuple[str, str]] = set()
    for each in done:
        tool = tools.get(each.tool)
        made = parsed(each.result or "") if isinstance(tool, OutsideTool) and tool.makes else None
        if isinstance(tool, OutsideTool) and tool.mode == "async" and isinstance(made, dict):
            made = parsed(str(made.get("response", "")))
        if isinstance(tool, OutsideTool) and isinstance(made, dict):
            found.update((argument, str(made[key])) for argument, key in tool.makes.items() if key in made)
    return frozenset(found)


def _no_such_tool(name: str, tools: Collection[str]) -> str:
    """The message for a model that calls a tool which does not exist, with the nearest names."""
    if name in MERGED:
        return f"There is no tool {name!r} any more. Use {MERGED[name]} instead."
    near = nearest(name, tools, most=3, cutoff=0.7)
    if near:
        return f"There is no tool {name!r}. Did you mean {' or '.join(near)}?"
    return f"There is no tool {name!r}. Your tools are: {', '.join(tools)}."
