"""The pictures of people and agents: stored small, without what a camera wrote into them."""

from __future__ import annotations

import secrets
from typing import Final

from sqlalchemy import bindparam, select

from denizen.access import audit
from denizen.access.requesters import Requester
from denizen.errors import FileTooLarge, InvalidInput, NotAllowed, NotFound
from denizen.files import jail
from denizen.ids import EntityId, OrganizationId
from denizen.spaces import directory
from denizen.storage.database import (
    Database,
    Tx,
    delete_where,
    insert_or_update,
    select_where,
    statement,
    storable,
    value,
)
from denizen.storage.schema import entities, entity_pictures

PIXELS: Final = 256
"""The longer edge of a stored picture."""
MOST_BYTES: Final = 10_000_000
"""How large a picture may be that is sent."""

_put = insert_or_update(entity_pictures, "entity_id, link_key, data, created_at")
_delete = delete_where(entity_pictures, "entity_id")
_shown = select_where(entity_pictures, "data", "entity_id, link_key")
_all = statement(
    select(entity_pictures.c.entity_id, entity_pictures.c.link_key)
    .join(entities, entities.c.id == entity_pictures.c.entity_id)
    .where(entities.c.organization_id == bindparam("organization_id"))
    .order_by(entity_pictures.c.entity_id)
)


async def scaled(data: bytes) -> bytes:
    """The picture as a small JPEG, upright. Raises `InvalidInput` if it cannot be shown."""
    if len(data) > MOST_BYTES:
        raise FileTooLarge("The picture", len(data), MOST_BYTES)
    made = await jail.run("picture", str(PIXELS), data)
    if made.trouble is not None:
        raise InvalidInput(f"The picture cannot be used: {made.trouble}. Choose a JPEG, PNG, GIF, WebP or AVIF file.")
    return made.payload


async def change(db: Database, by: Requester, entity_id: EntityId, data: bytes) -> str:
    """Give a person or an agent this picture. Returns its address on this server. As `require_change`."""
    await db.read(require_change, by, entity_id)
    return await db.write(_change, by, entity_id, await scaled(data))


def _change(tx: Tx, by: Requester, entity_id: EntityId, data: bytes) -> str:
    home = require_change(tx, by, entity_id)
    key = secrets.token_urlsafe(24)
    tx.run(_put, entity_id=entity_id, link_key=key, data=data, created_at=tx.now)
    audit.record(tx, home, by.actor, "change_entity", entity_id, picture=True)
    return address(entity_id, key)


def remove(tx: Tx, by: Requester, entity_id: EntityId) -> None:
    """The person or agent no longer has a picture. As `require_change`."""
    home = require_change(tx, by, entity_id)
    if drop(tx, entity_id):
        audit.record(tx, home, by.actor, "change_entity", entity_id, picture=False)


def require_change(tx: Tx, by: Requester, entity_id: EntityId) -> OrganizationId:
    """Raises `NotAllowed` unless it is the requester's own picture, or an agent's and they are an admin.

    Returns the organization. Another's is `NotFound`, as one that does not exist.
    """
    who = directory.get_entity(tx, EntityId(storable(entity_id)))
    if by.organization_id not in (None, who.organization_id):
        raise NotFound("entity", entity_id)
    if by.is_limited and who.id != by.optional_entity_id:
        if who.kind != "agent":
            raise NotAllowed("Everyone chooses their own picture. Ask them to change it.")
        by.require("admin")
    return who.organization_id


def drop(tx: Tx, entity_id: EntityId) -> int:
    """Delete the picture. Returns how many there were."""
    return tx.run(_delete, entity_id=entity_id)


def read(tx: Tx, entity_id: str, key: str) -> bytes:
    """The picture at an address. Raises `NotFound` if it is another by now."""
    found: bytes | None = value(tx, _shown, entity_id=storable(entity_id), link_key=storable(key))
    if found is None:
        raise NotFound("picture", entity_id)
    return bytes(found)


def addresses(tx: Tx, organization_id: OrganizationId) -> dict[str, str]:
    """The addresses of all pictures of an organization, by the id of whom they show."""
    return {entity_id: address(entity_id, key) for entity_id, key in tx.all(_all, organization_id=organization_id)}


def address(entity_id: str, key: str) -> str:
    """Where browsers load a picture: they send no token for one, so the address is the key."""
    return f"/pictures/{entity_id}/{key}"
