"""Storing, listing and deleting secrets, with permission checks and audit entries.

Admins manage the organization's, people their own.
"""

from __future__ import annotations

from denizen.access import audit, secrets
from denizen.access.requesters import THIS_PROCESS, Requester
from denizen.access.secrets import Secret, SecretLocation
from denizen.errors import NotAllowed
from denizen.ids import EntityId, OrganizationId
from denizen.storage.database import Tx


def put(tx: Tx, by: Requester, place: SecretLocation, sealed: str, hint: str) -> Secret:
    """Store the secret instead of one of that name."""
    _require(by, place)
    _record(tx, by, place, "set_key")
    return secrets.put(tx, place, sealed, hint)


def remove(tx: Tx, by: Requester, place: SecretLocation) -> None:
    """Delete the secret. Raises `NotFound` where there is none."""
    _require(by, place)
    secrets.remove(tx, place)
    _record(tx, by, place, "delete_key")


def visible(tx: Tx, by: Requester, organization_id: OrganizationId) -> list[Secret]:
    """The secrets that the requester may know of, without their values; this process knows of all."""
    by.require_organization(organization_id)
    return [each for each in secrets.secrets_of(tx, organization_id) if _may_change(by, each.owner_id)]


def _require(by: Requester, place: SecretLocation) -> None:
    by.require_organization(place.organization_id)
    if place.owner_id is None:
        by.require("admin")
    elif not _may_change(by, place.owner_id):
        raise NotAllowed("This is another person's key. Only they can set or delete it.")


def _may_change(by: Requester, owner_id: EntityId | None) -> bool:
    if owner_id is None:
        return by.reaches("admin")
    return by == THIS_PROCESS or by.entity_id == owner_id


def _record(tx: Tx, by: Requester, place: SecretLocation, action: str) -> None:
    whose = "organization" if place.owner_id is None else "own"
    audit.record(tx, place.organization_id, by.actor, action, place.owner_id, name=place.name, whose=whose)
