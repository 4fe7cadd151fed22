"""Lists, creates, changes and removes people and services. Agents are created and changed below /api/agents."""

from __future__ import annotations

from typing import Annotated, Final
from uuid import UUID, uuid5

from fastapi import Query

from denizen.access import people, people_changes
from denizen.ids import EntityId
from denizen.server.auth import Admin, Caller, Person
from denizen.server.idempotency import IdempotencyKey
from denizen.server.router import new_router
from denizen.server.shapes.people import EntityChange, EntityCreate, entity_out
from denizen.shapes.people import EntityOut, EntityPage
from denizen.spaces.directory import EntityKind
from denizen.storage.database import Tx, storable

router = new_router()

LONGEST_PAGE: Final = 200
_KEYS: Final = UUID("8a6f1c52-0b0e-4d0c-9a3e-6c4a5e0d7b21")
"""Under which idempotency keys become the ids of entities."""


@router.get("/api/entities", summary="List people, agents and services")
async def list_entities(
    caller: Person,
    kind: EntityKind | None = None,
    after: Annotated[str, Query(max_length=200, description="What `next` of the page before said.")] = "",
    limit: Annotated[int, Query(ge=1, le=LONGEST_PAGE)] = 50,
) -> EntityPage:
    """Ordered by handle, without people who have left and agents that were deleted."""
    return await caller.runtime.db.read(_page, caller, kind, after, limit)


@router.get("/api/entities/{entity_id}", summary="Get a person, an agent or a service")
async def get_entity(caller: Person, entity_id: str) -> EntityOut:
    """`entity_id` is an id or an `@handle`. People who have left are found by id."""
    return entity_out(await caller.read(people.find_profile, entity_id))


@router.post(
    "/api/entities",
    status_code=201,
    summary="Add a person or a service",
    openapi_extra={"x-who": "admins and owners; admins or owners: owners"},
)
async def create_entity(caller: Admin, wanted: EntityCreate, key: IdempotencyKey = None) -> EntityOut:
    """Adds them to the organization, without a space and without a token."""
    chosen = None if key is None else EntityId(str(uuid5(_KEYS, f"{caller.entity.id} {key}")))
    write, fields = caller.runtime.db.write, wanted.model_dump()
    return entity_out(await write(people_changes.create, caller.requester, **fields, id=chosen))


@router.patch(
    "/api/entities/{entity_id}",
    summary="Change a name or a role",
    openapi_extra={"x-who": "admins and owners; roles: owners"},
)
async def change_entity(caller: Admin, entity_id: str, change: EntityChange) -> EntityOut:
    """Agents in the same spaces are told of a new name. Only owners can change roles, and there is always at least
    one owner.
    """
    return entity_out(await caller.write(people_changes.change, entity_id, **change.model_dump()))


@router.delete(
    "/api/entities/{entity_id}",
    status_code=204,
    summary="Remove a person or a service",
    openapi_extra={"x-who": "admins and owners for themselves and for members; admins or owners: owners"},
)
async def remove_entity(caller: Admin, entity_id: str) -> None:
    """Revokes their tokens, removes them from all spaces and deletes their own keys.

    Their messages stay, under their name, and their handle is not reused. Only owners can remove an admin or an owner.
    """
    await caller.write(people_changes.remove, entity_id)


def _page(tx: Tx, caller: Caller, kind: EntityKind | None, after: str, limit: int) -> EntityPage:
    home = caller.entity.organization_id
    # One more than asked for shows whether there are more.
    found = people.page(tx, home, kind=kind, after=storable(after), limit=limit + 1)
    shown = [entity_out(each) for each in found[:limit]]
    return EntityPage(entities=shown, next=shown[-1].handle if len(found) > limit else None)
