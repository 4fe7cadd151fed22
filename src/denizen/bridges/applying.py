"""Makes a bridge as a definition file says. What is as the file says already is not touched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from denizen.access.requesters import Requester
from denizen.agents.differences import Change, FieldChange
from denizen.agents.documents import BridgeDocument
from denizen.bridges import managing, registry
from denizen.bridges.managing import BridgePolicy
from denizen.bridges.registry import Bridge
from denizen.errors import InvalidInput, NotFound
from denizen.ids import OrganizationId, SpaceId
from denizen.spaces import directory
from denizen.storage.database import Tx


def apply_bridge(
    tx: Tx,
    by: Requester,
    organization_id: OrganizationId,
    document: BridgeDocument,
    spaces: Mapping[str, SpaceId],
    *,
    policy: BridgePolicy,
) -> Change:
    """Create or change the bridge, and connect the rooms that its document names."""
    found = _find(tx, organization_id, document.handle)
    # Also where nothing changes: a file that is wrong is told to be wrong.
    wanted = managing.said(policy.checked(document.service, document.settings))
    if found is None:
        bridge, fields = _create(tx, by, organization_id, document, policy), _differences({}, wanted)
    else:
        if found.kind != document.service:
            raise InvalidInput(f"The bridge @{found.handle} is of the kind {found.kind!r}. Choose another handle.")
        bridge, fields = found, _differences(found.settings, wanted)
        if found.name != document.name:
            directory.rename(tx, found.entity_id, document.name)
            fields.insert(0, FieldChange("name", found.name, document.name))
        if wanted != found.settings:
            managing.change(tx, by, found.id, document.settings, policy)
    for each in document.channels:
        before = registry.find_channel(tx, bridge.id, each.room)
        channel = managing.connect(tx, by, bridge.id, spaces[each.space], each.room, policy)
        if before is None or not before.joined:
            fields.append(FieldChange(f"channels.{each.room}", None, channel.space_name))
    action = "created" if found is None else "changed" if fields else "unchanged"
    return Change("bridge", document.handle, action, tuple(fields))


def _find(tx: Tx, organization_id: OrganizationId, handle: str) -> Bridge | None:
    try:
        entity = directory.find_entity(tx, organization_id, handle)
    except NotFound:
        return None
    found = [each for each in registry.bridges_of(tx, organization_id) if each.entity_id == entity.id]
    if not found:
        raise InvalidInput(f"The handle @{handle} is taken: its owner's kind is {entity.kind}. Choose another.")
    return found[0]


def _create(
    tx: Tx, by: Requester, organization_id: OrganizationId, document: BridgeDocument, policy: BridgePolicy
) -> Bridge:
    if policy.kinds[document.service].has_secret:
        raise InvalidInput(
            f"A bridge of the kind {document.service!r} has a secret, which is shown once when it is made: create it "
            "with `denizen bridges create`. Then the file can change it."
        )
    what = managing.draft(document.name, document.service, document.settings)
    return managing.create(tx, by, organization_id, what, policy, handle=document.handle)


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[FieldChange]:
    names = [name for name in dict.fromkeys([*new, *old]) if old.get(name) != new.get(name)]
    return [FieldChange(f"settings.{name}", old.get(name), new.get(name)) for name in names]
