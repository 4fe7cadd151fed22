"""Stored choices about long-term memory: of a conversation's members, and of an organization's admins."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from pydantic import JsonValue, ValidationError
from sqlalchemy import bindparam, select, update
from sqlalchemy.dialects.postgresql import insert

from denizen.errors import InvalidInput, NotFound
from denizen.ids import OrganizationId, SpaceId
from denizen.memory.policy import OrganizationMemory, Policy
from denizen.storage.database import Tx, statement
from denizen.storage.schema import memory_policies, organizations

ASSERTED: Final = "memory"
"""The key in a message's metadata that says that its request named the organization. The id is not stored."""

_policy = statement(select(memory_policies.c.policy).where(memory_policies.c.space_id == bindparam("space_id")))
_put = insert(memory_policies).values(
    space_id=bindparam("space_id"), policy=bindparam("policy"), updated_at=bindparam("at")
)
_settle = statement(
    _put.on_conflict_do_update(
        index_elements=["space_id"], set_={"policy": _put.excluded.policy, "updated_at": _put.excluded.updated_at}
    )
)


def policy_of(tx: Tx, space_id: SpaceId) -> Policy:
    """Returns the conversation's policy; opted out if it cannot be read."""
    row = tx.one(_policy, space_id=space_id)
    try:
        return Policy() if row is None else Policy.model_validate_json(row[0])
    except ValidationError:
        return Policy(enabled=False)


def settle(tx: Tx, space_id: SpaceId, said: Policy) -> Policy:
    """Stores this policy over the earlier one: values that it does not set stay."""
    if said.says_nothing:
        return policy_of(tx, space_id)
    policy = said.over(policy_of(tx, space_id))
    tx.run(_settle, space_id=space_id, policy=policy.model_dump_json(exclude_none=True), at=tx.now)
    return policy


def asserting(
    metadata: dict[str, JsonValue] | None, named: str | None, home: OrganizationId
) -> dict[str, JsonValue] | None:
    """Returns the metadata of a message, with whether its request named the organization, but not which."""
    if named is None:
        return metadata
    if named != home:
        raise NotFound("organization", named)
    return {**(metadata or {}), ASSERTED: {"organization": True}}


_settings = select(organizations.c.settings).where(organizations.c.id == bindparam("id"))
_read = statement(_settings)
_lock = statement(_settings.with_for_update(key_share=True))
_store = statement(
    update(organizations).where(organizations.c.id == bindparam("organization")).values(settings=bindparam("new"))
)


def organization_of(tx: Tx, organization_id: OrganizationId) -> OrganizationMemory | None:
    """Returns the organization's settings; None if they cannot be read: then nothing is allowed."""
    row = tx.one(_read, id=organization_id)
    if row is None:
        return None
    try:
        stored: Any = json.loads(row[0])
        return OrganizationMemory.model_validate(stored.get(ASSERTED) or {})
    except (ValueError, AttributeError):  # A ValidationError is a ValueError.
        return None


def change_organization(tx: Tx, organization_id: OrganizationId, changes: Mapping[str, object]) -> OrganizationMemory:
    """Changes these switches and keeps the others; None resets one to its default."""
    row = tx.one(_lock, id=organization_id)
    if row is None:
        raise NotFound("organization", organization_id)
    stored: dict[str, Any] = json.loads(row[0])
    before = stored.get(ASSERTED)
    merged: dict[str, Any] = {**(before if isinstance(before, dict) else {}), **changes}
    try:
        found = OrganizationMemory.model_validate({name: each for name, each in merged.items() if each is not None})
    except ValidationError as error:
        said = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors(include_url=False)]
        raise InvalidInput(f"Invalid settings. {'; '.join(said)}.") from error
    stored[ASSERTED] = found.model_dump(mode="json", exclude_defaults=True)
    tx.run(_store, organization=organization_id, new=json.dumps(stored, ensure_ascii=False))
    return found
