"""Who is in a space. Another person is removed, and roles are given, by whoever runs the space."""

from __future__ import annotations

from fastapi import Request

from denizen.access import roles
from denizen.agents import fitness
from denizen.errors import NotAllowed, NotFound
from denizen.ids import SpaceId
from denizen.server.auth import Caller, Person
from denizen.server.context import context_of
from denizen.server.router import new_router
from denizen.server.routes.entities import find_present
from denizen.server.routes.spaces import enter
from denizen.server.shapes.spaces import MemberAdd, MemberChange, member_out
from denizen.shapes.spaces import MemberOut
from denizen.spaces import directory, leaving
from denizen.spaces.directory import Entity
from denizen.storage.database import Tx

router = new_router()


@router.post(
    "/api/spaces/{space_id}/members",
    status_code=201,
    summary="Bring someone into a space",
    openapi_extra={"x-who": "people; roles: whoever runs the space"},
)
async def add_member(request: Request, caller: Person, space_id: str, wanted: MemberAdd) -> MemberOut:
    """They are in the space, and the agents there hear of it. Whoever is in it already stays as they are."""
    return await context_of(request).runtime.db.write(_add, caller, space_id, wanted)


@router.patch(
    "/api/spaces/{space_id}/members/{entity_id}",
    summary="Change what a member attends to, or is",
    openapi_extra={"x-who": "people for themselves and for agents; roles: whoever runs the space"},
)
async def change_member(
    request: Request, caller: Person, space_id: str, entity_id: str, change: MemberChange
) -> MemberOut:
    """Another person's attention is theirs to change. `entity_id` is an id, or a handle with its `@`."""
    return await context_of(request).runtime.db.write(_change, caller, space_id, entity_id, change)


@router.delete(
    "/api/spaces/{space_id}/members/{entity_id}",
    status_code=204,
    summary="Leave, or remove someone",
    openapi_extra={"x-who": "people for themselves, agents and services; others: whoever runs the space"},
)
async def remove_member(request: Request, caller: Person, space_id: str, entity_id: str) -> None:
    """They are in the space no more, and the agents there hear of it. Agents and services anyone in it may remove."""
    await context_of(request).runtime.db.write(_remove, caller, space_id, entity_id)


def _add(tx: Tx, caller: Caller, space_id: str, wanted: MemberAdd) -> MemberOut:
    space = enter(tx, space_id, caller.entity.id)
    entity = find_present(tx, wanted.entity, caller)
    if wanted.role != "member":
        _require_running(tx, space.id, caller, "give a role in it")
    directory.join(tx, space.id, entity.id, role=wanted.role, attention=wanted.attention)
    return _shown(tx, space.id, entity)


def _change(tx: Tx, caller: Caller, space_id: str, named: str, change: MemberChange) -> MemberOut:
    space = enter(tx, space_id, caller.entity.id)
    entity = _member(tx, space.id, named)
    if change.attention is not None:
        if entity.kind == "human" and entity.id != caller.entity.id:
            raise NotAllowed(f"Only {entity.name} can change which messages {entity.name} gets.")
        directory.attend(tx, space.id, entity.id, change.attention)
    if change.role is not None:
        _require_running(tx, space.id, caller, "give a role in it")
        directory.appoint(tx, space.id, entity.id, change.role)
    return _shown(tx, space.id, entity)


def _remove(tx: Tx, caller: Caller, space_id: str, named: str) -> None:
    space = enter(tx, space_id, caller.entity.id)
    entity = _member(tx, space.id, named)
    if entity.kind == "human" and entity.id != caller.entity.id:
        _require_running(tx, space.id, caller, "remove another person")
    leaving.leave(tx, space.id, entity.id)


def _member(tx: Tx, space_id: SpaceId, named: str) -> Entity:
    for each in directory.members(tx, space_id):
        if named in (each.entity.id, f"@{each.entity.handle}"):
            return each.entity
    raise NotFound("member", named)


def _require_running(tx: Tx, space_id: SpaceId, caller: Caller, what: str) -> None:
    if roles.reaches(caller.role, "admin") or directory.role_in(tx, space_id, caller.entity.id) in ("owner", "admin"):
        return
    raise NotAllowed(f"Only an owner or admin of the space, or of the organization, may {what}.")


def _shown(tx: Tx, space_id: SpaceId, entity: Entity) -> MemberOut:
    members = directory.members(tx, space_id)
    found = next(each for each in members if each.entity.id == entity.id)
    return member_out(found, fitness.unable_in_space(tx, space_id), directory.namesakes(members))
