"""How an MCP server is reached: as a program, or at an address under the same rules as any HTTP tool.

`opened` gives a client of the library, with three additions: a request that the network fails is answered with an error
of the protocol, the end of a connection is noticed at once, and what a program writes to its standard error is logged.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Self

from denizen.clock import Clock
from denizen.errors import AddressRefused, SignInNeeded
from denizen.masking import without
from denizen.telemetry.logs import get_logger
from denizen.tools import whole_lines
from denizen.tools.mcp_sign_in import SecretStore, SignedInTransport
from denizen.tools.outbound import Outbound
from denizen.tools.settings import McpOAuth, McpServer

if TYPE_CHECKING:
    import httpx2
    from mcp import Client
    from mcp.client import Transport
    from mcp.client.session import ElicitationFnT, MessageHandlerFnT
    from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

log_line = get_logger(__name__)

LAST_WORDS: Final = 10
"""How many lines that a program wrote last to its standard error are kept."""
_PROBE_SECONDS: Final = 5.0
_EVENT_BYTES: Final = 16_000_000
_LINE: Final = 4_000
_INHERITED: Final = ("LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR")
"""The variables of our environment that a program gets beside those that the library passes: PATH, HOME, USER etc."""
# Codes that no server uses, for errors that we report in its place.
NOT_SENT: Final = -900_001
FORGOTTEN: Final = -900_002
BROKEN: Final = -900_003


@dataclass(frozen=True)
class McpReach:
    """How to reach a server: settings with their secrets filled in."""

    name: str
    settings: McpServer
    env: Mapping[str, str]
    headers: Mapping[str, str]
    secrets: Sequence[str] = field(repr=False)
    outbound: Outbound
    client_secret: str = field(default="", repr=False)
    """Of `oauth`."""
    sign_ins: SecretStore | None = None
    """Where the tokens of `sign_in` are."""
    last_words: deque[str] = field(default_factory=lambda: deque[str](maxlen=LAST_WORDS), compare=False)
    """The last lines of the program's standard error."""


@asynccontextmanager
async def opened(
    reach: McpReach, clock: Clock, over: asyncio.Event, hear: MessageHandlerFnT, elicit: ElicitationFnT | None
) -> AsyncGenerator[Client]:
    """A client of the server while entered. `over` is set when the other side is gone."""
    from importlib.metadata import version

    from mcp import Client
    from mcp_types import Implementation

    open_ = _program if reach.settings.url is None else _service
    info = Implementation(name="denizen", version=version("denizen"))
    async with (
        open_(reach, clock) as transport,
        Client(
            _watched(transport, over),
            message_handler=hear,
            elicitation_callback=elicit,
            client_info=info,
            cache=None,
        ) as client,
    ):
        yield client


@asynccontextmanager
async def _program(reach: McpReach, clock: Clock) -> AsyncGenerator[Transport]:  # noqa: ARG001
    """A started program; its standard error goes to our log. It needs no clock."""
    from mcp.client.stdio import StdioServerParameters, stdio_client

    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    parameters = StdioServerParameters(
        command=reach.settings.command or "",
        args=list(reach.settings.args),
        env={**inherited, **reach.env},
        encoding=whole_lines.register(),
    )
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as end:
        heard, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: _StandardError(reach), os.fdopen(reading, "rb", buffering=0)
        )
        try:
            yield _started(stdio_client(parameters, errlog=end), end.close)
        finally:
            heard.close()


@asynccontextmanager
async def _started(transport: Transport, started: Callable[[], None]) -> AsyncGenerator[Any]:
    """The transport; `started` is called once its program runs and has taken over our end of the pipe."""
    async with transport as streams:
        started()
        yield streams


@asynccontextmanager
async def _service(reach: McpReach, clock: Clock) -> AsyncGenerator[Transport]:
    """A server at an address, under the same rules as any HTTP tool."""
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    from denizen.tools.outbound import TIMEOUT

    assert reach.settings.url is not None
    transport: httpx2.AsyncBaseTransport = reach.outbound.transport(reach.settings.allow_private)
    if (sign_in := reach.settings.sign_in) is not None and reach.sign_ins is not None:
        transport = SignedInTransport(transport, reach.settings.url, sign_in.name, reach.sign_ins, clock)
    async with httpx2.AsyncClient(
        transport=wire(transport),
        headers=dict(reach.headers),
        auth=None if reach.settings.oauth is None else _authorization(reach, reach.settings.oauth),
        timeout=TIMEOUT,
        trust_env=False,
    ) as http:
        yield streamable_http_client(reach.settings.url, http_client=http, max_sse_event_size=_EVENT_BYTES)


