"""The caller: who they are, and their own name."""

from __future__ import annotations

from dataclasses import replace

from fastapi import Request, Response

from denizen.access import people_changes
from denizen.cycles import organization
from denizen.server.auth import Authenticated, Caller, Person, organization_cookie, organization_cookie_name
from denizen.server.context import context_of
from denizen.server.router import new_router
from denizen.server.shapes.people import OwnChange, me_out
from denizen.shapes.people import Me
from denizen.spaces import directory
from denizen.storage.database import Tx

router = new_router()


@router.get("/api/me", summary="Get your own account")
async def me(request: Request, response: Response, caller: Authenticated) -> Me:
    shown = await context_of(request).runtime.db.read(_shown, caller)
    visit, home = request.scope["visit"], caller.entity.organization_id
    if shown.organization.remote_pictures and request.cookies.get(organization_cookie_name(visit)) != home:
        # A session from before this cookie: the next page has the policy of the organization.
        response.headers.append("Set-Cookie", organization_cookie(visit, home))
    return shown


@router.patch("/api/me", summary="Change your own name")
async def change_me(caller: Person, change: OwnChange) -> Me:
    """Agents in your spaces are told of the new name. Your handle stays."""
    db = caller.runtime.db
    entity = await caller.write(people_changes.rename_self, change.name)
    return await db.read(_shown, replace(caller, entity=entity))


def _shown(tx: Tx, caller: Caller) -> Me:
    home = caller.entity.organization_id
    return me_out(caller, directory.get_organization(tx, home), organization.settings_of(tx, home))
