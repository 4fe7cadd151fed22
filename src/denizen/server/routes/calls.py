"""Lists, shows and answers the questions of agents, and the tool calls that people can see."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Query, Request
from pydantic import JsonValue

from denizen.access.requesters import Requester, find_space
from denizen.agents import managing
from denizen.errors import NotFound
from denizen.server.auth import Authenticated, Person
from denizen.server.bodies import parse_json
from denizen.server.context import context_of
from denizen.server.router import new_router
from denizen.server.shapes.calls import AnswerCall, approval_out, call_out
from denizen.shapes.calls import ApprovalList, CallList, CallOut
from denizen.storage.database import Tx, storable
from denizen.tools import calls
from denizen.tools.functions import as_text

router = new_router()

_LAST: Final = 2**62


@router.get("/api/calls", summary="List questions of agents to you")
async def list_calls(caller: Authenticated) -> CallList:
    """The calls that wait for an answer that you may give, oldest first."""
    found = await caller.runtime.db.read(calls.open_to, caller.entity.id)
    return CallList(calls=[call_out(each) for each in found])


@router.get("/api/calls/{call_id}", summary="Get a call")
async def get_call(caller: Authenticated, call_id: str) -> CallOut:
    return call_out(await caller.runtime.db.read(calls.require_visible, storable(call_id), caller.entity.id))


@router.post(
    "/api/calls/{call_id}/answer",
    summary="Answer a call",
    openapi_extra={"x-who": "everyone with a token; approvals: people"},
)
async def answer_call(caller: Authenticated, call_id: str, given: AnswerCall) -> CallOut:
    """Sets the result of the call, with which the agent continues. The first answer counts: later ones get the
    status 409.
    """
    result = as_text(given.result)
    answered = await caller.runtime.db.write(calls.answer_as, storable(call_id), result, caller.entity.id)
    return call_out(answered)


@router.get("/api/agents/{agent_id}/approvals", summary="List approvals of an agent")
async def list_approvals(caller: Person, agent_id: str) -> ApprovalList:
    """Valid approvals that you gave, or that were asked for in one of your spaces."""
    agent = await caller.read(managing.find, agent_id)
    found = await caller.runtime.calls.approvals(agent, reader=caller.entity.id)
    return ApprovalList(approvals=[approval_out(each) for each in found])


@router.delete("/api/agents/{agent_id}/approvals/{approval_id}", status_code=204, summary="Revoke an approval")
async def revoke_approval(caller: Person, agent_id: str, approval_id: str) -> None:
    """The agent asks again before it repeats the call. Available to everyone who sees the approval."""
    agent = await caller.read(managing.find, agent_id)
    await caller.runtime.calls.revoke_approval(agent, storable(approval_id), by=caller.entity.id)


@router.get("/api/spaces/{space_id}/calls", summary="List the calls of a space")
async def calls_in_space(
    caller: Authenticated,
    space_id: str,
    after: Annotated[int, Query(ge=0, le=_LAST, description="From behind the message of this number on.")] = 0,
    before: Annotated[int | None, Query(ge=0, le=_LAST, description="Up to behind the message of this number.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 200,
) -> CallList:
    """In order. `after_seq` is the number of the message that each call follows."""
    found = await caller.runtime.db.read(
        _in_space, space_id, caller.requester, after, _LAST if before is None else before, limit
    )
    return CallList(calls=[call_out(each) for each in found])


def _in_space(tx: Tx, space_id: str, by: Requester, first: int, last: int, limit: int) -> list[calls.Call]:
    return calls.in_space(tx, find_space(tx, by, space_id).id, first=first, last=last, limit=limit)


@router.post("/hooks/calls/{call_id}", summary="Answer a call as a service; no token needed")
async def answer_by_address(
    request: Request, call_id: str, key: Annotated[str, Query(description="Of the address that it was told.")]
) -> CallOut:
    """The body is the result: JSON as data, anything else as text. The first answer counts."""
    runtime = context_of(request).runtime
    called, signed = storable(call_id), storable(key)
    # Before the body is read: that is work, which nobody without the key may cause.
    if not await runtime.calls.is_answer_address(called, signed):
        raise NotFound("call", call_id)
    return call_out(await runtime.calls.answer_from_service(called, signed, _result(await request.body())))


def _result(body: bytes) -> JsonValue:
    try:
        return parse_json(body)
    except ValueError:
        return body.decode(errors="replace")
