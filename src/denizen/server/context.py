"""What every route has at hand: the runtime, the limits, and how the server that carries it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.requests import HTTPConnection
from starlette.types import Scope

from denizen.app import Runtime


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one request may ask for."""

    body_bytes: int = 2 * 1024 * 1024
    """Enough for the longest message, with every character written as an escape."""
    webhook_bytes: int = 1024 * 1024
    """Of what a service sends to a webhook, before its signature is looked at."""
    heartbeat_seconds: float = 15
    """How often an idle stream shows that it is alive, and looks whether it missed anything."""
    stream_frames: int = 1_000
    """How far the reader of a stream may fall behind before it is cut off."""


@dataclass(slots=True)
class Context:
    """One app's surroundings. The runtime is someone else's: it is open before the app and closed after it."""

    runtime: Runtime
    limits: Limits
    ending: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the server ends: open streams end at once."""
    hang_up: Callable[[Scope], None] | None = None
    """Drops the connection of a request, whatever is still to be sent on it. Given by the server that carries us."""


def context_of(connection: HTTPConnection) -> Context:
    """The surroundings of the app that this request reached."""
    return connection.app.state.context
