"""The states of an event: pending, taken by a cycle, done; put back, tried alone, dead, requeued.

Every function takes a transaction. Only the transaction that ends a cycle ends its events.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import JsonValue
from sqlalchemy import and_, bindparam, func, or_, select, update

from denizen.bus.streams import WAKE
from denizen.clock import SECOND
from denizen.errors import NotFound
from denizen.files.attaching import attachments_from, attachments_in
from denizen.ids import AgentId, CycleId, SpaceId
from denizen.inbox import statuses
from denizen.inbox.events import ABOUT, ALONE, FILES, OUTSIDE, SAID_AS, Event, EventType, Lane
from denizen.inbox.statuses import EventCause
from denizen.shapes.vocabulary import OpenState
from denizen.storage.database import Tx, columns, equal, insert_ignore, select_where, statement, update_where, values
from denizen.storage.schema import entities, events, messages, spaces

TRIED_ALONE_AFTER: Final = 2
"""Failed attempts of a batch after which its events are tried one by one, so that a bad one does not block the rest."""
DEAD_AFTER: Final = 5
"""Failed attempts after which an event is set aside until a person looks at it."""
INTERRUPTED_ALONE_AFTER: Final = 5
"""Process crashes during a batch after which its events are tried one by one."""
INTERRUPTED_AT_MOST: Final = 50
"""Process crashes during an event, before the first model answer, after which the event is set aside."""
LOOKED_AT: Final = 200
"""How many waiting events are read at once."""
BACK_OFF_SECONDS: Final = (1, 4, 15, 60)

_OPEN = events.c.state != "done"  # must match the condition of the partial index exactly, or SQLite does not use it


@dataclass(frozen=True, slots=True)
class Delivery:
    """One event to put into one inbox."""

    agent_id: AgentId
    id: str
    type: EventType
    created_at: int
    urgent: bool = False
    wakes: bool = True
    waits: bool = False
    """Whether a person waits for this agent's answer to the event."""
    hop: int = 0
    space_id: str | None = None
    message_id: str | None = None
    payload: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])


_insert = insert_ignore(
    events, "agent_id, id, type, lane, wakes, waits, hop, space_id, message_id, payload, created_at"
)


def deliver(tx: Tx, deliveries: Sequence[Delivery]) -> None:
    """Put each event into its inbox, unless the inbox has or had an event with that id; wake the agents concerned."""
    if not deliveries:
        return
    tx.many(
        _insert,
        [
            {
                "agent_id": each.agent_id,
                "id": each.id,
                "type": each.type,
                "lane": 0 if each.urgent else 1,
                "wakes": int(each.wakes),
                "waits": int(each.waits),
                "hop": each.hop,
                "space_id": each.space_id,
                "message_id": each.message_id,
                "payload": json.dumps(each.payload) if each.payload else None,
                "created_at": each.created_at,
            }
            for each in deliveries
        ],
    )
    # An urgent event reaches an agent in the middle of a cycle, even an event that would not have woken it.
    woken: list[JsonValue] = [each.agent_id for each in deliveries if each.wakes or each.urgent]
    if woken:
        tx.announce(WAKE, {"agents": woken})
        for agent_id in woken:
            tx.call_up(str(agent_id))


_columns = (
    *columns(events, "number, id, type, lane, hop, wakes, attempts, created_at, payload, space_id"),
    spaces.c.name,
    messages.c.author_id,
    entities.c.name,
    entities.c.kind,
    events.c.message_id,
    messages.c.text,
    events.c.waits,
    events.c.interruptions,
    entities.c.handle,
    entities.c.role,
    messages.c.outside,
    messages.c.files,
)
_MORE: Final = len(_columns)
"""Index of the first column that a query selects after these."""

_joined = (
    events.outerjoin(messages, messages.c.id == events.c.message_id)
    .outerjoin(spaces, spaces.c.id == events.c.space_id)
    .outerjoin(entities, entities.c.id == messages.c.author_id)
)

_pending = statement(
    select(*_columns, events.c.not_before)
    .select_from(_joined)
    .where(events.c.agent_id == bindparam("agent_id"), _OPEN, events.c.state == "pending")
    .order_by(events.c.lane, events.c.number)
    .limit(bindparam("limit"))
)

