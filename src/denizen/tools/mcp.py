"""MCP servers (Model Context Protocol), and their tools.

Agents of one organization that configure the same server share one connection to it, made when it is first needed and
closed when it has been idle. Each connection lives in a task of its own, which opens and closes it. An unreachable
server does not stop an agent: the agent has the tools that the server offered last, or goes without.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import mimetypes
import os
import re
from base64 import b64decode
from collections import deque
from collections.abc import AsyncGenerator, Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import unquote

from pydantic_ai.tools import ToolDefinition

from denizen.amounts import human_size
from denizen.clock import SECOND, Clock, SystemClock
from denizen.errors import AddressRefused, InvalidInput, SignInNeeded, ToolFailed
from denizen.ids import CallId
from denizen.masking import without
from denizen.telemetry.logs import get_logger
from denizen.tools import whole_lines
from denizen.tools.elicitation import ServerQuestion
from denizen.tools.eliciting import Eliciting
from denizen.tools.mcp_sign_in import SecretStore, SignedInTransport, StoredSignIns, read_sign_in
from denizen.tools.outbound import Outbound
from denizen.tools.references import Secret, filled
from denizen.tools.results import Output, ToolFile
from denizen.tools.schemas import UnusableSchema, checker, compile_schema
from denizen.tools.settings import McpOAuth, McpServer
from denizen.tools.tool import CallIdentity, OutsideTool

if TYPE_CHECKING:
    import httpx2
    from mcp import Client
    from mcp.client import Transport
    from mcp.client.session import ElicitationFnT, IncomingMessage, MessageHandlerFnT
    from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
    from mcp_types import CallToolResult, ContentBlock, ElicitRequestParams, ElicitResult, ErrorData, Tool

log_line = get_logger(__name__)

CONNECT_SECONDS: Final = 30.0
"""How long a server may take to start and to list its tools."""
IDLE_SECONDS: Final = 600.0
"""After this long without a call a connection is closed, and its program ended."""
CLOSE_SECONDS: Final = 15.0
"""How long closing may take before it is forced; the protocol's own steps to end a program take less."""
BACK_OFF_SECONDS: Final = (5.0, 30.0, 120.0, 600.0)
"""How long an unreachable server is left alone, after the first failure, the second and so on."""
LISTEN_AGAIN_SECONDS: Final = 60.0
"""After this long a server is asked again to say when its tools change, if it stopped doing so."""
LAST_WORDS: Final = 10
"""How many lines that a program wrote last to its standard error are kept."""
READ_RESOURCE: Final = "read_resource"
"""The tool that reads resources of a server that has some."""
_RESOURCES_NAMED: Final = 30
LONGEST: Final = 1_000_000
"""How many characters of a result are kept."""
_PAGES: Final = 50
_PROBE_SECONDS: Final = 5.0
_EVENT_BYTES: Final = 16_000_000
_LINE: Final = 4_000
_INHERITED: Final = ("LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR")
"""The variables of our environment that a program gets beside those that the library passes: PATH, HOME, USER etc."""
# Codes that no server uses, for errors that we report in its place.
_NOT_SENT: Final = -900_001
_FORGOTTEN: Final = -900_002
_BROKEN: Final = -900_003


@dataclass(frozen=True, slots=True)
class McpTrouble:
    """A server that cannot be reached."""

    server: str
    text: str
    """What prevents it."""
    last_words: tuple[str, ...]
    """What its program wrote last to its standard error."""


