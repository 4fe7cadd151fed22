"""Chains of salted digests: they show whether a message or an entry of a log was changed, moved or removed by anything
but Denizen.

Each space has a chain over its messages, each agent one over its ended cycles. The head of a chain is in the row that
is locked for its numbers anyway (`spaces`, `minds`). A digest is over the text and what identifies it, so that columns
can be added. An edit or redaction deletes the salt of the old text, so that nobody can guess it from the digest, keeps
the digest and appends an amendment to the chain. Rows without a digest are left out: those of older versions, forks and
imports. Anyone who may write the database can compute new chains: they show damage, not forgery.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

from sqlalchemy import bindparam, select

from denizen.ids import random_bytes
from denizen.storage.database import Tx, columns, insert_into, select_where, statement, update_where
from denizen.storage.schema import amendments, cycles, log, messages, minds, spaces

BEGINNING: Final = b""
"""The head of a chain without entries."""


def new_salt() -> bytes:
    return random_bytes()


def _digest(salt: bytes, head: bytes, *parts: str | int | None) -> bytes:
    # No stored text contains NUL, so no two lists of parts are the same bytes.
    joined = "\0".join(["" if part is None else f"={part}" for part in parts])
    return blake2b(joined.encode("utf-8", "surrogatepass") + b"\0" + head, digest_size=16, salt=salt).digest()


def message_digest(
    salt: bytes,
    head: bytes,
    space_id: str,
    seq: int,
    id: str,
    author_id: str,
    text: str,
    reply_to: str | None,
    cycle_id: str | None,
    created_at: int,
) -> bytes:
    """The digest of a message that follows `head` in the chain of its space."""
    return _digest(salt, head, space_id, seq, id, author_id, text, reply_to, cycle_id, created_at)


def entry_digest(
    salt: bytes,
    cycle_id: str,
    seq: int,
    kind: str,
    message: str,
    request: str | None,
    outside: str | None,
    *,
    head: bytes = BEGINNING,
) -> bytes:
    """The digest of an entry of a log. It joins the chain of its agent when its cycle ends."""
    return _digest(salt, head, cycle_id, seq, kind, message, request, outside)


def cycle_digest(
    head: bytes, cycle_id: str, number: int, event_ids: Iterable[str], entry_digests: Iterable[bytes | None]
) -> bytes:
    """The digest of an ended cycle that follows `head` in the chain of its agent."""
    entries = "".join((each or b"").hex() + "," for each in entry_digests)
    return _digest(b"", head, cycle_id, number, entries, *sorted(event_ids))


# Amendments

_message = select_where(
    messages, "space_id, seq, id, author_id, text, reply_to, cycle_id, created_at", "id", messages.c.digest.is_not(None)
)
_space = statement(
    select(spaces.c.last_seq, spaces.c.head).where(spaces.c.id == bindparam("id")).with_for_update(key_share=True)
)
_advance_space = update_where(spaces, "id", set_="head")
_drop_message_salt = update_where(messages, "id", salt=None)
_entry = statement(
    select(log.c.agent_id, cycles.c.number, *columns(log, "cycle_id, seq, kind, message, request, outside"))
    .join(cycles, cycles.c.id == log.c.cycle_id)
    .where(log.c.number == bindparam("entry_number"), log.c.digest.is_not(None))
)
_mind = statement(
    select(minds.c.cycle_count, minds.c.head).where(minds.c.agent_id == bindparam("id")).with_for_update(key_share=True)
)
_advance_mind = update_where(minds, "agent_id", set_="head")
_seal_entry = update_where(log, "number", set_="salt, digest")
_drop_entry_salt = update_where(log, "number", salt=None)
_drop_salts = update_where(amendments, "chain_id, row_id", salt=None)
_add = insert_into(amendments, "chain_id, row_id, position, salt, digest, created_at")


def amend_message(tx: Tx, message_id: str) -> None:
    """Appends the message as it is now to the chain of its space. To be called after every change of its text."""
    row = tx.one(_message, id=message_id)
    if row is None:
        return
    space_id = row[0]
    last_seq, head = tx.one(_space, id=space_id) or (0, None)
    salt = new_salt()
    digest = message_digest(salt, head or BEGINNING, *row)
    tx.run(_drop_message_salt, id=message_id)
    _append(tx, space_id, message_id, last_seq, salt, digest)
    tx.run(_advance_space, id=space_id, head=digest)


def amend_entry(tx: Tx, entry_number: int) -> None:
    """Appends the entry of a log as it is now to the chain of its agent. To be called after every change of it."""
    row = tx.one(_entry, entry_number=entry_number)
    if row is None:
        return
    agent_id, cycle_number, *parts = row
    salt = new_salt()
    if cycle_number is None:  # It is not in the chain yet.
        tx.run(_seal_entry, number=entry_number, salt=salt, digest=entry_digest(salt, *parts))
        return
    count, head = tx.one(_mind, id=agent_id) or (0, None)
    digest = entry_digest(salt, *parts, head=head or BEGINNING)
    tx.run(_drop_entry_salt, number=entry_number)
    _append(tx, agent_id, str(parts[1]), count, salt, digest)
    tx.run(_advance_mind, agent_id=agent_id, head=digest)


def _append(tx: Tx, chain_id: str, row_id: str, position: int, salt: bytes, digest: bytes) -> None:
    tx.run(_drop_salts, chain_id=chain_id, row_id=row_id)
    row = {"chain_id": chain_id, "row_id": row_id, "position": position, "salt": salt, "digest": digest}
    tx.run(_add, **row, created_at=tx.now)
    tx.note_head("amendment", chain_id, position, digest)
