"""What every route can use: the runtime, the limits, and the signal that the server stops."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from starlette.requests import HTTPConnection
from starlette.types import Scope

from denizen.access.oidc import Issuer
from denizen.app import Runtime
from denizen.server.failed_sign_ins import FailedSignIns
from denizen.server.rates import Rates
from denizen.server.reach import Reach
from denizen.server.web_files import WebFiles

if TYPE_CHECKING:
    from denizen.ids import SpaceId
    from denizen.notifications.pushing import Pusher
    from denizen.server.streams.shared_reads import SharedReads
    from denizen.server.streams.sharing import SharedFeed

REMEMBERED: Final = 10_000


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """The limits on requests and connections."""

    body_bytes: int = 2 * 1024 * 1024
    """Enough for the longest message, with every character escaped."""
    webhook_bytes: int = 1024 * 1024
    """Of a webhook request, before its signature is checked."""
    import_bytes: int = 256 * 1024 * 1024
    """Of an imported agent or space. A larger file has to be imported on the server's machine."""
    heartbeat_seconds: float = 15
    """How often an idle stream sends a comment, and checks whether it missed anything."""
    stream_frames: int = 1_000
    """How many frames the reader of a stream may fall behind before it is disconnected."""
    requests_per_minute: int = 6_000
    """Per token; 0: unlimited."""
    failed_logins_per_minute: int = 60
    """Per address."""
    connections: int = 2_000
    """At the same time; 0, or more than there are file descriptors: as many as there are."""
    connections_per_address: int = 200
    """At the same time, from one address that is not a trusted proxy; 0: unlimited."""
    streams_per_person: int = 64
    """At the same time, per person, agent or service; 0: unlimited."""
    header_seconds: float = 10
    """How long a connection may take to send the headers of a request."""
    body_seconds: float = 30
    """How long the body may take, in addition to its time at the slowest rate allowed."""
    send_seconds: float = 60
    """How long a client may read nothing of its answer."""
    idle_seconds: int = 130
    """How long a connection may stay open between two requests. Proxies keep theirs for a shorter time (nginx 60 s,
    Traefik 90, Caddy 120), so that it is they who close it: a request sent while the server closes would be lost.
    """
    completion_seconds: float = 300
    """How long a client of OpenAI's API waits for an agent's answer: it cannot set this itself."""


@dataclass(slots=True)
class Context:
    """The dependencies of one app. The caller opens the runtime before the app and closes it after."""

    runtime: Runtime
    limits: ServerLimits
    reach: Reach = field(default_factory=Reach)
    issuer: Issuer | None = None
    """The identity provider whose tokens are accepted."""
    web: WebFiles = field(default_factory=WebFiles)
    """The web client."""
    push: Pusher | None = None
    """Sends notifications to browsers; None: web push is off."""
    ending: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the server stops: open streams end at once."""
    hang_up: Callable[[Scope], None] | None = None
    """Drops the connection of a request, with whatever is still to be sent. Provided by the server."""
    requests: Rates = field(init=False)
    """By token."""
    failures: Rates = field(init=False)
    """Wrong secrets, by address."""
    failed_sign_ins: FailedSignIns = field(init=False)
    """Decides which of them are recorded in the audit log."""
    streams: Counter[str] = field(default_factory=lambda: Counter[str]())
    """The number of open streams, by entity."""
    shared_feeds: dict[SpaceId, SharedFeed] = field(init=False)
    """The feeds that several readers of a space share."""
    shared_reads: SharedReads = field(init=False)
    """What people who follow the same space read together."""
    known: OrderedDict[bytes, None] = field(default_factory=lambda: OrderedDict[bytes, None]())
    """The hashes of secrets that were valid when last used."""

    def __post_init__(self) -> None:
        from denizen.server.streams.shared_reads import SharedReads

        self.shared_feeds = {}
        self.shared_reads = SharedReads()
        self.requests = Rates(self.limits.requests_per_minute, self.runtime.clock)
        self.failed_sign_ins = FailedSignIns(self.runtime.clock)
        self.failures = Rates(self.limits.failed_logins_per_minute, self.runtime.clock)

    def remember(self, digest: bytes) -> None:
        """Notes that a secret with this hash is valid."""
        self.known[digest] = None
        self.known.move_to_end(digest)
        if len(self.known) > REMEMBERED:
            self.known.popitem(last=False)


def context_of(connection: HTTPConnection) -> Context:
    """Returns the context of the app that this request reached."""
    return connection.app.state.context
