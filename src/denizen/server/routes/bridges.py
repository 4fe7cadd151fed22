"""Creates and changes bridges, connects rooms with spaces, links accounts, and receives what services send."""

from __future__ import annotations

from fastapi import Request, Response

from denizen.errors import NotFound
from denizen.server.auth import SIGNED, Admin, Person
from denizen.server.context import context_of
from denizen.server.router import new_router
from denizen.server.shapes.bridges import (
    ChangeBridge,
    ConnectRoom,
    CreateBridge,
    LinkAddress,
    SendCode,
    address_out,
    bridge_out,
    channel_out,
    kind_out,
    known_address_out,
)
from denizen.shapes.bridges import AddressList, BridgeAddressList, BridgeCreated, BridgeList, BridgeOut, ChannelOut
from denizen.shapes.examples import text_answer

router = new_router()


@router.get("/api/bridges", summary="List the bridges to other services")
async def list_bridges(caller: Admin) -> BridgeList:
    runtime = caller.runtime
    found = await runtime.bridges.list(by=caller.requester)
    kinds = [kind_out(each) for _, each in sorted(runtime.bridge_policy.kinds.items())]
    return BridgeList(bridges=[bridge_out(each, runtime.clock.now()) for each in found], kinds=kinds)


@router.post("/api/bridges", status_code=201, summary="Create a bridge")
async def create_bridge(caller: Admin, wanted: CreateBridge) -> BridgeCreated:
    """If a secret was made for it, it is shown only once: give it to the other side, which signs with it."""
    runtime, by = caller.runtime, caller.requester
    bridge, secret = await runtime.bridges.create(wanted.name, wanted.kind, wanted.settings, by=by)
    report = await runtime.bridges.get(bridge, by=by)
    return BridgeCreated(bridge=bridge_out(report, runtime.clock.now()), secret=secret)


@router.get("/api/bridges/{bridge_id}", summary="Get a bridge and its state")
async def get_bridge(caller: Admin, bridge_id: str) -> BridgeOut:
    runtime = caller.runtime
    return bridge_out(await runtime.bridges.get(bridge_id, by=caller.requester), runtime.clock.now())


@router.patch("/api/bridges/{bridge_id}", summary="Change the settings of a bridge")
async def change_bridge(caller: Admin, bridge_id: str, wanted: ChangeBridge) -> BridgeOut:
    """It connects anew."""
    runtime, by = caller.runtime, caller.requester
    await runtime.bridges.change(bridge_id, wanted.settings, by=by)
    return bridge_out(await runtime.bridges.get(bridge_id, by=by), runtime.clock.now())


@router.delete("/api/bridges/{bridge_id}", status_code=204, summary="Remove a bridge")
async def remove_bridge(caller: Admin, bridge_id: str) -> None:
    """Messages are no longer carried. What was said stays."""
    await caller.runtime.bridges.remove(bridge_id, by=caller.requester)


@router.post("/api/bridges/{bridge_id}/retry", status_code=204, summary="Reconnect a bridge")
async def retry_bridge(caller: Admin, bridge_id: str) -> None:
    """Everything that waits or could not be delivered is sent again."""
    await caller.runtime.bridges.retry(bridge_id, by=caller.requester)


@router.post("/api/bridges/{bridge_id}/pause", status_code=204, summary="Pause a bridge")
async def pause_bridge(caller: Admin, bridge_id: str) -> None:
    """Nothing is carried until it is resumed. What is said is kept, and its spaces are told."""
    await caller.runtime.bridges.pause(bridge_id, by=caller.requester)


@router.post("/api/bridges/{bridge_id}/resume", status_code=204, summary="Resume a bridge")
async def resume_bridge(caller: Admin, bridge_id: str) -> None:
    """Waiting messages are sent, and those that were written meanwhile in the other service are read."""
    await caller.runtime.bridges.resume(bridge_id, by=caller.requester)


@router.get("/api/bridges/{bridge_id}/addresses", summary="List the accounts that have written through a bridge")
async def list_bridge_addresses(caller: Admin, bridge_id: str) -> BridgeAddressList:
    found = await caller.runtime.bridges.known_addresses(bridge_id, by=caller.requester)
    return BridgeAddressList(addresses=[known_address_out(each) for each in found])


@router.post(
    "/api/bridges/{bridge_id}/channels", status_code=201, summary="Connect a room of another service with a space"
)
async def connect_room(caller: Admin, bridge_id: str, wanted: ConnectRoom) -> ChannelOut:
    """You must be in the space; a private one you must manage. The bridge becomes a member, and a notice says so."""
    return channel_out(
        await caller.runtime.bridges.connect(bridge_id, wanted.space_id, wanted.room, by=caller.requester)
    )


@router.delete("/api/channels/{channel_id}", status_code=204, summary="Disconnect a room from its space")
async def disconnect_room(caller: Admin, channel_id: str) -> None:
    """Messages are no longer carried between them."""
    await caller.runtime.bridges.disconnect(channel_id, by=caller.requester)


@router.get("/api/addresses", summary="List your linked accounts at other services")
async def list_addresses(caller: Person) -> AddressList:
    found = await caller.runtime.bridges.addresses(caller.entity)
    return AddressList(addresses=[address_out(each) for each in found])


@router.post(
    "/api/bridges/{bridge_id}/codes", status_code=204, summary="Send a code to your account at another service"
)
async def send_code(caller: Person, bridge_id: str, wanted: SendCode) -> None:
    """The account must have written through the bridge. The code is valid for 15 minutes."""
    await caller.runtime.bridges.send_code(bridge_id, wanted.account, caller.requester)


@router.post("/api/bridges/{bridge_id}/addresses", status_code=204, summary="Link your account at another service")
async def link_address(caller: Person, bridge_id: str, wanted: LinkAddress) -> None:
    """With the code that was sent there. What it writes from then on is yours, if the service vouches for it."""
    await caller.runtime.bridges.link(bridge_id, wanted.account, caller.requester, wanted.code)


@router.delete(
    "/api/bridges/{bridge_id}/addresses/{account}", status_code=204, summary="Unlink an account at another service"
)
async def unlink_address(caller: Person, bridge_id: str, account: str) -> None:
    """For the person it is linked to, and for admins."""
    await caller.runtime.bridges.unlink(bridge_id, account, caller.requester)


@router.post(
    "/hooks/bridges/{bridge_id}",
    summary="Receive an event of a webhook bridge; signed, no token needed",
    response_class=Response,
    responses=text_answer("text/plain", "Received.", ""),
)
async def receive_bridge_event(request: Request, bridge_id: str) -> Response:
    """When this returns 200, the message is in the space. The same event sent again is taken once."""
    try:
        await context_of(request).runtime.bridges.receive(bridge_id, request.headers, await request.body())
    except NotFound as error:
        if error.kind != "bridge":
            # A room that is not connected must not count as a wrong signature: other rooms are.
            request.scope[SIGNED] = True
        raise
    return Response(None, media_type="text/plain")


@router.put(
    "/hooks/bridges/{bridge_id}/_matrix/app/v1/transactions/{transaction_id}",
    summary="Receive a push of a Matrix homeserver; with its hs_token, no access token needed",
    responses={200: {"content": {"application/json": {"example": {}}}}},
)
async def receive_matrix_push(request: Request, bridge_id: str, transaction_id: str) -> dict[str, str]:  # noqa: ARG001
    """Only a hint of what was written: a homeserver loses pushes when it is killed. It also says who types."""
    shown, body = request.headers.get("authorization", ""), await request.body()
    await context_of(request).runtime.bridges.receive_push(bridge_id, shown, body)
    return {}
