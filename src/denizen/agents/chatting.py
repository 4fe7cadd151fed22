"""Sends one message to one agent and reads its answer: everything it posts to that space until its cycle ends.

The state of the message is read from the database, on any instance: its event is in the agent's inbox, belongs to a
cycle, and is done with it. A waiting caller looks again when a hint arrives.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from pydantic import JsonValue

from denizen.access.requesters import Requester
from denizen.agents import managing, registry, resending
from denizen.agents.messaging import post_message
from denizen.agents.private_spaces import private_space, private_space_id
from denizen.agents.resending import ResentRequest
from denizen.clock import moment
from denizen.cycles import budgets, ledger, pausing, records
from denizen.cycles.ledger import Charge
from denizen.cycles.usage import usage_of_cycles
from denizen.errors import AlreadySettled, InvalidInput, NotFound
from denizen.ids import AgentId, CycleId, EntityId, MessageId, SpaceId
from denizen.inbox.events import ABOUT, ALONE, OWN_TOOLS
from denizen.inbox.statuses import Cause
from denizen.memory import stored_policies
from denizen.memory.policy import Policy
from denizen.models.prices import Usage
from denizen.shapes.vocabulary import ChatOutcome as Outcome
from denizen.spaces import directory, posting
from denizen.spaces.posting import Draft, Message
from denizen.storage.database import Tx, select_where, storable, value
from denizen.storage.schema import events
from denizen.tools import calls
from denizen.tools.calls import Call

SAID: Final = 200
"""How many messages of one cycle an answer has, at most."""
_RECENT: Final = 20
"""How far back a repeated question is looked for."""


@dataclass(frozen=True, slots=True)
class AwaitedMessage:
    """A message whose author waits for the answer."""

    message_id: MessageId
    space_id: SpaceId
    seq: int
    agent_id: AgentId
    event: int | None
    """The number of its event in the agent's inbox; None if there is none."""
    by_id: EntityId
    """Who waits: its author, or the person who gave the results of tools."""
    reflects: bool = False
    """Whether the agent reflects on its cycles."""


_event = select_where(events, "state, cycle_id", "number")


@dataclass(frozen=True, slots=True)
class Question:
    """A message for an agent, whose author waits for the answer."""

    agent: str
    """The agent's id, or its `@handle`."""
    text: str
    space: str | None = None
    """A space that both are in; None: their private space."""
    conversation: str = ""
    """The name of one of their private spaces."""
    metadata: Mapping[str, JsonValue] | None = None
    policy: Policy | None = None
    """Changes what is remembered of the conversation."""
    files: Sequence[str] = ()
    """Ids of finished uploads."""
    resent: ResentRequest | None = None
    """What a chat client says about earlier requests; None: this is always a new message."""
    request: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """What the program wants of the answer: a part of the agent's event (`OWN_TOOLS`, `CALL_FIRST`, `FORMAT`)."""


def ask(tx: Tx, by: Requester, question: Question, what: Draft, id: MessageId) -> AwaitedMessage:
    """Post the person's message to the space and the agent's inbox. Idempotent by `id`.

    `what` is the question's text, rendered outside the transaction.
    """
    by.require("member")
    agent = managing.find(tx, by, question.agent)
    person = directory.get_entity(tx, by.entity_id)
    if question.space is None:
        space_id = private_space(tx, person, agent, question.conversation).id
    else:
        space_id = directory.require_member(tx, SpaceId(storable(question.space)), person.id).id
    if question.policy is not None:
        stored_policies.settle(tx, space_id, question.policy)
    if not directory.is_member(tx, space_id, agent.id):
        raise InvalidInput(f"@{agent.entity.handle} is not in this space. Choose a space that you share, or none.")
    request = {ALONE: True, **question.request}
    if question.resent is not None and posting.find_message(tx, id) is None:
        earlier = resending.find_earlier(
            tx, space_id, person.id, agent.id, what.text, question.files, question.resent, request
        )
        if earlier is not None:
            message = earlier.message
            return AwaitedMessage(message.id, space_id, message.seq, agent.id, earlier.event, person.id, agent.reflects)
    posted = post_message(
        tx,
        by,
        space_id,
        what,
        id=id,
        metadata=question.metadata,
        asked=agent.id,
        request=request,
        files=question.files,
    )
    return AwaitedMessage(
        id, space_id, posted.seq, agent.id, resending.event_of_message(tx, agent.id, id), person.id, agent.reflects
    )


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a program's tool, which the agent has called in a cycle that waits for it."""

    call_id: str
    event: int
    """The event that the program waits for the answer to."""
    result: str


