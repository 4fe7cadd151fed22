"""Stored tool calls: those that people see or answer, and those whose results come late.

A call is a row. Its single change from `waiting` to another state decides its outcome, whichever comes first: an
answer, an interruption, a timeout. Later answers are delivered to the agent as an event.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue
from sqlalchemy import and_, bindparam, or_, select, update

from denizen.access import audit
from denizen.access.audit import Actor
from denizen.bus.streams import WAKE, CallChanged, agent_topic, space_topic
from denizen.clock import SECOND
from denizen.consciousness import privacy
from denizen.errors import AlreadySettled, NotAllowed, NotFound, existing
from denizen.ids import AgentId, CallId, CycleId, EntityId, FileId, SpaceId, new_id
from denizen.inbox import delivery
from denizen.inbox.delivery import Delivery
from denizen.inbox.events import FROM_SPACES, OUTSIDE
from denizen.inbox.outside import parsed
from denizen.inbox.sources import Source, source_of_author
from denizen.shapes.vocabulary import ASKED
from denizen.shapes.vocabulary import CallMode as Mode
from denizen.shapes.vocabulary import CallState as State
from denizen.spaces import directory, posting
from denizen.spaces.fan_out import HOP_BUDGET
from denizen.storage.database import Tx, columns, insert_into, select_where, statement, storable, update_where, value
from denizen.storage.schema import calls, cycles, memberships
from denizen.tools import elicitation_forms, grants, results
from denizen.tools.elicitation_forms import ServerQuestion
from denizen.tools.tool import CallIdentity, OnCrash

BATCH: Final = 100
"""How many calls one transaction settles."""
MOST_SINCE: Final = 1000
"""How many calls after a message are found at once."""
UNKNOWN_OUTCOME: Final = (
    "The process stopped while this tool was running. Whether it did its work is unknown: it may have. "
    "Check before you call it again."
)
NOT_YET: Final = (
    "Nobody has answered yet, and something else has arrived. The question still stands: its answer will reach you as "
    "an event."
)


@dataclass(frozen=True, slots=True)
class Call:
    """One stored call."""

    id: CallId
    agent_id: AgentId
    cycle_id: CycleId
    step: int
    position: int
    tool: str
    mode: Mode
    state: State
    space_id: SpaceId | None
    """The agent's active space."""
    shown: bool
    """Whether the people there see it."""
    after_seq: int
    """The last message of that space when the call was made."""
    arguments: str
    """As the model wrote them: JSON."""
    result: str | None
    hop: int
    runner: str | None
    on_crash: OnCrash
    created_at: int
    expires_at: int | None
    settled_at: int | None
    settled_by: EntityId | None
    approval: bool = False
    """Whether it needs an explicit approval, so that a message in the space does not answer it."""
    released_at: int | None = None
    """When its cycle continued without the answer that it had paused for."""
    why: str | None = None
    """Why an effect needs an approval before it happens, if an approval is asked."""
    outside: bool = False
    """Whether its result is text from outside, if nobody is known to have given it."""

    @property
    def asks_approval(self) -> bool:
        """Whether it asks for the approval of an effect. Once that is given, this row is the call itself."""
        return self.approval and self.why is not None

    @property
    def code(self) -> str | None:
        """The code that a person writes in the space with `yes` or `no`: nothing else answers an approval."""
        return hashlib.sha256(self.id.encode()).hexdigest()[:4].upper() if self.approval else None

    @property
    def parsed_arguments(self) -> JsonValue:
        """The arguments as data; as text if a model wrote invalid JSON."""
        data = parsed(self.arguments)
        return self.arguments if data is None else data


CALL_COLUMNS = columns(
    calls,
    "id, agent_id, cycle_id, step, position, tool, mode, state, space_id, shown, after_seq, "
    "arguments, result, hop, runner, on_crash, created_at, expires_at, settled_at, settled_by, "
    "approval, released_at, why, outside",
)
BY_AGE = (calls.c.created_at, calls.c.step, calls.c.position, calls.c.id)
IS_WAITING = calls.c.state == "waiting"  # must match the condition of the partial indexes exactly

