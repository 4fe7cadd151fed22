"""The metrics of this process, for Prometheus."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Security
from fastapi.security import HTTPBearer
from starlette.requests import Request
from starlette.responses import Response

from denizen.server.auth import ROLE_ASKED, Caller, require
from denizen.server.context import context_of
from denizen.server.problems import Problem
from denizen.server.router import new_router
from denizen.shapes.examples import text_answer
from denizen.spaces import directory
from denizen.telemetry.metrics import MEDIA_TYPE

router = new_router()


async def _may_read(request: Request, _: Annotated[object, Security(HTTPBearer(auto_error=False))]) -> None:
    """An admin of the organization that the server was set up with; or anyone, where its operator has said so.

    The numbers are those of all organizations: what the others do is no business of the admins of one of them.
    """
    runtime = context_of(request).runtime
    if runtime.telemetry.open_metrics:
        return
    caller: Caller = request.scope["caller"]
    require(caller, "admin")
    if await runtime.db.read(directory.first_organization) != caller.entity.organization_id:
        raise Problem(
            "not_allowed", "These metrics cover all organizations. Only admins of the first organization can read them."
        )


ROLE_ASKED[_may_read] = "admin"


@router.get(
    "/metrics",
    summary="Get metrics in the format of Prometheus",
    response_class=Response,
    openapi_extra={"x-who": "admins and owners of the organization that was made first"},
    responses=text_answer("text/plain", "The text format.", "# TYPE denizen_cycles_total counter\n"),
)
async def metrics(request: Request, _: Annotated[None, Depends(_may_read)]) -> Response:
    """Counters and gauges of this process, for admins of the first organization; with `telemetry.open_metrics`, for
    anyone.
    """
    runtime = context_of(request).runtime
    if runtime.telemetry.metrics is None:
        raise Problem("not_found", "Metrics are off.")
    return Response(await runtime.metrics(), media_type=MEDIA_TYPE)
