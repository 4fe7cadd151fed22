"""Edits and deletes messages: by their author, or by an owner or admin of the space.

The message keeps its place and its number. Events that still wait in an inbox get the new text, and a deleted message
is removed from inboxes. What agents have read already stays in their log: the caller notifies them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from sqlalchemy import bindparam, case, select

from denizen.bus.streams import MessageDeleted, MessageEdited, space_topic
from denizen.errors import InvalidInput, NotAllowed
from denizen.files import attaching
from denizen.ids import ChannelId, EntityId, MessageId
from denizen.inbox import delivery, statuses
from denizen.spaces import outbox, posting
from denizen.spaces.fan_out import MessageToDeliver, decide_deliveries
from denizen.spaces.posting import Draft, Message
from denizen.storage import chains
from denizen.storage.database import Tx, select_where, statement, update_where, value
from denizen.storage.schema import entities, events, memberships, messages, spaces

DELETED: Final = "[deleted]"
"""The text of a deleted message."""
MAY_CHANGE: Final = ("owner", "admin")
"""Roles in a space that may change the messages of others."""


@dataclass(frozen=True, slots=True)
class Change:
    """A message before and after; the same if nothing has changed."""

    before: Message
    after: Message

    @property
    def is_one(self) -> bool:
        return self.before != self.after


_lock = select_where(spaces, "id", "id", for_update=True)
_role = select_where(memberships, "role", "space_id, entity_id")
_handle = select_where(entities, "handle", "id")
_rewrite = update_where(
    messages,
    "id",
    set_="text, plain, mentions, edited_at",
    # Text from outside stays marked, whoever edits it.
    outside=case((bindparam("from_outside") == 1, 1), else_=messages.c.outside),
)
_empty = update_where(
    messages,
    "id",
    set_="text, deleted_at",
    plain=None,
    mentions=None,
    metadata=None,
    files=None,
    reactions=None,
    pinned_at=None,
)
_OPEN = events.c.state != "done"  # must match the condition of the partial index exactly, or SQLite does not use it
_open_events = statement(
    select(events.c.number, events.c.agent_id, events.c.state, entities.c.handle)
    .join(memberships, memberships.c.entity_id == events.c.agent_id)
    .join(entities, entities.c.id == events.c.agent_id)
    .where(memberships.c.space_id == bindparam("space_id"), _OPEN, events.c.message_id == bindparam("message_id"))
)
_retype = update_where(events, "number", set_="type")
_take_out = update_where(events, "number", state="done")
_has_heard = select_where(events, "number", "agent_id, message_id", limit=1)


def edit(tx: Tx, message_id: MessageId, by: EntityId, what: Draft, *, via: ChannelId | None = None) -> Change:
    """Change the text of the message. Agents that are mentioned for the first time get it in their inbox.

    A change from elsewhere came `via` a channel, and is not sent back there; the same for the functions below.
    """
    before = _changeable(tx, message_id, by)
    if before.deleted_at is not None:
        raise InvalidInput("This message was deleted. Post a new one instead.")
    if before.text == what.text:
        return Change(before, before)
    plain, mentions = what.rendered.plain, what.rendered.mentions
    tx.run(
        _rewrite,
        id=message_id,
        text=what.text,
        plain=None if plain == what.text else plain,
        mentions=json.dumps(mentions) if mentions else None,
        edited_at=tx.now,
        from_outside=int(not posting.is_trusted_person(tx, by)),
    )
    chains.amend_message(tx, message_id)
    for number, _, state, handle in tx.all(_open_events, space_id=before.space_id, message_id=message_id):
        if state == "pending":
            tx.run(_retype, number=number, type="mention" if handle in mentions else "space_message")
    _deliver_to_others(tx, before, what)
    outbox.note(tx, before.space_id, message_id, "edit", via=via)
    tx.announce(space_topic(before.space_id), MessageEdited(before.space_id, before.seq, before.id).to_payload())
    return Change(before, posting.get_message(tx, message_id))


def _deliver_to_others(tx: Tx, before: Message, what: Draft) -> None:
    """Deliver the message to agents that are mentioned for the first time, as if it were new."""
    handle = value(tx, _handle, id=before.author_id)
    new = set(what.rendered.mentions) - set(before.mentions)
    if handle is None or not new:
        return
    said = MessageToDeliver(
        before.id,
        before.space_id,
        before.author_id,
        before.author_kind,
        handle,
        what,
        before.reply_to,
        before.hop,
        False,
    )
    mentioned = [each for each in decide_deliveries(tx, said) if each.type == "mention"]
    delivery.deliver(
        tx,
        [each for each in mentioned if tx.one(_has_heard, agent_id=each.agent_id, message_id=before.id) is None],
    )


def delete(tx: Tx, message_id: MessageId, by: EntityId, *, via: ChannelId | None = None) -> Change:
    """Delete the text of the message, and remove it from inboxes. Idempotent."""
    before = _changeable(tx, message_id, by)
    if before.deleted_at is not None:
        return Change(before, before)
    empty(tx, before, DELETED, via=via)
    return Change(before, posting.get_message(tx, message_id))


def empty(tx: Tx, message: Message, text: str, *, via: ChannelId | None = None) -> None:
    """Replace the message's text by `text`, delete its files, and remove it from inboxes. The caller has locked its
    space.
    """
    if message.files:
        attaching.remove_files_of(tx, message.id)
    tx.run(_empty, id=message.id, text=text, deleted_at=tx.now)
    chains.amend_message(tx, message.id)
    for number, _, state, _ in tx.all(_open_events, space_id=message.space_id, message_id=message.id):
        if state in ("pending", "dead"):
            tx.run(_take_out, number=number)
    statuses.leave_out(tx, message.space_id, message.id)
    outbox.note(tx, message.space_id, message.id, "delete", via=via)
    tx.announce(space_topic(message.space_id), MessageDeleted(message.space_id, message.seq, message.id).to_payload())


def _changeable(tx: Tx, message_id: MessageId, by: EntityId) -> Message:
    """The message, if this entity may change it, with its space locked: nobody posts or changes anything meanwhile."""
    space_id = posting.get_readable(tx, message_id, by).space_id
    tx.one(_lock, id=space_id)
    message = posting.get_message(tx, message_id)
    if posting.NOTICE in message.metadata:
        raise NotAllowed("Notices cannot be edited or deleted.")
    if message.author_id != by and value(tx, _role, space_id=space_id, entity_id=by) not in MAY_CHANGE:
        raise NotAllowed("Only its author, or an owner or admin of the space, may change a message.")
    return message