_add = insert_into(
    calls,
    "id, agent_id, cycle_id, step, position, tool, mode, state, space_id, shown, after_seq, arguments, hop, "
    "runner, on_crash, created_at, expires_at, approval, why, outside",
)
_get = select_where(calls, CALL_COLUMNS, "id")
_of_step = select_where(calls, CALL_COLUMNS, "cycle_id, step")
_of_cycle = select_where(calls, CALL_COLUMNS, "cycle_id")


@dataclass(frozen=True, slots=True)
class New:
    """A call to be stored."""

    id: CallId
    cycle_id: CycleId
    step: int
    position: int
    tool: str
    mode: Mode
    space_id: SpaceId | None
    arguments: str
    shown: bool = False
    hop: int = 0
    expires_at: int | None = None
    runner: str | None = None
    on_crash: OnCrash = "report"
    approval: bool = False
    why: str | None = None
    outside: bool = False


def make(tx: Tx, agent_id: AgentId, new: New) -> None:
    """Store the call, which waits for its result, and show it to the people in its space."""
    tx.run(
        _add,
        id=new.id,
        agent_id=agent_id,
        cycle_id=new.cycle_id,
        step=new.step,
        position=new.position,
        tool=new.tool,
        mode=new.mode,
        state="waiting",
        space_id=new.space_id,
        shown=int(new.shown),
        after_seq=0 if new.space_id is None else posting.last_seq(tx, new.space_id),
        arguments=storable(new.arguments),
        hop=new.hop,
        runner=new.runner,
        on_crash=new.on_crash,
        created_at=tx.now,
        expires_at=new.expires_at,
        approval=int(new.approval),
        why=new.why,
        outside=int(new.outside),
    )
    if new.mode in ASKED:
        directory.enter(tx, "question", new.id)
    _announce(tx, new.id, agent_id, new.space_id if new.shown else None, "waiting")


_reopen = update_where(
    calls,
    "id",
    calls.c.state == "answered",
    set_="mode, runner, on_crash, expires_at",
    state="waiting",
    approval=0,
    result=None,
    released_at=calls.c.settled_at,
    settled_at=None,
    settled_by=None,
)


def reopen(tx: Tx, call: Call, new: New) -> None:
    """Make a call that was approved: it waits for its result under the same id."""
    tx.run(_reopen, id=call.id, mode=new.mode, runner=new.runner, on_crash=new.on_crash, expires_at=new.expires_at)
    _announce(tx, call.id, call.agent_id, call.space_id if call.shown else None, "waiting")


def _announce(tx: Tx, id: CallId, agent_id: AgentId, shown_in: SpaceId | None, state: State) -> None:
    frame = CallChanged(id, agent_id, shown_in, state).to_payload()
    tx.announce(agent_topic(agent_id), frame)
    if shown_in is not None:
        tx.announce(space_topic(shown_in), frame)


def get(tx: Tx, id: str) -> Call:
    return existing(find(tx, id), "call", id)


def find(tx: Tx, id: str) -> Call | None:
    """The call, or None if it was forgotten."""
    row = tx.one(_get, id=id)
    return None if row is None else Call(*row)


def of_step(tx: Tx, cycle_id: CycleId, step: int) -> dict[int, Call]:
    """The stored calls of one response, by position."""
    found = [Call(*row) for row in tx.all(_of_step, cycle_id=cycle_id, step=step)]
    return {each.position: each for each in found}


def of_cycle(tx: Tx, cycle_id: CycleId) -> list[Call]:
    return [Call(*row) for row in tx.all(_of_cycle, cycle_id=cycle_id)]


def waited(known: Sequence[Call]) -> int:
    """For how many microseconds a cycle was paused because of these, overlapping times counted once."""
    ends = [(each, each.released_at or (each.settled_at if each.mode == "pause" else None)) for each in known]
    spans = sorted((each.created_at, end) for each, end in ends if end is not None)
    total, up_to = 0, 0
    for start, end in spans:
        total += max(end - max(start, up_to), 0)
        up_to = max(up_to, end)
    return total


# Questions of MCP servers

MOST_QUESTIONS: Final = 10
"""How many questions a server may ask in one call."""
_PER_STEP: Final = 1_000
_active_space = select_where(cycles, "active_space_id", "id")


