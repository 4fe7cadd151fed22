"""`denizen.bridges`: rooms of other services that are connected with spaces, and accounts there."""

from __future__ import annotations

import asyncio
import builtins
import hmac
import secrets as randomness
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from denizen.access import signatures
from denizen.access.requesters import THIS_PROCESS, Requester
from denizen.api.subject import OrganizationRef, PersonRef, Subject, id_of, requester_of
from denizen.bridges import addresses, managing, registry
from denizen.bridges.addresses import BridgeAddress, KnownAddress
from denizen.bridges.matrix import pushes
from denizen.bridges.matrix.kind import MatrixSettings
from denizen.bridges.matrix.pushes import Push
from denizen.bridges.receiving import Origin, Receiver
from denizen.bridges.registry import Backlog, Bridge, Channel, secret_purpose
from denizen.bridges.running import opened
from denizen.bridges.webhook import events
from denizen.clock import SECOND
from denizen.errors import BridgeUnusable, InvalidInput, NotFound, SecretUnreadable, SignatureWrong
from denizen.ids import BridgeId, ChannelId, OrganizationId
from denizen.spaces import directory
from denizen.spaces.directory import Space
from denizen.spaces.outbox import TO_SEND
from denizen.storage.database import Tx

BridgeRef = Bridge | str
"""A bridge, or its id."""
PREFIX: Final = "dz_bridge_"
_DECOY: Final = "a secret that nobody has"


@dataclass(frozen=True, slots=True)
class BridgeReport:
    """A bridge, its channels, and what waits to be sent."""

    bridge: Bridge
    channels: tuple[Channel, ...]
    backlog: Backlog
    conversations: Mapping[ChannelId, int]
    """How many conversations were read from a channel, where it holds many."""


