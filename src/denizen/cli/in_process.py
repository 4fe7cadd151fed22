"""Runs the server's application inside a command: without a socket, called as the owner of this home."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from denizen.app import Runtime
from denizen.cli.home import open_home, open_records
from denizen.client import Client
from denizen.client.in_process import in_process_transport
from denizen.server.application import create_app
from denizen.server.auth import IN_PROCESS
from denizen.server.context import ServerLimits
from denizen.server.reach import Reach
from denizen.settings.shape import Settings
from denizen.spaces.directory import Entity

LOOK_SECONDS: Final = 2.0
"""How often a quiet stream checks the database: another process may write to it."""
_UNLIMITED: Final = 2**62


@dataclass(frozen=True, slots=True)
class Application:
    """A client of the application in this process, and its runtime."""

    client: Client
    runtime: Runtime


@asynccontextmanager
async def open_application(
    settings: Settings, *, models: bool = False, agents: bool = False
) -> AsyncGenerator[Application]:
    """Opens the application. With `models`, models can be used, and tools and presets are loaded; with `agents`, agents
    run meanwhile.
    """
    async with AsyncExitStack() as stack:
        if models or agents:
            home = await stack.enter_async_context(open_home(settings))
            runtime, owner = home.runtime, home.world.owner
        else:
            runtime, world = await stack.enter_async_context(open_records(settings))
            owner = world.owner
        if agents:
            await stack.enter_async_context(runtime.living())
        yield Application(await stack.enter_async_context(client_of(runtime, owner)), runtime)


@asynccontextmanager
async def client_of(runtime: Runtime, person: Entity) -> AsyncGenerator[Client]:
    """Provides a client that calls this runtime as that person."""
    reach = Reach(frozenset({urlsplit(runtime.public_url).hostname or ""}))
    app = create_app(runtime, limits=_limits(), reach=reach, on_demand=True)
    async with (
        in_process_transport(app, {IN_PROCESS: person.id}) as transport,
        Client(runtime.public_url, "", clock=runtime.clock, transport=transport) as client,
    ):
        yield client


def _limits() -> ServerLimits:
    """Without the limits that protect a server from strangers."""
    return ServerLimits(
        body_bytes=_UNLIMITED,
        import_bytes=_UNLIMITED,
        heartbeat_seconds=LOOK_SECONDS,
        requests_per_minute=0,
        streams_per_person=0,
    )
