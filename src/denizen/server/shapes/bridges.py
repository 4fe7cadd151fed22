"""The JSON of bridges."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, Field

from denizen.api.bridges import BridgeReport
from denizen.bridges.addresses import BridgeAddress
from denizen.bridges.registry import Channel, state_of
from denizen.clock import Instant, moment
from denizen.server.shapes.filling import filled
from denizen.shapes.bridges import AddressOut, BridgeOut, ChannelOut
from denizen.shapes.examples import KITCHEN, asked


class CreateBridge(BaseModel):
    """A new bridge."""

    model_config = asked(name="Helpdesk", kind="webhook", settings={"url": "https://example.org/denizen"})

    name: Annotated[str, Field(description="The name of its member in spaces.")]
    kind: Annotated[str, Field(description="`matrix`, `telegram` or `webhook`.")]
    settings: Annotated[dict[str, Any], Field(description="See the page of its kind.")]


class ChangeBridge(BaseModel):
    """New settings of a bridge, which replace all of the old ones."""

    model_config = asked(settings={"url": "https://example.org/new"})

    settings: dict[str, Any]


class ConnectRoom(BaseModel):
    """A room elsewhere to be connected with a space."""

    model_config = asked(space_id=KITCHEN, room="ticket-7")

    space_id: str
    room: Annotated[str, Field(description="Its id elsewhere.")]


class SendCode(BaseModel):
    """An account elsewhere that you say is yours."""

    model_config = asked(account="@noor:example.org")

    account: Annotated[str, Field(description="It must have written through the bridge before.")]


class LinkAddress(BaseModel):
    """An account elsewhere, and the code that was sent there."""

    model_config = asked(account="@noor:example.org", code="012345678901")

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
        channels=[channel_out(each) for each in report.channels],
    )


def channel_out(channel: Channel) -> ChannelOut:
    shown = {"space_name": None, "room": None} if channel.hidden else {}
    return filled(ChannelOut, channel, connected=channel.joined, **shown)


def address_out(address: BridgeAddress) -> AddressOut:
    return filled(AddressOut, address)


def _moment(at: Instant | None) -> datetime | None:
    return None if at is None else moment(at)
