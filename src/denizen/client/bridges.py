"""Bridges to services elsewhere, over HTTP."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from denizen.client.connection import Connection, path_to
from denizen.shapes.bridges import (
    AddressList,
    AddressOut,
    BridgeAddressList,
    BridgeAddressOut,
    BridgeCreated,
    BridgeList,
    BridgeOut,
    ChannelOut,
)


class Bridges(Connection):
    """Managing bridges, and one's own accounts elsewhere."""

    async def bridges(self) -> list[BridgeOut]:
        return (await self._ask(BridgeList, "GET", "/api/bridges")).bridges

    async def bridge(self, bridge_id: str) -> BridgeOut:
        return await self._ask(BridgeOut, "GET", path_to("bridges", bridge_id))

    async def create_bridge(self, name: str, kind: str, settings: Mapping[str, JsonValue]) -> BridgeCreated:
        """Creates a bridge. Its secret, if it has one, is shown only once."""
        wanted: dict[str, JsonValue] = {"name": name, "kind": kind, "settings": dict(settings)}
        return await self._ask(BridgeCreated, "POST", "/api/bridges", json=wanted)

    async def change_bridge(self, bridge_id: str, settings: Mapping[str, JsonValue]) -> BridgeOut:
        """Replaces its settings; it connects anew."""
        wanted: dict[str, JsonValue] = {"settings": dict(settings)}
        return await self._ask(BridgeOut, "PATCH", path_to("bridges", bridge_id), json=wanted)

    async def remove_bridge(self, bridge_id: str) -> None:
        """Removes the bridge: nothing more is carried."""
        await self._tell("DELETE", path_to("bridges", bridge_id))

    async def retry_bridge(self, bridge_id: str) -> None:
        """Connects it anew, and sends everything that waits or failed."""
        await self._tell("POST", path_to("bridges", bridge_id, "retry"))

    async def pause_bridge(self, bridge_id: str) -> None:
        """Carries nothing until it is resumed."""
        await self._tell("POST", path_to("bridges", bridge_id, "pause"))

    async def resume_bridge(self, bridge_id: str) -> None:
        """Carries messages again, and sends what waits."""
        await self._tell("POST", path_to("bridges", bridge_id, "resume"))

    async def bridge_addresses(self, bridge_id: str) -> list[BridgeAddressOut]:
        """Returns the accounts that have written through the bridge."""
        return (await self._ask(BridgeAddressList, "GET", path_to("bridges", bridge_id, "addresses"))).addresses

    async def connect_room(self, bridge_id: str, space_id: str, room: str) -> ChannelOut:
        """Connects a room elsewhere with a space."""
        wanted: dict[str, JsonValue] = {"space_id": space_id, "room": room}
        return await self._ask(ChannelOut, "POST", path_to("bridges", bridge_id, "channels"), json=wanted)

    async def disconnect_room(self, channel_id: str) -> None:
        """Stops carrying messages between the room and the space."""
        await self._tell("DELETE", path_to("channels", channel_id))

    async def addresses(self) -> list[AddressOut]:
        """Returns your linked accounts elsewhere."""
        return (await self._ask(AddressList, "GET", "/api/addresses")).addresses

    async def send_code(self, bridge_id: str, account: str) -> None:
        """Sends a code to your account elsewhere."""
        await self._tell("POST", path_to("bridges", bridge_id, "codes"), json={"account": account})

    async def link_address(self, bridge_id: str, account: str, code: str) -> None:
        """Links your account elsewhere, with the code that was sent there."""
        await self._tell("POST", path_to("bridges", bridge_id, "addresses"), json={"account": account, "code": code})

    async def unlink_address(self, bridge_id: str, account: str) -> None:
        """Unlinks an account elsewhere."""
        await self._tell("DELETE", path_to("bridges", bridge_id, "addresses", account))