class McpConnections:
    """The connections of this process to MCP servers; `async with` closes them, and ends the programs."""

    def __init__(
        self,
        outbound: Outbound,
        clock: Clock | None = None,
        eliciting: Eliciting | None = None,
        sign_ins: StoredSignIns | None = None,
    ) -> None:
        self._outbound = outbound
        self._eliciting = eliciting
        self._sign_ins = sign_ins
        self._clock: Clock = clock or SystemClock()
        self._servers: dict[tuple[str, object, object, object], _Server] = {}
        self._warned: set[tuple[str, str]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await asyncio.gather(*(each.close() for each in self._servers.values()))

    @property
    def changes(self) -> int:
        """How often servers have announced that their tools have changed."""
        return sum(each.changes for each in self._servers.values())

    def troubles(self, shared_by: str) -> list[McpTrouble]:
        """The servers of these agents that could not be reached when they were last tried."""
        found = [each.trouble for (whose, *_), each in self._servers.items() if whose == shared_by]
        return [each for each in found if each is not None]

    async def tools(
        self, servers: Mapping[str, McpServer], secret: Secret, taken: Collection[str] = (), *, shared_by: str = ""
    ) -> list[OutsideTool]:
        """The tools of these servers, as far as they are allowed and their names are not taken.

        Agents with the same `shared_by` share connections: a server may tell one what it heard from another. For an
        unreachable server, the tools that it last offered to this process.
        """
        found = await asyncio.gather(*(self._offers(name, each, secret, shared_by) for name, each in servers.items()))
        used = set(taken)
        tools: list[OutsideTool] = []
        for (name, settings), (server, offers) in zip(servers.items(), found, strict=True):
            for offer in self._allowed(name, settings, offers):
                tool = self._tool(name, settings, server, offer, used)
                if tool is not None:
                    used.add(tool.name)
                    tools.append(tool)
        return tools

    async def _offers(
        self, name: str, settings: McpServer, secret: Secret, shared_by: str
    ) -> tuple[_Server | None, Sequence[Tool]]:
        try:
            env, of_env = filled(settings.env, secret)
            headers, of_headers = filled(settings.headers, secret)
            oauth = {} if settings.oauth is None else {"secret": settings.oauth.client_secret}
            credentials, of_oauth = filled(oauth, secret)
        except ToolFailed as error:
            self._warn(name, "mcp server left out", str(error))
            return None, ()
        signed_in = None if settings.sign_in is None else secret(settings.sign_in.name)
        since = None if settings.url is None else read_sign_in(signed_in, settings.url)
        where = (
            *(settings.command, settings.args, settings.url, settings.allow_private, settings.oauth, *of_oauth),
            settings.sign_in,
            # After another sign-in the server is tried at once, however often it failed before.
            None if since is None else since.signed_in_at,
        )
        key = (shared_by, where, tuple(env.items()), tuple(headers.items()))
        if key not in self._servers:
            secrets = (*of_env, *of_headers, *of_oauth)
            stored = None if self._sign_ins is None else self._sign_ins.of(shared_by)
            reach = _Reach(name, settings, env, headers, secrets, self._outbound, credentials.get("secret", ""), stored)
            for (whose, *_), other in self._servers.items():
                if settings.sign_in is not None and whose == shared_by and other.is_for(settings):
                    other.trouble = None  # Somebody has signed in again; the old connection is not used any more.
            self._servers[key] = _Server(reach, self._clock, self._eliciting)
        return self._servers[key], await self._servers[key].offered()

    def _allowed(self, name: str, settings: McpServer, offers: Sequence[Tool]) -> Iterable[Tool]:
        """The allowed tools, in the order of the allow list, if there is one."""
        if settings.tools is None:
            return offers
        known = {each.name: each for each in offers}
        if offers:
            for missing in [each for each in settings.tools if each not in known]:
                self._warn(name, "mcp server does not offer an allowed tool", missing)
        return [known[each] for each in settings.tools if each in known]

    def _tool(
        self, name: str, settings: McpServer, server: _Server | None, offer: Tool, used: Collection[str]
    ) -> OutsideTool | None:
        called = _callable_name(settings.prefix + offer.name)
        if server is None or called in used:
            self._warn(name, "mcp tool left out: its name is taken", called)
            return None
        try:
            schema = compile_schema(offer.input_schema, patterns_are_optional=True)
        except UnusableSchema as error:
            self._warn(name, "mcp tool left out: its schema cannot be used", f"{called}: {error}")
            return None
        # The server checks its arguments anyway. Generators of schemas write look-ahead for e-mail addresses.
        for place in schema.unusable_patterns:
            self._warn(name, "mcp tool: a pattern cannot be used and is not checked", f"{called}: {place}")

        async def call(arguments: Mapping[str, Any], caller: CallIdentity) -> str | Output:
            again = settings.on_crash == "retry"
            return await server.call(_McpCall(caller, called), offer.name, arguments, again=again)

        return OutsideTool(
            definition=ToolDefinition(
                name=called,
                description=offer.description or offer.title or offer.name,
                parameters_json_schema=offer.input_schema,
            ),
            check=checker(called, schema),
            call=call,
            on_crash=settings.on_crash,
            seconds=settings.seconds,
            visible=settings.visible,
            results=settings.results,
            effect=not (_only_reads(offer, settings) or _is_named(offer.name, settings.only_read)),
            needs_trusted=_is_named(offer.name, settings.needs_trusted),
        )

    def _warn(self, server: str, phrase: str, what: str) -> None:
        """Once per process: tools are requested whenever an agent wakes."""
        if (server, phrase + what) not in self._warned:
            self._warned.add((server, phrase + what))
            log_line.warning(phrase, server=server, what=what)


def _only_reads(offer: Tool, settings: McpServer) -> bool:
    """Whether the tool says that it only reads, and can be trusted: a hostile server would say so of every tool.

    A program on this machine can do anything already. A tool that fetches pages reads as well, but the owner of the
    address learns something: that is an effect.
    """
    said, believed = offer.annotations, settings.command is not None or settings.results == "trusted"
    return believed and said is not None and said.read_only_hint is True and said.open_world_hint is False


def _is_named(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _callable_name(name: str) -> str:
    """The name as models accept it."""
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    return (plain if plain[:1].isalpha() or plain[:1] == "_" else f"_{plain}")[:64]


@dataclass(frozen=True)
class _Reach:
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


@dataclass(frozen=True, eq=False)
class _McpCall:
    """A call in progress."""

    caller: CallIdentity
    tool: str
    """As the agent calls it."""
    asked: set[CallId] = field(default_factory=set[CallId])
    """The questions that the server has asked people in this call."""


_THIS_CALL: Final[contextvars.ContextVar[_McpCall]] = contextvars.ContextVar("mcp_call")
"""The call that a task is part of. Questions of a server arrive in its context, except those of older programs."""


class _Server:
    """A server: the connection to it, if there is one, and the tools it last offered."""

    def __init__(self, reach: _Reach, clock: Clock, eliciting: Eliciting | None = None) -> None:
        self._reach = reach
        self._eliciting = eliciting
        self._running: set[_McpCall] = set()
        self._clock = clock
        self._link: _Link | None = None
        self._connecting = asyncio.Lock()
        self._offers: Sequence[Tool] | None = None
        self._failures = 0
        self._not_before = 0
        self._closed = False
        self._stands_for_resources = False
        """Whether `read_resource` is ours, and not a tool of the server."""
        self.changes = 0
        self.trouble: McpTrouble | None = None

    def is_for(self, settings: McpServer) -> bool:
        return self._reach.settings == settings

    async def offered(self) -> Sequence[Tool]:
        """Its tools; those that it offered last, if it cannot be reached."""
        asleep = self._link is not None and self._link.idle and self._offers is not None
        left_alone = self._not_before - self._clock.now()
        # It is left alone for no longer: otherwise the clock was set back since.
        if asleep or 0 < left_alone <= BACK_OFF_SECONDS[-1] * SECOND:
            return self._offers or ()
        try:
            link = await self._connected()
            if link.changed:
                await self._list_again(link)
        except ToolFailed as error:
            seconds = BACK_OFF_SECONDS[min(self._failures, len(BACK_OFF_SECONDS) - 1)]
            self._failures += 1
            self._not_before = self._clock.now() + int(seconds * SECOND)
            known = self._offers is not None
            self.trouble = McpTrouble(self._reach.name, str(error), tuple(self._reach.last_words))
            log_line.warning("mcp server unreachable", server=self._reach.name, error=str(error), tools_known=known)
        return self._offers or ()

    async def call(self, call: _McpCall, tool: str, arguments: Mapping[str, Any], *, again: bool) -> str | Output:
        """Call the tool and return its text and files.

        A call that was surely not sent is retried once; others if `again`. What the server asks people meanwhile is
        withdrawn at the end.
        """
        self._running.add(call)
        before = _THIS_CALL.set(call)
        try:
            return await self._call(tool, arguments, again=again)
        finally:
            _THIS_CALL.reset(before)
            self._running.discard(call)
            if self._eliciting is not None:
                await self._eliciting.withdraw(call.asked)

    async def _elicit(self, context: object, params: ElicitRequestParams) -> ElicitResult | ErrorData:  # noqa: ARG002
        """The answer of a person to a question of the server."""
        from mcp_types import INVALID_REQUEST, ElicitResult, ErrorData

        assert self._eliciting is not None
        call = _THIS_CALL.get(None) or (next(iter(self._running)) if len(self._running) == 1 else None)
        if call is None:
            # Older programs do not say in which call they ask: with several, it is unknown who may see the question.
            return ErrorData(code=INVALID_REQUEST, message="Questions are answered only while one call is running.")
        message = self._hidden(params.message)
        if params.mode == "url":
            if not params.url.startswith(("https://", "http://")):
                return ErrorData(code=INVALID_REQUEST, message="The address to open must begin with https://.")
            question = ServerQuestion(self._reach.name, message, url=params.url)
        else:
            question = ServerQuestion(self._reach.name, message, form=params.requested_schema)
        try:
            answer = await self._eliciting.ask(call.caller, call.tool, question, call.asked)
        except InvalidInput as error:
            return ErrorData(code=INVALID_REQUEST, message=f"The form of this question cannot be used: {error}")
        return ElicitResult(action=answer.action, content=answer.content)

    async def _call(self, tool: str, arguments: Mapping[str, Any], *, again: bool) -> str | Output:
        for last in (False, True):
            link = await self._connected()
            try:
                with link.in_use() as client:
                    result = await self._called(client, tool, arguments)
            except Exception as error:  # noqa: BLE001  whatever it says may hold a secret
                code = _code(error)
                if not last and (code in (_NOT_SENT, _FORGOTTEN) or (again and code == _BROKEN)):
                    if code == _FORGOTTEN:
                        link.over.set()
                    continue
                told = self._hidden(_trouble(self._reach.name, code, error))
                if code == _NOT_SENT:
                    self.trouble = McpTrouble(self._reach.name, told, tuple(self._reach.last_words))
                raise ToolFailed(told) from None
            self.trouble = None
            if result.is_error:
                raise ToolFailed(self._hidden(_told(result)) or "It gave no reason.")
            files = tuple(file for each in result.content if (file := self._file(each)) is not None)
            told = self._hidden(_told(result, with_files=not files))
            return Output(told, files) if files else told
        raise AssertionError

    async def _called(self, client: Client, tool: str, arguments: Mapping[str, Any]) -> CallToolResult:
        """The result of the tool; of `read_resource`, unless it is the server's own, the resource in its place."""
        if tool != READ_RESOURCE or not self._stands_for_resources:
            return await client.call_tool(tool, dict(arguments))
        from mcp_types import CallToolResult, EmbeddedResource

        found = await client.read_resource(str(arguments["uri"]))
        content = [EmbeddedResource(type="resource", resource=each) for each in found.contents]
        return CallToolResult(content=[*content])

    async def close(self) -> None:
        """Close the connection permanently, and end its program."""
        self._closed = True
        async with self._connecting:
            if self._link is not None:
                await self._link.close()

    async def _connected(self) -> _Link:
        async with self._connecting:
            if self._closed:
                raise ToolFailed(f"The MCP server {self._reach.name} was not called: Denizen is closing.")
            if self._link is None or self._link.over.is_set():
                self._link = await self._connect()
            return self._link

    async def _connect(self) -> _Link:
        if self._link is not None:
            await self._link.close()
        elicit = None if self._eliciting is None else self._elicit
        link = _Link(self._reach, self._clock, self._on_change, elicit)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await link.open()
                await self._list(link)
        except Exception as error:  # noqa: BLE001  a server can fail to start in any way
            await link.close()
            why = "it took too long" if isinstance(error, TimeoutError) else str(_first(error))
            if await _speaks_sse(self._reach):
                why = (
                    "it offers the older transport HTTP+SSE, which Denizen does not use. Set the address of its "
                    "streamable HTTP transport, often the one that ends with /mcp"
                )
            raise ToolFailed(
                self._hidden(f"The MCP server {self._reach.name} cannot be reached: {why}. It was not called.")
            ) from None
        except BaseException:
            await link.close()
            raise
        log_line.info("mcp server connected", server=self._reach.name, tools=len(self._offers or ()))
        return link

    def _on_change(self) -> None:
        self.changes += 1

    async def _list(self, link: _Link) -> None:
        link.changed, link.listed = False, True
        offers: list[Tool] = []
        cursor: str | None = None
        with link.in_use() as client:
            for _ in range(_PAGES):
                page = await client.list_tools(cursor=cursor)
                offers += page.tools
                cursor = page.next_cursor
                if cursor is None:
                    break
            has_resources = client.server_capabilities.resources is not None
            ours = has_resources and READ_RESOURCE not in {each.name for each in offers}
            if ours:
                offers.append(await _reading_tool(client))
        self._offers, self._stands_for_resources = offers, ours
        self._failures, self._not_before, self.trouble = 0, 0, None

    async def _list_again(self, link: _Link) -> None:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await self._list(link)
        except Exception as error:  # noqa: BLE001  whatever it says may hold a secret
            link.changed = True
            why = "it took too long" if isinstance(error, TimeoutError) else str(_first(error))
            raise ToolFailed(
                self._hidden(f"The MCP server {self._reach.name} does not list its tools: {why}.")
            ) from None

    def _file(self, content: ContentBlock) -> ToolFile | None:
        """The file in a part of a result; None if it is text, cannot be read or holds a secret."""
        if (found := _file_in(content)) is None or any(each.encode() in found.data for each in self._reach.secrets):
            return None
        return replace(found, name=self._hidden(found.name))

    def _hidden(self, text: str) -> str:
        return without(text, self._reach.secrets)


class _Link:
    """One connection. Its own task opens and closes it, as the library's cancel scopes demand."""

    def __init__(
        self,
        reach: _Reach,
        clock: Clock,
        on_change: Callable[[], None] = lambda: None,
        elicit: ElicitationFnT | None = None,
    ) -> None:
        self.over = asyncio.Event()
        """Set when the other side is gone, or to close the connection."""
        self.idle = False
        """Whether it was closed because nobody used it."""
        self.changed = False
        """Whether the server has announced that its tools have changed."""
        self.listed = False
        """Whether it was asked for its tools."""
        self._reach = reach
        self._clock = clock
        self._on_change = on_change
        self._elicit = elicit
        self._settled = asyncio.Event()
        self._client: Client | None = None
        self._problem: Exception | None = None
        self._calls = 0
        self._used = clock.now()
        # In a context of its own: otherwise its logs would carry the agent and cycle of the first user.
        self._task = asyncio.create_task(self._live(), name=f"mcp server {reach.name}", context=contextvars.Context())

    async def open(self) -> None:
        """Wait until it can be used. Raises whatever prevented that."""
        await self._settled.wait()
        if self._problem is not None:
            raise self._problem

    async def close(self) -> None:
        """Close the connection."""
        self.over.set()
        if self._client is None:
            self._task.cancel()
        if not (await asyncio.wait({self._task}, timeout=CLOSE_SECONDS))[0]:
            self._task.cancel()
            await asyncio.wait({self._task})

    @contextmanager
    def in_use(self) -> Generator[Client]:
        """The client; while entered, the connection is not idle."""
        assert self._client is not None
        self._calls += 1
        try:
            yield self._client
        finally:
            self._calls -= 1
            self._used = self._clock.now()

    async def _live(self) -> None:
        try:
            opened = _opened(self._reach, self._clock, self.over, self._hear, self._elicit)
            async with opened as self._client, asyncio.TaskGroup() as tasks:
                listening = tasks.create_task(self._listen(self._client), name=f"changes of {self._reach.name}")
                self._settled.set()
                while not await self._clock.wait(self.over, IDLE_SECONDS):
                    if not self._calls and self._clock.now() - self._used >= IDLE_SECONDS * SECOND:
                        self.idle = True
                        self.over.set()
                listening.cancel()
        except Exception as error:  # noqa: BLE001  whoever waits for it is told
            self._problem = error
            log_line.info("mcp connection broke", server=self._reach.name, error=type(_first(error)).__name__)
        finally:
            self.over.set()
            self._problem = self._problem or ConnectionError("the connection was closed")
            self._settled.set()

    async def _hear(self, message: IncomingMessage) -> None:
        from mcp_types import ToolListChangedNotification

        if isinstance(message, ToolListChangedNotification):
            self._note_change()

    def _note_change(self) -> None:
        self.changed = True
        self._on_change()

    async def _listen(self, client: Client) -> None:
        """Hears of changes where the protocol has a request for that; servers of earlier versions say so unasked."""
        from mcp.client.subscriptions import ListenNotSupportedError

        offered = client.server_capabilities.tools
        while offered is not None and offered.list_changed:
            try:
                async with client.listen(tools_list_changed=True) as changes:
                    if self.listed:
                        self._note_change()  # What was said before the server knew of the listener was not heard.
                    async for _ in changes:
                        self._note_change()
            except ListenNotSupportedError:
                return
            except Exception as error:  # noqa: BLE001  the tools are those known so far; it is tried again
                log_line.info("mcp server says no changes", server=self._reach.name, error=type(error).__name__)
            if await self._clock.wait(self.over, LISTEN_AGAIN_SECONDS):
                return


# Opening


@asynccontextmanager
async def _opened(
    reach: _Reach, clock: Clock, over: asyncio.Event, hear: MessageHandlerFnT, elicit: ElicitationFnT | None
) -> AsyncGenerator[Client]:
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
async def _program(reach: _Reach, clock: Clock) -> AsyncGenerator[Transport]:  # noqa: ARG001
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
            lambda: _Murmur(reach), os.fdopen(reading, "rb", buffering=0)
        )
        try:
            yield _then(stdio_client(parameters, errlog=end), end.close)
        finally:
            heard.close()


@asynccontextmanager
async def _then(transport: Transport, started: Callable[[], None]) -> AsyncGenerator[Any]:
    """The transport; `started` is called once its program runs and has taken over our end of the pipe."""
    async with transport as streams:
        started()
        yield streams


@asynccontextmanager
async def _service(reach: _Reach, clock: Clock) -> AsyncGenerator[Transport]:
    """A server at an address, under the same rules as any HTTP tool."""
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    from denizen.tools.outbound import TIMEOUT

    assert reach.settings.url is not None
    transport: httpx2.AsyncBaseTransport = reach.outbound.transport(reach.settings.allow_private)
    if (sign_in := reach.settings.sign_in) is not None and reach.sign_ins is not None:
        transport = SignedInTransport(transport, reach.settings.url, sign_in.name, reach.sign_ins, clock)
    async with httpx2.AsyncClient(
        transport=_wire(transport),
        headers=dict(reach.headers),
        auth=None if reach.settings.oauth is None else _authorization(reach, reach.settings.oauth),
        timeout=TIMEOUT,
        trust_env=False,
    ) as http:
        yield streamable_http_client(reach.settings.url, http_client=http, max_sse_event_size=_EVENT_BYTES)


def _authorization(reach: _Reach, oauth: McpOAuth) -> httpx2.Auth:
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


async def _speaks_sse(reach: _Reach) -> bool:
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


def _wire(transport: httpx2.AsyncBaseTransport) -> httpx2.AsyncBaseTransport:
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
                return self._instead(_NOT_SENT, str(error))
            except httpx2.TransportError as error:
                return self._instead(_BROKEN, str(error))
            if answer.status_code == 404 and request.method == "POST" and "mcp-session-id" in request.headers:
                await answer.aclose()
                return self._instead(_FORGOTTEN, "the server has forgotten the session")
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
        yield _Watched(reading, over), writing


class _Watched:
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


class _Murmur(asyncio.Protocol):
    """Writes a program's standard error to our log, line by line."""

    def __init__(self, reach: _Reach) -> None:
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


# Resources


async def _reading_tool(client: Client) -> Tool:
    """The tool that stands for the resources of a server."""
    from mcp_types import Tool, ToolAnnotations

    listed = (await client.list_resources()).resources
    known = "; ".join(f"{each.uri} ({each.title or each.name})" for each in listed[:_RESOURCES_NAMED])
    more = f" and {len(listed) - _RESOURCES_NAMED} more" if len(listed) > _RESOURCES_NAMED else ""
    there = f"There are: {known}{more}." if known else "Its tools name them."
    return Tool(
        name=READ_RESOURCE,
        description=f"Read a resource of this server by its URI. {there}",
        input_schema={"type": "object", "properties": {"uri": {"type": "string"}}, "required": ["uri"]},
        annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
    )


# Results


def _told(result: CallToolResult, *, with_files: bool = True) -> str:
    """The texts of a result; for everything else, what it is. Without files, if these are told elsewhere."""
    parts = [each for each in result.content if with_files or _file_in(each) is None]
    text = "\n".join(_part(each) for each in parts)
    if not text and result.structured_content is not None:
        text = json.dumps(result.structured_content, ensure_ascii=False)
    if len(text) > LONGEST:
        return f"{text[:LONGEST]}\n… [the result is longer; only its beginning was kept]"
    return text


def _part(content: ContentBlock) -> str:
    match content.type:
        case "text":
            return content.text
        case "image" | "audio":
            return f"[{content.type} {content.mime_type}, {_size(content.data)}]"
        case "resource_link":
            return f"[resource {content.name}: {content.uri}]"
        case "resource":
            held = content.resource
            if (text := getattr(held, "text", None)) is not None:
                return str(text)
            return f"[resource {held.uri}, {held.mime_type or 'no text'}, {_size(getattr(held, 'blob', ''))}]"


def _file_in(content: ContentBlock) -> ToolFile | None:
    """A picture, sound, or an embedded resource that is not text."""
    match content.type:
        case "image" | "audio":
            name = f"{content.type}{mimetypes.guess_extension(content.mime_type) or ''}"
            return _decoded(content.data, name, content.mime_type)
        case "resource":
            held = content.resource
            blob = getattr(held, "blob", None)
            name = unquote(str(held.uri).partition("?")[0].rstrip("/").rpartition("/")[2]) or "file"
            return None if blob is None else _decoded(blob, name, held.mime_type)
        case _:
            return None


def _decoded(encoded: str, name: str, media_type: str | None) -> ToolFile | None:
    try:
        data = b64decode(encoded, validate=True)
    except ValueError:
        return None
    return ToolFile(data, name, media_type) if data else None


def _size(base64: str) -> str:
    return human_size(len(base64.rstrip("=")) * 3 // 4)


def _code(error: Exception) -> int | None:
    """The kind of failure, where that matters."""
    from mcp import MCPError
    from mcp_types import CONNECTION_CLOSED

    if not isinstance(error, MCPError):
        return None
    return _BROKEN if error.code == CONNECTION_CLOSED else error.code


def _trouble(server: str, code: int | None, error: Exception) -> str:
    if code in (_NOT_SENT, _FORGOTTEN):
        return f"The MCP server {server} cannot be reached: {error}. It was not called."
    if code == _BROKEN:
        return (
            f"The connection to the MCP server {server} broke before it had answered. Whether it did what was asked "
            "is unknown."
        )
    return str(error) or type(error).__name__


def _first(error: BaseException) -> BaseException:
    """The innermost error of a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return error  # pyright: ignore[reportUnknownVariableType]
