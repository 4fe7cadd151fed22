"""Builds the HTTP application. It serves a runtime that the caller opens and closes."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import FastAPI

from denizen import __version__
from denizen.access.oidc import Issuer
from denizen.app import Runtime
from denizen.server import openapi, problems
from denizen.server.context import Context, ServerLimits
from denizen.server.gate import Gate
from denizen.server.reach import Reach
from denizen.server.request_telemetry import Observer
from denizen.server.route_modules import RoutesOnDemand, all_routes
from denizen.server.web_files import WEB_FOLDER, WebFiles
from denizen.settings.shape import OidcSettings

if TYPE_CHECKING:
    from denizen.notifications.pushing import Pusher

_DESCRIPTION = """Talk with living agents.

Everything but `/healthz`, `/readyz`, `/hooks/{id}` and `POST /api/session` needs an access token,
`Authorization: Bearer dz_…`, or the session of a browser.
Errors are `application/problem+json`: decide by their `code`."""


def create_app(
    runtime: Runtime,
    *,
    limits: ServerLimits | None = None,
    reach: Reach | None = None,
    oidc: OidcSettings | None = None,
    oidc_client_secret: str = "",
    web: Path = WEB_FOLDER,
    push: Pusher | None = None,
    on_demand: bool = False,
) -> FastAPI:
    """Creates the application for this runtime, which has to be open while requests are answered.

    `web` is the folder of the built web client. With `on_demand`, each module of routes is imported with the first
    request that needs it, and all of them for the OpenAPI document: for a process that should start soon.
    """
    issuer = None if oidc is None or oidc.issuer is None else Issuer(oidc, runtime.clock, oidc_client_secret)
    context = Context(runtime, limits or ServerLimits(), reach or Reach(), issuer, WebFiles(web), push)
    app = FastAPI(
        title="Denizen",
        version=__version__,
        description=_DESCRIPTION,
        openapi_url="/api/openapi.json",
        # Their pages load scripts from other hosts.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        routes=[RoutesOnDemand()] if on_demand else all_routes(),
    )
    app.state.context = context
    problems.install(app)
    app.add_middleware(Gate, context=context)
    app.add_middleware(Observer, telemetry=runtime.telemetry)
    if runtime.telemetry.metrics is not None:
        runtime.telemetry.metrics.build.set(1, __version__)
    if on_demand:
        app.openapi = cache(lambda: create_app(runtime).openapi())
    else:
        openapi.complete(app)
    return app
