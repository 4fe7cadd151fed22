"""The HTTP application, put together. It serves a runtime that someone else opened and will close."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from fastapi import FastAPI

from denizen import __version__
from denizen.access.oidc import Issuer
from denizen.app import Runtime
from denizen.server import describing, problems
from denizen.server.context import Context, Limits
from denizen.server.gate import Gate
from denizen.server.observing import Observer
from denizen.server.reach import Reach
from denizen.server.routes import (
    agents,
    audit,
    calls,
    chat,
    definitions,
    entities,
    forgetting,
    health,
    identities,
    keys,
    me,
    members,
    memory,
    messages,
    metrics,
    minds,
    models,
    openai,
    organization,
    panels,
    plans,
    portability,
    search,
    session,
    spaces,
    stances,
    streams,
    tokens,
    triggers,
    usage,
    voices,
    webhooks,
)
from denizen.server.web_files import WEB_FOLDER, WebFiles
from denizen.settings.shape import OidcSettings

ROOMS: Final = (
    messages,
    streams,
    spaces,
    openai,
    chat,
    me,
    health,
    metrics,
    session,
    tokens,
    keys,
    models,
    identities,
    organization,
    entities,
    members,
    search,
    panels,
    voices,
    agents,
    definitions,
    portability,
    minds,
    plans,
    stances,
    usage,
    memory,
    forgetting,
    audit,
    calls,
    triggers,
    webhooks,
)
"""The modules of routes; each has its `router`. A request is compared with one after the other: the busiest first."""

_DESCRIPTION = """Talk with living agents.

Everything but `/healthz`, `/readyz`, `/hooks/{id}` and `POST /api/session` needs an access token,
`Authorization: Bearer dz_…`, or the session of a browser.
Errors are `application/problem+json`: decide by their `code`."""


def create_app(
    runtime: Runtime,
    *,
    limits: Limits | None = None,
    reach: Reach | None = None,
    oidc: OidcSettings | None = None,
    web: Path = WEB_FOLDER,
) -> FastAPI:
    """The application over this runtime, which has to be open while requests are answered.

    `web` is where the web client was built to.
    """
    issuer = None if oidc is None or oidc.issuer is None else Issuer(oidc, runtime.clock)
    context = Context(runtime, limits or Limits(), reach or Reach(), issuer, WebFiles(web))
    app = FastAPI(
        title="Denizen",
        version=__version__,
        description=_DESCRIPTION,
        openapi_url="/api/openapi.json",
        # Their pages load scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        routes=[route for room in ROOMS for route in room.router.routes],
    )
    app.state.context = context
    problems.install(app)
    app.add_middleware(Gate, context=context)
    app.add_middleware(Observer, telemetry=runtime.telemetry)
    if runtime.telemetry.metrics is not None:
        runtime.telemetry.metrics.build.set(1, __version__)
    describing.complete(app)
    return app