def ask_for_server(
    tx: Tx, caller: CallIdentity, tool: str, question: ServerQuestion, *, runner: str, seconds: float
) -> CallId | None:
    """Ask the people in the agent's space what an MCP server wants to know; None if it has asked too much already.

    `runner` carries out the call in which the server asks: if it dies, the question is void.
    """
    # No other call of the step has this position, which is part of its key.
    asked = [at for at in of_step(tx, caller.cycle_id, caller.step) if at < 0 and _asked_in_call(at) == caller.position]
    if len(asked) >= MOST_QUESTIONS:
        return None
    id = CallId(new_id())
    space_id = value(tx, _active_space, id=caller.cycle_id)
    new = New(
        id=id,
        cycle_id=caller.cycle_id,
        step=caller.step,
        position=-(len(asked) * _PER_STEP + caller.position + 1),
        tool=tool,
        mode="elicitation",
        space_id=space_id,
        arguments=question.to_arguments(),
        shown=space_id is not None,
        expires_at=tx.now + int(seconds * SECOND),
        runner=runner,
        approval=True,
    )
    make(tx, caller.agent_id, new)
    return id


def waits_for_person(tx: Tx, cycle_id: CycleId, step: int, position: int) -> bool:
    """Whether the MCP server that carries out this call waits for a person's answer."""
    known = of_step(tx, cycle_id, step)
    return any(at < 0 and _asked_in_call(at) == position and each.state == "waiting" for at, each in known.items())


def _asked_in_call(position: int) -> int:
    """The position of the call in which the question with this position was asked."""
    return (-position - 1) % _PER_STEP


# Settling

_settle = statement(
    update(calls)
    .where(calls.c.id == bindparam("call"), IS_WAITING)
    .values(
        state=bindparam("new_state"),
        result=bindparam("outcome"),
        settled_at=bindparam("at"),
        settled_by=bindparam("by"),
        runner=None,
    )
    .returning(calls.c.mode)
)
_answer_late = update_where(
    calls,
    "id",
    or_(calls.c.state == "interrupted", calls.c.state == "expired"),
    set_="result, settled_by",
    state="late",
)


def withdraw(tx: Tx, ids: Collection[CallId]) -> None:
    """Cancel these questions, as far as nobody has answered them."""
    for id in ids:
        settle(tx, get(tx, id), "cancelled")


def settle(
    tx: Tx, call: Call, state: State, result: str | None = None, by: EntityId | None = None, at: int | None = None
) -> bool:
    """Set the final state of the call; False if it was settled before."""
    return settled_as(tx, call, state, result, by, at) is not None


def settled_as(
    tx: Tx, call: Call, state: State, result: str | None, by: EntityId | None, at: int | None = None
) -> Mode | None:
    """Like `settle`; returns the mode of the call at that moment, which may have changed since it was read."""
    outcome = None if result is None else storable(result)
    mode = value(tx, _settle, call=call.id, new_state=state, outcome=outcome, at=at or tx.now, by=by)
    if mode is None:
        return None
    _announce(tx, call.id, call.agent_id, call.space_id if call.shown else None, state)
    return mode


def answer(tx: Tx, id: str, result: str, by: EntityId | None = None, files: tuple[FileId, ...] = ()) -> Call:
    """Give the call this result. Raises `NotFound` for an unknown call and `AlreadySettled` for one that has an answer.

    If the cycle waits for it, it continues; otherwise, or if the answer comes late, the agent gets an event. `files`
    are uploads of the agent that belong to the result: it has them for good.
    """
    call = get(tx, id)
    told = decided(tx, call, result, by) if call.asks_approval else result
    if (mode := settled_as(tx, call, "answered", result, by)) is not None:
        if mode == "pause":
            tx.announce(WAKE, {"agents": [call.agent_id]})
        elif mode != "visible":
            tell(tx, call, told, by, outside=_is_outside(tx, call, by))
    elif not call.asks_approval and tx.run(_answer_late, id=id, result=storable(result), settled_by=by or ""):
        _announce(tx, call.id, call.agent_id, call.space_id if call.shown else None, "late")
        # The agent may have been told already that no answer came: this is another event.
        tell(tx, call, result, by, id=result_event_id(call.id, late=True), outside=_is_outside(tx, call, by))
    else:
        raise AlreadySettled(_why_settled(get(tx, id)))
    results.give(tx, call.agent_id, files)
    return get(tx, id)