# Events that failed and are tried again later; mostly none. Later messages of the same space wait for them.
_tried_later = (
    select(events.c.agent_id, events.c.space_id, func.min(events.c.number).label("number"))
    .where(
        _OPEN,
        events.c.state == "pending",
        events.c.lane == 1,
        events.c.not_before > bindparam("now"),
        events.c.space_id.is_not(None),
    )
    .group_by(events.c.agent_id, events.c.space_id)
    .subquery()
)
_behind = and_(
    _tried_later.c.agent_id == events.c.agent_id,
    _tried_later.c.space_id == events.c.space_id,
    _tried_later.c.number < events.c.number,
    events.c.lane == 1,
)
_may_wake = (
    _OPEN,
    events.c.state == "pending",
    events.c.wakes == 1,
    events.c.not_before <= bindparam("now"),
    _tried_later.c.number.is_(None),
)
WITH_DUE_EVENTS: Final = (
    select(events.c.agent_id)
    .select_from(events.outerjoin(_tried_later, _behind))
    .where(*_may_wake)
    .group_by(events.c.agent_id)
)
"""The agents that have a waking event that can be taken now."""
_first_waking = statement(
    select(*_columns, events.c.not_before)
    .select_from(_joined.outerjoin(_tried_later, _behind))
    .where(events.c.agent_id == bindparam("agent_id"), *_may_wake)
    .order_by(events.c.lane, events.c.number)
    .limit(1)
)
_newest_of_space = statement(
    select(*_columns)
    .select_from(_joined)
    .where(
        events.c.agent_id == bindparam("agent_id"),
        _OPEN,
        events.c.state == "pending",
        events.c.space_id == bindparam("space_id"),
        events.c.number <= bindparam("up_to"),
    )
    .order_by(events.c.number.desc())
    .limit(1)
)

_taken = statement(
    select(*_columns)
    .select_from(_joined)
    .where(
        events.c.agent_id == bindparam("agent_id"),
        _OPEN,
        events.c.state == "taken",
        events.c.cycle_id == bindparam("cycle_id"),
    )
    .order_by(events.c.lane, events.c.number)
)


_by_id = statement(
    select(*_columns)
    .select_from(_joined)
    .where(
        events.c.agent_id == bindparam("agent_id"),
        events.c.id == bindparam("event_id"),
        events.c.message_id.is_(None),
    )
)


_by_number = statement(select(*_columns).select_from(_joined).where(events.c.number == bindparam("number")))


def at(tx: Tx, number: int) -> Event | None:
    """The event with that number, in any state."""
    row = tx.one(_by_number, number=number)
    return None if row is None else _event(row)


def find(tx: Tx, agent_id: AgentId, event_id: str) -> Event | None:
    """The event with that id in this inbox, in any state. Events of messages are left out: they have another route."""
    row = tx.one(_by_id, agent_id=agent_id, event_id=event_id)
    return None if row is None else _event(row)


def prefetch_pending(tx: Tx, agent_id: AgentId) -> None:
    """Announce `pending`."""
    tx.prefetch(_pending, agent_id=agent_id, limit=LOOKED_AT)


def pending(tx: Tx, agent_id: AgentId, *, limit: int = LOOKED_AT) -> list[Event]:
    """The waiting events of this inbox that can be taken now, in the order of draining. Changes nothing.

    Messages of a space wait for an earlier message there that is tried again later, unless they are urgent. Whatever
    the limit, the first event that wakes is included.
    """
    rows = tx.all(_pending, agent_id=agent_id, limit=limit)
    found, held_up = list[Event](), set[str]()
    for row in rows:
        event, not_before = _event(row), row[_MORE]
        urgent = event.lane == "urgent"
        if not_before > tx.now:
            held_up.update([event.space_id] if event.space_id is not None and not urgent else [])
        elif urgent or event.space_id not in held_up:
            found.append(event)
    if len(rows) == limit and not any(event.wakes for event in found):
        found += [_event(row) for row in tx.all(_first_waking, agent_id=agent_id, now=tx.now)]
    return found


_open_in_space = select_where(events, "number, message_id, payload", "agent_id, space_id", _OPEN, order_by="number")


