"""Edits and deletes messages: by their author, or by an owner or admin of the space.

The message keeps its place and its number. Events that still wait in an inbox get the new text, and a deleted message
is removed from inboxes. What agents have read already stays in their log: the caller notifies them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from sqlalchemy import bindparam, case, select, update

from denizen.bus.streams import MessageDeleted, MessageEdited, space_topic
from denizen.errors import InvalidInput, NotAllowed
from denizen.files import attaching
from denizen.ids import ChannelId, EntityId, MessageId
from denizen.inbox import delivery, statuses
from denizen.spaces import outbox, posting
from denizen.spaces.posting import Draft, Message, Said
from denizen.storage import chains
from denizen.storage.database import Tx, statement
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


_lock = statement(select(spaces.c.id).where(spaces.c.id == bindparam("space_id")).with_for_update())
_role = statement(
    select(memberships.c.role).where(
        memberships.c.space_id == bindparam("space_id"), memberships.c.entity_id == bindparam("entity_id")
    )
)
_handle = statement(select(entities.c.handle).where(entities.c.id == bindparam("id")))
_rewrite = statement(
    update(messages)
    .where(messages.c.id == bindparam("message"))
    .values(
        text=bindparam("new_text"),
        plain=bindparam("new_plain"),
        mentions=bindparam("new_mentions"),
        edited_at=bindparam("at"),
        # Text from outside stays marked, whoever edits it.
        outside=case((bindparam("from_outside") == 1, 1), else_=messages.c.outside),
    )
)
_empty = statement(
    update(messages)
    .where(messages.c.id == bindparam("message"))
    .values(
        text=bindparam("new_text"),
        plain=None,
        mentions=None,
        metadata=None,
        files=None,
        reactions=None,
        pinned_at=None,
        deleted_at=bindparam("at"),
    )
)
_OPEN = events.c.state != "done"  # must match the condition of the partial index exactly, or SQLite does not use it
_open_events = statement(
    select(events.c.number, events.c.agent_id, events.c.state, entities.c.handle)
    .join(memberships, memberships.c.entity_id == events.c.agent_id)
    .join(entities, entities.c.id == events.c.agent_id)
    .where(memberships.c.space_id == bindparam("space_id"), _OPEN, events.c.message_id == bindparam("message_id"))
)
_retype = statement(update(events).where(events.c.number == bindparam("event")).values(type=bindparam("new_type")))
_take_out = statement(update(events).where(events.c.number == bindparam("event")).values(state="done"))
_has_heard = statement(
    select(events.c.number)
    .where(events.c.agent_id == bindparam("agent_id"), events.c.message_id == bindparam("message_id"))
    .limit(1)
)


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
        message=message_id,
        new_text=what.text,
        new_plain=None if plain == what.text else plain,
        new_mentions=json.dumps(mentions) if mentions else None,
        at=tx.now,
        from_outside=int(not posting.is_trusted_person(tx, by)),
    )
    chains.amend_message(tx, message_id)
    for number, _, state, handle in tx.all(_open_events, space_id=before.space_id, message_id=message_id):
        if state == "pending":
            tx.run(_retype, event=number, new_type="mention" if handle in mentions else "space_message")
    _deliver_to_others(tx, before, what)
    outbox.note(tx, before.space_id, message_id, "edit", via=via)
    tx.announce(space_topic(before.space_id), MessageEdited(before.space_id, before.seq, before.id).to_payload())
    return Change(before, posting.get_message(tx, message_id))


def _deliver_to_others(tx: Tx, before: Message, what: Draft) -> None:
    """Deliver the message to agents that are mentioned for the first time, as if it were new."""
    row = tx.one(_handle, id=before.author_id)
    new = set(what.rendered.mentions) - set(before.mentions)
    if row is None or not new:
        return
    said = Said(
        before.id,
        before.space_id,
        before.author_id,
        before.author_kind,
        row[0],
        what,
        before.reply_to,
        before.hop,
        False,
    )
    mentioned = [each for each in posting.decide_deliveries(tx, said) if each.type == "mention"]
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
    tx.run(_empty, message=message.id, new_text=text, at=tx.now)
    chains.amend_message(tx, message.id)
    for number, _, state, _ in tx.all(_open_events, space_id=message.space_id, message_id=message.id):
        if state in ("pending", "dead"):
            tx.run(_take_out, event=number)
    statuses.leave_out(tx, message.space_id, message.id)
    outbox.note(tx, message.space_id, message.id, "delete", via=via)
    tx.announce(space_topic(message.space_id), MessageDeleted(message.space_id, message.seq, message.id).to_payload())


def _changeable(tx: Tx, message_id: MessageId, by: EntityId) -> Message:
    """The message, if this entity may change it, with its space locked: nobody posts or changes anything meanwhile."""
    space_id = posting.get_readable(tx, message_id, by).space_id
    tx.one(_lock, space_id=space_id)
    message = posting.get_message(tx, message_id)
    if posting.NOTICE in message.metadata:
        raise NotAllowed("Notices cannot be edited or deleted.")
    role = tx.one(_role, space_id=space_id, entity_id=by)
    if message.author_id != by and (role is None or role[0] not in MAY_CHANGE):
        raise NotAllowed("Only its author, or an owner or admin of the space, may change a message.")
    return message
