"""The numbers of this process, for Prometheus."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Security
from fastapi.security import HTTPBearer
from starlette.requests import Request
from starlette.responses import Response

from denizen.server.auth import ROLE_ASKED, require
from denizen.server.context import context_of
from denizen.server.problems import Problem
from denizen.telemetry.metrics import MEDIA_TYPE

router = APIRouter()


async def _may_read(request: Request, _: Annotated[object, Security(HTTPBearer(auto_error=False))]) -> None:
    """An admin; or anyone, where the owner of the house has said so."""
    if context_of(request).runtime.telemetry.open_metrics:
        return
    require(request.scope["caller"], "admin")


ROLE_ASKED[_may_read] = "admin"


@router.get(
    "/metrics",
    summary="Numbers of this server, as Prometheus reads them",
    response_class=Response,
    responses={200: {"description": "The text format.", "content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(request: Request, _: Annotated[None, Depends(_may_read)]) -> Response:
    """Counters and gauges of this process: for an admin, or with `telemetry.open_metrics` for anyone."""
    runtime = context_of(request).runtime
    if runtime.telemetry.metrics is None:
        raise Problem("not_found", "Nothing is counted here.")
    return Response(await runtime.metrics(), media_type=MEDIA_TYPE)
