"""Accounts elsewhere, and who writes with them: a guest, or the person that the account was linked to.

An unknown writer becomes a guest, with the least role, of the spaces they write to. A person links an account with a
code that is sent there. A person who was removed from the organization is not let in again.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets as randomness
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from sqlalchemy import bindparam, func, select, update

from denizen.access import audit
from denizen.access.requesters import Requester
from denizen.access.vault import Vault
from denizen.bridges import registry
from denizen.bridges.port import Writer
from denizen.bridges.registry import Bridge
from denizen.clock import SECOND, Instant
from denizen.errors import InvalidInput, NotAllowed, NotFound
from denizen.ids import BridgeId, EntityId, SpaceId, new_id
from denizen.spaces import directory
from denizen.spaces.handles import MAX_NAME_CHARS, handle_from
from denizen.spaces.outbox import TO_SEND
from denizen.storage.database import Tx, insert_into, statement, storable, value
from denizen.storage.schema import addresses, entities, outbox

CODE_DIGITS: Final = 12
CODE_SECONDS: Final = 900
CODE_TRIES: Final = 5
CODE_PAUSE_SECONDS: Final = 60
"""A new code for an account can be asked for after so long."""


@dataclass(frozen=True, slots=True)
class BridgeAddress:
    """An account elsewhere."""

    bridge_id: BridgeId
    account: str
    guest_id: EntityId
    person_id: EntityId | None
    linked_at: Instant | None


_address = (
    addresses.c.bridge_id,
    addresses.c.account,
    addresses.c.guest_id,
    addresses.c.person_id,
    addresses.c.linked_at,
)
_at = (addresses.c.bridge_id == bindparam("bridge"), addresses.c.account == bindparam("named"))
_get = statement(select(*_address).where(*_at))
_guest, _person = entities.alias("guest"), entities.alias("person")
_of_bridge = statement(
    select(*_address, _guest.c.name, _person.c.name)
    .join(_guest, _guest.c.id == addresses.c.guest_id)
    .outerjoin(_person, _person.c.id == addresses.c.person_id)
    .where(addresses.c.bridge_id == bindparam("bridge"))
    .order_by(addresses.c.person_id.is_(None), addresses.c.account)
    .limit(500)
)
_of_person = statement(
    select(*_address)
    .where(addresses.c.person_id == bindparam("person_id"), addresses.c.person_id.is_not(None))
    .order_by(addresses.c.bridge_id, addresses.c.account)
)
_add = insert_into(addresses, "bridge_id", "account", "guest_id", "created_at")
_taken = statement(
    select(entities.c.id).where(
        entities.c.organization_id == bindparam("organization_id"), entities.c.handle == bindparam("handle")
    )
)
_with_handle = (
    select(addresses.c.account, entities.c.handle)
    .join(entities, entities.c.id == func.coalesce(addresses.c.person_id, addresses.c.guest_id))
    .where(addresses.c.bridge_id == bindparam("bridge"))
    .order_by(addresses.c.created_at.desc())
)
_handle_of = statement(_with_handle.where(addresses.c.account == bindparam("named")))
_account_of = statement(_with_handle.where(entities.c.handle == bindparam("handle")).limit(1))


def find(tx: Tx, bridge_id: BridgeId, account: str) -> BridgeAddress | None:
    """The address of this account, if it has ever written."""
    row = tx.one(_get, bridge=bridge_id, named=account)
    return None if row is None else BridgeAddress(*row)


@dataclass(frozen=True, slots=True)
class KnownAddress:
    """An account elsewhere with the names of its guest, and of the person it is linked to."""

    address: BridgeAddress
    name: str
    person: str | None


def known(tx: Tx, bridge_id: BridgeId) -> list[KnownAddress]:
    """The accounts that have written through the bridge, linked ones first; at most 500."""
    rows = tx.all(_of_bridge, bridge=bridge_id)
    return [KnownAddress(BridgeAddress(*row[:-2]), name, person) for row in rows for name, person in [row[-2:]]]


def linked_to(tx: Tx, person_id: EntityId) -> list[BridgeAddress]:
    """The accounts that were linked to this person."""
    return [BridgeAddress(*row) for row in tx.all(_of_person, person_id=person_id)]


def handles_of(tx: Tx, bridge_id: BridgeId, accounts: Collection[str]) -> dict[str, str]:
    """The handles of those who write with these accounts, by account: the linked person's, otherwise the guest's."""
    rows = [tx.one(_handle_of, bridge=bridge_id, named=storable(each)) for each in accounts]
    return {account: handle for account, handle in filter(None, rows) if handle is not None}


def accounts_of(tx: Tx, bridge_id: BridgeId, handles: Collection[str]) -> dict[str, str]:
    """The accounts that people with these handles write with, by handle."""
    rows = [tx.one(_account_of, bridge=bridge_id, handle=each) for each in handles]
    return {handle: account for account, handle in filter(None, rows)}


def is_theirs(address: BridgeAddress, entity_id: EntityId) -> bool:
    """Whether this is the guest or the person of the address. Pure."""
    return entity_id in (address.guest_id, address.person_id)


def meet(tx: Tx, bridge: Bridge, writer: Writer) -> BridgeAddress:
    """The address of the writer, who becomes a guest if they are new. A program becomes a service."""
    found = find(tx, bridge.id, writer.account)
    if found is not None:
        return found
    name = displayable(writer.name) or displayable(writer.account)
    handle = handle_from(f"{name[:24]} {bridge.handle}")
    if value(tx, _taken, organization_id=bridge.organization_id, handle=handle) is not None:
        handle = directory.free_handle(tx, bridge.organization_id, handle)
    guest = directory.create_entity(
        tx,
        bridge.organization_id,
        "service" if writer.bot else "human",
        name=name,
        handle=handle,
        guest=not writer.bot,
    )
    tx.run(_add, bridge_id=bridge.id, account=writer.account, guest_id=guest.id, created_at=tx.now)
    return BridgeAddress(bridge.id, writer.account, guest.id, None, None)


def author(tx: Tx, address: BridgeAddress, writer: Writer, space_id: SpaceId) -> EntityId:
    """Who the writer's messages are by: the linked person, if the service vouches for the account and they are in the
    space; otherwise the guest.

    The person does not join by writing: they would read all that was said before. A guest reads nothing here.
    """
    person = address.person_id
    if person is None or not writer.verified or not directory.is_member(tx, space_id, person):
        return address.guest_id
    return address.guest_id if directory.has_left(tx, person) else person


def displayable(name: str) -> str:
    """The name without line breaks and control characters, cut to the allowed length. Pure."""
    cleaned = "".join(each if each.isprintable() else " " for each in storable(name))
    return " ".join(cleaned.split())[:MAX_NAME_CHARS].strip()


# Linking

_set_code = statement(
    update(addresses)
    .where(*_at)
    .values(code=bindparam("digest"), code_for=bindparam("whom"), code_until=bindparam("until"), code_tries=0)
)
_code = statement(
    select(addresses.c.code, addresses.c.code_for, addresses.c.code_until, addresses.c.code_tries)
    .where(*_at)
    .with_for_update()
)
_count_try = statement(update(addresses).where(*_at).values(code_tries=addresses.c.code_tries + 1))
_link = statement(
    update(addresses)
    .where(*_at)
    .values(
        person_id=bindparam("whom"), linked_at=bindparam("at"), code=None, code_for=None, code_until=None, code_tries=0
    )
)
_unlink = statement(update(addresses).where(*_at).values(person_id=None, linked_at=None))
_send_code = insert_into(outbox, "bridge_id", "target", "action", "transaction_id", "detail", "next_at", "created_at")


@dataclass(frozen=True, slots=True)
class Code:
    """A new code, and the form in which it waits to be sent."""

    digest: str
    sealed: str


def new_code(vault: Vault, bridge_id: BridgeId, account: str) -> Code:
    """A code of twelve digits for this account. Nobody here can read it: it is sealed until it is sent."""
    # Long enough for five tries a minute, for years.
    code = f"{randomness.randbelow(10**CODE_DIGITS):0{CODE_DIGITS}}"
    return Code(_digest(bridge_id, account, code), vault.seal(code, code_purpose(bridge_id)))


def code_purpose(bridge_id: BridgeId) -> str:
    return f"code of bridge {bridge_id}"


def ask_to_link(tx: Tx, by: Requester, bridge_id: str, account: str, code: Code) -> None:
    """Have a code sent to an account that has written here, for the person who asks to link it."""
    bridge, address = _find(tx, by, bridge_id, account)
    _, _, until, _ = tx.one(_code, bridge=bridge.id, named=address.account) or (None, None, None, 0)
    if until is not None and until - tx.now > (CODE_SECONDS - CODE_PAUSE_SECONDS) * SECOND:
        raise InvalidInput("A code was sent to this account less than a minute ago. Enter it, or wait a minute.")
    tx.run(
        _set_code,
        bridge=bridge.id,
        named=address.account,
        digest=code.digest,
        whom=by.entity_id,
        until=tx.now + CODE_SECONDS * SECOND,
    )
    tx.run(
        _send_code,
        bridge_id=bridge.id,
        target=address.account,
        action="code",
        transaction_id=new_id(),
        detail=code.sealed,
        next_at=tx.now,
        created_at=tx.now,
    )
    tx.announce(TO_SEND, {"bridge": bridge.id})


def link(tx: Tx, by: Requester, bridge_id: str, account: str, code: str) -> bool:
    """Link the account to the person who enters the code that was sent there. Returns whether it was the right one.

    A wrong code counts, so it is a value, not an error: the count has to be committed.
    """
    bridge, address = _find(tx, by, bridge_id, account)
    wanted, whom, until, tries = tx.one(_code, bridge=bridge.id, named=address.account) or (None, None, None, 0)
    if wanted is None or whom != by.entity_id or until is None or until < tx.now or tries >= CODE_TRIES:
        raise InvalidInput("There is no valid code for this account. Ask for a new one.")
    if not hmac.compare_digest(wanted, _digest(bridge.id, address.account, "".join(code.split()))):
        tx.run(_count_try, bridge=bridge.id, named=address.account)
        return False
    tx.run(_link, bridge=bridge.id, named=address.account, whom=by.entity_id, at=tx.now)
    audit.record(tx, bridge.organization_id, by.actor, "link_address", by.entity_id, bridge=bridge.id)
    return True


def unlink(tx: Tx, by: Requester, bridge_id: str, account: str) -> None:
    """The account is a guest's again. For the person it was linked to, and for admins."""
    bridge, address = _find(tx, by, bridge_id, account)
    if address.person_id is None:
        return
    if address.person_id != by.optional_entity_id and not by.reaches("admin"):
        raise NotAllowed("Only the person it is linked to, or an admin, can unlink an account.")
    tx.run(_unlink, bridge=bridge.id, named=address.account)
    audit.record(tx, bridge.organization_id, by.actor, "unlink_address", address.person_id, bridge=bridge.id)


def _find(tx: Tx, by: Requester, bridge_id: str, account: str) -> tuple[Bridge, BridgeAddress]:
    by.require("member")
    bridge = registry.get(tx, bridge_id)
    if by.organization_id not in (None, bridge.organization_id):
        raise NotFound("bridge", bridge_id)
    address = find(tx, bridge.id, storable(account))
    if address is None or directory.get_entity(tx, address.guest_id).kind != "human":
        # Codes are sent only to accounts that have written here: nobody can have strangers written to.
        raise NotFound("account that has written through this bridge", account)
    return bridge, address


def _digest(bridge_id: str, account: str, code: str) -> str:
    return hashlib.sha256(f"{bridge_id}\n{account}\n{code}".encode()).hexdigest()
