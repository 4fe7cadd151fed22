"""Exports and imports an agent with its whole history, or a space with its messages, as JSON Lines."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Annotated, Any, Final

import structlog
from fastapi import Query, Request, Response
from starlette.responses import StreamingResponse

from denizen.access import audit
from denizen.access.requesters import find_space
from denizen.agents import managing
from denizen.agents.registry import Agent
from denizen.errors import DenizenError
from denizen.server.auth import Admin, Caller, Owner, Person, require
from denizen.server.context import context_of
from denizen.server.gate import LINES
from denizen.server.router import new_router
from denizen.server.shapes.portability import imported_out
from denizen.shapes.examples import text_answer
from denizen.shapes.portability import ImportedOut
from denizen.storage.database import Tx, storable
from denizen.telemetry.logs import get_logger

log: structlog.typing.FilteringBoundLogger = get_logger(__name__)

router = new_router()

MEDIA_TYPE: Final = LINES[0]
_FILE: Final = '{"format":"denizen","version":1,"kind":"agent"}\n{"row":"end","lines":2}\n'
_LINES: Final[dict[str, Any]] = {MEDIA_TYPE: {"schema": {"type": "string"}, "example": _FILE}}
_ANSWER: Final = text_answer(MEDIA_TYPE, "JSON Lines.", _FILE)


@router.get(
    "/api/agents/{agent_id}/export",
    summary="Export an agent with its history as a file",
    response_class=Response,
    responses=_ANSWER,
)
async def export_agent(caller: Admin, agent_id: str) -> Response:
    """Without keys, tokens and secrets, and without content from private spaces that you are not a member of:
    placeholders say how much that is. The last line marks the file as complete; if it is missing, export again.
    """
    runtime = caller.runtime
    agent = await runtime.db.write(_note_export, agent_id, caller)
    return _file(runtime.agents.export(agent, reader=caller.entity))


@router.get(
    "/api/spaces/{space_id}/export",
    summary="Export a space with its messages as a file",
    response_class=Response,
    responses=_ANSWER,
    openapi_extra={"x-who": "admins and owners who are in it"},
)
async def export_space(caller: Person, space_id: str) -> Response:
    """Its members, its authors and all messages. The last line marks the file as complete."""
    runtime = caller.runtime
    space = await caller.read(find_space, space_id)
    require(caller, "admin")
    await runtime.db.write(_note_export_of_space, space_id, caller)
    return _file(runtime.spaces.export(space))


def _note_export(tx: Tx, agent_id: str, caller: Caller) -> Agent:
    agent = managing.find(tx, caller.requester, agent_id, also_dead=True)
    audit.record(tx, caller.entity.organization_id, caller.actor, "export_agent", agent.id)
    return agent


def _note_export_of_space(tx: Tx, space_id: str, caller: Caller) -> None:
    space = find_space(tx, caller.requester, space_id)
    audit.record(tx, caller.entity.organization_id, caller.actor, "export_space", space.id)


def _file(lines: AsyncGenerator[str]) -> Response:
    return StreamingResponse(_until_refused(lines), media_type=MEDIA_TYPE)


async def _until_refused(lines: AsyncGenerator[str]) -> AsyncGenerator[str]:
    """The lines, without the last one where it turns out that there should be none: the answer has begun by then."""
    try:
        async for line in lines:
            yield line
    except DenizenError as error:
        log.warning("export broken off", code=error.code, error=str(error))


@router.post(
    "/api/import",
    status_code=201,
    summary="Import an exported file",
    openapi_extra={"requestBody": {"required": True, "content": _LINES}},
)
async def import_file(
    request: Request,
    caller: Owner,
    handle: Annotated[str | None, Query(max_length=200, description="Of an agent, where its own is taken.")] = None,
    name: Annotated[str | None, Query(max_length=200, description="By default as it was.")] = None,
) -> ImportedOut:
    """All of it or, with an error that names the line, nothing. An imported agent is suspended until it is resumed.

    For owners: an imported agent has words of other people, and may start programs.
    """
    runtime = context_of(request).runtime
    chosen = [None if each is None else storable(each) for each in (handle, name)]
    with tempfile.TemporaryDirectory(prefix="denizen-") as folder:
        # As it is called in what is told of it.
        file = Path(folder) / "body"
        await _keep(request.stream(), file)
        made = await runtime.organizations.import_file(
            file,
            handle=chosen[0],
            name=chosen[1],
            organization=caller.entity.organization_id,
            by=caller.requester,
        )
    return imported_out(made)


async def _keep(body: AsyncIterator[bytes], path: Path) -> None:
    """All of it is in the file, and never in memory."""
    with path.open("wb") as file:
        async for part in body:
            await asyncio.to_thread(file.write, part)