def result_event_id(call_id: str, *, late: bool = False) -> str:
    """The id of the event that brings the answer to a call which the cycle did not wait for; or one that came late."""
    return f"call:{call_id}:late" if late else f"call:{call_id}"


def decided(tx: Tx, call: Call, result: str, by: EntityId | None) -> str:
    """Record that a person has approved or refused an effect. Returns the text for an agent that did not wait."""
    given = grants.verdict(result)
    if by is None or not posting.is_trusted_person(tx, by):
        raise NotAllowed("Only a person can approve this: a member, an admin or an owner.")
    if call.state != "waiting":
        return ""
    if is_overdue(call, tx.now):
        # Perhaps no process was running to record the expiry. An approval that comes too late does not count.
        raise AlreadySettled(_TOO_LATE)
    who = directory.get_entity(tx, by)
    audit.record(
        tx,
        who.organization_id,
        Actor(by),
        "approve_effect" if given.confirmed else "refuse_effect",
        call.agent_id,
        tool=call.tool,
        call=call.id,
        **({"times": given.times, "seconds": given.seconds} if given.confirmed else {}),
    )
    if not given.confirmed:
        return f"{who.name} refused your call of {call.tool}: it was not made. Do not try it another way."
    grants.give(tx, call.agent_id, call.tool, call.arguments, given, by=by, call_id=call.id, space_id=call.space_id)
    return f"{who.name} approved your call of {call.tool}. It was not made yet: call it again with the same arguments."


_TOO_LATE: Final = "The time to approve this is over: it counts as refused."


def is_overdue(call: Call, now: int) -> bool:
    """Whether it has expired, recorded or not."""
    return call.expires_at is not None and call.expires_at <= now


def _why_settled(call: Call) -> str:
    if call.asks_approval and call.state == "expired":
        return _TOO_LATE
    if call.state == "cancelled":
        return "Nobody waits for this call any more: its agent was deleted or its request failed."
    return "This call has its answer already. The first one stands."


def source_of_answer(tx: Tx, call: Call) -> Source | None:
    """The source of the answer to a call, if it is text from outside."""
    if call.state not in ("answered", "late") or not _is_outside(tx, call, call.settled_by):
        return None
    if not call.settled_by:
        return Source("tool", call.tool)
    return source_of_author(directory.get_entity(tx, call.settled_by).kind, call.settled_by)


def _is_outside(tx: Tx, call: Call, by: EntityId | None) -> bool:
    """Whether this person's answer is text from outside. Only people of this server are trusted."""
    return not posting.is_trusted_person(tx, by) if by else call.outside


def tell(
    tx: Tx, call: Call, result: str, by: EntityId | None = None, *, id: str | None = None, outside: bool = False
) -> None:
    """Deliver the result of an earlier call to the agent in an event. `outside`: it is text from outside."""
    payload: dict[str, JsonValue] = {"tool": call.tool, "call_id": call.id, "text": storable(result)}
    if outside:
        payload[OUTSIDE] = True
    if made_in := sorted(privacy.sources_of(tx, call.cycle_id) - {call.space_id or ""}):
        payload[FROM_SPACES] = list(made_in)
    human = by is not None and directory.get_entity(tx, by).kind == "human"
    event = Delivery(
        call.agent_id,
        id or result_event_id(call.id),
        "tool_result",
        tx.now,
        # A person's answer wakes the agent whatever led to the question.
        wakes=human or call.hop <= HOP_BUDGET,
        hop=0 if human else call.hop,
        space_id=call.space_id,
        payload=payload,
    )
    delivery.deliver(tx, [event])


def told_of(call: Call) -> str:
    """The text for a cycle that waited for the call about how it ended."""
    if call.asks_approval:
        return _told_of_approval(call)
    match call.state:
        case "answered":
            return call.result or ""
        case "expired":
            seconds = ((call.expires_at or call.created_at) - call.created_at) // 1_000_000
            return f"Nobody answered within {_span(seconds)}. An answer that comes later will reach you as an event."
        case _:
            return NOT_YET


