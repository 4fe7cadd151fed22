"""Answers in words: a message of a person in a space answers the question that an agent asked there."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Final

from pydantic import JsonValue
from sqlalchemy import bindparam, select

from denizen.bus.streams import WAKE
from denizen.ids import EntityId, MessageId, SpaceId
from denizen.inbox import delivery
from denizen.shapes.vocabulary import ASKED
from denizen.spaces import directory, posting
from denizen.spaces.posting import Draft
from denizen.storage.database import Tx, select_where, statement, value
from denizen.storage.schema import calls, messages
from denizen.tools import elicitation_forms
from denizen.tools.calls import (
    BATCH,
    BY_AGE,
    CALL_COLUMNS,
    IS_WAITING,
    Call,
    answer_server,
    decided,
    is_overdue,
    settled_as,
    tell,
)

_YES: Final = ("yes", "approve")
_NO: Final = ("no", "reject")
_asked_in = statement(
    select(*CALL_COLUMNS)
    .where(
        calls.c.space_id == bindparam("space_id"),
        calls.c.shown == 1,
        IS_WAITING,
        calls.c.mode.in_(ASKED),
    )
    .order_by(*BY_AGE)
    .limit(BATCH)
)
_cycle_of = select_where(messages, "cycle_id", "id")


def question_for(
    tx: Tx, space_id: SpaceId, author_id: EntityId, what: Draft, reply_to: str | None = None
) -> Call | None:
    """The open question of an agent in the space that this message would answer, if there is one.

    A reply answers what it replies to: the question itself, or the cycle that asked it. Otherwise the oldest question
    that an agent pauses for is answered, unless the message mentions only others. An approval is answered only by its
    code, before it expires; a code that two of them share answers neither.
    """
    text, mentions = what.text, what.rendered.mentions
    asked = [Call(*row) for row in tx.all(_asked_in, space_id=space_id)]
    author = directory.get_entity(tx, author_id) if asked else None
    if author is None or author.kind != "human":
        return None
    if not posting.is_trusted_person(tx, author_id):
        asked = [each for each in asked if not each.approval]
    coded = [each for each in asked if _approved(each, text) is not None and not is_overdue(each, tx.now)]
    if len(coded) == 1:
        return coded[0]
    questions = [each for each in asked if not each.approval]
    if reply_to is not None:
        meant = {reply_to, value(tx, _cycle_of, id=reply_to)}
        return next((each for each in questions if each.id in meant or each.cycle_id in meant), None)
    return next((each for each in questions if each.mode == "pause" and _is_for(tx, each, mentions)), None)


def _is_for(tx: Tx, question: Call, mentions: Collection[str]) -> bool:
    """Whether a message with these mentions may be meant for the agent that asked."""
    return not mentions or directory.get_entity(tx, question.agent_id).handle in mentions


def answer_in_words(tx: Tx, question: Call, message_id: MessageId, seq: int, author_id: EntityId, text: str) -> None:
    """Take the message as the answer; it belongs to the cycle that paused for it. No effect if it was read before."""
    if seq <= question.after_seq:
        return  # posted before the question, and now again under the same id
    who = directory.get_entity(tx, author_id).name
    approved = _approved(question, text)
    said: dict[str, JsonValue] = {"answer": text} if approved is None else {"confirmed": approved}
    if question.mode == "elicitation":
        answer_server(tx, question, json.dumps(said), author_id)
        return
    result = json.dumps({**said, "by": who}, ensure_ascii=False)
    told = decided(tx, question, result, author_id) if question.asks_approval else result
    mode = settled_as(tx, question, "answered", result, author_id)
    if mode == "pause":
        delivery.join_cycle(tx, question.agent_id, message_id, question.cycle_id)
        tx.announce(WAKE, {"agents": [question.agent_id]})
    elif mode == "async":
        tell(tx, question, told, author_id)


def _approved(call: Call, text: str) -> bool | None:
    """Whether the text approves or refuses; None if neither."""
    words = text.lower().replace(".", " ").replace("!", " ").split()
    if call.code is None or len(words) != 2 or call.code.lower() not in words:
        return None
    word = next((each for each in words if each != call.code.lower()), "")
    if word in _YES and call.mode == "elicitation" and not elicitation_forms.is_complete(call.arguments):
        return None
    return True if word in _YES else False if word in _NO else None
