"""The MCP server at `/mcp`, for coding assistants and other programs that talk with agents."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from importlib import import_module
from typing import Any

from fastapi import Request, Response
from starlette.types import Message, Receive, Scope, Send

from denizen.server.auth import Authenticated
from denizen.server.bodies import parse_json
from denizen.server.context import context_of
from denizen.server.problems import Problem
from denizen.server.reach import Visit
from denizen.server.router import new_router
from denizen.server.sse import counted_stream

router = new_router()


# Not in the OpenAPI document: the protocol describes its own requests (`tools/list`).
@router.post("/mcp", include_in_schema=False)
async def answer_mcp(request: Request, _: Authenticated) -> Response:
    """Answers a request of the Model Context Protocol over HTTP. There are no sessions and no stream to open by GET."""
    _check_origin(request)
    body = await request.body()
    try:
        asked: Any = parse_json(body)
    except ValueError as error:
        raise Problem("invalid_json", "The body is not JSON. Send one request of the protocol.") from error
    # The library takes a second to import: meanwhile the server answers others.
    server = await asyncio.to_thread(import_module, "denizen.server.mcp_server")
    return _Exchange(server.answer, body, streams=_is_question(asked))


def _check_origin(request: Request) -> None:
    """Refuses pages of other sites, as the protocol demands, whatever token they have."""
    origin, visit = request.headers.get("origin"), request.scope["visit"]
    assert isinstance(visit, Visit)
    if origin is not None and origin.lower() not in (visit.origin, context_of(request).reach.origin):
        raise Problem("cross_site", "Pages of other sites cannot use the MCP server. Programs send no `Origin`.")


def _is_question(asked: Any) -> bool:
    """Whether the answer takes long, and is told of while it is written."""
    match asked:
        case {"method": "tools/call", "params": {"name": "ask"}}:
            return True
        case _:
            return False


class _Exchange(Response):
    """One request of the protocol, whose body was read already, and its answer."""

    def __init__(self, answer: Any, body: bytes, *, streams: bool) -> None:
        super().__init__()
        self._answer = answer
        self._given = body
        self._streams = streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given: bytes | None = self._given

        async def again() -> Message:
            nonlocal given
            if given is None:
                return await receive()
            body, given = given, None
            return {"type": "http.request", "body": body, "more_body": False}

        # A question is held open for minutes, like any other stream.
        with counted_stream(scope["app"].state.context, scope) if self._streams else nullcontext():
            await self._answer(scope, again, send, streams=self._streams)