def _told_of_approval(call: Call) -> str:
    match call.state:
        case "answered":
            return f"Refused: a person did not approve this call of {call.tool}. It was not made."
        case "expired":
            seconds = ((call.expires_at or call.created_at) - call.created_at) // SECOND
            return f"Refused: nobody approved this call of {call.tool} within {_span(seconds)}. It was not made."
        case _:
            return (
                f"Not made yet: nobody has approved this call of {call.tool}, and something else has arrived. The "
                "question still stands: you will be told what the person decides."
            )


def _span(seconds: int) -> str:
    for size, name in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= size and seconds % size == 0:
            count = seconds // size
            return f"{count} {name}{'' if count == 1 else 's'}"
    return f"{seconds} second{'' if seconds == 1 else 's'}"


# Calls that nobody answers

_waiting_of = select_where(calls, CALL_COLUMNS, "agent_id", IS_WAITING)


_release = update_where(calls, "id", IS_WAITING, calls.c.mode == "pause", set_="released_at", mode="async")


def release(tx: Tx, agent_id: AgentId) -> None:
    """Let the agent's cycle continue without answers: its questions stay open, and answers come as events."""
    for call in pausing(tx, agent_id):
        if tx.run(_release, id=call.id, released_at=tx.now):
            _announce(tx, call.id, call.agent_id, call.space_id if call.shown else None, "waiting")


def pausing(tx: Tx, agent_id: AgentId) -> list[Call]:
    """The calls whose answers the agent's paused cycle waits for, oldest first."""
    return sorted(
        (each for each in _waiting(tx, agent_id) if each.mode == "pause"),
        key=lambda each: (each.created_at, each.step, each.position),
    )


def cancel(tx: Tx, agent_id: AgentId) -> None:
    """Cancel the calls of this agent."""
    for call in _waiting(tx, agent_id):
        settle(tx, call, "cancelled")


def _waiting(tx: Tx, agent_id: AgentId) -> list[Call]:
    return [Call(*row) for row in tx.all(_waiting_of, agent_id=agent_id)]


_run_on = statement(
    update(calls)
    .where(
        calls.c.cycle_id == bindparam("cycle"),
        calls.c.step == bindparam("at_step"),
        calls.c.position == bindparam("at"),
    )
    .values(mode="late", runner=bindparam("by"), expires_at=bindparam("until"))
    .returning(calls.c.id)
)


def run_on(tx: Tx, agent_id: AgentId, new: New) -> CallId:
    """Store a call whose result the cycle no longer waits for, and which may still come. Returns its id."""
    call_id = value(
        tx, _run_on, cycle=new.cycle_id, at_step=new.step, at=new.position, by=new.runner, until=new.expires_at
    )
    if call_id is not None:
        return call_id
    make(tx, agent_id, new)
    return new.id


# Showing and answering calls

_in_space = statement(
    select(*CALL_COLUMNS)
    .where(
        calls.c.space_id == bindparam("space_id"),
        calls.c.shown == 1,
        calls.c.after_seq >= bindparam("first"),
        calls.c.after_seq <= bindparam("last"),
    )
    .order_by(calls.c.after_seq, *BY_AGE)
    .limit(bindparam("limit"))
)
_waiting_in = statement(
    select(*CALL_COLUMNS)
    .where(calls.c.space_id == bindparam("space_id"), calls.c.shown == 1, IS_WAITING)
    .order_by(calls.c.after_seq, *BY_AGE)
    .limit(BATCH)
)
_theirs = select(memberships.c.space_id).where(memberships.c.entity_id == bindparam("entity_id"))
_waiting_around = statement(
    select(*CALL_COLUMNS)
    .where(calls.c.space_id.in_(_theirs), calls.c.shown == 1, IS_WAITING)
    .order_by(calls.c.after_seq, *BY_AGE)
    .limit(BATCH)
)
_their_agents = select(memberships.c.entity_id).where(memberships.c.space_id.in_(_theirs))
_open_to = statement(
    select(*CALL_COLUMNS)
    .where(
        IS_WAITING,
        calls.c.mode.in_(ASKED),
        or_(
            calls.c.space_id.in_(_theirs),
            and_(calls.c.space_id.is_(None), calls.c.agent_id.in_(_their_agents)),
        ),
    )
    .order_by(*BY_AGE)
    .limit(bindparam("limit"))
)
_shares_space = statement(
    select(memberships.c.entity_id)
    .where(memberships.c.entity_id == bindparam("agent_id"), memberships.c.space_id.in_(_theirs))
    .limit(1)
)


