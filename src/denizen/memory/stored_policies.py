"""Stored choices about long-term memory: of a conversation's members, and of an organization's admins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import JsonValue, ValidationError

from denizen.errors import InvalidInput, NotFound
from denizen.ids import OrganizationId, SpaceId
from denizen.memory.policy import OrganizationMemory, Policy
from denizen.spaces import organization_settings
from denizen.storage.database import Tx, insert_or_update, select_where, value
from denizen.storage.schema import memory_policies

ASSERTED: Final = "memory"
"""The key in a message's metadata that says that its request named the organization. The id is not stored."""

_policy = select_where(memory_policies, "policy", "space_id")
_settle = insert_or_update(memory_policies, "space_id, policy, updated_at")


def policy_of(tx: Tx, space_id: SpaceId) -> Policy:
    """Returns the conversation's policy; opted out if it cannot be read."""
    policy = value(tx, _policy, space_id=space_id)
    try:
        return Policy() if policy is None else Policy.model_validate_json(policy)
    except ValidationError:
        return Policy(enabled=False)


def settle(tx: Tx, space_id: SpaceId, said: Policy) -> Policy:
    """Stores this policy over the earlier one: values that it does not set stay."""
    if said.says_nothing:
        return policy_of(tx, space_id)
    policy = said.over(policy_of(tx, space_id))
    tx.run(_settle, space_id=space_id, policy=policy.model_dump_json(exclude_none=True), updated_at=tx.now)
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


def organization_of(tx: Tx, organization_id: OrganizationId) -> OrganizationMemory | None:
    """Returns the organization's settings; None if they cannot be read: then nothing is allowed."""
    try:
        return OrganizationMemory.model_validate(organization_settings.read(tx, organization_id).get(ASSERTED) or {})
    except (NotFound, ValueError, AttributeError):  # A ValidationError is a ValueError.
        return None


def change_organization(tx: Tx, organization_id: OrganizationId, changes: Mapping[str, object]) -> OrganizationMemory:
    """Changes these switches and keeps the others; None resets one to its default."""
    stored = organization_settings.lock(tx, organization_id)
    before = stored.get(ASSERTED)
    merged: dict[str, Any] = {**(before if isinstance(before, dict) else {}), **changes}
    try:
        found = OrganizationMemory.model_validate({name: each for name, each in merged.items() if each is not None})
    except ValidationError as error:
        said = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors(include_url=False)]
        raise InvalidInput(f"Invalid settings. {'; '.join(said)}.") from error
    stored[ASSERTED] = found.model_dump(mode="json", exclude_defaults=True)
    organization_settings.store(tx, organization_id, stored)
    return found
