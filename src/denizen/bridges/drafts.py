"""Drafts: messages that a room shows while they are written, and that may have half their text there.

A row is stored before a draft is shown, and deleted when the message has taken its place or the draft was withdrawn: a
process that dies in between leaves no half text behind. A draft has an id of its own, so that it never counts as the
message.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import bindparam, delete, exists, select, update

from denizen.bridges import registry
from denizen.bridges.registry import BridgeLease, Channel
from denizen.clock import Instant
from denizen.ids import BridgeId, ChannelId, MessageId
from denizen.storage.database import Tx, insert_ignore, insert_into, statement, storable, value
from denizen.storage.schema import channels, drafts, messages, outbox

WRITING: Final = " … ✍️"
"""Ends a text that is still being written: nobody takes it for the whole."""

_at = (drafts.c.channel_id == bindparam("channel"), drafts.c.message_id == bindparam("message"))
_add = insert_ignore(drafts)
_get = statement(select(drafts.c.outside_id).where(*_at))
_begun_at = statement(select(drafts.c.created_at).where(*_at))
_set = statement(update(drafts).where(*_at).values(outside_id=bindparam("there")))
_drop = statement(delete(drafts).where(*_at))
_exists = statement(select(messages.c.id).where(messages.c.id == bindparam("id")))
_left = (
    select(drafts.c.channel_id, channels.c.room, drafts.c.message_id)
    .join(channels, channels.c.id == drafts.c.channel_id)
    .where(
        channels.c.bridge_id == bindparam("bridge"),
        ~exists(select(messages.c.id).where(messages.c.id == drafts.c.message_id)),
        ~exists(select(outbox.c.number).where(outbox.c.detail == drafts.c.message_id, outbox.c.action == "delete")),
    )
)
_all_left = statement(_left)
_one_left = statement(_left.where(drafts.c.message_id == bindparam("message")))
_send = insert_into(
    outbox, "bridge_id", "channel_id", "target", "action", "transaction_id", "detail", "next_at", "created_at"
)


def draft_id(message_id: str, channel_id: str) -> str:
    """The id under which a draft is shown."""
    return f"{message_id}.{channel_id}.draft"


def begin_draft(tx: Tx, held: BridgeLease, channel: Channel, message_id: MessageId) -> bool:
    """Note that a draft may be there from now on. Returns whether it is still wanted: the message is not said yet."""
    registry.lock(tx, held.bridge_id, held)
    if tx.one(_exists, id=message_id) is not None:
        return False
    tx.run(_add, channel_id=channel.id, message_id=message_id, outside_id=None, created_at=tx.now)
    return True


def note_draft(tx: Tx, held: BridgeLease, channel: Channel, message_id: MessageId, outside_id: str) -> None:
    """Note under which id the draft is there."""
    registry.lock(tx, held.bridge_id, held)
    tx.run(_set, channel=channel.id, message=message_id, there=storable(outside_id))


def find(tx: Tx, channel_id: str, message_id: str) -> tuple[bool, str | None]:
    """Whether a draft of the message may be there, and its id if that is known."""
    row = tx.one(_get, channel=channel_id, message=message_id)
    return row is not None, None if row is None else row[0]


def begun_at(tx: Tx, channel_id: str, message_id: str) -> Instant | None:
    """Since when a draft may be there."""
    return value(tx, _begun_at, channel=channel_id, message=message_id)


def drop(tx: Tx, channel_id: str, message_id: str) -> None:
    """The draft is no longer there."""
    tx.run(_drop, channel=channel_id, message=message_id)


def abandon(tx: Tx, held: BridgeLease, message_id: MessageId | None = None) -> None:
    """Have drafts withdrawn whose message was never said: that of this message, or all."""
    registry.lock(tx, held.bridge_id, held)
    if message_id is None:
        rows = tx.all(_all_left, bridge=held.bridge_id)
    else:
        rows = tx.all(_one_left, bridge=held.bridge_id, message=message_id)
    for channel_id, room, message in rows:
        withdraw(tx, held.bridge_id, channel_id, room, message)


def withdraw(tx: Tx, bridge_id: BridgeId, channel_id: ChannelId, room: str, message_id: str) -> None:
    """Have a draft deleted there."""
    tx.run(
        _send,
        bridge_id=bridge_id,
        channel_id=channel_id,
        target=room,
        action="delete",
        transaction_id=draft_id(message_id, channel_id),
        detail=message_id,
        next_at=tx.now,
        created_at=tx.now,
    )