def open_about(tx: Tx, agent_id: AgentId, space_id: str, message_id: str) -> list[int]:
    """The numbers of the events of this message, and of notices about it, that wait or that a cycle has taken."""
    rows = tx.all(_open_in_space, agent_id=agent_id, space_id=space_id)
    return [
        number
        for number, of_message, payload in rows
        if message_id in (of_message, json.loads(payload).get(ABOUT) if payload else None)
    ]


def newest_of_space(tx: Tx, agent_id: AgentId, space_id: str, *, up_to: int) -> list[Event]:
    """The newest event of that space that waits in this inbox, with a number of at most `up_to`; none or one."""
    return [_event(row) for row in tx.all(_newest_of_space, agent_id=agent_id, space_id=space_id, up_to=up_to)]


@dataclass(frozen=True, slots=True)
class InboxEntry:
    """An event with its delivery state."""

    event: Event
    state: OpenState
    not_before: int
    """When the event can be taken; 0: now."""
    cycle_id: CycleId | None
    """The cycle that has taken the event."""


_in_lane = statement(
    select(*_columns, events.c.state, events.c.not_before, events.c.cycle_id)
    .select_from(_joined)
    .where(
        events.c.agent_id == bindparam("agent_id"),
        _OPEN,
        *equal(events, "state, lane"),
        events.c.number > bindparam("after"),
    )
    .order_by(events.c.number)
    .limit(bindparam("limit"))
)


def listed(
    tx: Tx, agent_id: AgentId, state: OpenState, *, lane: Lane = "urgent", after: int = 0, limit: int = LOOKED_AT
) -> list[InboxEntry]:
    """The events in this state in the order of draining, starting after number `after` of that lane."""
    lanes = (("urgent", after), ("normal", 0)) if lane == "urgent" else (("normal", after),)
    rows: list[tuple[Any, ...]] = []
    for name, behind in lanes:
        where = {"state": state, "lane": int(name == "normal"), "after": behind, "limit": limit - len(rows)}
        rows += tx.all(_in_lane, agent_id=agent_id, **where)
    return [InboxEntry(_event(row), *row[_MORE:]) for row in rows]


def taken(tx: Tx, agent_id: AgentId, cycle_id: CycleId) -> list[Event]:
    """The events that an open cycle has taken."""
    return [_event(row) for row in tx.all(_taken, agent_id=agent_id, cycle_id=cycle_id)]


def _event(row: tuple[Any, ...]) -> Event:
    """Decode a row that begins with `_columns`."""
    (
        number, id, kind, lane, hop, wakes, attempts, created_at, stored, space_id, space_name, sender_id, sender_name,
        sender_kind, message_id, said, waits, interruptions, handle, role, outside, files, *_,
    ) = row  # fmt: skip
    payload: dict[str, JsonValue] = json.loads(stored) if stored else {}
    return Event(
        number=number,
        id=id,
        type=kind,
        lane="normal" if lane else "urgent",
        hop=hop,
        wakes=bool(wakes),
        attempts=attempts,
        created_at=created_at,
        text=str(said if said is not None else payload.get("text", "")),
        space_id=space_id,
        space_name=space_name,
        sender_id=sender_id,
        sender_name=sender_name,
        sender_kind=sender_kind,
        message_id=message_id,
        payload=payload,
        waits=bool(waits),
        interruptions=interruptions,
        sender_handle=handle,
        sender_role=str(payload.get(SAID_AS, role)) if role is not None else None,
        outside=bool(outside) or kind == "service_trigger" or payload.get(OUTSIDE) is True,
        files=attachments_in(payload[FILES]) if FILES in payload else attachments_from(files),
    )


def is_tried_alone(event: Event) -> bool:
    """Whether the event failed, or the process crashed during it, so often that a cycle takes it alone."""
    return event.attempts >= TRIED_ALONE_AFTER or event.interruptions >= INTERRUPTED_ALONE_AFTER