def _authorization(reach: McpReach, oauth: McpOAuth) -> httpx2.Auth:
    """Gets access tokens as they are needed, and again when they expire. They are kept with the connection only."""
    from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider

    assert reach.settings.url is not None
    return ClientCredentialsOAuthProvider(
        reach.settings.url,
        _TokensInMemory(),
        client_id=oauth.client_id,
        client_secret=reach.client_secret,
        scope=oauth.scope,
        issuer=oauth.issuer,
    )


class _TokensInMemory:
    """The tokens of one connection. A new one is had for the credentials, which are in the vault."""

    def __init__(self) -> None:
        self._tokens: OAuthToken | None = None
        self._client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


async def speaks_sse(reach: McpReach) -> bool:
    """Whether there is a server of the older transport at the address."""
    import httpx2

    if reach.settings.url is None:
        return False
    transport = reach.outbound.transport(reach.settings.allow_private)
    headers = {**reach.headers, "Accept": "text/event-stream"}
    try:
        async with (
            asyncio.timeout(_PROBE_SECONDS),
            httpx2.AsyncClient(transport=transport, headers=headers, trust_env=False) as http,
            http.stream("GET", reach.settings.url) as answer,
        ):
            if answer.status_code != 200 or "text/event-stream" not in answer.headers.get("content-type", ""):
                return False
            async for line in answer.aiter_lines():
                return line.strip() == "event: endpoint"
    except Exception:  # noqa: BLE001  then the first error says it all
        return False
    return False


def wire(transport: httpx2.AsyncBaseTransport) -> httpx2.AsyncBaseTransport:
    """The transport; if the network fails a request, it answers with an error of the protocol.

    The library would let one failed request end the connection with all waiting requests, and would not tell whether
    the request was sent.
    """
    import httpx2

    class Wire(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            try:
                answer = await transport.handle_async_request(request)
            except (httpx2.ConnectError, httpx2.ConnectTimeout, AddressRefused, SignInNeeded) as error:
                return self._instead(NOT_SENT, str(error))
            except httpx2.TransportError as error:
                return self._instead(BROKEN, str(error))
            if answer.status_code == 404 and request.method == "POST" and "mcp-session-id" in request.headers:
                await answer.aclose()
                return self._instead(FORGOTTEN, "the server has forgotten the session")
            return answer

        def _instead(self, code: int, message: str) -> httpx2.Response:
            error = {"code": code, "message": message or "no connection"}
            return httpx2.Response(503, json={"jsonrpc": "2.0", "id": None, "error": error})

        async def aclose(self) -> None:
            await transport.aclose()

    return Wire()


@asynccontextmanager
async def _watched(transport: Transport, over: asyncio.Event) -> AsyncGenerator[Any]:
    """The transport; `over` is set as soon as nothing more can be read from it."""
    async with transport as (reading, writing):
        yield WatchedStream(reading, over), writing


class WatchedStream:
    """A stream that says when it has ended."""

    def __init__(self, stream: Any, over: asyncio.Event) -> None:
        self._stream = stream
        self._over = over

    @property
    def last_context(self) -> contextvars.Context | None:
        return getattr(self._stream, "last_context", None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._stream.__anext__()
        except StopAsyncIteration:
            self._over.set()
            raise

    async def receive(self) -> Any:
        return await self._stream.receive()

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        self._over.set()
        await self.aclose()


class _StandardError(asyncio.Protocol):
    """Writes a program's standard error to our log, line by line."""

    def __init__(self, reach: McpReach) -> None:
        self._reach = reach
        self._rest = b""

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._log(line)
        if len(self._rest) > _LINE:
            self._log(self._rest)
            self._rest = b""

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._log(self._rest)

    def _log(self, line: bytes) -> None:
        text = without(line.decode(errors="replace"), self._reach.secrets).strip()
        if text:
            self._reach.last_words.append(text[:_LINE])
            log_line.debug("mcp server wrote", server=self._reach.name, text=text[:_LINE])
