"""Who is asking."""

from __future__ import annotations

from fastapi import Request

from denizen.server.auth import Authenticated
from denizen.server.context import context_of
from denizen.server.router import new_router
from denizen.server.shapes.people import me_out
from denizen.shapes.people import Me
from denizen.spaces import directory

router = new_router()


@router.get("/api/me", summary="Get your own account")
async def me(request: Request, caller: Authenticated) -> Me:
    db = context_of(request).runtime.db
    return me_out(caller, await db.read(directory.get_organization, caller.entity.organization_id))
