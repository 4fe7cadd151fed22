"""What every route has at hand: the runtime, the limits, and how the server that carries it ends."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from starlette.requests import HTTPConnection
from starlette.types import Scope

from denizen.access.oidc import Issuer
from denizen.app import Runtime
from denizen.server.failed_sign_ins import FailedSignIns
from denizen.server.rates import Rates
from denizen.server.reach import Reach
from denizen.server.web_files import WebFiles

REMEMBERED: Final = 10_000


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one request may ask for."""

    body_bytes: int = 2 * 1024 * 1024
    """Enough for the longest message, with every character written as an escape."""
    webhook_bytes: int = 1024 * 1024
    """Of what a service sends to a webhook, before its signature is looked at."""
    import_bytes: int = 256 * 1024 * 1024
    """Of an agent or a space that is taken in. What is larger is imported on the machine itself."""
    heartbeat_seconds: float = 15
    """How often an idle stream shows that it is alive, and looks whether it missed anything."""
    stream_frames: int = 1_000
    """How far the reader of a stream may fall behind before it is cut off."""
    requests_per_minute: int = 6_000
    """Of one token; 0 is as many as it likes."""
    failed_logins_per_minute: int = 60
    """From one address."""
    connections: int = 2_000
    """At the same time; 0, or more than there are descriptors for: as many as there are."""
    connections_per_address: int = 200
    """At the same time, from one address that is no trusted proxy; 0 is as many as it likes."""
    streams_per_person: int = 64
    """At the same time, of one person, agent or service; 0 is as many as they like."""
    header_seconds: float = 10
    """How long a connection may take to send the headers of a request."""
    body_seconds: float = 30
    """How long the body may take, besides the time that it needs at the slowest rate allowed."""
    send_seconds: float = 60
    """How long a client may take no byte of its answer."""
    completion_seconds: float = 300
    """How long a client of OpenAI's API waits for an agent's answer: it has no way to say it itself."""


@dataclass(slots=True)
class Context:
    """One app's surroundings. The runtime is someone else's: it is open before the app and closed after it."""

    runtime: Runtime
    limits: Limits
    reach: Reach = field(default_factory=Reach)
    issuer: Issuer | None = None
    """The identity provider whose tokens let people in."""
    web: WebFiles = field(default_factory=WebFiles)
    """The web client."""
    ending: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the server ends: open streams end at once."""
    hang_up: Callable[[Scope], None] | None = None
    """Drops the connection of a request, whatever is still to be sent on it. Given by the server that carries us."""
    requests: Rates = field(init=False)
    """Of each token."""
    failures: Rates = field(init=False)
    """Of each address: secrets that were not good."""
    failed_sign_ins: FailedSignIns = field(init=False)
    """What the audit log tells of them."""
    streams: Counter[str] = field(default_factory=lambda: Counter[str]())
    """How many each entity has open."""
    known: OrderedDict[bytes, None] = field(default_factory=lambda: OrderedDict[bytes, None]())
    """The hashes of secrets that were good when they were last used."""

    def __post_init__(self) -> None:
        self.requests = Rates(self.limits.requests_per_minute, self.runtime.clock)
        self.failed_sign_ins = FailedSignIns(self.runtime.clock)
        self.failures = Rates(self.limits.failed_logins_per_minute, self.runtime.clock)

    def remember(self, digest: bytes) -> None:
        """A secret with this hash is good."""
        self.known[digest] = None
        self.known.move_to_end(digest)
        if len(self.known) > REMEMBERED:
            self.known.popitem(last=False)


def context_of(connection: HTTPConnection) -> Context:
    """The surroundings of the app that this request reached."""
    return connection.app.state.context