class Bridges(Subject):
    """Bridges to services elsewhere, and the rooms that are connected with spaces.

    ```python
    bridge, secret = await denizen.bridges.create("Helpdesk", "webhook", {"url": "https://example.org/denizen"})
    channel = await denizen.bridges.connect(bridge, kitchen, "ticket-7")
    assert [each.room for each in (await denizen.bridges.get(bridge)).channels] == ["ticket-7"]
    ```
    """

    async def create(
        self,
        name: str,
        kind: str,
        settings: Mapping[str, Any],
        *,
        organization: OrganizationRef | None = None,
        by: Requester = THIS_PROCESS,
    ) -> tuple[Bridge, str | None]:
        """Create a bridge. Returns it with the secret that was made for it, which cannot be read again."""
        runtime = self._runtime
        home = await runtime.organization_id(organization or by.organization_id)
        what, secret = managing.draft(name, kind, settings), None
        found = runtime.bridge_policy.kinds.get(kind)
        if found is not None and found.has_secret:
            secret = PREFIX + randomness.token_urlsafe(32)
            sealed = await asyncio.to_thread(runtime.vault.seal, secret, secret_purpose(what.id))
            what = replace(what, sealed=sealed)
        return await runtime.db.write(managing.create, by, home, what, runtime.bridge_policy), secret

    async def list(
        self, organization: OrganizationRef | None = None, *, by: Requester = THIS_PROCESS
    ) -> builtins.list[BridgeReport]:
        """The bridges of the organization, each with its channels and what waits to be sent."""
        home = await self._runtime.organization_id(organization or by.organization_id)
        return await self._runtime.db.read(_reports, by, home)

    async def get(self, bridge: BridgeRef, *, by: Requester = THIS_PROCESS) -> BridgeReport:
        """The bridge as it is now."""
        return await self._runtime.db.read(_report, by, id_of(bridge))

    async def change(self, bridge: BridgeRef, settings: Mapping[str, Any], *, by: Requester = THIS_PROCESS) -> Bridge:
        """Replace the settings of the bridge, which connects anew."""
        runtime = self._runtime
        return await runtime.db.write(managing.change, by, id_of(bridge), settings, runtime.bridge_policy)

    async def remove(self, bridge: BridgeRef, *, by: Requester = THIS_PROCESS) -> None:
        """Remove the bridge with its channels. What was said stays."""
        await self._runtime.db.write(managing.remove, by, id_of(bridge))

    async def retry(self, bridge: BridgeRef, *, by: Requester = THIS_PROCESS) -> None:
        """Connect anew, and send everything that waits or could not be delivered."""
        await self._runtime.db.write(managing.retry, by, id_of(bridge))

    async def pause(self, bridge: BridgeRef, *, by: Requester = THIS_PROCESS) -> None:
        """Carry nothing until it is resumed. What is said is kept, and sent then."""
        await self._runtime.db.write(managing.set_paused, by, id_of(bridge), paused=True)

    async def resume(self, bridge: BridgeRef, *, by: Requester = THIS_PROCESS) -> None:
        """Carry messages again, and send what waits."""
        await self._runtime.db.write(managing.set_paused, by, id_of(bridge), paused=False)

    async def connect(
        self, bridge: BridgeRef, space: Space | str, room: str, *, by: Requester = THIS_PROCESS
    ) -> Channel:
        """Connect a room elsewhere with a space: what is written in one is carried to the other."""
        runtime = self._runtime
        where = id_of(bridge), id_of(space), room
        return await runtime.db.write(managing.connect, by, *where, runtime.bridge_policy)

    async def disconnect(self, channel: Channel | str, *, by: Requester = THIS_PROCESS) -> None:
        """Stop carrying messages between the room and the space."""
        await self._runtime.db.write(managing.disconnect, by, id_of(channel))

    async def addresses(self, person: PersonRef) -> builtins.list[BridgeAddress]:
        """The accounts elsewhere that are linked to this person."""
        return await self._read_entity(person, addresses.linked_to)

    async def known_addresses(self, bridge: BridgeRef, *, by: Requester = THIS_PROCESS) -> builtins.list[KnownAddress]:
        """The accounts that have written through the bridge, linked ones first. For admins."""
        return await self._runtime.db.read(_known_addresses, by, id_of(bridge))

    async def send_code(self, bridge: BridgeRef, account: str, person: PersonRef | Requester) -> None:
        """Send a code to an account that has written through the bridge, for a person who says it is theirs."""
        code = await asyncio.to_thread(addresses.new_code, self._runtime.vault, id_of(bridge), account)
        await self._runtime.db.write(addresses.ask_to_link, requester_of(person), id_of(bridge), account, code)

    async def link(self, bridge: BridgeRef, account: str, person: PersonRef | Requester, code: str) -> None:
        """Link the account to the person, who has read the code that was sent there. Raises `InvalidInput`."""
        if not await self._runtime.db.write(addresses.link, requester_of(person), id_of(bridge), account, code):
            raise InvalidInput("This is not the code that was sent to the account. Check it and try again.")

    async def unlink(self, bridge: BridgeRef, account: str, person: PersonRef | Requester) -> None:
        """What the account writes is a guest's again."""
        await self._runtime.db.write(addresses.unlink, requester_of(person), id_of(bridge), account)

    async def receive(self, bridge_id: str, headers: Mapping[str, str], body: bytes) -> None:
        """Take in what the other side of a webhook bridge sent to `/hooks/bridges/{bridge_id}`, once.

        The names of `headers` are lower case. Raises `SignatureWrong` where it is not signed with the bridge's secret,
        and `NotFound` for an unknown bridge or room.
        """
        runtime = self._runtime
        bridge, secret = await runtime.db.read(self._with_secret, bridge_id)
        try:
            signatures.verify("generic", secret, headers, body, runtime.clock.now() / SECOND)
        except SignatureWrong:
            if bridge is not None:
                raise
        # After as much work as for a known one.
        if bridge is None:
            raise NotFound("bridge", bridge_id)
        room, event = events.parse(body)
        await Receiver(runtime.db, runtime.store_file).receive(Origin(bridge.id, room), event)

    async def receive_push(self, bridge_id: str, authorization: str, body: bytes = b"") -> None:
        """Take note that a homeserver has news for a Matrix bridge, which are read from the homeserver, and who types.

        Raises `SignatureWrong` unless it shows the `hs_token` of the bridge's registration.
        """
        await self._runtime.db.read(self._check_push, bridge_id, authorization.removeprefix("Bearer ").strip())
        push = pushes.parse(body)
        if push.has_news or push.typing:
            await self._runtime.db.write(_announce_push, bridge_id, push)

    def _check_push(self, tx: Tx, bridge_id: str, token: str) -> None:
        expected, known = _DECOY, False
        try:
            _, settings, _ = opened(tx, self._runtime.vault, self._runtime.bridge_policy, BridgeId(bridge_id))
            if isinstance(settings, MatrixSettings):
                expected, known = settings.hs_token, True
        except (NotFound, BridgeUnusable, SecretUnreadable):
            pass
        if not hmac.compare_digest(expected.encode(), token.encode()) or not known:
            raise SignatureWrong

    def _with_secret(self, tx: Tx, bridge_id: str) -> tuple[Bridge | None, str]:
        try:
            bridge = registry.get(tx, bridge_id)
        except NotFound:
            return None, _DECOY
        if bridge.kind != "webhook" or bridge.sealed is None:
            return None, _DECOY
        return bridge, self._runtime.vault.open(bridge.sealed, bridge.purpose)


def _announce_push(tx: Tx, bridge_id: str, push: Push) -> None:
    if push.has_news:
        tx.announce(TO_SEND, {"bridge": bridge_id})
    if push.typing:
        tx.announce(TO_SEND, {"bridge": bridge_id, "typing": dict(push.typing)})


def _report(tx: Tx, by: Requester, bridge_id: str) -> BridgeReport:
    bridge = managing.find(tx, by, bridge_id)
    shown = tuple(_shown(tx, by, each) for each in registry.channels_of(tx, bridge.id))
    return BridgeReport(bridge, shown, registry.backlog_of(tx, bridge.id), registry.count_conversations(tx, bridge.id))


def _known_addresses(tx: Tx, by: Requester, bridge_id: str) -> list[KnownAddress]:
    return addresses.known(tx, managing.find(tx, by, bridge_id).id)


def _shown(tx: Tx, by: Requester, channel: Channel) -> Channel:
    """Only the members of a private space know about it."""
    sees = not by.is_limited or not channel.private or directory.is_member(tx, channel.space_id, by.entity_id)
    return channel if sees else replace(channel, space_name="", room="", hidden=True)


def _reports(tx: Tx, by: Requester, organization_id: OrganizationId) -> list[BridgeReport]:
    return [_report(tx, by, each.id) for each in managing.bridges_in(tx, by, organization_id)]
