"""What is to be sent elsewhere: which comes next in each room, what it says now, and what became of it.

Sending has three steps: `begin_sending` counts the attempt and reads the message as it is now, the adapter sends it
under an id that is always the same, `end_sending` stores what became of it. A process that dies in between sends it
again under that id: the other side has it once, if it can tell.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import bindparam, delete, func, select, update

from denizen.access.vault import Vault
from denizen.bridges import addresses, registry
from denizen.bridges.port import Later, Outcome, Outgoing, OutgoingFile, Refused, Revoked, Sent
from denizen.bridges.registry import Bridge, BridgeLease
from denizen.clock import SECOND
from denizen.errors import SecretUnreadable
from denizen.ids import BridgeId, MessageId
from denizen.spaces import posting
from denizen.storage.database import Tx, insert_ignore, statement, storable, value, values
from denizen.storage.schema import carried, channels, outbox

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
_due = statement(
    select(outbox.c.number, outbox.c.target)
    .where(outbox.c.number.in_(_heads), outbox.c.next_at <= bindparam("now"))
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
_due_row = statement(_columns.where(outbox.c.next_at <= bindparam("now")))
_begin = statement(update(outbox).where(outbox.c.number == bindparam("row")).values(tries=outbox.c.tries + 1))
_later = statement(update(outbox).where(outbox.c.number == bindparam("row")).values(next_at=bindparam("at")))
_fail = statement(update(outbox).where(outbox.c.number == bindparam("row")).values(failed=bindparam("why")))
_drop = statement(delete(outbox).where(outbox.c.number == bindparam("row")))
_there = statement(
    select(carried.c.outside_id)
    .where(
        carried.c.message_id == bindparam("message_id"),
        carried.c.channel_id == bindparam("channel_id"),
        carried.c.emoji.is_(None),
    )
    .order_by(carried.c.created_at)
)
_reaction_there = statement(
    select(carried.c.outside_id)
    .where(
        carried.c.message_id == bindparam("message_id"),
        carried.c.channel_id == bindparam("channel_id"),
        carried.c.emoji == bindparam("with_emoji"),
        carried.c.direction == "out",
    )
    .order_by(carried.c.created_at.desc())
    .limit(1)
)
_carry = insert_ignore(carried)
_retry = statement(
    update(outbox).where(outbox.c.bridge_id == bindparam("bridge")).values(failed=None, next_at=bindparam("now"))
)
_spaces = statement(select(channels.c.space_id).where(channels.c.bridge_id == bindparam("bridge_id")).distinct())
_space_of = statement(select(channels.c.space_id).where(channels.c.id == bindparam("channel_id")))


def due(tx: Tx, bridge_id: BridgeId) -> list[int]:
    """The rows to be sent now: the oldest of each room, unless it has to wait."""
    return [number for number, _ in tx.all(_due, bridge_id=bridge_id, now=tx.now)]


def next_at(tx: Tx, bridge_id: BridgeId) -> int | None:
    """When the next row may be sent; None if nothing waits."""
    return value(tx, _next_at, bridge_id=bridge_id)


def pause_seconds(tries: int, asked_for: float | None) -> float:
    """How long to wait after so many attempts: as long as the service asks, and longer each time. Pure."""
    grown = min(FIRST_PAUSE_SECONDS * 2 ** min(tries - 1, 20), LONGEST_PAUSE_SECONDS)
    return max(grown, min(asked_for or 0.0, LONGEST_ASKED_SECONDS))


def begin_sending(tx: Tx, held: BridgeLease, number: int, vault: Vault) -> Outgoing | None:
    """Count an attempt, and return what is to be sent, as it is now. None if there is nothing to send any more."""
    registry.lock(tx, held.bridge_id, held)
    row = tx.one(_due_row, number=number, now=tx.now)
    if row is None:
        return None  # Whoever found it due looked before the last attempt ended.
    what = _outgoing(tx, row, vault)
    tx.run(_drop if what is None else _begin, row=number)
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
    message = posting.find_message(tx, MessageId(message_id))
    there, *parts = values(tx, _there, message_id=message_id, channel_id=channel_id) or [None]
    if action == "unreact":
        there = value(tx, _reaction_there, message_id=message_id, channel_id=channel_id, with_emoji=detail)
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
        created_at=created_at,
    )


def end_sending(tx: Tx, held: BridgeLease, number: int, outcome: Outcome) -> None:
    """Store what became of it: it was sent, waits, or failed; or the whole bridge waits."""
    registry.lock(tx, held.bridge_id, held)
    row = tx.one(_row, number=number)
    if row is None:
        return
    bridge_id, channel_id, _, message_id, action, _, detail, tries, _ = row
    match outcome:
        case Sent(outside_id, also):
            if outside_id is not None and channel_id is not None:
                for at, each in enumerate((outside_id, *also)):
                    tx.run(
                        _carry,
                        channel_id=channel_id,
                        outside_id=storable(each),
                        message_id=message_id if action in ("post", "react") else None,
                        emoji=detail if action == "react" else None,
                        direction="out",
                        created_at=tx.now + at,  # They are read in this order.
                    )
            tx.run(_drop, row=number)
            succeed(tx, bridge_id)
        case Later(reason, seconds):
            tx.run(_later, row=number, at=tx.now + int(pause_seconds(tries, seconds) * SECOND))
            registry.note_problem(tx, bridge_id, reason)
        case Refused(reason):
            tx.run(_fail, row=number, why=storable(reason)[:500])
            registry.note_problem(tx, bridge_id, reason)
            if channel_id is not None:
                bridge = registry.get(tx, bridge_id)
                said = f"could not deliver a message: {reason} It is kept, and an admin can have it sent again."
                _post_notice(tx, bridge, value(tx, _space_of, channel_id=channel_id), said)
        case Revoked(reason):
            park(tx, bridge_id, reason)


def park(tx: Tx, bridge_id: BridgeId, reason: str) -> None:
    """Let the bridge wait until somebody changes something, and say so once in its spaces."""
    if registry.park(tx, bridge_id, reason):
        said = f"is disconnected: {reason} Messages are kept and sent later. An admin can fix it under Administration."
        _tell(tx, registry.get(tx, bridge_id), said)


def succeed(tx: Tx, bridge_id: BridgeId) -> None:
    """The service has accepted the bridge. If it was parked, its spaces are told."""
    if registry.note_success(tx, bridge_id):
        _tell(tx, registry.get(tx, bridge_id), "works again. What was waiting is being sent.")


def note_readable(tx: Tx, held: BridgeLease, problem: str) -> None:
    """The service can be read again: this problem, if nothing has followed it, is over."""
    registry.lock(tx, held.bridge_id, held)
    if registry.get(tx, held.bridge_id).error == storable(problem)[: registry.PROBLEM_CHARACTERS]:
        succeed(tx, held.bridge_id)


def note_unreachable(tx: Tx, held: BridgeLease, reason: str) -> None:
    """The service could not be read."""
    registry.lock(tx, held.bridge_id, held)
    registry.note_problem(tx, held.bridge_id, reason)


def park_held(tx: Tx, held: BridgeLease, reason: str) -> None:
    """The same as `park`, by the process that carries the bridge's messages."""
    registry.lock(tx, held.bridge_id, held)
    park(tx, held.bridge_id, reason)


def retry(tx: Tx, bridge_id: BridgeId) -> None:
    """Send everything that waits or failed now."""
    tx.run(_retry, bridge=bridge_id, now=tx.now)


def _tell(tx: Tx, bridge: Bridge, what: str) -> None:
    for (space_id,) in tx.all(_spaces, bridge_id=bridge.id):
        _post_notice(tx, bridge, space_id, what)


def _post_notice(tx: Tx, bridge: Bridge, space_id: Any, what: str) -> None:
    posting.post_notice(tx, space_id, bridge.entity_id, posting.draft(f"{bridge.name} {what}"), {"bridge": bridge.id})
