"""Checks that everyone who waits for an answer gets one, or is told why not."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import bindparam, exists, or_, select

from denizen.checks.violation import Violation
from denizen.storage.database import Tx, statement
from denizen.storage.schema import agents, calls, events, memberships, messages, space_statuses

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


def check_waiting(tx: Tx) -> Iterator[Violation]:
    """A person who waits for an answer that does not come by itself is told why in the space."""
    for agent_id, event_id in tx.all(_set_aside):
        yield Violation(11, "Somebody waits for an answer to a message that was set aside.", (agent_id, event_id))
    for agent_id, event_id in tx.all(_held_up, now=tx.now):
        sentence = "Somebody waits for an agent that is parked, suspended or deleted, and is not told so."
        yield Violation(11, sentence, (agent_id, event_id))
    for agent_id, event_id in tx.all(_ended):
        yield Violation(11, "A message has no answer, and whoever waits for it is not told so.", (agent_id, event_id))
