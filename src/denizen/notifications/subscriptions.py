"""Push subscriptions: the browsers that people want to be notified in, and the server's key for push services.

A subscription belongs to the session or token that made it, and ends with it. Its endpoint is an address at the push
service of the browser's maker; anyone who knows it could send there with the server's key, so it is never logged.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from sqlalchemy import bindparam, delete, or_, select

from denizen.access import tokens
from denizen.access.vault import Vault
from denizen.errors import InvalidInput, NotFound
from denizen.ids import EntityId, new_id
from denizen.notifications.encryption import BrowserKeys, ServerKey
from denizen.storage.database import (
    Database,
    Tx,
    delete_where,
    insert_ignore,
    insert_into,
    select_where,
    statement,
    storable,
    update_where,
    value,
    values,
)
from denizen.storage.schema import push_subscriptions, server_keys
from denizen.storage.schema import tokens as token_rows

PER_PERSON: Final = 20
"""How many browsers one person may have; a further one replaces the oldest."""
ENDPOINT_CHARACTERS: Final = 2048
_KEY_NAME: Final = "push"
_KEY_PURPOSE: Final = "server key push"


@dataclass(frozen=True, slots=True)
class NewSubscription:
    """A subscription as a browser describes it, checked."""

    endpoint: str
    p256dh: str
    auth: str


def checked(endpoint: str, p256dh: str, auth: str) -> NewSubscription:
    """Raises `InvalidInput` unless messages can be encrypted for these keys and sent to this address by HTTPS."""
    if len(endpoint) > ENDPOINT_CHARACTERS or not endpoint.isascii() or not endpoint.isprintable():
        raise InvalidInput("endpoint: this is not the address of a push service.")
    if not _is_https(endpoint):
        raise InvalidInput("endpoint: a push service is reached by HTTPS. Send the endpoint of the subscription.")
    BrowserKeys.read(p256dh, auth)
    return NewSubscription(endpoint, p256dh, auth)


def _is_https(address: str) -> bool:
    """Whether it is an address by HTTPS with a host and no user or password."""
    try:
        parts = urlsplit(address)
        return parts.scheme == "https" and bool(parts.hostname) and parts.port != 0 and not set("@\\") & set(address)
    except ValueError:
        return False


_mine = push_subscriptions.c.entity_id == bindparam("entity")
_known = select_where(push_subscriptions, "id, entity_id", "endpoint")
_add = insert_into(push_subscriptions, "id, entity_id, token_id, endpoint, p256dh, auth, created_at")
_refresh = update_where(push_subscriptions, "id", set_="token_id, p256dh, auth")
_of_person = statement(
    select(push_subscriptions.c.id).where(_mine).order_by(push_subscriptions.c.created_at, push_subscriptions.c.id)
)
_drop = delete_where(push_subscriptions, "id")
_drop_mine = delete_where(push_subscriptions, "id", _mine)


def subscribe(tx: Tx, entity_id: EntityId, token_id: str, new: NewSubscription) -> str:
    """Notify this person in this browser from now on, as long as the token is valid. Returns the subscription's id.

    A browser that subscribes again keeps its id. One that somebody else had used is theirs no longer.
    """
    if not tokens.get(tx, token_id).is_good(tx.now):
        raise InvalidInput("This session has ended. Sign in again.")
    row = tx.one(_known, endpoint=new.endpoint)
    if row is not None:
        id, owner = row
        if owner == entity_id:
            tx.run(_refresh, id=id, token_id=token_id, p256dh=new.p256dh, auth=new.auth)
            return id
        drop(tx, id)
    for oldest in values(tx, _of_person, entity=entity_id)[: 1 - PER_PERSON]:
        drop(tx, oldest)
    id = new_id()
    tx.run(
        _add,
        id=id,
        entity_id=entity_id,
        token_id=token_id,
        endpoint=new.endpoint,
        p256dh=new.p256dh,
        auth=new.auth,
        created_at=tx.now,
    )
    return id


def unsubscribe(tx: Tx, entity_id: EntityId, subscription_id: str) -> None:
    """End this person's subscription. Raises `NotFound` if it is not theirs."""
    if tx.run(_drop_mine, id=storable(subscription_id), entity=entity_id) == 0:
        raise NotFound("push subscription", subscription_id)


def drop(tx: Tx, subscription_id: str) -> None:
    """Delete the subscription, with the notifications that wait to be sent to it. Idempotent."""
    tx.run(_drop, id=subscription_id)


_ended_tokens = select(token_rows.c.id).where(
    or_(token_rows.c.revoked_at.is_not(None), token_rows.c.expires_at <= bindparam("now"))
)
_has_ended = statement(select(push_subscriptions.c.id).where(push_subscriptions.c.token_id.in_(_ended_tokens)).limit(1))
_drop_ended = statement(delete(push_subscriptions).where(push_subscriptions.c.token_id.in_(_ended_tokens)))


def has_ended(tx: Tx) -> bool:
    """Whether there are subscriptions whose session or token is revoked or expired."""
    return tx.one(_has_ended, now=tx.now) is not None


def drop_ended(tx: Tx) -> None:
    tx.run(_drop_ended, now=tx.now)


_stored_key = statement(select(server_keys.c.sealed).where(server_keys.c.name == _KEY_NAME))
_store_key = insert_ignore(server_keys)


async def server_key(db: Database, vault: Vault) -> ServerKey:
    """The key of this server for push services, the same in all its processes. Made and sealed at the first need.

    Raises `SecretKeyMissing` or `SecretUnreadable` if there is no key to seal it with, or to open it.
    """
    stored = await db.read(_open_key, vault)
    if stored is None:
        sealed = await asyncio.to_thread(vault.seal, ServerKey.generate().text(), _KEY_PURPOSE)
        await db.write(_keep_key, sealed)
        # Another process may have been first.
        stored = await db.read(_open_key, vault)
    assert stored is not None
    return ServerKey.read(stored)


def _open_key(tx: Tx, vault: Vault) -> str | None:
    sealed = value(tx, _stored_key)
    return None if sealed is None else vault.open(sealed, _KEY_PURPOSE)


def _keep_key(tx: Tx, sealed: str) -> None:
    tx.run(_store_key, name=_KEY_NAME, sealed=sealed, created_at=tx.now)
