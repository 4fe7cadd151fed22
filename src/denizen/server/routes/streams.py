"""Streams of events: of an agent, and of everything that a person may see."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Final

from fastapi import Header, Query, Request, Response

from denizen.agents import managing
from denizen.cycles import records
from denizen.ids import AgentId
from denizen.server.auth import Caller, Person
from denizen.server.context import context_of
from denizen.server.router import new_router
from denizen.server.sse import EventStream, run_feed
from denizen.server.streams import cursor
from denizen.server.streams.agent import AgentFeed
from denizen.server.streams.person import PersonFeed
from denizen.shapes.examples import ADA, KITCHEN, event_stream
from denizen.storage.database import Tx

router = new_router()

_LAST: Final = 2**62
_OF_AN_AGENT: Final = event_stream(
    "agent",
    f'event: agent.status\ndata: {{"type":"agent.status","agent":"{ADA}","status":"alive","epoch":3,"doing":null}}\n\n',
)
_OF_A_PERSON: Final = event_stream(
    "person",
    f'event: ready\nid: 4.9\ndata: {{"type":"ready","spaces":["{KITCHEN}"],"read":{{"{KITCHEN}":8}}}}\n\n',
)


@router.get(
    "/api/agents/{agent_id}/stream",
    summary="Stream the activity of an agent",
    response_class=Response,
    responses=_OF_AN_AGENT,
)
async def stream_agent(
    request: Request,
    caller: Person,
    agent_id: str,
    after: Annotated[int | None, Query(ge=0, le=_LAST)] = None,
    last_event_id: Annotated[int | None, Header(alias="Last-Event-ID", ge=0, le=_LAST)] = None,
) -> Response:
    """The status of the agent; for admins also every cycle after a number, and the running one while it runs.

    `cycle` events have the cycle's number as their id. Without one to resume from, only new cycles are sent.
    """
    context = context_of(request)
    agent, last = await context.runtime.db.read(_agent, agent_id, caller)
    wanted = after if last_event_id is None else last_event_id
    start = last if wanted is None else min(wanted, last)
    return EventStream(context, partial(run_feed, context, partial(AgentFeed, context, caller, agent, start)))


def _agent(tx: Tx, agent_id: str, caller: Caller) -> tuple[AgentId, int]:
    agent = managing.find(tx, caller.requester, agent_id)
    newest = records.cycles_of(tx, agent.id, limit=1)
    return agent.id, newest[-1].number if newest else 0


@router.get(
    "/api/stream",
    summary="Stream everything that you may see",
    response_class=Response,
    responses=_OF_A_PERSON,
)
async def stream_everything(
    request: Request,
    caller: Person,
    last_event_id: Annotated[
        str | None,
        Header(alias="Last-Event-ID", max_length=60_000, description="The id of the last event you had."),
    ] = None,
) -> Response:
    """Every message of your spaces, and what happens there.

    The id of an event contains your position in each space: send the last one as `Last-Event-ID`, to any instance, and
    nothing is lost or repeated. A space that it does not contain is sent as `space.joined`.
    """
    context = context_of(request)
    given = cursor.decode(last_event_id) if last_event_id else {}
    return EventStream(context, partial(run_feed, context, partial(PersonFeed, context, caller, given)))