def in_space(tx: Tx, space_id: SpaceId, *, first: int = 0, last: int = 2**62, limit: int = 200) -> list[Call]:
    """The calls in a space between these messages, in order."""
    return [Call(*row) for row in tx.all(_in_space, space_id=space_id, first=first, last=last, limit=limit)]


def since(tx: Tx, space_id: SpaceId, seq: int, *, known: Iterable[CallId] = ()) -> list[Call]:
    """The calls in a space that may have changed for a reader who has seen message `seq`, in order.

    Those after that message, those that wait, and `known`: those that were waiting when the reader last saw them.
    """
    return _with_known(tx, [*in_space(tx, space_id, first=seq, limit=MOST_SINCE), *waiting_in(tx, space_id)], known)


def waiting_around(tx: Tx, entity_id: EntityId, *, known: Iterable[CallId] = ()) -> list[Call]:
    """The calls that wait in the spaces of a person, and `known`: those that were waiting when the person last saw
    them. In order.
    """
    return _with_known(tx, [Call(*row) for row in tx.all(_waiting_around, entity_id=entity_id)], known)


def _with_known(tx: Tx, calls: Iterable[Call], known: Iterable[CallId]) -> list[Call]:
    found = {each.id: each for each in calls}
    for id in known:
        if id not in found and (row := tx.one(_get, id=id)) is not None:
            found[id] = Call(*row)
    return sorted(found.values(), key=lambda each: (each.after_seq, each.created_at, each.id))


def waiting_in(tx: Tx, space_id: SpaceId) -> list[Call]:
    """The calls shown in a space that have no result yet."""
    return [Call(*row) for row in tx.all(_waiting_in, space_id=space_id)]


def open_to(tx: Tx, entity_id: EntityId, *, limit: int = 200) -> list[Call]:
    """The calls that this person may answer, oldest first."""
    return [Call(*row) for row in tx.all(_open_to, entity_id=entity_id, limit=limit)]


def require_visible(tx: Tx, id: str, entity_id: EntityId) -> Call:
    """The call, if this person may see and answer it: they are in its space, or share one with its agent."""
    call = get(tx, id)
    if call.space_id is not None:
        seen = directory.is_member(tx, call.space_id, entity_id)
    else:
        seen = tx.one(_shares_space, agent_id=call.agent_id, entity_id=entity_id) is not None
    if not seen:
        raise NotFound("call", id)
    return call


def answer_as(tx: Tx, id: str, result: str, entity_id: EntityId) -> Call:
    """Answer a call as this entity. Only a person can approve."""
    call = require_visible(tx, id, entity_id)
    if call.mode not in ASKED:
        raise NotFound("call that can be answered", id)
    if call.approval and not posting.is_trusted_person(tx, entity_id):
        raise NotAllowed("Only a person can approve this: a member, an admin or an owner.")
    if call.mode == "elicitation":
        return answer_server(tx, call, result, entity_id)
    return answer(tx, id, result, entity_id)


def answer_server(tx: Tx, call: Call, result: str, by: EntityId) -> Call:
    """Answer the question of an MCP server. Its agent is not told: the server's result says what came of it."""
    given = elicitation_forms.read_answer(call.arguments, result)
    if is_overdue(call, tx.now) or not settle(tx, call, "answered", given.model_dump_json(exclude_none=True), by):
        raise AlreadySettled("The MCP server no longer waits for this answer, or somebody else has answered.")
    return get(tx, call.id)


# Answers in words

_is_shown_in = select_where(calls, "id", "id, space_id", calls.c.shown == 1)


def is_shown_in(tx: Tx, call_id: str, space_id: SpaceId) -> bool:
    """Whether this is a question that an agent has asked in the space, answered or not."""
    return tx.one(_is_shown_in, id=call_id, space_id=space_id) is not None
