"""The people, agents and services of the caller's organization. Agents are made and changed in a room of their own."""

from __future__ import annotations

from typing import Annotated, Final
from uuid import UUID, uuid5

from fastapi import Query, Request
from pydantic import JsonValue

from denizen.access import audit, people, roles
from denizen.access.people import Profile
from denizen.errors import IdempotencyKeyReused, InvalidInput, NotFound
from denizen.ids import EntityId
from denizen.server.auth import Admin, Caller, Person, require
from denizen.server.context import context_of
from denizen.server.idempotency import IdempotencyKey
from denizen.server.router import new_router
from denizen.server.shapes.people import EntityChange, EntityCreate, entity_out
from denizen.shapes.people import EntityOut, EntityPage
from denizen.spaces import directory
from denizen.spaces.directory import EntityKind
from denizen.spaces.handles import check_handle, check_name, handle_from
from denizen.storage.database import Tx, storable

router = new_router()

LONGEST_PAGE: Final = 200
_KEYS: Final = UUID("8a6f1c52-0b0e-4d0c-9a3e-6c4a5e0d7b21")
"""Under which idempotency keys become the ids of entities."""


@router.get("/api/entities", summary="List people, agents and services")
async def list_entities(
    request: Request,
    caller: Person,
    kind: EntityKind | None = None,
    after: Annotated[str, Query(max_length=200, description="What `next` of the page before said.")] = "",
    limit: Annotated[int, Query(ge=1, le=LONGEST_PAGE)] = 50,
) -> EntityPage:
    """Ordered by handle, without people who have left and agents that were deleted."""
    return await context_of(request).runtime.db.read(_page, caller, kind, after, limit)


@router.get("/api/entities/{entity_id}", summary="Get a person, an agent or a service")
async def get_entity(request: Request, caller: Person, entity_id: str) -> EntityOut:
    """`entity_id` is an id or an `@handle`. People who have left are found by id."""
    return entity_out(await context_of(request).runtime.db.read(find_profile, entity_id, caller))


@router.post(
    "/api/entities",
    status_code=201,
    summary="Add a person or a service",
    openapi_extra={"x-who": "admins and owners; admins or owners: owners"},
)
async def create_entity(request: Request, caller: Admin, wanted: EntityCreate, key: IdempotencyKey = None) -> EntityOut:
    """Adds them to the organization, without a space and without a token."""
    chosen = None if key is None else EntityId(str(uuid5(_KEYS, f"{caller.entity.id} {key}")))
    return entity_out(await context_of(request).runtime.db.write(_create, caller, wanted, chosen))


@router.patch(
    "/api/entities/{entity_id}",
    summary="Change a name or a role",
    openapi_extra={"x-who": "admins and owners; roles: owners"},
)
async def change_entity(request: Request, caller: Admin, entity_id: str, change: EntityChange) -> EntityOut:
    """Agents in the same spaces are told of a new name. Only owners can change roles, and there is always at least
    one owner.
    """
    return entity_out(await context_of(request).runtime.db.write(_change, caller, entity_id, change))


@router.delete(
    "/api/entities/{entity_id}",
    status_code=204,
    summary="Remove a person or a service",
    openapi_extra={"x-who": "admins and owners for themselves and for members; admins or owners: owners"},
)
async def remove_entity(request: Request, caller: Admin, entity_id: str) -> None:
    """Revokes their tokens, removes them from all spaces and deletes their own keys.

    Their messages stay, under their name, and their handle is not reused. Only owners can remove an admin or an owner.
    """
    await context_of(request).runtime.db.write(_remove, caller, entity_id)


def find_profile(tx: Tx, named: str, caller: Caller) -> Profile:
    """Whoever has this id or `@handle` in the caller's organization: the door of every route below an entity."""
    try:
        return people.get(tx, caller.entity.organization_id, storable(named))
    except NotFound as error:
        # One answer for who is not there and for who is of another organization.
        raise NotFound("entity", named) from error


def _page(tx: Tx, caller: Caller, kind: EntityKind | None, after: str, limit: int) -> EntityPage:
    home = caller.entity.organization_id
    # One more than asked for shows whether there are more.
    found = people.page(tx, home, kind=kind, after=storable(after), limit=limit + 1)
    shown = [entity_out(each) for each in found[:limit]]
    return EntityPage(entities=shown, next=shown[-1].handle if len(found) > limit else None)


def _create(tx: Tx, caller: Caller, wanted: EntityCreate, chosen: EntityId | None) -> Profile:
    home = caller.entity.organization_id
    if wanted.role is not None and wanted.kind != "human":
        raise InvalidInput("role: only people have a role.")
    if wanted.role in ("owner", "admin"):
        require(caller, "owner")
    name = check_name(wanted.name)
    handle = check_handle(wanted.handle) if wanted.handle is not None else handle_from(name)
    role = wanted.role or ("member" if wanted.kind == "human" else "service")
    if chosen is not None:
        # Two requests with the same key at the same time: the second finds what the first has made.
        directory.hold(tx, caller.entity.id)
        made = _made(tx, chosen, caller)
        if made is not None:
            if (made.entity.kind, made.entity.name, made.entity.handle, made.role) != (wanted.kind, name, handle, role):
                raise IdempotencyKeyReused
            return made
    entity = directory.create_entity(tx, home, wanted.kind, name=name, handle=handle, id=chosen)
    if wanted.kind == "human":
        roles.set_role(tx, entity.id, wanted.role or "member")
    audit.record(tx, home, caller.actor, "create_entity", entity.id, kind=wanted.kind, role=role)
    return find_profile(tx, entity.id, caller)


def _made(tx: Tx, chosen: EntityId, caller: Caller) -> Profile | None:
    try:
        return find_profile(tx, chosen, caller)
    except NotFound:
        return None


def _change(tx: Tx, caller: Caller, named: str, change: EntityChange) -> Profile:
    who = _changeable(tx, named, caller)
    if change.role is not None and change.role != who.role:
        require(caller, "owner")
        if who.entity.kind != "human":
            raise InvalidInput("role: only people have a role.")
        roles.set_role(tx, who.entity.id, change.role)
    if change.name is not None:
        directory.rename(tx, who.entity.id, change.name)
    after = find_profile(tx, who.entity.id, caller)
    renamed, promoted = after.entity.name != who.entity.name, after.role != who.role
    if renamed or promoted:
        roles_now: dict[str, JsonValue] = {"role": [who.role, after.role]} if promoted else {}
        home = caller.entity.organization_id
        audit.record(tx, home, caller.actor, "change_entity", who.entity.id, renamed=renamed, **roles_now)
    return after


def _remove(tx: Tx, caller: Caller, named: str) -> None:
    who = _changeable(tx, named, caller)
    if who.role in ("owner", "admin") and who.entity.id != caller.entity.id:
        require(caller, "owner")
    people.leave(tx, who.entity.id)
    audit.record(tx, caller.entity.organization_id, caller.actor, "remove_entity", who.entity.id, role=who.role)


def _changeable(tx: Tx, named: str, caller: Caller) -> Profile:
    who = find_profile(tx, named, caller)
    if who.left_at is not None:
        raise NotFound("entity", named)
    if who.entity.kind == "agent":
        raise InvalidInput(f"@{who.entity.handle} is an agent: change it or delete it at /api/agents/{who.entity.id}.")
    return who
