"""Notes what has to be sent to rooms elsewhere, in the transaction that says or changes it. Sending is up to `bridges`.

A row names a message and never holds its text: what is sent is the message as it is then, so that a message that was
deleted or forgotten before goes nowhere. The caller has locked the space: rows of a room are in the order of commits.
"""

from __future__ import annotations

from typing import Final, Literal

from sqlalchemy import bindparam, select

from denizen.ids import ChannelId, MessageId, SpaceId, new_id
from denizen.storage.database import Tx, insert_into, select_where, statement, values
from denizen.storage.schema import bridges, carried, channels, memberships, outbox

Action = Literal["post", "edit", "delete", "react", "unreact", "code"]

TO_SEND: Final = "bridges.to_send"
"""The topic of hints that something has to be sent elsewhere."""

# A bridge that was removed from the space sends nothing of it.
_channels = statement(
    select(channels.c.id, channels.c.bridge_id, channels.c.room)
    .join(bridges, bridges.c.id == channels.c.bridge_id)
    .join(
        memberships,
        (memberships.c.space_id == channels.c.space_id) & (memberships.c.entity_id == bridges.c.entity_id),
    )
    .where(channels.c.space_id == bindparam("space_id"))
    .order_by(channels.c.id)
)
_came_from = select_where(carried, "channel_id", "message_id", carried.c.direction == "in")
_add = insert_into(
    outbox, "bridge_id, channel_id, target, message_id, action, transaction_id, detail, next_at, created_at"
)


def note(
    tx: Tx,
    space_id: SpaceId,
    message_id: MessageId,
    action: Action,
    *,
    via: ChannelId | None = None,
    detail: str | None = None,
) -> None:
    """Note that the message, or the change of it, has to be sent to every room that the space is bound to.

    Nothing is sent back to the room that it came from (`via`), nor a change of text that somebody wrote there.
    """
    found = tx.all(_channels, space_id=space_id)
    if not found:
        return
    written_there: set[str] = set() if action == "post" else set(values(tx, _came_from, message_id=message_id))
    for channel_id, bridge_id, room in found:
        theirs = channel_id in written_there and action in ("edit", "delete")
        if channel_id == via or theirs:
            continue
        tx.run(
            _add,
            bridge_id=bridge_id,
            channel_id=channel_id,
            target=room,
            message_id=message_id,
            action=action,
            # A message is posted once in a room, and may be changed there several times.
            transaction_id=f"{message_id}.{channel_id if action == 'post' else new_id()}",
            detail=detail,
            next_at=tx.now,
            created_at=tx.now,
        )
        tx.announce(TO_SEND, {"bridge": bridge_id})
