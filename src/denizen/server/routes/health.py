"""Whether the server answers and is ready, and the health of the organization."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request
from starlette.responses import Response

from denizen import __version__
from denizen.agents.health import look
from denizen.server.auth import Admin
from denizen.server.context import context_of
from denizen.server.problems import problem_response
from denizen.server.router import new_router
from denizen.server.shapes.health import health_out
from denizen.shapes.health import Health, HealthOut, Ready

router = new_router()


@router.head("/healthz", include_in_schema=False)
@router.get("/healthz", summary="Check whether the server answers; no token needed")
async def health() -> Health:
    return Health(version=__version__)


@router.head("/readyz", include_in_schema=False, response_model=None)
@router.get("/readyz", summary="Check whether this instance is ready; no token needed", response_model=Ready)
async def ready(request: Request) -> Ready | Response:
    """An instance is ready if it reaches the database and the bus, knows the schema and was not told to stop.
    Otherwise the error is `not_ready`.
    """
    missing = await context_of(request).runtime.missing()
    if not missing:
        return Ready(version=__version__)
    detail = f"This instance lacks: {', '.join(missing)}. Ask another one, or this one later."
    return problem_response("not_ready", detail, headers={"Retry-After": "1"}, missing=[*missing])


@router.get("/api/health", summary="Get problems that need a person")
async def get_health(
    caller: Admin,
    probe: Annotated[bool, Query(description="Also ask each model for a few tokens, which costs as much.")] = False,
) -> HealthOut:
    """Which instances run your agents, which agents cannot think and why, how long people have waited for each,
    what was set aside, and what to do about it.
    """
    runtime, home = caller.runtime, caller.entity.organization_id
    found = await runtime.db.read(look, home, runtime.lease_seconds)
    agents = await runtime.agents.check(home, probe=probe)
    return health_out(
        found,
        agents,
        now=runtime.clock.now(),
        version=__version__,
        missing=[*await runtime.missing()],
        answering=runtime.instance,
        lost=runtime.db.missing,
        disk_full=runtime.db.is_full,
        mcp=runtime.mcp_troubles(home),
    )
