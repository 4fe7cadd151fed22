"""Which agents get a message into their inbox, whom it wakes, and for whose answer its author waits."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pydantic import JsonValue
from sqlalchemy import bindparam, case, func, select

from denizen.ids import AgentId, EntityId, MessageId, SpaceId
from denizen.inbox import parking, statuses
from denizen.inbox.delivery import Delivery
from denizen.inbox.events import SAID_AS
from denizen.inbox.urgency import rule_from
from denizen.spaces import floor
from denizen.spaces.directory import Floor
from denizen.spaces.floor import Takers
from denizen.storage.database import Tx, columns, statement
from denizen.storage.schema import agents, cycles, entities, events, memberships

if TYPE_CHECKING:
    from denizen.spaces.posting import Draft

HOP_BUDGET: Final = 6
"""How many agents in a row may answer each other before their messages stop waking anyone."""
_members = (
    select(func.count())
    .where(memberships.c.space_id == bindparam("space_id"))
    .select_from(memberships)
    .scalar_subquery()
)
# When the agent retries what failed: its open cycle, or earlier messages of this space.
_cycle_goes_on_at = (
    select(func.max(cycles.c.not_before))
    .where(cycles.c.agent_id == agents.c.id, cycles.c.number.is_(None))
    .scalar_subquery()
)
_space_goes_on_at = (
    select(func.max(events.c.not_before))
    .where(
        events.c.agent_id == agents.c.id,
        events.c.space_id == bindparam("space_id"),
        events.c.state == "pending",
        events.c.not_before > 0,
    )
    .scalar_subquery()
)
_listeners = statement(
    select(
        memberships.c.entity_id,
        memberships.c.attention,
        entities.c.handle,
        *columns(agents, "urgent, status, held_by, held_until, parked_cause"),
        memberships.c.joined_at,
        _members,
        _cycle_goes_on_at,
        # Not for those that cannot answer anyway.
        case(((agents.c.status == "active") & agents.c.parked_cause.is_(None), _space_goes_on_at)),
        statuses.is_shown(agents.c.id),
    )
    .join(agents, agents.c.id == memberships.c.entity_id)
    .join(entities, entities.c.id == memberships.c.entity_id)
    .where(
        memberships.c.space_id == bindparam("space_id"),
        memberships.c.entity_id != bindparam("author_id"),
        memberships.c.attention != "none",
    )
    .order_by(memberships.c.entity_id)
)


@dataclass(frozen=True, slots=True)
class MessageToDeliver:
    """A message to be delivered to inboxes."""

    id: MessageId
    space_id: SpaceId
    author_id: EntityId
    author_kind: str
    author_handle: str
    what: Draft
    reply_to: MessageId | None
    hop: int
    urgent: bool
    asked: EntityId | None = None
    """The agent that its author waits for, in addition to those that it addresses."""
    answers: Collection[str] = ()
    """The agents that had asked its author for it."""
    request: Mapping[str, JsonValue] | None = None
    """What a program says that waits for the answer of the agent `asked`: a part of that agent's event."""
    said_as: str | None = None
    """The role of the token it was posted with, where that is less than its author's."""


@dataclass(frozen=True, slots=True)
class _Listener:
    """An agent in the space that attends to it."""

    id: AgentId
    attention: str
    handle: str
    urgent: str | None
    """Its rule for urgent messages."""
    status: str
    held_by: str | None
    """The budget that suspended it, if one did."""
    held_until: int | None
    parked: str | None
    """Why it is parked, if it is."""
    joined_at: int
    members: int
    """How many members the space has."""
    cycle_goes_on_at: int | None
    """When it retries a cycle that failed."""
    space_goes_on_at: int | None
    """When it retries earlier messages of the space."""
    has_status: bool
    """Whether the space shows its status."""

    @property
    def able(self) -> bool:
        return self.status == "active" and self.parked is None


