"""Stores, lists and deletes keys of providers and services: the organization's, and each person's own."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query

from denizen.access.secrets import NAME
from denizen.server.auth import Caller, Person
from denizen.server.problems import Problem
from denizen.server.router import new_router
from denizen.server.shapes.access import NamedWhose, SetKey, key_out
from denizen.shapes.access import KeyList, KeyOut
from denizen.spaces.directory import Entity

router = new_router()

WHO = {"x-who": "people for their own; admins for the organization's"}

Name = Annotated[
    str, Path(pattern=f"^{NAME}$", description="As an environment variable is named.", examples=["OPENAI_API_KEY"])
]


@router.get("/api/keys", summary="List stored keys", openapi_extra=WHO)
async def list_keys(caller: Person) -> KeyList:
    """Your own and, for admins, those of the organization. Nobody sees keys of others."""
    found = await caller.runtime.secrets.list(organization=caller.entity.organization_id, by=caller.requester)
    return KeyList(keys=[key_out(each) for each in found])


@router.put("/api/keys/{name}", summary="Store a key", openapi_extra=WHO)
async def set_key(caller: Person, name: Name, given: SetKey) -> KeyOut:
    """Stores the key encrypted, and replaces an existing one of that name. A key with the name of its provider's
    variable is used for models; tools use others as `${NAME}`.
    """
    runtime, person = caller.runtime, _whose(caller, given.whose)
    home = caller.entity.organization_id
    return key_out(await runtime.secrets.set(name, given.value, person=person, organization=home, by=caller.requester))


@router.delete("/api/keys/{name}", status_code=204, summary="Delete a key", openapi_extra=WHO)
async def delete_key(caller: Person, name: Name, whose: Annotated[NamedWhose, Query()] = "organization") -> None:
    """Agents that are awake may use it until they are loaded again."""
    runtime, person = caller.runtime, _whose(caller, whose)
    home = caller.entity.organization_id
    await runtime.secrets.delete(name, person=person, organization=home, by=caller.requester)


def _whose(caller: Caller, whose: str) -> Entity | None:
    if whose == "organization":
        return None
    if whose not in ("me", f"@{caller.entity.handle}"):
        raise Problem("not_allowed", f"whose: only {whose} can set or remove their own key.")
    return caller.entity
