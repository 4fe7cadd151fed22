"""The spaces the caller is in."""

from __future__ import annotations

from fastapi import APIRouter, Request

from denizen.ids import EntityId, SpaceId
from denizen.server.auth import Authenticated
from denizen.server.context import context_of
from denizen.server.schemas import SpaceList, SpaceOut
from denizen.spaces import directory, posting
from denizen.spaces.directory import Space
from denizen.storage.database import Tx, storable

router = APIRouter()


@router.get("/api/spaces", summary="The spaces you are in")
async def list_spaces(request: Request, caller: Authenticated) -> SpaceList:
    return SpaceList(spaces=await context_of(request).runtime.db.read(_mine, caller.entity.id))


@router.get("/api/spaces/{space_id}", summary="One of them")
async def get_space(request: Request, caller: Authenticated, space_id: str) -> SpaceOut:
    return await context_of(request).runtime.db.read(_one, space_id, caller.entity.id)


def enter(tx: Tx, space_id: str, entity_id: EntityId) -> Space:
    """The space, if the caller is in it: the door of every route below a space."""
    return directory.require_member(tx, SpaceId(storable(space_id)), entity_id)


def _mine(tx: Tx, entity_id: EntityId) -> list[SpaceOut]:
    return [_shown(tx, space) for space in directory.spaces_of(tx, entity_id)]


def _one(tx: Tx, space_id: str, entity_id: EntityId) -> SpaceOut:
    return _shown(tx, enter(tx, space_id, entity_id))


def _shown(tx: Tx, space: Space) -> SpaceOut:
    return SpaceOut.of(space, posting.last_seq(tx, space.id), directory.members(tx, space.id))
