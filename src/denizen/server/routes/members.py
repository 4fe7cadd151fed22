"""Adds, changes and removes members of a space. Only those who manage the space may remove others and give roles."""

from __future__ import annotations

from denizen.access import space_changes
from denizen.agents import fitness
from denizen.ids import SpaceId
from denizen.server.auth import Caller, Person
from denizen.server.router import new_router
from denizen.server.shapes.spaces import MemberAdd, MemberChange, member_out
from denizen.shapes.spaces import MemberOut
from denizen.spaces import directory
from denizen.spaces.directory import Entity
from denizen.storage.database import Tx, storable

router = new_router()


@router.post(
    "/api/spaces/{space_id}/members",
    status_code=201,
    summary="Add a member to a space",
    openapi_extra={"x-who": "people; roles: those who manage the space"},
)
async def add_member(caller: Person, space_id: str, wanted: MemberAdd) -> MemberOut:
    """The agents in the space are told. A member that is already there stays unchanged."""
    return await caller.runtime.db.write(_add, caller, space_id, wanted)


@router.patch(
    "/api/spaces/{space_id}/members/{entity_id}",
    summary="Change the attention or role of a member",
    openapi_extra={"x-who": "people for themselves and for agents; roles: those who manage the space"},
)
async def change_member(caller: Person, space_id: str, entity_id: str, change: MemberChange) -> MemberOut:
    """Only people themselves can change their attention. `entity_id` is an id or an `@handle`."""
    return await caller.runtime.db.write(_change, caller, space_id, entity_id, change)


@router.delete(
    "/api/spaces/{space_id}/members/{entity_id}",
    status_code=204,
    summary="Leave a space, or remove a member",
    openapi_extra={"x-who": "people for themselves, agents and services; others: those who manage the space"},
)
async def remove_member(caller: Person, space_id: str, entity_id: str) -> None:
    """The agents in the space are told. Every member can remove agents and services."""
    await caller.write(space_changes.remove_member, space_id, entity_id)


def _add(tx: Tx, caller: Caller, space_id: str, wanted: MemberAdd) -> MemberOut:
    role, attention = wanted.role, wanted.attention
    by = caller.requester
    return _shown(
        tx, space_id, space_changes.add_member(tx, by, space_id, wanted.entity, role=role, attention=attention)
    )


def _change(tx: Tx, caller: Caller, space_id: str, named: str, change: MemberChange) -> MemberOut:
    by = caller.requester
    return _shown(tx, space_id, space_changes.change_member(tx, by, space_id, named, **change.model_dump()))


def _shown(tx: Tx, space_id: str, entity: Entity) -> MemberOut:
    where = SpaceId(storable(space_id))
    members = directory.members(tx, where)
    found = next(each for each in members if each.entity.id == entity.id)
    return member_out(found, fitness.unable_in_space(tx, where), directory.namesakes(members))
