"""Whether the server answers, and whether it is worth asking."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from denizen import __version__
from denizen.server.context import context_of
from denizen.server.problems import problem_response
from denizen.server.schemas import Health, Ready

router = APIRouter()


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
