"""The caller's organization: its name and its settings."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from denizen.access import roles
from denizen.access.operators import is_operator
from denizen.cycles import organization
from denizen.server.auth import Admin, Caller, Owner, Person
from denizen.server.problems import Problem
from denizen.server.router import new_router
from denizen.server.shapes.people import OrganizationChange, OrganizationDetail, organization_detail_out
from denizen.server.shapes.sizes import size_out
from denizen.shapes.sizes import SizeOut
from denizen.spaces import directory, sizes
from denizen.storage.database import Tx

router = new_router()


@router.get("/api/organization", summary="Get your organization")
async def get_organization(caller: Person) -> OrganizationDetail:
    """Admins and owners also get its settings."""
    return await caller.runtime.db.read(_shown, caller)


@router.patch("/api/organization", summary="Change the name or the settings of your organization")
async def change_organization(caller: Owner, change: OrganizationChange) -> OrganizationDetail:
    """Fields that are not sent stay unchanged; null resets a setting to its default."""
    return await caller.runtime.db.write(_change, caller, change)


AllOrganizations = Annotated[
    bool, Query(description="Also the size of the whole database and of every organization in it. For operators.")
]


@router.get(
    "/api/organization/size",
    summary="Get how much of the database your organization uses",
    openapi_extra={"x-who": "admins and owners; with `all_organizations`, operators"},
)
async def get_size(caller: Admin, all_organizations: AllOrganizations = False) -> SizeOut:
    """Estimated once a day."""
    db = caller.runtime.db
    await sizes.keep_daily(db)
    return await db.read(_size, caller, all_organizations)


def _size(tx: Tx, caller: Caller, all_organizations: bool) -> SizeOut:
    home = caller.entity.organization_id
    own = sizes.of_organization(tx, home)
    if own is None:  # it was made after today's measurement
        own = sizes.nothing_yet(tx, home)
    # A token of a lesser role lets even an owner see their own organization only.
    may_see_all = caller.role == "owner" and is_operator(tx, caller.actor)
    if not all_organizations:
        return size_out(own, may_see_all=may_see_all)
    if not may_see_all:
        raise Problem(
            "not_allowed", "Only operators, the owners of the first organization, can see the size of the others."
        )
    return size_out(own, may_see_all=True, database_bytes=sizes.database_bytes(tx), everyone=sizes.growths(tx))


def _shown(tx: Tx, caller: Caller) -> OrganizationDetail:
    home = caller.entity.organization_id
    settings = organization.settings_of(tx, home) if roles.reaches(caller.role, "admin") else None
    return organization_detail_out(directory.get_organization(tx, home), settings)


def _change(tx: Tx, caller: Caller, change: OrganizationChange) -> OrganizationDetail:
    settings = None if change.settings is None else change.settings.model_dump(exclude_unset=True)
    home = caller.entity.organization_id
    organization.change(tx, caller.requester, home, name=change.name, settings=settings)
    return _shown(tx, caller)
