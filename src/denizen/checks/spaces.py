"""Checks one space: its messages are numbered, and in every inbox that attends to them, once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import bindparam, func, select

from denizen.checks.violation import Violation, rows_of
from denizen.storage.database import Tx, columns, statement
from denizen.storage.schema import agents, entities, events, memberships, messages, spaces

MESSAGE_EVENTS: Final = ("space_message", "mention")

_spaces = statement(select(spaces.c.id, spaces.c.last_seq).order_by(spaces.c.id))
_messages = rows_of(
    select(
        *columns(messages, "id, seq, author_id, mentions, created_at"),
        func.coalesce(messages.c.edited_at, messages.c.deleted_at),
    ).order_by(messages.c.seq),
    messages.c.space_id,
)
_listeners = statement(
    select(memberships.c.entity_id, memberships.c.attention, memberships.c.joined_at, entities.c.handle)
    .join(agents, agents.c.id == memberships.c.entity_id)
    .join(entities, entities.c.id == memberships.c.entity_id)
    .where(memberships.c.space_id == bindparam("id"), agents.c.status != "dead")
    .order_by(memberships.c.entity_id)
)
_heard = statement(
    select(events.c.agent_id, events.c.message_id, events.c.type, events.c.space_id, entities.c.handle)
    .join(messages, messages.c.id == events.c.message_id)
    .join(entities, entities.c.id == events.c.agent_id)
    .where(messages.c.space_id == bindparam("id"), events.c.type.in_(MESSAGE_EVENTS))
    .order_by(events.c.number)
)


@dataclass(frozen=True, slots=True)
class _Message:
    id: str
    seq: int
    author_id: str
    mentions: frozenset[str]
    created_at: int
    changed_at: int | None
    """When it was last edited or deleted; its earlier mentions are not stored."""


def check_spaces(tx: Tx) -> Iterator[Violation]:
    """Returns what is wrong with any space."""
    for row in tx.all(_spaces):
        yield from _check_space(tx, *row)


def _check_space(tx: Tx, space_id: str, last_seq: int) -> Iterator[Violation]:
    said = [
        _Message(id, seq, author, frozenset(json.loads(mentions or "[]")), at, changed_at)
        for id, seq, author, mentions, at, changed_at in tx.all(_messages, id=space_id)
    ]
    if [message.seq for message in said] != [*range(1, last_seq + 1)]:
        yield Violation(2, f"The space counts {last_seq} messages, but does not hold those numbers.", (space_id,))
    heard = tx.all(_heard, id=space_id)
    yield from _check_unheard(
        space_id, said, {(agent_id, message_id) for agent_id, message_id, *_ in heard}, tx.all(_listeners, id=space_id)
    )
    yield from _check_heard(space_id, {message.id: message for message in said}, heard)


def _check_unheard(
    space_id: str, said: Sequence[_Message], heard: set[tuple[str, str]], listeners: Sequence[tuple[Any, ...]]
) -> Iterator[Violation]:
    """Every agent that attends to a message has it in the inbox."""
    for agent_id, attention, joined_at, handle in listeners:
        for message in said:
            attends = attention == "all" or (attention == "mentions" and handle in message.mentions)
            reached = message.author_id != agent_id and joined_at < message.created_at
            if attends and reached and (agent_id, message.id) not in heard:
                yield Violation(2, "A message is not in an inbox that attends to it.", (space_id, message.id, agent_id))


def _check_heard(space_id: str, said: Mapping[str, _Message], heard: Sequence[tuple[Any, ...]]) -> Iterator[Violation]:
    """A message in an inbox was posted there, by another, and is there once."""
    for (agent_id, message_id), times in Counter((agent_id, message_id) for agent_id, message_id, *_ in heard).items():
        if times > 1:
            yield Violation(2, f"A message is {times} times in one inbox.", (space_id, message_id, agent_id))
    for agent_id, message_id, kind, event_space, handle in heard:
        message = said[message_id]
        ids = (space_id, message_id, agent_id)
        if event_space != space_id:
            yield Violation(2, "An event says that its message is of another space.", ids)
        if message.author_id == agent_id:
            yield Violation(2, "An agent is told its own message.", ids)
        if (kind == "mention") != (handle in message.mentions) and message.changed_at is None:
            yield Violation(2, f"A message is a {kind} for an agent whom it does not so address.", ids)
