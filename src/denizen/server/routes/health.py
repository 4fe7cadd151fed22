"""Whether the server answers, and whether it is worth asking."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import Response

from denizen import __version__
from denizen.agents.health import look
from denizen.server.auth import Admin
from denizen.server.context import context_of
from denizen.server.problems import problem_response
from denizen.server.room import room
from denizen.server.schemas import Health, Ready
from denizen.server.shapes.health import HealthOut

router = room()


@router.get("/healthz", summary="Whether the server answers; no token needed")
async def health() -> Health:
    return Health(version=__version__)


@router.get("/readyz", summary="Whether this instance takes work; no token needed", response_model=Ready)
async def ready(request: Request) -> Ready | Response:
    """Ready is who reaches the database and the bus, knows the schema, and was not told to stop. Else `not_ready`."""
    missing = await context_of(request).runtime.missing()
    if not missing:
        return Ready(version=__version__)
    detail = f"This instance lacks: {', '.join(missing)}. Ask another one, or this one later."
    return problem_response("not_ready", detail, headers={"Retry-After": "1"}, missing=[*missing])


@router.get("/api/health", summary="What needs a person")
async def get_health(request: Request, caller: Admin) -> HealthOut:
    """Who thinks for your agents, whose events were given up or wait too long, and what to do about it."""
    runtime = context_of(request).runtime
    found = await runtime.db.read(look, caller.entity.organization_id)
    return HealthOut.of(found, version=__version__, missing=[*await runtime.missing()], answering=runtime.instance)
