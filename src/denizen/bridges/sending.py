"""The outbox of bridges: what is sent next to each room, with its present text, and the result.

Sending has three steps: `begin_sending` counts the attempt and reads the message as it is now, the adapter sends it
under an id that is always the same, `end_sending` stores what became of it. A process that dies in between sends it
again under that id: the other side has it once, if it can tell.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any, Final

from sqlalchemy import bindparam, func, or_, select

from denizen.access.vault import Vault
from denizen.bridges import addresses, drafts, receiving, registry, told_statuses
from denizen.bridges.port import Later, Outcome, Outgoing, OutgoingFile, Refused, Revoked, Sent, Thread
from denizen.bridges.registry import Bridge, BridgeLease
from denizen.clock import SECOND
from denizen.errors import SecretUnreadable
from denizen.ids import BridgeId, ChannelId, MessageId
from denizen.spaces import posting
from denizen.storage.database import (
    Tx,
    delete_where,
    insert_ignore,
    select_where,
    statement,
    storable,
    update_where,
    value,
    values,
)
from denizen.storage.schema import carried, channels, messages, outbox

FIRST_PAUSE_SECONDS: Final = 2
LONGEST_PAUSE_SECONDS: Final = 300
LONGEST_ASKED_SECONDS: Final = 3600
"""A service that asks for more patience than this is asked again after this."""
AT_ONCE: Final = 50
"""The most rooms that are sent to at the same time."""

# Word for word the condition of the partial index.
_WAITS = outbox.c.failed.is_(None)
_heads = (
    select(func.min(outbox.c.number))
    .where(outbox.c.bridge_id == bindparam("bridge_id"), _WAITS)
    .group_by(outbox.c.target)
    .scalar_subquery()
)
# A clock that was set back makes nothing wait: a row without a pause is due, and no pause is longer than the longest.
_is_due = or_(
    outbox.c.next_at <= bindparam("now"),
    outbox.c.next_at <= outbox.c.created_at,
    outbox.c.next_at > bindparam("latest", type_=outbox.c.next_at.type),
)
_due = statement(
    select(outbox.c.number, outbox.c.target)
    .where(outbox.c.number.in_(_heads), _is_due)
    .order_by(outbox.c.number)
    .limit(AT_ONCE)
)
_next_at = statement(select(func.min(outbox.c.next_at)).where(outbox.c.number.in_(_heads)))
_columns = select(
    outbox.c.bridge_id,
    outbox.c.channel_id,
    outbox.c.target,
    outbox.c.message_id,
    outbox.c.action,
    outbox.c.transaction_id,
    outbox.c.detail,
    outbox.c.tries,
    outbox.c.created_at,
).where(outbox.c.number == bindparam("number"), _WAITS)
_row = statement(_columns)
_due_row = statement(_columns.where(_is_due))
_begin = update_where(outbox, "number", tries=outbox.c.tries + 1)
_later = update_where(outbox, "number", set_="next_at")
_fail = update_where(outbox, "number", set_="failed")
_drop = delete_where(outbox, "number")
_there = select_where(carried, "outside_id", "message_id, channel_id", carried.c.emoji.is_(None), order_by="created_at")
_reaction_there = select_where(
    carried,
    "outside_id",
    "message_id, channel_id, emoji",
    carried.c.direction == "out",
    order_by="created_at desc",
    limit=1,
)
_last_sent = select_where(
    carried,
    "outside_id",
    "channel_id",
    carried.c.direction == "out",
    carried.c.message_id.is_not(None),
    carried.c.emoji.is_(None),
    order_by="created_at desc",
    limit=1,
)
_carry = insert_ignore(carried)
_said_before = statement(
    select(carried.c.outside_id)
    .join(messages, messages.c.id == carried.c.message_id)
    .where(carried.c.channel_id == bindparam("channel_id"))
    .order_by(messages.c.seq.desc())
    .limit(20)
)
_parent_of = select_where(channels, "parent_id", "id")
_retry = update_where(outbox, "bridge_id", set_="next_at", failed=None)
# Of conversations, of which there may be thousands, those that wait for something to be sent.
_waits_in = select(outbox.c.channel_id).where(outbox.c.bridge_id == bindparam("bridge_id"), _WAITS)
_spaces = statement(
    select(channels.c.space_id)
    .where(
        channels.c.bridge_id == bindparam("bridge_id"),
        or_(channels.c.parent_id.is_(None), channels.c.id.in_(_waits_in)),
    )
    .distinct()
)
_space_of = select_where(channels, "space_id", "id")


def due(tx: Tx, bridge_id: BridgeId) -> list[int]:
    """The rows to be sent now: the oldest of each room, unless it has to wait."""
    return [number for number, _ in tx.all(_due, bridge_id=bridge_id, now=tx.now, latest=_latest(tx))]


def _latest(tx: Tx) -> int:
    """No pause ends later."""
    return tx.now + LONGEST_ASKED_SECONDS * SECOND


def next_at(tx: Tx, bridge_id: BridgeId) -> int | None:
    """When the next row may be sent; None if nothing waits."""
    return value(tx, _next_at, bridge_id=bridge_id)


def pause_seconds(tries: int, asked_for: float | None) -> float:
    """How long to wait after so many attempts: as long as the service asks, and longer each time. Pure."""
    grown = min(FIRST_PAUSE_SECONDS * 2 ** min(tries - 1, 20), LONGEST_PAUSE_SECONDS)
    return max(grown, min(asked_for or 0.0, LONGEST_ASKED_SECONDS))


def begin_sending(tx: Tx, held: BridgeLease, number: int, vault: Vault) -> Outgoing | None:
    """Count an attempt, and return what is to be sent, as it is now. None if there is nothing left to send."""
    registry.lock(tx, held.bridge_id, held)
    row = tx.one(_due_row, number=number, now=tx.now, latest=_latest(tx))
    if row is None:
        return None  # Whoever found it due looked before the last attempt ended.
    what = _outgoing(tx, row, vault)
    tx.run(_drop if what is None else _begin, number=number)
    bridge_id, channel_id, target, message_id, action, *_ = row
    if what is None and action == "post" and drafts.find(tx, channel_id, message_id)[0]:
        drafts.withdraw(tx, bridge_id, channel_id, target, message_id)
    return what


def _outgoing(tx: Tx, row: tuple[Any, ...], vault: Vault) -> Outgoing | None:
    bridge_id, channel_id, target, message_id, action, id, detail, tries, created_at = row
    again = tries > 0
    if action == "code":
        try:
            code = vault.open(detail, addresses.code_purpose(bridge_id))
        except SecretUnreadable:
            return None
        return Outgoing(id, "code", target, text=code, again=again)
    if action == "status":
        return _status(tx, row)
    if message_id is None:
        return _withdrawal(tx, row)
    message = posting.find_message(tx, MessageId(message_id))
    there, *parts = values(tx, _there, message_id=message_id, channel_id=channel_id) or [None]
    if action == "unreact":
        there = value(tx, _reaction_there, message_id=message_id, channel_id=channel_id, emoji=detail)
    # A message that was deleted before it was sent goes nowhere, and one that is not there cannot be changed there.
    if message is None or (action == "post") == (there is not None):
        return None
    if message.deleted_at is not None and action != "delete":
        return None
    replied = None
    if action == "post" and message.reply_to is not None:
        replied = next(iter(values(tx, _there, message_id=message.reply_to, channel_id=channel_id)), None)
    with_text = action in ("post", "edit")
    return Outgoing(
        id=id,
        action=action,
        target=target,
        text=message.text if with_text else "",
        author=message.author_name,
        author_handle=message.author_handle or "",
        author_kind=message.author_kind,
        of=there,
        also=tuple(parts) if action in ("edit", "delete") else (),
        reply_to=replied,
        emoji=detail,
        files=tuple(OutgoingFile(each.id, each.name, each.media_type, each.size) for each in message.files)
        if action == "post"
        else (),
        again=again,
        draft=drafts.find(tx, channel_id, message_id)[1] if action == "post" and replied is None else None,
        last_sent=value(tx, _last_sent, channel_id=channel_id) if again else None,
        created_at=created_at,
        thread=_thread(tx, channel_id),
    )


def _withdrawal(tx: Tx, row: tuple[Any, ...]) -> Outgoing | None:
    """The deletion of a draft; None if its message has taken its place, or will."""
    _, channel_id, target, _, action, id, message_id, *_ = row
    is_there, draft = drafts.find(tx, channel_id, message_id)
    message = posting.find_message(tx, MessageId(message_id))
    sent = values(tx, _there, message_id=message_id, channel_id=channel_id)
    if not is_there or draft in sent or (message is not None and message.deleted_at is None and not sent):
        return None
    since = drafts.begun_at(tx, channel_id, message_id)
    return Outgoing(id, action, target, of=draft, again=True, created_at=since)


def _status(tx: Tx, row: tuple[Any, ...]) -> Outgoing | None:
    """Why somebody there has no answer yet, said by the bridge itself; None if that is over."""
    _, channel_id, target, _, _, id, about, tries, created_at = row
    found = told_statuses.find(tx, channel_id, about)
    if found is None:
        return None
    text, reply_to = found
    again = tries > 0
    return Outgoing(
        id,
        "post",
        target,
        text=text,
        author_kind="service",
        reply_to=reply_to,
        again=again,
        last_sent=value(tx, _last_sent, channel_id=channel_id) if again else None,
        created_at=created_at,
    )


def message_of(tx: Tx, number: int) -> str | None:
    """The message that a row is about."""
    row = tx.one(_row, number=number)
    return None if row is None else row[3]


def _thread(tx: Tx, channel_id: ChannelId) -> Thread | None:
    """The conversation that the channel is, if it is one."""
    known = None
    if value(tx, _parent_of, id=channel_id) is not None:
        known = receiving.conversation(tx, channel_id)
    return known and replace(known, refers_to=tuple(values(tx, _said_before, channel_id=channel_id)))


def end_sending(tx: Tx, held: BridgeLease, number: int, outcome: Outcome, *, is_read: bool = True) -> None:
    """Store what became of it: it was sent, waits, or failed; or the whole bridge waits. A bridge that cannot be read
    (`is_read`) keeps its problem, also if it can send.
    """
    registry.lock(tx, held.bridge_id, held)
    row = tx.one(_row, number=number)
    if row is None:
        return
    bridge_id, channel_id, _, message_id, action, _, detail, tries, _ = row
    match outcome:
        case Sent(outside_id, also, missed):
            if missed and channel_id is not None:
                bridge = registry.get(tx, bridge_id)
                said = f"could not deliver a message to everyone: {missed}."
                _post_notice(tx, bridge, value(tx, _space_of, id=channel_id), said)
            if outside_id is not None and channel_id is not None:
                parent_id = value(tx, _parent_of, id=channel_id)
                places = [channel_id] if parent_id is None else [channel_id, parent_id]
                for at, (each, where) in enumerate(product((outside_id, *also), places)):
                    tx.run(
                        _carry,
                        channel_id=where,
                        outside_id=storable(each),
                        message_id=message_id if action in ("post", "react") else None,
                        emoji=detail if action == "react" else None,
                        direction="out",
                        created_at=tx.now + at,  # They are read in this order.
                        reactor_id=None,
                    )
            tx.run(_drop, number=number)
            _end_draft(tx, row, outside_id)
            if is_read:
                succeed(tx, bridge_id)
        case Later(reason, _, most) if most is not None and tries >= most:
            _set_aside(tx, bridge_id, channel_id, number, reason)
        case Later(reason, seconds):
            tx.run(_later, number=number, next_at=tx.now + int(pause_seconds(tries, seconds) * SECOND))
            registry.note_problem(tx, bridge_id, reason)
        case Refused(reason):
            _set_aside(tx, bridge_id, channel_id, number, reason)
        case Revoked(reason):
            park(tx, bridge_id, reason)


def _set_aside(tx: Tx, bridge_id: BridgeId, channel_id: ChannelId | None, number: int, reason: str) -> None:
    """It holds up nothing, and its space is told."""
    tx.run(_fail, number=number, failed=storable(reason)[:500])
    registry.note_problem(tx, bridge_id, reason)
    if channel_id is not None:
        bridge = registry.get(tx, bridge_id)
        said = f"could not deliver a message: {reason} It is kept, and an admin can have it sent again."
        _post_notice(tx, bridge, value(tx, _space_of, id=channel_id), said)


def _end_draft(tx: Tx, row: tuple[Any, ...], outside_id: str | None) -> None:
    """The message took the place of its draft, or the draft was withdrawn. One beside the message is withdrawn now."""
    bridge_id, channel_id, target, message_id, action, _, detail, *_ = row
    if action == "delete" and message_id is None:
        drafts.drop(tx, channel_id, detail)
    elif action == "post":
        is_there, draft = drafts.find(tx, channel_id, message_id)
        if is_there and draft != outside_id:
            drafts.withdraw(tx, bridge_id, channel_id, target, message_id)
        elif is_there:
            drafts.drop(tx, channel_id, message_id)


def park(tx: Tx, bridge_id: BridgeId, reason: str) -> None:
    """Let the bridge wait until somebody changes something, and say so once in its spaces."""
    if registry.park(tx, bridge_id, reason):
        said = f"is disconnected: {reason} Messages are kept and sent later. An admin can fix it under Administration."
        tell(tx, registry.get(tx, bridge_id), said)


def succeed(tx: Tx, bridge_id: BridgeId) -> None:
    """The service has accepted the bridge. If it was parked, its spaces are told."""
    if registry.note_success(tx, bridge_id):
        tell(tx, registry.get(tx, bridge_id), "works again. What was waiting is being sent.")


def note_readable(tx: Tx, held: BridgeLease, problem: str, *, is_told: bool = False) -> None:
    """The service can be read again: this problem, if nothing has followed it, is over. If its spaces knew of it
    (`is_told`), they are told.
    """
    registry.lock(tx, held.bridge_id, held)
    bridge = registry.get(tx, held.bridge_id)
    if is_told:
        tell(tx, bridge, "can read again what is written there.")
    if bridge.error == storable(problem)[: registry.PROBLEM_CHARACTERS]:
        succeed(tx, bridge.id)


def note_unreachable(tx: Tx, held: BridgeLease, reason: str, *, is_told: bool = False) -> None:
    """The service could not be read. If `is_told`, its spaces are told, unless they know."""
    registry.lock(tx, held.bridge_id, held)
    bridge = registry.get(tx, held.bridge_id)
    if is_told and bridge.error != reason:
        tell(tx, bridge, f"cannot read what is written there: {reason} It tries again, and nothing is lost.")
    registry.note_problem(tx, held.bridge_id, reason)


def note_room_unreadable(tx: Tx, held: BridgeLease, room: str, reason: str, *, is_told: bool) -> None:
    """The same for one room, whose space is told."""
    registry.lock(tx, held.bridge_id, held)
    channel = registry.find_channel(tx, held.bridge_id, room)
    if is_told and channel is not None:
        said = f"cannot read what is written there: {reason} It tries again, and nothing is lost."
        _post_notice(tx, registry.get(tx, held.bridge_id), channel.space_id, said)
    registry.note_problem(tx, held.bridge_id, reason)


def note_room_readable(tx: Tx, held: BridgeLease, room: str) -> None:
    """The room can be read again, of which its space is told."""
    registry.lock(tx, held.bridge_id, held)
    channel = registry.find_channel(tx, held.bridge_id, room)
    if channel is not None:
        bridge = registry.get(tx, held.bridge_id)
        _post_notice(tx, bridge, channel.space_id, "can read again what is written there.")


def park_held(tx: Tx, held: BridgeLease, reason: str) -> None:
    """The same as `park`, by the process that carries the bridge's messages."""
    registry.lock(tx, held.bridge_id, held)
    park(tx, held.bridge_id, reason)


def retry(tx: Tx, bridge_id: BridgeId) -> None:
    """Send everything that waits or failed now."""
    tx.run(_retry, bridge_id=bridge_id, next_at=tx.now)


def tell(tx: Tx, bridge: Bridge, what: str) -> None:
    """Say this in every space of the bridge."""
    for (space_id,) in tx.all(_spaces, bridge_id=bridge.id):
        _post_notice(tx, bridge, space_id, what)


def _post_notice(tx: Tx, bridge: Bridge, space_id: Any, what: str) -> None:
    posting.post_notice(tx, space_id, bridge.entity_id, posting.draft(f"{bridge.name} {what}"), {"bridge": bridge.id})