def next_batch(waiting: Sequence[Event]) -> list[Event]:
    """The waiting events that one cycle should take: one that must be tried alone, or all others. Of the requests of
    programs in one space it takes one: what the agent says there in a cycle is the answer to that request.

    Events of a space are taken in order, except that urgent ones come first. Empty unless one of them wakes the agent:
    events that do not wake are read together with one that does, or before it if they must be tried alone.
    """
    if not any(event.wakes for event in waiting):
        return []
    first = next(event for event in waiting if event.wakes or is_tried_alone(event))
    if is_tried_alone(first):
        return [first]
    held_up: set[str] = set()
    asked_in: set[str] = set()
    batch: list[Event] = []
    for event in waiting:
        urgent = event.lane == "urgent"
        asked = event.space_id is not None and event.payload.get(ALONE) is True
        if is_tried_alone(event) or (asked and event.space_id in asked_in):
            held_up.update([event.space_id] if event.space_id is not None and not urgent else [])
        elif urgent or event.space_id not in held_up:
            batch.append(event)
            asked_in.update([event.space_id] if asked and event.space_id is not None else [])
    return batch


_take = statement(
    update(events)
    .where(events.c.number == bindparam("event_number"), events.c.state == "pending")
    .values(state="taken", cycle_id=bindparam("by_cycle"))
)
_finish = statement(
    update(events)
    .where(
        events.c.agent_id == bindparam("agent"),
        _OPEN,
        events.c.state == "taken",
        events.c.cycle_id == bindparam("by_cycle"),
    )
    .values(state="done")
    .returning(events.c.id)
)
_give_back = update_where(
    events, "agent_id, cycle_id", _OPEN, events.c.state == "taken", set_="not_before", state="pending", cycle_id=None
)
_fail = update_where(
    events, "number", events.c.state == "taken", set_="state, attempts, interruptions, not_before", cycle_id=None
)


def take(tx: Tx, taken_events: Iterable[Event], cycle_id: CycleId) -> None:
    """Assign these pending events to the cycle."""
    tx.many(_take, [{"event_number": event.number, "by_cycle": cycle_id} for event in taken_events])


_join_cycle = update_where(
    events, "agent_id, message_id", _OPEN, events.c.state == "pending", set_="cycle_id", state="taken"
)


def join_cycle(tx: Tx, agent_id: AgentId, message_id: str, cycle_id: CycleId) -> None:
    """Assign the event of this message to an open cycle, which reads it as the answer to its question."""
    tx.run(_join_cycle, agent_id=agent_id, message_id=message_id, cycle_id=cycle_id)


def finish(tx: Tx, agent_id: AgentId, cycle_id: CycleId) -> list[str]:
    """Mark the events of the cycle as done. Returns their ids."""
    return values(tx, _finish, agent=agent_id, by_cycle=cycle_id)


def give_back(tx: Tx, agent_id: AgentId, cycle_id: CycleId, *, seconds: int = 0) -> None:
    """Make the events of the cycle pending again, after a delay, without counting an attempt."""
    tx.run(_give_back, agent_id=agent_id, cycle_id=cycle_id, not_before=tx.now + seconds * SECOND if seconds else 0)


def fail(
    tx: Tx, agent_id: AgentId, cycle_id: CycleId, *, delay: bool = True, detail: Mapping[str, JsonValue] | None = None
) -> list[Event]:
    """Undo the cycle and count an attempt for each of its events. Returns the events that are dead now.

    Where somebody waits, the space shows that the agent tries again or gave up; `detail` says why.
    """
    failed, dead, about = taken(tx, agent_id, cycle_id), list[Event](), dict(detail or {})
    for event in failed:
        tries = event.attempts + 1
        if tries >= DEAD_AFTER:
            dead.append(event)
        _put_back(tx, event, dead=tries >= DEAD_AFTER, attempts=tries, seconds=back_off(tries) if delay else 0)
    statuses.show_for(tx, agent_id, dead, "gave_up", {"count": DEAD_AFTER, **about})
    again = [event for event in failed if event not in dead]
    seconds = max((back_off(event.attempts + 1) for event in again), default=0) if delay else 0
    statuses.show_for(tx, agent_id, again, "failing", about, retry_at=tx.now + seconds * SECOND)
    if dead:
        statuses.clear_failing(tx, agent_id)
    return dead


def set_aside(tx: Tx, agent_id: AgentId, cycle_id: CycleId, cause: EventCause, detail: Mapping[str, JsonValue]) -> None:
    """Undo the cycle because one of its events cannot be processed. If the cycle had one event, that event is dead, and
    its space shows why; otherwise each event is tried alone, at once, to find the bad one."""
    events_of_cycle = taken(tx, agent_id, cycle_id)
    alone = len(events_of_cycle) == 1
    for event in events_of_cycle:
        _put_back(tx, event, dead=alone, attempts=max(event.attempts, 0 if alone else TRIED_ALONE_AFTER))
    if alone:
        statuses.show_for(tx, agent_id, events_of_cycle, cause, detail)
        statuses.clear_failing(tx, agent_id)


