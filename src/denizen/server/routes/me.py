"""Who is asking."""

from __future__ import annotations

from dataclasses import replace

from fastapi import Request

from denizen.access import audit
from denizen.server.auth import Authenticated, Caller, Person
from denizen.server.context import context_of
from denizen.server.router import new_router
from denizen.server.shapes.people import OwnChange, me_out
from denizen.shapes.people import Me
from denizen.spaces import directory
from denizen.spaces.directory import Entity
from denizen.storage.database import Tx

router = new_router()


@router.get("/api/me", summary="Get your own account")
async def me(request: Request, caller: Authenticated) -> Me:
    db = context_of(request).runtime.db
    return me_out(caller, await db.read(directory.get_organization, caller.entity.organization_id))


@router.patch("/api/me", summary="Change your own name")
async def change_me(request: Request, caller: Person, change: OwnChange) -> Me:
    """Agents in your spaces are told of the new name. Your handle stays."""
    db = context_of(request).runtime.db
    entity = await db.write(_rename, caller, change.name)
    return me_out(replace(caller, entity=entity), await db.read(directory.get_organization, entity.organization_id))


def _rename(tx: Tx, caller: Caller, name: str) -> Entity:
    directory.rename(tx, caller.entity.id, name)
    after = directory.get_entity(tx, caller.entity.id)
    if after.name != caller.entity.name:
        audit.record(tx, after.organization_id, caller.actor, "change_entity", after.id, renamed=True)
    return after
