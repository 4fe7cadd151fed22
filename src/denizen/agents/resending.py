"""Recognizes a message that a chat client sends again: a retry of the same request, or the wish for another answer.

Such clients have no key for a message, and send their whole conversation each time. So the last message of the person
in the space is compared with what is asked now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Literal

from pydantic import JsonValue
from sqlalchemy import select

from denizen.clock import SECOND
from denizen.errors import InvalidInput
from denizen.files import attaching
from denizen.ids import AgentId, EntityId, SpaceId
from denizen.inbox import delivery
from denizen.spaces import ask_again, posting
from denizen.spaces.posting import Message
from denizen.storage.database import Tx, equal, select_where, statement, value
from denizen.storage.schema import events, messages

REPEATED_SECONDS: Final = 600
"""For how long the same text may be the same request, if nothing else tells."""
_SHOWN_ANSWERS: Final = 50


@dataclass(frozen=True, slots=True)
class ResentRequest:
    """What a client's request says about earlier ones."""

    is_retry: bool = False
    """Whether the client says that it has sent this request before."""
    has_history: bool = False
    """Whether it has sent the conversation before this message."""
    previous_answer: str | None = None
    """The answer that its history has to the message before, if that has the same text."""
    knows_answer_to: str | None = None
    """The id of the message whose answer it continues."""


Decision = Literal["new", "same", "another"]


def decide(resent: ResentRequest, *, is_open: bool, answers: Sequence[str], age_seconds: float) -> Decision:
    """What a message means whose text the person has sent last, so many seconds ago. Pure.

    `is_open`: the agent has not finished with that message. `answers`: what it has said to it, in each of its cycles.
    """
    if is_open:
        return "same"
    recent = age_seconds < REPEATED_SECONDS
    if resent.is_retry and recent:
        return "same"
    if not answers:
        return "new"
    if resent.previous_answer is not None and resent.previous_answer.split() in [each.split() for each in answers]:
        return "new"  # The person has read that answer, and says the same once more.
    return "another" if resent.has_history or recent else "new"


_last_by = select_where(messages, "id", "space_id, author_id", order_by="seq desc", limit=1)
_event_of_message = statement(
    select(events.c.number).where(
        *equal(events, "agent_id, message_id"),
        events.c.message_id.is_not(None),  # must match the condition of the partial index exactly
    )
)
_event_by_id = statement(
    select(events.c.number).where(
        *equal(events, "agent_id, id"),
        events.c.message_id.is_(None),  # must match the condition of the partial index exactly
    )
)


@dataclass(frozen=True, slots=True)
class Earlier:
    """The earlier message that a request means, and the event whose answer is waited for."""

    message: Message
    event: int


def event_of_message(tx: Tx, agent_id: AgentId, message_id: str) -> int | None:
    """The number of the message's event in this inbox."""
    return value(tx, _event_of_message, agent_id=agent_id, message_id=message_id)


def event_by_id(tx: Tx, agent_id: AgentId, id: str) -> int | None:
    """The number of the event of this id, which is not a message's."""
    return value(tx, _event_by_id, agent_id=agent_id, id=id)


def find_earlier(
    tx: Tx,
    space_id: SpaceId,
    author_id: EntityId,
    agent_id: AgentId,
    text: str,
    files: Sequence[str],
    resent: ResentRequest,
    request: Mapping[str, JsonValue],
) -> Earlier | None:
    """The message that this request means, if it is not a new one. If another answer is wanted, the agent is asked."""
    last_id = value(tx, _last_by, space_id=space_id, author_id=author_id)
    last = None if last_id is None else posting.find_message(tx, last_id)
    if last is None or last.deleted_at is not None or last.text != text or not _same_files(tx, last, files):
        return None
    event = event_of_message(tx, agent_id, last.id)
    if event is None:
        return None
    waiting = delivery.open_about(tx, agent_id, space_id, last.id)
    if resent.knows_answer_to == last.id and not waiting and not resent.is_retry:
        return None
    answers = [
        each
        for each in posting.messages_after(tx, space_id, last.seq, limit=_SHOWN_ANSWERS)
        if each.author_id == agent_id and each.deleted_at is None
    ]
    texts = [" ".join(each.text for each in said) for _, said in groupby(answers, key=lambda each: each.cycle_id)]
    age = (tx.now - last.created_at) / SECOND
    match decide(resent, is_open=bool(waiting), answers=texts, age_seconds=age):
        case "new":
            return None
        case "same":
            return Earlier(last, max(waiting, default=event))
        case "another":
            try:
                asked = ask_again.ask_for_another(tx, answers[-1].id, author_id, request)
            except InvalidInput:
                return None  # The agent can no longer be asked for it.
            number = event_by_id(tx, agent_id, asked)
            return None if number is None else Earlier(last, number)


def _same_files(tx: Tx, last: Message, files: Sequence[str]) -> bool:
    if not files and not last.files:
        return True
    found = attaching.attachable(tx, last.author_id, files)
    return [(each.name, each.digest) for each in found] == [(each.name, each.digest) for each in last.files]
