"""The caller's organization: its name and its settings."""

from __future__ import annotations

from fastapi import Request
from pydantic import JsonValue

from denizen.access import audit, roles
from denizen.cycles import organization
from denizen.server.auth import Caller, Owner, Person
from denizen.server.context import context_of
from denizen.server.router import new_router
from denizen.server.shapes.people import OrganizationChange, OrganizationDetail, organization_detail_out
from denizen.spaces import directory
from denizen.storage.database import Tx

router = new_router()


@router.get("/api/organization", summary="Get your organization")
async def get_organization(request: Request, caller: Person) -> OrganizationDetail:
    """Admins and owners also get its settings."""
    return await context_of(request).runtime.db.read(_shown, caller)


@router.patch("/api/organization", summary="Change the name or the settings of your organization")
async def change_organization(request: Request, caller: Owner, change: OrganizationChange) -> OrganizationDetail:
    """Fields that are not sent stay unchanged; null resets a setting to its default."""
    return await context_of(request).runtime.db.write(_change, caller, change)


def _shown(tx: Tx, caller: Caller) -> OrganizationDetail:
    home = caller.entity.organization_id
    settings = organization.settings_of(tx, home) if roles.reaches(caller.role, "admin") else None
    return organization_detail_out(directory.get_organization(tx, home), settings)


def _change(tx: Tx, caller: Caller, change: OrganizationChange) -> OrganizationDetail:
    home = caller.entity.organization_id
    changed: list[JsonValue] = []
    if change.name is not None:
        directory.rename_organization(tx, home, change.name)
        changed.append("name")
    if change.settings is not None:
        settings = change.settings.model_dump(exclude_unset=True)
        organization.change_settings(tx, home, settings)
        changed += sorted(settings)
    if changed:
        audit.record(tx, home, caller.actor, "change_organization", fields=changed)
    return _shown(tx, caller)
