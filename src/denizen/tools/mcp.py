"""MCP servers (Model Context Protocol), and their tools.

Agents of one organization that configure the same server share one connection to it, made when it is first needed and
closed when it has been idle. Each connection lives in a task of its own, which opens and closes it. An unreachable
server does not stop an agent: the agent has the tools that the server offered last, or goes without.
"""

from __future__ import annotations

import asyncio
import contextvars
import re
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, Self

from pydantic_ai.tools import ToolDefinition

from denizen.clock import SECOND, Clock, SystemClock
from denizen.errors import InvalidInput, ToolFailed
from denizen.ids import CallId
from denizen.masking import without
from denizen.telemetry.logs import get_logger
from denizen.tools.elicitation_forms import ServerQuestion
from denizen.tools.elicitation_requests import ElicitationRequests
from denizen.tools.mcp_results import READ_RESOURCE, file_in, reading_tool, text_of
from denizen.tools.mcp_sign_in import StoredSignIns, read_sign_in
from denizen.tools.mcp_transport import BROKEN, FORGOTTEN, NOT_SENT, McpReach, opened, speaks_sse
from denizen.tools.outbound import Outbound
from denizen.tools.references import Secret, filled
from denizen.tools.results import Output, ToolFile
from denizen.tools.schemas import UnusableSchema, checker, compile_schema
from denizen.tools.settings import McpServer
from denizen.tools.tool import CallIdentity, OutsideTool

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client.session import ElicitationFnT, IncomingMessage
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
_PAGES: Final = 50


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
        elicitation: ElicitationRequests | None = None,
        sign_ins: StoredSignIns | None = None,
    ) -> None:
        self._outbound = outbound
        self._elicitation = elicitation
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
            reach = McpReach(
                name, settings, env, headers, secrets, self._outbound, credentials.get("secret", ""), stored
            )
            for (whose, *_), other in self._servers.items():
                if settings.sign_in is not None and whose == shared_by and other.is_for(settings):
                    other.trouble = None  # Somebody has signed in again; the old connection is not used any more.
            self._servers[key] = _Server(reach, self._clock, self._elicitation)
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

    def __init__(self, reach: McpReach, clock: Clock, elicitation: ElicitationRequests | None = None) -> None:
        self._reach = reach
        self._elicitation = elicitation
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
            if self._elicitation is not None:
                await self._elicitation.withdraw(call.asked)

    async def _elicit(self, context: object, params: ElicitRequestParams) -> ElicitResult | ErrorData:  # noqa: ARG002
        """The answer of a person to a question of the server."""
        from mcp_types import INVALID_REQUEST, ElicitResult, ErrorData

        assert self._elicitation is not None
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
            answer = await self._elicitation.ask(call.caller, call.tool, question, call.asked)
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
                if not last and (code in (NOT_SENT, FORGOTTEN) or (again and code == BROKEN)):
                    if code == FORGOTTEN:
                        link.over.set()
                    continue
                told = self._hidden(_trouble(self._reach.name, code, error))
                if code == NOT_SENT:
                    self.trouble = McpTrouble(self._reach.name, told, tuple(self._reach.last_words))
                raise ToolFailed(told) from None
            self.trouble = None
            if result.is_error:
                raise ToolFailed(self._hidden(text_of(result)) or "It gave no reason.")
            files = tuple(file for each in result.content if (file := self._file(each)) is not None)
            told = self._hidden(text_of(result, with_files=not files))
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
        elicit = None if self._elicitation is None else self._elicit
        link = _Link(self._reach, self._clock, self._on_change, elicit)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await link.open()
                await self._list(link)
        except Exception as error:  # noqa: BLE001  a server can fail to start in any way
            await link.close()
            why = "it took too long" if isinstance(error, TimeoutError) else str(_first(error))
            if await speaks_sse(self._reach):
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
                offers.append(await reading_tool(client))
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
        if (found := file_in(content)) is None or any(each.encode() in found.data for each in self._reach.secrets):
            return None
        return replace(found, name=self._hidden(found.name))

    def _hidden(self, text: str) -> str:
        return without(text, self._reach.secrets)


class _Link:
    """One connection. Its own task opens and closes it, as the library's cancel scopes demand."""

    def __init__(
        self,
        reach: McpReach,
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
            connection = opened(self._reach, self._clock, self.over, self._hear, self._elicit)
            async with connection as self._client, asyncio.TaskGroup() as tasks:
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


def _code(error: Exception) -> int | None:
    """The kind of failure, where that matters."""
    from mcp import MCPError
    from mcp_types import CONNECTION_CLOSED

    if not isinstance(error, MCPError):
        return None
    return BROKEN if error.code == CONNECTION_CLOSED else error.code


def _trouble(server: str, code: int | None, error: Exception) -> str:
    if code in (NOT_SENT, FORGOTTEN):
        return f"The MCP server {server} cannot be reached: {error}. It was not called."
    if code == BROKEN:
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
