"""The pictures of people and agents."""

from __future__ import annotations

from typing import Final

from fastapi import Request, Response

from denizen.access import entity_pictures, people
from denizen.server.auth import Authenticated, Person
from denizen.server.context import context_of
from denizen.server.router import new_router
from denizen.shapes.people import PictureOut, PicturesOut

router = new_router()

_BINARY: Final = {"type": "string", "format": "binary", "examples": ["JPEG"]}
_WHO: Final = {"x-who": "everyone for themselves; admins and owners for agents"}


@router.get("/api/pictures", summary="The pictures of people and agents")
async def list_pictures(caller: Authenticated) -> PicturesOut:
    """Of your organization. People and agents that are not in the list have no picture."""
    found = await caller.runtime.db.read(entity_pictures.addresses, caller.entity.organization_id)
    return PicturesOut(pictures=found)


@router.put(
    "/api/entities/{entity_id}/picture",
    summary="Set a picture",
    # The type that is sent does not matter. Generated clients cannot send a range such as `image/*`.
    openapi_extra={
        "requestBody": {"required": True, "content": {"application/octet-stream": {"schema": _BINARY}}},
        **_WHO,
    },
)
async def set_picture(request: Request, caller: Person, entity_id: str) -> PictureOut:
    """Send the bytes of a JPEG, PNG, GIF, WebP or AVIF file. It is stored at most 256 pixels wide and high, without
    what a camera wrote into it.
    """
    who = await caller.read(people.find_profile, entity_id)
    data = await request.body()
    return PictureOut(url=await entity_pictures.change(caller.runtime.db, caller.requester, who.entity.id, data))


@router.delete("/api/entities/{entity_id}/picture", status_code=204, summary="Remove a picture", openapi_extra=_WHO)
async def remove_picture(caller: Person, entity_id: str) -> None:
    who = await caller.read(people.find_profile, entity_id)
    await caller.write(entity_pictures.remove, who.entity.id)


@router.get("/pictures/{entity_id}/{key}", include_in_schema=False)
async def read_picture(request: Request, entity_id: str, key: str) -> Response:
    data = await context_of(request).runtime.db.read(entity_pictures.read, entity_id, key)
    # Another picture has another address.
    headers = {"Cache-Control": "private, max-age=31536000, immutable"}
    return Response(data, media_type="image/jpeg", headers=headers)
