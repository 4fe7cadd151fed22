"""The floor: which agents take up a message in a space with several of them, and when they stop waking each other.

`all`: every agent that attends to the space is woken. `addressed`: only the agents that a message mentions or replies
to. `one`: one agent answers a person: the addressed one, otherwise the last speaker, otherwise the first to join; if
that one cannot think now or skips, the next one takes over. Under `addressed` and `one` an agent wakes another only by
addressing it, or by answering what that one asked it. Agents that are not woken still have the message in the inbox,
and read it when they wake next.

Apart from that, agents wake each other in a space only so often until a person speaks, or lets them continue.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from sqlalchemy import bindparam, select, update

from denizen.bus.streams import WAKE, wake_payload
from denizen.errors import InvalidInput
from denizen.ids import AgentId, EntityId, SpaceId
from denizen.inbox.events import Event
from denizen.spaces import directory
from denizen.spaces.directory import Floor
from denizen.storage.database import Tx, columns, select_where, statement, update_where, value, values
from denizen.storage.schema import agents, entities, events, memberships, messages, spaces

LOOKED_BACK: Final = 50
"""How many of the last messages are read to find the last speakers."""


@dataclass(frozen=True, slots=True)
class Listener:
    """An agent whose attention covers a message."""

    id: AgentId
    addressed: bool
    able: bool
    """Whether it can think now: it is neither suspended nor parked nor deleted."""
    joined_at: int


@dataclass(frozen=True, slots=True)
class Takers:
    """The agents that a message wakes, and those whose answer its author waits for."""

    woken: frozenset[AgentId]
    awaited: frozenset[AgentId] = frozenset()


def takers(
    floor: Floor, listeners: Sequence[Listener], *, author_kind: str, several: bool, alone: bool
) -> Takers | None:
    """The agents that take up a message. None: one of the listeners has to be chosen, see `choose`. Pure.

    `several`: whether there is more than one agent in the space, the author included. `alone`: whether the author and
    one other are the only members.
    """
    everybody = frozenset(each.id for each in listeners)
    addressed = frozenset(each.id for each in listeners if each.addressed)
    human = author_kind == "human"
    if floor == "all" or author_kind == "service" or alone or not several:
        return Takers(everybody, (everybody if alone else addressed) if human else frozenset())
    if not human:
        return Takers(addressed)
    if floor == "addressed" or any(each.addressed and each.able for each in listeners):
        return Takers(addressed, addressed)
    return None if listeners else Takers(frozenset())


def choose(listeners: Sequence[Listener], last_speakers: Sequence[str], *, awaited: bool = True) -> Takers:
    """The agent that answers under the floor `one`, in addition to addressed agents that cannot. Pure.

    With `awaited` False nobody waits for the chosen one: the message is for another person.
    """
    addressed = frozenset(each.id for each in listeners if each.addressed)
    others = ranked([each for each in listeners if not each.addressed], last_speakers)
    chosen = next((each for each in others if each.able), None)
    if chosen is None and not addressed:
        # Nobody can think now: the first of them answers when it can, and the space shows why it cannot.
        chosen = others[0] if others else None
    one = frozenset[AgentId]() if chosen is None else frozenset((chosen.id,))
    return Takers(addressed | one, addressed | one if awaited else addressed)


def asked_by(taken: Iterable[Event], space_id: SpaceId) -> frozenset[str]:
    """The agents that mentioned the agent of this cycle in these events: they should get its answer. Pure."""
    return frozenset(
        event.sender_id
        for event in taken
        if event.type == "mention"
        and event.sender_kind == "agent"
        and event.space_id == space_id
        and event.sender_id is not None
    )


def ranked(listeners: Iterable[Listener], last_speakers: Sequence[str]) -> list[Listener]:
    """The listeners in the order in which they are chosen: last speakers first, then in the order of joining. Pure."""
    spoke = {agent_id: place for place, agent_id in reversed(list(enumerate(last_speakers)))}
    return sorted(listeners, key=lambda each: (spoke.get(each.id, len(last_speakers)), each.joined_at, each.id))


_last_authors = select_where(messages, "author_id", "space_id", order_by="seq desc", limit=LOOKED_BACK)
_author_of = select_where(messages, "author_id", "id, space_id")
_person_here = statement(
    select(entities.c.id)
    .join(memberships, memberships.c.entity_id == entities.c.id)
    .where(
        memberships.c.space_id == bindparam("space_id"),
        entities.c.handle == bindparam("handle"),
        entities.c.kind == "human",
    )
)


def last_speakers(tx: Tx, space_id: SpaceId) -> list[str]:
    """The authors of the last messages of the space, newest first."""
    return values(tx, _last_authors, space_id=space_id)


def author_of(tx: Tx, space_id: SpaceId, message_id: str) -> str | None:
    """The author of this message of the space."""
    return value(tx, _author_of, id=message_id, space_id=space_id)


def is_for_a_person(tx: Tx, space_id: SpaceId, mentions: Iterable[str]) -> bool:
    """Whether one of these handles is that of a person in the space."""
    return any(
        tx.one(_person_here, space_id=space_id, handle=each) is not None for each in list(mentions)[:LOOKED_BACK]
    )


# Passing on

_heard = statement(
    select(
        *columns(events, "number, agent_id, state, waits"),
        agents.c.status,
        agents.c.parked_cause,
        memberships.c.joined_at,
    )
    .join(agents, agents.c.id == events.c.agent_id)
    .join(
        memberships,
        (memberships.c.entity_id == events.c.agent_id) & (memberships.c.space_id == events.c.space_id),
    )
    .join(spaces, (spaces.c.id == events.c.space_id) & (spaces.c.floor == "one"))
    .where(events.c.message_id == bindparam("message_id"), events.c.type.in_(("space_message", "mention")))
)
_give = update_where(events, "number", events.c.state == "pending", wakes=1, waits=1)
_let_go = update_where(events, "number", waits=0)
_leave = update_where(events, "number", waits=0, wakes=0)
_awaited = statement(
    select(events.c.number, events.c.type, events.c.space_id, events.c.message_id)
    .join(spaces, (spaces.c.id == events.c.space_id) & (spaces.c.floor == "one"))
    .where(
        events.c.agent_id == bindparam("agent_id"),
        events.c.state != "done",  # must match the condition of the partial index exactly
        events.c.state.in_(("pending", "taken")),
        events.c.waits == 1,
        events.c.message_id.is_not(None),
    )
    .order_by(events.c.number)
)


def pass_on(tx: Tx, agent_id: AgentId, skipped: Iterable[Event]) -> list[Event]:
    """Pass on those of these events that people wait for, and that the agent does not answer, to the next agent that
    can.

    Returns the events that nobody took over: the people have to be told. Under other floors than `one` those are all
    that somebody waits for. To be called before the events are done, in the same transaction.
    """
    left: list[Event] = []
    for event in skipped:
        if not event.waits:
            continue
        if event.message_id is None or event.space_id is None:
            left.append(event)
        elif _goes_on(tx, agent_id, SpaceId(event.space_id), event.message_id):
            tx.run(_let_go, number=event.number)
        else:
            left.append(event)
    return left


def hand_over(tx: Tx, agent_id: AgentId, only_in: SpaceId | None = None) -> None:
    """Let the next agent take over from one that can no longer answer, in this space or anywhere: it is parked,
    suspended or removed.

    Messages that address this agent itself stay its own as well. To be called before spaces show why it does not
    answer, and when its status says that it cannot.
    """
    for number, kind, space_id, message_id in tx.all(_awaited, agent_id=agent_id):
        if only_in in (None, space_id) and _goes_on(tx, agent_id, space_id, message_id) and kind != "mention":
            tx.run(_leave, number=number)


class _Heard(NamedTuple):
    """A row of `_heard`: the event of an agent that the message reached."""

    number: int
    agent_id: AgentId
    state: str
    waits: int
    status: str
    parked: str | None
    joined_at: int


def _goes_on(tx: Tx, agent_id: AgentId, space_id: SpaceId, message_id: str) -> bool:
    """Whether another agent has taken the message up, or does so now."""
    heard = [_Heard(*row) for row in tx.all(_heard, message_id=message_id)]
    others = [each for each in heard if each.agent_id != agent_id]
    if any(each.waits and (each.state == "done" or _is_able(each.status, each.parked)) for each in others):
        return True
    unread = {each.agent_id: each for each in others if each.state == "pending" and _is_able(each.status, each.parked)}
    listeners = [Listener(id, addressed=False, able=True, joined_at=each.joined_at) for id, each in unread.items()]
    for each in ranked(listeners, last_speakers(tx, space_id)):
        # A cycle may have taken it since it was read.
        if tx.run(_give, number=unread[each.id].number):
            tx.announce(WAKE, wake_payload([each.id]))
            return True
    return False


def _is_able(status: str, parked: str | None) -> bool:
    return status == "active" and parked is None


# Agents that wake each other

_set_run = update_where(spaces, "id", set_="agent_run")
_lock_run = select_where(spaces, "floor, agent_run, agent_run_limit", "id", for_update=True)
_withheld = (
    update(events)
    .where(
        events.c.agent_id.in_(select(memberships.c.entity_id).where(memberships.c.space_id == bindparam("space"))),
        events.c.state != "done",  # must match the condition of the partial index exactly
        events.c.state == "pending",
        events.c.space_id == bindparam("space"),
        events.c.wakes == 0,
    )
    # A person has let them continue: their chain begins anew, as with a person's message.
    .values(wakes=1, hop=0)
    .returning(events.c.agent_id)
)
_wake_everybody = statement(_withheld)
_wake_mentioned = statement(_withheld.where(events.c.type == "mention"))


def may_wake(tx: Tx, space_id: SpaceId, run: int, limit: int) -> bool:
    """Count a message with which an agent wakes others, after `run` of them. Returns whether it may. The row is locked.

    The first one that may not makes the space show it.
    """
    tx.run(_set_run, id=space_id, agent_run=run + 1)
    if directory.is_stopped(run + 1, limit) and not directory.is_stopped(run, limit):
        directory.announce_change(tx, space_id)
    return not directory.is_stopped(run + 1, limit)


def begin_anew(tx: Tx, space_id: SpaceId, run: int, limit: int) -> None:
    """A person has spoken: let agents wake each other again. The row is locked."""
    if run:
        tx.run(_set_run, id=space_id, agent_run=0)
    if directory.is_stopped(run, limit):
        directory.announce_change(tx, space_id)


def let_agents_go_on(tx: Tx, space_id: SpaceId, by: EntityId) -> None:
    """Let agents wake each other again, and wake those with unread messages that should have woken them.

    Does nothing if they were not stopped. Only people in the space may do it.
    """
    directory.require_member(tx, space_id, by)
    if directory.get_entity(tx, by).kind != "human":
        raise InvalidInput("Only a person can let agents continue.")
    row = tx.one(_lock_run, id=space_id)
    if row is None:
        return
    floor, run, limit = row
    if not directory.is_stopped(run, limit):
        return
    begin_anew(tx, space_id, run, limit)
    if woken := set(values(tx, _wake_everybody if floor == "all" else _wake_mentioned, space=space_id)):
        tx.announce(WAKE, wake_payload(sorted(woken)))