def prefetch_listeners(tx: Tx, space_id: SpaceId, author_id: EntityId) -> None:
    """Announce a `decide_deliveries` of a message by this author."""
    tx.prefetch(_listeners, space_id=space_id, author_id=author_id)


def decide_deliveries(tx: Tx, said: MessageToDeliver, setting: Floor = "all") -> list[Delivery]:
    """Decides who receives the message, and whom it wakes. Delivers nothing yet.

    Returns one event for every agent in the space whose attention covers the message, except its author.

    Where its author waits for an agent that cannot answer now, the space shows why.
    """
    rows = tx.all(_listeners, space_id=said.space_id, author_id=said.author_id)
    mentions = said.what.rendered.mentions
    listeners = [_Listener(*row) for row in rows]
    attending = [each for each in listeners if each.attention == "all" or each.handle in mentions]
    # Many agents share a rule, most of them the default one: each rule is evaluated once.
    interrupted = {
        rule: rule_from(rule).applies(handle=said.author_handle, kind=said.author_kind, plain=said.what.rendered.plain)
        for rule in {each.urgent for each in attending}
    }
    who = _takers(tx, said, setting, listeners, attending)
    # A person's message wakes the agents that the floor names; a chain of agents wakes as far as its budget goes.
    goes_on = said.hop <= HOP_BUDGET
    for each in attending:
        if each.id in who.awaited:
            _show_why_not(tx, said, each)
    return [
        Delivery(
            agent_id=each.id,
            id=said.id,
            type="mention" if each.handle in mentions else "space_message",
            created_at=tx.now,
            urgent=said.urgent or interrupted[each.urgent],
            wakes=goes_on and each.id in who.woken,
            waits=each.id in who.awaited,
            hop=said.hop,
            space_id=said.space_id,
            message_id=said.id,
            payload={
                **({"reply_to": said.reply_to} if said.reply_to else {}),
                **(said.request or {} if each.id == said.asked else {}),
                **({SAID_AS: said.said_as} if said.said_as else {}),
            },
        )
        for each in attending
        if each.status != "dead"
    ]


def _takers(
    tx: Tx, said: MessageToDeliver, setting: Floor, listeners: Sequence[_Listener], attending: Sequence[_Listener]
) -> Takers:
    """The attending agents that take up the message, and those that its author waits for."""
    agents_here = sum(each.status != "dead" for each in listeners) + (said.author_kind == "agent")
    several = agents_here > 1
    replied = None
    if said.reply_to is not None and several and setting != "all":
        replied = floor.author_of(tx, said.space_id, said.reply_to)
    mentions = said.what.rendered.mentions
    meant = {said.asked, replied, *said.answers}
    heard = [
        floor.Listener(each.id, each.handle in mentions or each.id in meant, each.able, each.joined_at)
        for each in attending
    ]
    alone = bool(attending) and attending[0].members == 2
    found = floor.takers(setting, heard, author_kind=said.author_kind, several=several, alone=alone)
    if found is not None:
        return found
    awaited = not floor.is_for_a_person(tx, said.space_id, mentions)
    return floor.choose(heard, floor.last_speakers(tx, said.space_id), awaited=awaited)


def _show_why_not(tx: Tx, said: MessageToDeliver, listener: _Listener) -> None:
    """Show in the space why the agent cannot answer now, if it cannot; clears statuses of earlier messages."""
    if listener.has_status:
        statuses.clear_earlier(tx, listener.id, said.space_id, said.author_id)
    if not listener.able:
        parking.show_if_unable(
            tx,
            listener.id,
            said.space_id,
            said.id,
            status=listener.status,
            held_by=listener.held_by,
            held_until=listener.held_until,
        )
    elif (again_at := max(listener.cycle_goes_on_at or 0, listener.space_goes_on_at or 0)) > tx.now:
        statuses.show(tx, listener.id, said.space_id, "failing", message_id=said.id, retry_at=again_at)
