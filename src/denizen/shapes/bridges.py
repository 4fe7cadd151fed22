"""Bridges to services elsewhere, their channels, and accounts."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field, JsonValue

from denizen.shapes.examples import KITCHEN, NINE, THING, given
from denizen.shapes.value import Open, Value
from denizen.shapes.vocabulary import BridgeState

_CHANNEL = {
    "id": THING, "space_id": KITCHEN, "space_name": "Kitchen", "room": "ticket-7", "connected": True,
    "created_at": NINE,
}  # fmt: skip
_BRIDGE = {
    "id": THING, "name": "Helpdesk", "handle": "helpdesk", "kind": "webhook",
    "settings": {"url": "https://example.org/denizen"}, "path": f"/hooks/bridges/{THING}", "state": "connected",
    "problem": None, "problem_at": None, "retry_at": None, "connected_at": NINE, "waiting": 0, "waiting_since": None,
    "failed": 0, "channels": [_CHANNEL], "created_at": NINE,
}  # fmt: skip


class ChannelOut(Value):
    """A room elsewhere, and the space that it is connected with."""

    model_config = given(**_CHANNEL)

    id: str
    space_id: str
    space_name: Annotated[str | None, Field(description="Null for a private space that you are not in.")]
    room: Annotated[str | None, Field(description="Its id elsewhere; null as above.")]
    connected: Annotated[bool, Field(description="False if the bridge was removed from the space.")]
    created_at: datetime


class BridgeOut(Value):
    """A bridge, and how it does."""

    model_config = given(**_BRIDGE)

    id: str
    name: str
    handle: str
    kind: str
    settings: Annotated[dict[str, JsonValue], Field(description="Secrets only as references.")]
    path: Annotated[str | None, Field(description="The path on this server that a webhook bridge is sent to.")]
    state: Annotated[
        Open[BridgeState],
        Field(
            description="`connected`; `failing`: it tries again by itself; `parked`: somebody has to change something; "
            "`stopped`: no server carries its messages."
        ),
    ]
    problem: Annotated[str | None, Field(description="The last problem, and what to do.")]
    problem_at: datetime | None
    retry_at: Annotated[datetime | None, Field(description="When a parked bridge tries again by itself.")]
    connected_at: Annotated[datetime | None, Field(description="When something last went through.")]
    waiting: Annotated[int, Field(description="How many messages and changes wait to be sent.")]
    waiting_since: Annotated[datetime | None, Field(description="Since when the oldest of them waits.")]
    failed: Annotated[int, Field(description="How many could not be delivered.")]
    channels: list[ChannelOut]
    created_at: datetime


class BridgeCreated(Value):
    """A new bridge with the secret that was made for it, which is shown only once."""

    model_config = given(bridge=_BRIDGE, secret="shown-this-once")  # noqa: S106  an example

    bridge: BridgeOut
    secret: Annotated[str | None, Field(description="Both sides sign with it. Null if this kind has none.")]


class BridgeList(Value):
    """The bridges of the organization."""

    bridges: list[BridgeOut]


class AddressOut(Value):
    """An account elsewhere that is linked to you."""

    model_config = given(bridge_id=THING, account="@noor:example.org", linked_at=NINE)

    bridge_id: str
    account: str
    linked_at: datetime


class AddressList(Value):
    """Your linked accounts."""

    addresses: list[AddressOut]
