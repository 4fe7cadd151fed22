"""Bridges to other services, their channels, and accounts."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field, JsonValue

from denizen.shapes.examples import example
from denizen.shapes.value import Open, Value
from denizen.shapes.vocabulary import BridgeSettingType, BridgeState


class ChannelOut(Value):
    """A room of another service, and the space that it is connected with."""

    id: str
    space_id: str
    space_name: Annotated[str | None, Field(description="Null for a private space that you are not in.")]
    room: Annotated[str | None, Field(description="Its id in that service; null as above.")]
    connected: Annotated[bool, Field(description="False if the bridge was removed from the space.")]
    conversations: Annotated[
        int, Field(description="How many conversations in it became spaces of their own, where it holds many.")
    ]
    created_at: datetime


class BridgeOut(Value):
    """A bridge, and how it does."""

    model_config = example(
        name="Helpdesk", handle="helpdesk", kind="webhook", path="/hooks/bridges/019b8d3f-0a00-7d24-8c3b-5e6f7a8b9c0d"
    )

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
            "`paused`: an admin has it carry nothing; `stopped`: no server carries its messages."
        ),
    ]
    problem: Annotated[str | None, Field(description="The last problem, and what to do.")]
    problem_at: datetime | None
    retry_at: Annotated[datetime | None, Field(description="When a parked bridge tries again by itself.")]
    connected_at: Annotated[datetime | None, Field(description="When something last went through.")]
    paused_at: Annotated[datetime | None, Field(description="Since when it is paused.")]
    waiting: Annotated[int, Field(description="How many messages and changes wait to be sent.")]
    waiting_since: Annotated[datetime | None, Field(description="Since when the oldest of them waits.")]
    failed: Annotated[int, Field(description="How many could not be delivered.")]
    channels: list[ChannelOut]
    created_at: datetime


class BridgeCreated(Value):
    """A new bridge with the secret that was made for it, which is shown only once."""

    bridge: BridgeOut
    secret: Annotated[str | None, Field(description="Both sides sign with it. Null if this kind has none.")]


class BridgeSettingOut(Value):
    """A setting of a kind of bridge."""

    model_config = example(
        name="url", about="The address that gets what is said.", required=True, secret=False, type="text"
    )

    name: str
    about: str
    required: bool
    secret: Annotated[bool, Field(description="Whether it may only name a secret, as `${NAME}`.")]
    type: Annotated[Open[BridgeSettingType], Field(description="`list`: several texts.")]


class BridgeKindOut(Value):
    """A kind of bridge that this server has."""

    name: str
    settings: list[BridgeSettingOut]


class BridgeList(Value):
    """The bridges of the organization, and the kinds that there are."""

    bridges: list[BridgeOut]
    kinds: list[BridgeKindOut]


class BridgeAddressOut(Value):
    """An account at another service that has written through a bridge."""

    model_config = example(account="@noor:example.org", name="Noor", person="Noor")

    account: str
    name: Annotated[str, Field(description="The name of the guest that it became.")]
    person_id: Annotated[str | None, Field(description="The person that it is linked to.")]
    person: str | None
    linked_at: datetime | None


class BridgeAddressList(Value):
    """The accounts that have written through a bridge: linked ones first; at most 500."""

    addresses: list[BridgeAddressOut]


class AddressOut(Value):
    """An account at another service that is linked to you."""

    bridge_id: str
    account: str
    linked_at: datetime


class AddressList(Value):
    """Your linked accounts."""

    addresses: list[AddressOut]