def interrupt(tx: Tx, agent_id: AgentId, cycle_id: CycleId) -> None:
    """Make the events of the cycle pending again: the process crashed before the first model answer. Only repeated
    crashes count against an event."""
    interrupted = taken(tx, agent_id, cycle_id)
    alone = len(interrupted) == 1
    dead = [event for event in interrupted if alone and event.interruptions + 1 >= INTERRUPTED_AT_MOST]
    for event in interrupted:
        _put_back(tx, event, dead=event in dead, interruptions=event.interruptions + 1)
    statuses.show_for(tx, agent_id, dead, "interrupted", {"count": INTERRUPTED_AT_MOST})


def _put_back(
    tx: Tx,
    event: Event,
    *,
    dead: bool = False,
    attempts: int | None = None,
    interruptions: int | None = None,
    seconds: int = 0,
) -> None:
    tx.run(
        _fail,
        number=event.number,
        state="dead" if dead else "pending",
        attempts=event.attempts if attempts is None else attempts,
        interruptions=event.interruptions if interruptions is None else interruptions,
        not_before=tx.now + seconds * SECOND if seconds else 0,
    )


def back_off(tries: int) -> int:
    """Seconds to wait after this many failed attempts."""
    return BACK_OFF_SECONDS[min(tries, len(BACK_OFF_SECONDS)) - 1] if tries else 0


_dead = statement(
    select(*_columns)
    .select_from(_joined)
    .where(events.c.agent_id == bindparam("agent_id"), _OPEN, events.c.state == "dead")
    .order_by(events.c.number)
    .limit(bindparam("limit"))
)
_requeue = update_where(
    events,
    "agent_id, id",
    _OPEN,
    events.c.state == "dead",
    state="pending",
    attempts=0,
    interruptions=0,
    not_before=0,
    wakes=1,
)
_requeue_waiting = update_where(
    events,
    "agent_id",
    _OPEN,
    events.c.state == "dead",
    events.c.waits == 1,
    or_(bindparam("everywhere") == 1, events.c.space_id == bindparam("space")),
    state="pending",
    attempts=0,
    interruptions=0,
    not_before=0,
    wakes=1,
)
_hurry = update_where(events, "agent_id", _OPEN, events.c.state == "pending", events.c.not_before > 0, not_before=0)
_mark_urgent = update_where(events, "agent_id, id", _OPEN, events.c.state == "pending", lane=0, wakes=1)


def dead(tx: Tx, agent_id: AgentId, *, limit: int = 2**31) -> list[Event]:
    """The dead events, for a person to look at."""
    return [_event(row) for row in tx.all(_dead, agent_id=agent_id, limit=limit)]


def requeue(tx: Tx, agent_id: AgentId, event_id: str) -> None:
    """Make a dead event pending again, as if it were new."""
    if tx.run(_requeue, agent_id=agent_id, id=event_id) == 0:
        raise NotFound("dead event", event_id)
    statuses.clear_tried_again(tx, agent_id)
    tx.announce(WAKE, {"agents": [agent_id]})


def try_again(tx: Tx, agent_id: AgentId, space_id: SpaceId | None = None) -> None:
    """Make the events that were set aside and that somebody waits for pending again, as if they were new, in that space
    or everywhere; and end the delay of those that are tried again later."""
    tx.run(_requeue_waiting, agent_id=agent_id, everywhere=int(space_id is None), space=space_id or "")
    tx.run(_hurry, agent_id=agent_id)
    statuses.clear_tried_again(tx, agent_id)
    statuses.clear(tx, agent_id, ["failing"])
    tx.announce(WAKE, {"agents": [agent_id]})


def mark_urgent(tx: Tx, agent_id: AgentId, event_id: str) -> None:
    """Move a pending event to the urgent lane, and let it wake the agent."""
    if tx.run(_mark_urgent, agent_id=agent_id, id=event_id) == 0:
        raise NotFound("pending event", event_id)
    tx.announce(WAKE, {"agents": [agent_id]})
