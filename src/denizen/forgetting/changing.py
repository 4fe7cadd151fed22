"""Edits and deletes messages: agents that have read one are told, and recall is updated.

The log keeps what they saw. The notice wakes nobody: it is read with the next event. It stores the former text, without
showing it, so that forgetting the message later finds that as well.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from pydantic import JsonValue
from sqlalchemy import bindparam, select

from denizen.consciousness.recall.passages import Piece, forget, forget_files, remember
from denizen.ids import AgentId, ChannelId, EntityId, MessageId, new_id
from denizen.inbox import delivery
from denizen.inbox.delivery import Delivery
from denizen.inbox.events import ABOUT, BEFORE, OUTSIDE
from denizen.inbox.format import quote, quoted_name, speaker
from denizen.memory import items, rolling
from denizen.spaces import ask_again, directory, editing, posting
from denizen.spaces.editing import Change
from denizen.spaces.posting import Draft, Message
from denizen.storage.database import Tx, columns, select_where, statement, values
from denizen.storage.schema import entities, events, memberships, minds, passages

_readers = statement(
    select(passages.c.agent_id)
    .where(passages.c.message_id == bindparam("message_id"), passages.c.message_id.is_not(None))
    .distinct()
)
_OPEN = events.c.state != "done"  # Word for word the condition of the partial index, or SQLite does not use it.
_reading = statement(
    select(events.c.agent_id)
    .join(memberships, memberships.c.entity_id == events.c.agent_id)
    .where(
        memberships.c.space_id == bindparam("space_id"),
        _OPEN,
        events.c.state == "taken",
        events.c.message_id == bindparam("message_id"),
    )
)


def edit_message(
    tx: Tx, message_id: MessageId, by: EntityId, what: Draft, *, ask: bool = False, via: ChannelId | None = None
) -> Message:
    """Edits the message, and tells every agent that has read it once.

    With `ask`, agents that were to answer it are asked to answer it as it is now. A change from elsewhere came `via` a
    channel.
    """
    change = editing.edit(tx, message_id, by, what, via=via)
    asked = ask_again.ask_about_edited(tx, change.after, by) if ask else []
    if change.is_one:
        _tell(tx, change, by, "edited", f": it now says {quote(what.text)}", without=asked)
        index_anew(tx, [message_id])
    return change.after


def delete_message(tx: Tx, message_id: MessageId, by: EntityId, *, via: ChannelId | None = None) -> Message:
    """Deletes the text of the message, and tells every agent that has read it once."""
    change = editing.delete(tx, message_id, by, via=via)
    if change.is_one:
        _tell(tx, change, by, "deleted", f": it was message {change.before.seq} there.")
        index_anew(tx, [message_id])
        forget_files(tx, [file.id for file in change.before.files])
        _unlearn(tx, change.before)
    return change.after


def _unlearn(tx: Tx, message: Message) -> None:
    """Forgets what was learned from the message, and has its conversation summarized anew."""
    items.forget(tx, items.resting_on(tx, [message.id]))
    if rolling.covers(tx, message.space_id, message.seq):
        rolling.begin_anew(tx, message.space_id)


def _tell(tx: Tx, change: Change, by: EntityId, did: str, more: str, without: Iterable[str] = ()) -> None:
    # A skipped cycle left no trace: an agent that does not remember the message need not be told.
    message = change.before
    readers = {
        *values(tx, _readers, message_id=message.id),
        *values(tx, _reading, space_id=message.space_id, message_id=message.id),
    }
    editor = directory.get_entity(tx, by)
    who = speaker(editor.name, None, editor.handle)
    author = speaker(message.author_name, None, message.author_handle)
    whose = "a message" if by == message.author_id else f"a message of {author}"
    text = f"{who} {did} {whose} in {quoted_name(directory.get_space(tx, message.space_id).name)}{more}"
    told = new_id()
    payload: dict[str, JsonValue] = {"text": text, ABOUT: message.id, BEFORE: message.text}
    if change.after.outside:
        payload[OUTSIDE] = True
    delivery.deliver(
        tx,
        [
            Delivery(
                AgentId(agent_id),
                f"{did}:{told}",
                "notice",
                tx.now,
                wakes=False,
                space_id=message.space_id,
                payload=payload,
            )
            for agent_id in sorted(readers - {by, *without})
        ],
    )


_passages = statement(
    select(
        *columns(passages, "agent_id, number, cycle, kind, space_id, speaker_id"),
        entities.c.name,
        passages.c.event_id,
        passages.c.at,
        passages.c.start,
    )
    .select_from(passages.outerjoin(entities, entities.c.id == passages.c.speaker_id))
    .where(passages.c.message_id == bindparam("message_id"), passages.c.message_id.is_not(None))
    .order_by(passages.c.agent_id, passages.c.number)
)
_hold_mind = select_where(minds, "agent_id", "agent_id", for_update=True)


def index_anew(tx: Tx, message_ids: Iterable[MessageId]) -> int:
    """Indexes these messages as they are now; removes those without text from the index."""
    count = 0
    for message_id in message_ids:
        by_agent: defaultdict[str, list[tuple[Any, ...]]] = defaultdict(list)
        for agent_id, *passage in tx.all(_passages, message_id=message_id):
            by_agent[agent_id].append(tuple(passage))
        if not by_agent:
            continue
        message = posting.get_message(tx, message_id)
        for agent_id, rows in by_agent.items():
            tx.one(_hold_mind, agent_id=agent_id)
            count += _index_for(tx, AgentId(agent_id), rows, message)
    return count


def _index_for(tx: Tx, agent_id: AgentId, rows: list[tuple[Any, ...]], message: Message) -> int:
    gone = forget(tx, agent_id, [number for number, *_ in rows])
    if message.deleted_at is None:
        for _, cycle, kind, space_id, speaker_id, name, event_id, at, start in rows:
            if start == 0:
                piece = Piece(
                    "said" if kind == "said" else "heard",
                    message.text,
                    at,
                    space_id,
                    speaker_id,
                    # An agent's own messages are not found by its name.
                    (name or "") if kind == "heard" else "",
                    message.id,
                    event_id,
                )
                remember(tx, agent_id, cycle, [piece])
    return gone
