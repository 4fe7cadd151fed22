"""The JSON of bridges."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, get_origin

from pydantic import BaseModel, Field

from denizen.api.bridges import BridgeReport
from denizen.bridges.addresses import BridgeAddress, KnownAddress
from denizen.bridges.port import BridgeKind, secret_fields
from denizen.bridges.registry import Channel, state_of
from denizen.clock import Instant, moment
from denizen.server.shapes.filling import filled
from denizen.settings.meanings import meanings
from denizen.shapes.bridges import (
    AddressOut,
    BridgeAddressOut,
    BridgeKindOut,
    BridgeOut,
    BridgeSettingOut,
    ChannelOut,
)
from denizen.shapes.examples import KITCHEN, body_example
from denizen.shapes.vocabulary import BridgeSettingType


class CreateBridge(BaseModel):
    """A new bridge."""

    model_config = body_example(name="Helpdesk", kind="webhook", settings={"url": "https://example.org/denizen"})

    name: Annotated[str, Field(description="The name of its member in spaces.")]
    kind: Annotated[str, Field(description="`discord`, `email`, `matrix`, `slack`, `telegram` or `webhook`.")]
    settings: Annotated[dict[str, Any], Field(description="See the page of its kind.")]


class ChangeBridge(BaseModel):
    """New settings of a bridge, which replace all of the old ones."""

    model_config = body_example(settings={"url": "https://example.org/new"})

    settings: dict[str, Any]


class ConnectRoom(BaseModel):
    """A room of another service to be connected with a space."""

    model_config = body_example(space_id=KITCHEN, room="ticket-7")

    space_id: str
    room: Annotated[str, Field(description="Its id in that service.")]


class SendCode(BaseModel):
    """An account at another service that you say is yours."""

    model_config = body_example(account="@noor:example.org")

    account: Annotated[str, Field(description="It must have written through the bridge before.")]


class LinkAddress(BaseModel):
    """An account at another service, and the code that was sent there."""

    model_config = body_example(account="@noor:example.org", code="012345678901")

    account: str
    code: str


def bridge_out(report: BridgeReport, now: Instant) -> BridgeOut:
    bridge, backlog = report.bridge, report.backlog
    return filled(
        BridgeOut,
        bridge,
        settings=dict(bridge.settings),
        path=f"/hooks/bridges/{bridge.id}" if bridge.kind in ("webhook", "matrix") else None,
        state=state_of(bridge, now),
        problem=bridge.error,
        problem_at=_moment(bridge.error_at),
        retry_at=_moment(bridge.parked_until),
        waiting=backlog.waiting,
        waiting_since=_moment(backlog.oldest_at),
        failed=backlog.failed,
        channels=[channel_out(each, report.conversations.get(each.id, 0)) for each in report.channels],
    )


def channel_out(channel: Channel, conversations: int = 0) -> ChannelOut:
    shown = {"space_name": None, "room": None} if channel.hidden else {}
    return filled(ChannelOut, channel, connected=channel.joined, conversations=conversations, **shown)


def kind_out(kind: BridgeKind) -> BridgeKindOut:
    secrets, about = secret_fields(kind.settings), meanings(kind.settings)
    fields = kind.settings.model_fields
    return BridgeKindOut(
        name=kind.name,
        settings=[
            BridgeSettingOut(
                name=name,
                about=" ".join(about.get(name, "").split()),
                required=fields[name].is_required(),
                secret=name in secrets,
                type=_type(fields[name].annotation),
            )
            for name in sorted(fields, key=lambda name: (not fields[name].is_required(), list(fields).index(name)))
        ],
    )


def _type(annotation: Any) -> BridgeSettingType:
    if annotation in (bool, int):
        return "flag" if annotation is bool else "number"
    return "list" if get_origin(annotation) is tuple else "text"


def known_address_out(known: KnownAddress) -> BridgeAddressOut:
    at = known.address.linked_at
    return BridgeAddressOut(
        account=known.address.account,
        name=known.name,
        person_id=known.address.person_id,
        person=known.person,
        linked_at=_moment(at),
    )


def address_out(address: BridgeAddress) -> AddressOut:
    return filled(AddressOut, address)


def _moment(at: Instant | None) -> datetime | None:
    return None if at is None else moment(at)