def give_results(tx: Tx, by: Requester, results: Sequence[ToolResult]) -> AwaitedMessage:
    """Give the calls their results; the cycle that waits for them continues. Repeating it changes nothing.

    Raises `NotFound` for a call that the requester may not answer.
    """
    by.require("member")
    awaited: AwaitedMessage | None = None
    for each in results:
        call = calls.require_visible(tx, storable(each.call_id), by.entity_id)
        row = tx.one(_asked_event, number=each.event, agent_id=call.agent_id)
        cycle_id, message_id, payload = row or (None, None, None)
        if row is None or cycle_id != call.cycle_id or call.space_id is None:
            raise NotFound("call", each.call_id)
        with suppress(AlreadySettled):
            calls.answer_as(tx, call.id, each.result, by.entity_id)
        # If the cycle has gone on without it, the answer is to the event that brings the result.
        ids = (calls.result_event_id(call.id, late=True), calls.result_event_id(call.id))
        brought = [resending.event_by_id(tx, call.agent_id, id) for id in ids]
        event = next((number for number in brought if number is not None), each.event)
        about = message_id or json.loads(payload or "{}").get(ABOUT) or ""
        awaited = awaited or AwaitedMessage(
            MessageId(about), call.space_id, call.after_seq, call.agent_id, event, by.entity_id
        )
    if awaited is None:
        raise InvalidInput("messages: there is no result of a tool.")
    return awaited


_asked_event = select_where(events, "cycle_id, message_id, payload", "number, agent_id")


def tools_of_program(tx: Tx, asked: AwaitedMessage) -> frozenset[str]:
    """The names of the tools that the program has sent with its message."""
    rows = [] if asked.event is None else tx.all(_asked_event, number=asked.event, agent_id=asked.agent_id)
    return frozenset(each["name"] for *_, payload in rows for each in json.loads(payload or "{}").get(OWN_TOOLS, []))


def find_unanswered(tx: Tx, by: Requester, question: Question) -> AwaitedMessage | None:
    """The requester's last message in the space, if it has the same words and the agent has not answered it yet.

    For clients that ask again when they have waited too long: the question is not asked twice.
    """
    by.require("member")
    agent = managing.find(tx, by, question.agent)
    if question.space is None:
        space_id = private_space_id(by.entity_id, agent.id, question.conversation)
    else:
        space_id = directory.require_member(tx, SpaceId(storable(question.space)), by.entity_id).id
    recent = posting.messages_before(tx, space_id, limit=_RECENT)
    mine = next((each for each in reversed(recent) if each.author_id == by.entity_id), None)
    if mine is None or mine.text.strip() != storable(question.text).strip():
        return None
    event = resending.event_of_message(tx, agent.id, mine.id)
    if event is None or _state_of(tx, event) not in ("pending", "taken"):
        return None
    return AwaitedMessage(mine.id, space_id, mine.seq, agent.id, event, by.entity_id, agent.reflects)


def _state_of(tx: Tx, event: int) -> str | None:
    return value(tx, _event, number=event)


@dataclass(frozen=True, slots=True)
class AnswerState:
    """The state of a message and its answer so far."""

    outcome: Outcome
    messages: tuple[Message, ...] = ()
    """The agent's messages in answer to it."""
    cycle_id: CycleId | None = None
    """The cycle that took the message."""
    cycle: int | None = None
    """The number of the cycle, once it has ended."""
    spent: Charge = ledger.NOTHING
    """The usage of the cycle, if `with_costs` was called."""
    waiting_for: tuple[Call, ...] = ()
    """The agent's questions to people, if it waits for their answers."""
    note: str = ""
    """Why there is no (further) answer, in a sentence for people."""
    cause: Cause | Literal["queued"] | None = None
    """The cause of the status that the note is taken from."""
    agent_id: AgentId | None = None
    """The agent that answers: the one that was asked, or the one to which the floor passed the message."""

    @property
    def over(self) -> bool:
        """Whether waiting longer is pointless."""
        return self.outcome != "working"


_awaited = select_where(events, "agent_id, number", "message_id", events.c.waits == 1, order_by="number")


def awaited_of(tx: Tx, asked: AwaitedMessage) -> list[AwaitedMessage]:
    """The same message for each agent whose answer its author waits for: the floor may have passed it on."""
    rows = tx.all(_awaited, message_id=asked.message_id)
    return [replace(asked, agent_id=AgentId(agent_id), event=number) for agent_id, number in rows]


