"""Creating, changing and removing bridges and channels, with permission checks. For admins of the organization.

Only who is in a space can connect it with a room elsewhere: everyone in that room reads what is said in it. The bridge
becomes a member of the space, so that people see it, and private words are kept from it as from any stranger. A secret
in the settings, and a private address, are for owners, as in the definitions of agents.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from denizen.access import audit, people
from denizen.access.requesters import Requester, find_space
from denizen.access.secrets import is_reference, names_in
from denizen.agents.restrictions import HostAccess
from denizen.bridges import registry, sending
from denizen.bridges.port import BridgeKind, BridgeSettings, secret_fields
from denizen.bridges.registry import Bridge, Channel
from denizen.errors import InvalidInput, NotAllowed, NotFound, existing
from denizen.ids import BridgeId, ChannelId, OrganizationId, new_id
from denizen.spaces import directory, leaving, posting
from denizen.spaces.handles import check_name, handle_from
from denizen.spaces.outbox import TO_SEND
from denizen.storage.database import Tx, delete_where, insert_into, storable, update_where
from denizen.storage.schema import addresses, bridges, carried, channels, drafts, outbox, told_statuses

ROOM_CHARACTERS: Final = 255

_add = insert_into(bridges, "id", "organization_id", "entity_id", "kind", "settings", "sealed", "created_at")
_change = update_where(bridges, "id", set_="settings")
_end_lease = update_where(bridges, "id", holder=None, until=0, epoch=bridges.c.epoch + 1)
_add_channel = insert_into(channels, "id", "bridge_id", "space_id", "room", "created_at")
_drop_of_channel = [delete_where(table, "channel_id") for table in (outbox, carried, drafts, told_statuses)]
_drop_channel = delete_where(channels, "id")
_drop_of_bridge = [delete_where(table, "bridge_id") for table in (outbox, addresses)]
_drop_bridge = delete_where(bridges, "id")


@dataclass(frozen=True, slots=True)
class BridgePolicy:
    """The kinds of bridges here, and what organizations other than the first may reach on this machine."""

    kinds: Mapping[str, BridgeKind]
    access: HostAccess

    def checked(self, kind: str, settings: Mapping[str, Any]) -> BridgeSettings:
        """The settings, if they are valid for this kind. Raises `InvalidInput`."""
        if kind not in self.kinds:
            raise InvalidInput(
                f"There is no kind of bridge {kind[:40]!r}. Use one of: {', '.join(sorted(self.kinds))}."
            )
        for name in secret_fields(self.kinds[kind].settings):
            if name in settings and not is_reference(str(settings[name])):
                raise InvalidInput(
                    f"The setting {name} may only name a secret, as ${{NAME}}. Add the secret under Keys."
                )
        try:
            return self.kinds[kind].settings.model_validate(dict(settings))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(each) for each in first["loc"]) or "settings"
            raise InvalidInput(f"The settings of this bridge are not valid: {where}: {first['msg']}.") from error

    def allows(self, tx: Tx, organization_id: OrganizationId, settings: BridgeSettings) -> bool:
        """Whether the organization may reach the private addresses in these settings."""
        is_first = directory.first_organization(tx) == organization_id
        return is_first or self.access.allows_hosts(settings.allow_private)


@dataclass(frozen=True, slots=True)
class BridgeDraft:
    """A bridge to be created, with its id and sealed secret, both made outside the transaction."""

    id: BridgeId
    name: str
    kind: str
    settings: Mapping[str, Any]
    sealed: str | None


def draft(name: str, kind: str, settings: Mapping[str, Any]) -> BridgeDraft:
    return BridgeDraft(BridgeId(new_id()), check_name(name), kind, settings, None)


def create(
    tx: Tx,
    by: Requester,
    organization_id: OrganizationId,
    what: BridgeDraft,
    policy: BridgePolicy,
    *,
    handle: str | None = None,
) -> Bridge:
    """Create the bridge, and the service that stands for it; its handle is made from the name. For admins."""
    by.require("admin")
    by.require_organization(organization_id)
    settings = policy.checked(what.kind, what.settings)
    _check_permitted(tx, by, organization_id, settings, policy)
    entity = directory.create_entity(
        tx, organization_id, "service", name=what.name, handle=handle or _free_handle(tx, organization_id, what.name)
    )
    tx.run(
        _add,
        id=what.id,
        organization_id=organization_id,
        entity_id=entity.id,
        kind=what.kind,
        settings=_stored(settings),
        sealed=what.sealed,
        created_at=tx.now,
    )
    audit.record(tx, organization_id, by.actor, "create_bridge", entity.id, bridge=what.id, bridge_kind=what.kind)
    tx.announce(TO_SEND, {"bridge": what.id})
    return registry.get(tx, what.id)


def said(settings: BridgeSettings) -> dict[str, Any]:
    """The settings that are not as by default, and what every bridge has where the default of the kind is another."""
    told = settings.model_dump(mode="json", exclude_defaults=True)
    if settings.history_minutes != BridgeSettings.model_fields["history_minutes"].default:
        told["history_minutes"] = settings.history_minutes
    return told


def _stored(settings: BridgeSettings) -> str:
    return json.dumps(said(settings), ensure_ascii=False)


def _free_handle(tx: Tx, organization_id: OrganizationId, name: str) -> str:
    handle = handle_from(name)
    taken = {each.handle for each in directory.list_entities(tx, organization_id, also_left=True)}
    return directory.free_handle(tx, organization_id, handle) if handle in taken else handle


def change(tx: Tx, by: Requester, bridge_id: str, settings: Mapping[str, Any], policy: BridgePolicy) -> Bridge:
    """Replace the settings of the bridge; it connects anew. For admins."""
    bridge = find(tx, by, bridge_id)
    checked = policy.checked(bridge.kind, settings)
    _check_permitted(tx, by, bridge.organization_id, checked, policy)
    tx.run(_change, id=bridge.id, settings=_stored(checked))
    audit.record(tx, bridge.organization_id, by.actor, "change_bridge", bridge.entity_id, bridge=bridge.id)
    _connect_anew(tx, bridge.id)
    return registry.get(tx, bridge.id)


def retry(tx: Tx, by: Requester, bridge_id: str) -> None:
    """Connect the bridge anew, and send everything that waits or failed. For admins."""
    bridge = find(tx, by, bridge_id)
    sending.retry(tx, bridge.id)
    audit.record(tx, bridge.organization_id, by.actor, "retry_bridge", bridge.entity_id, bridge=bridge.id)
    _connect_anew(tx, bridge.id)


def set_paused(tx: Tx, by: Requester, bridge_id: str, *, paused: bool) -> None:
    """Carry nothing until it is resumed: messages are kept. Its spaces are told. For admins."""
    bridge = find(tx, by, bridge_id)
    if (bridge.paused_at is not None) == paused:
        return
    registry.set_paused(tx, bridge.id, paused=paused)
    said = "is paused: messages are kept and sent later." if paused else "works again. What was waiting is being sent."
    sending.tell(tx, bridge, said)
    kind = "pause_bridge" if paused else "resume_bridge"
    audit.record(tx, bridge.organization_id, by.actor, kind, bridge.entity_id, bridge=bridge.id)
    _connect_anew(tx, bridge.id)


def _connect_anew(tx: Tx, bridge_id: BridgeId) -> None:
    registry.probe(tx, bridge_id)
    # Whoever holds it has the old settings.
    tx.run(_end_lease, id=bridge_id)
    tx.announce(TO_SEND, {"bridge": bridge_id})


def remove(tx: Tx, by: Requester, bridge_id: str) -> None:
    """Remove the bridge with its channels. Messages and guests stay; nothing more is carried. For admins."""
    bridge = find(tx, by, bridge_id)
    registry.lock(tx, bridge.id)
    for channel in registry.channels_of(tx, bridge.id):
        _disconnect(tx, bridge, channel)
    for each in _drop_of_bridge:
        tx.run(each, bridge_id=bridge.id)
    tx.run(_drop_bridge, id=bridge.id)
    people.leave(tx, bridge.entity_id)
    audit.record(tx, bridge.organization_id, by.actor, "remove_bridge", bridge.entity_id, bridge=bridge.id)


def connect(tx: Tx, by: Requester, bridge_id: str, space_id: str, room: str, policy: BridgePolicy) -> Channel:
    """Bind a room elsewhere to a space that the requester is in; for admins. The space is told.

    A private space only if the requester manages it: an owner or admin of the space. Of a room that holds many
    conversations, nothing is said in the space itself, nor sent from it.
    """
    bridge = find(tx, by, bridge_id)
    registry.lock(tx, bridge.id)
    space = find_space(tx, by, space_id)
    if space.organization_id != bridge.organization_id:
        raise NotFound("space", space_id)
    if space.kind != "conversation":
        raise InvalidInput("A panel cannot be connected with a room elsewhere. Choose a conversation.")
    if by.is_limited and space.private and directory.role_in(tx, space.id, by.entity_id) not in ("owner", "admin"):
        raise NotAllowed("Only an owner or admin of a private space may connect it with a room elsewhere.")
    room = storable(room.strip())
    if not room or len(room) > ROOM_CHARACTERS:
        raise InvalidInput(f"The id of a room has 1 to {ROOM_CHARACTERS} characters.")
    before = registry.find_channel(tx, bridge.id, room)
    if before is not None and (before.space_id != space.id or before.joined):
        if before.space_id == space.id:
            return before
        raise InvalidInput("This room is connected with another space. Disconnect it there first.")
    directory.join(tx, space.id, bridge.entity_id)
    channel_id = ChannelId(new_id()) if before is None else before.id
    if before is None:
        tx.run(_add_channel, id=channel_id, bridge_id=bridge.id, space_id=space.id, room=room, created_at=tx.now)
    said = f"{bridge.name} connects this space with {room}: "
    if bridge.kind in policy.kinds and policy.kinds[bridge.kind].holds_threads:
        said += "each conversation there becomes a space of its own, with the agents that are here then."
    else:
        registry.mark_bridged(tx, space.id)
        said += "people there read what is said here from now on."
    posting.post_notice(tx, space.id, bridge.entity_id, posting.draft(said), {"bridge": bridge.id})
    audit.record(tx, bridge.organization_id, by.actor, "connect_room", space.id, bridge=bridge.id, channel=channel_id)
    tx.announce(TO_SEND, {"bridge": bridge.id})
    return registry.get_channel(tx, channel_id)


def disconnect(tx: Tx, by: Requester, channel_id: str) -> None:
    """Nothing more is carried between the room and the space. For admins, and for people who manage the space."""
    channel = registry.get_channel(tx, channel_id)
    bridge = registry.get(tx, channel.bridge_id)
    if by.organization_id not in (None, bridge.organization_id):
        raise NotFound("channel", channel_id)
    if by.is_limited and not by.reaches("admin"):
        role = existing(directory.role_in(tx, channel.space_id, by.entity_id), "channel", channel_id)
        if role not in ("owner", "admin"):
            raise NotAllowed("Only an owner or admin of the space, or of the organization, may disconnect it.")
    registry.lock(tx, bridge.id)
    _disconnect(tx, bridge, channel)
    audit.record(
        tx, bridge.organization_id, by.actor, "disconnect_room", channel.space_id, bridge=bridge.id, channel=channel.id
    )


def _disconnect(tx: Tx, bridge: Bridge, channel: Channel) -> None:
    for conversation in registry.conversations_of(tx, channel):
        _disconnect(tx, bridge, conversation)
    drop_channel(tx, channel.id)
    if not registry.channels_in(tx, bridge.id, channel.space_id):
        said = f"{bridge.name} is disconnected from this space: new messages are no longer sent there."
        posting.post_notice(tx, channel.space_id, bridge.entity_id, posting.draft(said), {"bridge": bridge.id})
        leaving.leave(tx, channel.space_id, bridge.entity_id)


def drop_channel(tx: Tx, channel_id: ChannelId) -> None:
    """Delete the channel, with what it carried and what waits for it."""
    for each in _drop_of_channel:
        tx.run(each, channel_id=channel_id)
    tx.run(_drop_channel, id=channel_id)


def find(tx: Tx, by: Requester, bridge_id: str) -> Bridge:
    """The bridge of the requester's organization. For admins."""
    by.require("admin")
    bridge = registry.get(tx, bridge_id)
    if by.organization_id not in (None, bridge.organization_id):
        raise NotFound("bridge", bridge_id)
    return bridge


def bridges_in(tx: Tx, by: Requester, organization_id: OrganizationId) -> Sequence[Bridge]:
    """The bridges of the organization. For admins."""
    by.require("admin")
    by.require_organization(organization_id)
    return registry.bridges_of(tx, organization_id)


def _check_permitted(
    tx: Tx, by: Requester, organization_id: OrganizationId, settings: BridgeSettings, policy: BridgePolicy
) -> None:
    """Secrets, and what reaches this machine, are for owners; the latter only where the operator allows it."""
    secrets = sorted(names_in(settings.model_dump_json()))
    if secrets and not by.reaches("owner"):
        raise NotAllowed(f"The settings use {', '.join(secrets)}. Only owners may say where a secret is sent.")
    if not settings.allow_private:
        return
    if not by.reaches("owner"):
        raise NotAllowed("The settings reach a private address. Only owners may allow that.")
    if not policy.allows(tx, organization_id, settings):
        raise NotAllowed(
            "The settings reach a private address, which this server does not allow to your organization "
            "(its operator can list it in `organizations.private_hosts`)."
        )