def answer_to(tx: Tx, asked: AwaitedMessage) -> AnswerState:
    """The state of the message at the agent that it names."""
    return replace(_answer_to(tx, asked), agent_id=asked.agent_id)


def _answer_to(tx: Tx, asked: AwaitedMessage) -> AnswerState:
    row = None if asked.event is None else tx.one(_event, number=asked.event)
    if row is None:
        return AnswerState(
            "unheard", note="The agent does not attend to this: mention it, or have it attend to the space."
        )
    state, cycle_id = row
    match state:
        case "done":
            return _settled(tx, asked, CycleId(cycle_id))
        case "dead":
            return AnswerState(
                "failed", note="The agent has failed too often at this message. It is kept in its inbox."
            )
        case "taken":
            return _under_way(tx, asked, CycleId(cycle_id))
        case _:
            return _held_up(tx, asked.agent_id, AnswerState("working"))


def with_costs(tx: Tx, answer: AnswerState) -> AnswerState:
    """The answer with the usage of its cycle. Called once, at the end: callers poll often, and this query is slower."""
    agent_id = answer.agent_id
    if answer.cycle_id is None or agent_id is None:
        return answer
    cycle = records.ended(tx, answer.cycle_id)
    if cycle is None:
        end = ledger.end_of(tx, agent_id, answer.cycle_id) if answer.outcome == "skipped" else None
        up_to = ledger.LAST if end is None else end.number
        return replace(answer, spent=ledger.spent(tx, agent_id, answer.cycle_id, up_to=up_to))
    used = usage_of_cycles(tx, agent_id, cycle.number, cycle.number).get(cycle.number, Usage())
    spent = Charge(
        None, cycle.input_tokens, cycle.output_tokens, used.cache_read, used.cache_write, cost_micros=cycle.cost_micros
    )
    return replace(answer, spent=spent)


def _settled(tx: Tx, asked: AwaitedMessage, cycle_id: CycleId) -> AnswerState:
    cycle = records.ended(tx, cycle_id)
    if cycle is None:
        return AnswerState("skipped", cycle_id=cycle_id)
    said = _said(tx, asked, cycle_id)
    if cycle.outcome == "failed":
        return AnswerState("failed", said, cycle_id, cycle.number, note="The agent could not finish this.")
    if cycle.stop_reason == "budget" and not said:
        return AnswerState("suspended", said, cycle_id, cycle.number, note=_why_suspended(tx, asked.agent_id))
    return AnswerState("acted", said, cycle_id, cycle.number)


def _under_way(tx: Tx, asked: AwaitedMessage, cycle_id: CycleId) -> AnswerState:
    return _held_up(tx, asked.agent_id, AnswerState("working", _said(tx, asked, cycle_id), cycle_id))


def _held_up(tx: Tx, agent_id: AgentId, so_far: AnswerState) -> AnswerState:
    """The answer unchanged if the agent can go on; otherwise with the reason why it cannot."""
    status = registry.status(tx, agent_id)
    if status == "dead":
        return _with(so_far, "failed", "The agent was deleted.")
    if status == "suspended":
        return _with(so_far, "suspended", _why_suspended(tx, agent_id))
    if status == "paused" and pausing.stays_paused(tx, agent_id):
        waiting = tuple(calls.pausing(tx, agent_id))
        return _with(so_far, "paused", "The agent waits for an answer to what it has asked.", waiting)
    return so_far


def _with(so_far: AnswerState, outcome: Outcome, note: str, waiting: tuple[Call, ...] = ()) -> AnswerState:
    return replace(so_far, outcome=outcome, note=note, waiting_for=waiting)


def _why_suspended(tx: Tx, agent_id: AgentId) -> str:
    kept = "What you wrote is kept, and will be read then."
    resting = budgets.resting(tx, agent_id)
    if resting is None and registry.status(tx, agent_id) == "suspended":
        return f"The agent is suspended until someone resumes it. {kept}"
    until = (
        "it is raised" if resting is None or resting.until is None else f"{moment(resting.until):%Y-%m-%d %H:%M} UTC"
    )
    return f"The agent's budget is used up; it rests until {until}. {kept}"


def _said(tx: Tx, asked: AwaitedMessage, cycle_id: CycleId) -> tuple[Message, ...]:
    return tuple(posting.said_by(tx, asked.space_id, asked.agent_id, cycle_id, after=asked.seq, limit=SAID))
