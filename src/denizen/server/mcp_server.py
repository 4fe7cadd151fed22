"""The tools of the MCP server at `/mcp`: what other programs can do with agents, with the permissions of the caller.

Each tool calls the route, or the use case, that answers the same request over HTTP, so that both allow and store the
same. The server keeps no sessions: any instance answers any request. Importing this module takes long, because it
imports the library of the protocol.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Final, cast

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)
from pydantic import BaseModel, Field, JsonValue, ValidationError
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from denizen import __version__
from denizen.access.requesters import agent_id_of
from denizen.access.roles import Role, reaches
from denizen.agents import chatting, managing
from denizen.agents.chatting import AnswerState, AwaitedMessage, Question
from denizen.errors import DenizenError, NotAMember, NotFound
from denizen.server.answering import LONGEST_SECONDS, USUAL_SECONDS, wait
from denizen.server.auth import Caller, require
from denizen.server.context import context_of
from denizen.server.problems import KINDS, Problem
from denizen.server.routes import agents, chat, messages, minds, search, spaces, triggers
from denizen.server.shapes.agents import TriggerAgent
from denizen.server.shapes.chat import final_response, waiting_note
from denizen.server.shapes.spaces import PostMessage
from denizen.shapes.agents import AgentOut
from denizen.shapes.spaces import MessageOut
from denizen.spaces.posting import MESSAGE_CHARACTERS

PROGRESS_CHARACTERS: Final = 200
"""How much of an answer that is being written a progress notification shows."""
_ABOUT: Final = (
    "Talk with the agents of this Denizen server. Each agent has one continuous memory of everybody it talks with, so "
    "send it only what is new. `ask` waits for an answer; `post` does not."
)

# The library logs the start and the end of every request.
logging.getLogger("mcp.server").setLevel(logging.WARNING)

Agent = Annotated[str, Field(description="The `@handle` or id of an agent: `list_agents` lists them.")]
Space = Annotated[str, Field(description="The id of a space that you are in: `read` without a space lists them.")]
Text = Annotated[str, Field(min_length=1, max_length=MESSAGE_CHARACTERS, description="Markdown.")]
Key = Annotated[
    str | None,
    Field(min_length=1, max_length=200, description="Your own name for this call: repeated with it, it runs once."),
]


class _Arguments(BaseModel, extra="forbid"):
    """The arguments of a tool: unknown ones are errors."""


class Ask(_Arguments):
    """Sends a message to an agent and waits for its answer. If the time runs out, the agent still answers: repeat the
    call to go on waiting. An unanswered question is not asked twice."""

    agent: Agent
    text: Text
    space: Annotated[
        str | None, Field(description="A space that you share with the agent; by default your private one.")
    ] = None
    key: Key = None
    seconds: Annotated[float, Field(gt=0, le=LONGEST_SECONDS, description="How long to wait.")] = USUAL_SECONDS


class Post(_Arguments):
    """Posts a message in a space, without waiting for answers. `@handle` mentions a member."""

    space: Space
    text: Text
    reply_to: Annotated[str | None, Field(description="The id of a message there.")] = None
    key: Key = None


class Read(_Arguments):
    """Reads the newest messages of a space; without a space, lists your spaces."""

    space: Annotated[str | None, Field(description="The id of a space that you are in.")] = None
    after: Annotated[int | None, Field(ge=0, description="Only messages after this number, oldest first.")] = None
    before: Annotated[int | None, Field(ge=0, description="Only messages before this number.")] = None
    limit: Annotated[int, Field(ge=1, le=messages.LONGEST_PAGE)] = 20


class Recall(_Arguments):
    """Searches the messages of your spaces for words. With an agent, searches what that agent remembers, by meaning:
    for admins."""

    query: Annotated[str, Field(min_length=1, max_length=200)]
    agent: Annotated[str | None, Field(description="The `@handle` or id of an agent.")] = None
    space: Annotated[str | None, Field(description="Only in this space.")] = None
    when: Annotated[str | None, Field(max_length=200, description="With an agent: `May 2025`, `last week`.")] = None
    who: Annotated[str | None, Field(max_length=200, description="Only what they said: a name or `@handle`.")] = None
    limit: Annotated[int, Field(ge=1, le=80)] = 20


class ListAgents(_Arguments):
    """Lists the agents of your organization, with what each is for and whether it can answer."""


class Trigger(_Arguments):
    """Sends an event of a service to an agent's inbox and wakes it, without waiting."""

    agent: Agent
    service: Annotated[str, Field(description="The name of the service, as the agent sees it.")]
    text: Annotated[str, Field(description="The event as text.")] = ""
    data: Annotated[JsonValue, Field(description="The event as data.")] = None
    urgent: bool = False
    key: Key = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call: who calls, and how to tell them about progress."""

    request: Request
    caller: Caller
    report: Callable[[float, float | None, str | None], Awaitable[None]]


async def _ask(call: ToolCall, given: Ask) -> CallToolResult:
    require(call.caller, "member")
    context = context_of(call.request)
    runtime, requester = context.runtime, call.caller.requester
    named = await runtime.db.read(agent_id_of, call.caller.requester, given.agent)
    question = Question(named, given.text, given.space)
    asked = None if given.key is not None else await runtime.db.read(chatting.find_unanswered, requester, question)
    if asked is None:
        asked = await chat.ask(runtime, call.caller, question, given.key)
    progress = _Progress(call)
    await progress.note(f"{given.agent} has your message.")
    answer = await wait(context, asked, given.seconds, progress.pass_on)
    waiting = await runtime.db.read(chat.seen_by, call.caller, answer)
    note = waiting_note(answer.note, waiting) if answer.note else ""
    return _answered(given, asked, answer, note)


def _answered(given: Ask, asked: AwaitedMessage, answer: AnswerState, note: str) -> CallToolResult:
    said = final_response(answer).markdown
    if answer.outcome == "working":
        note = f"{note} {given.agent} has not finished. Repeat this call to go on waiting.".strip()
    told: dict[str, JsonValue] = {
        "outcome": answer.outcome,
        "text": said,
        "note": note,
        "space_id": asked.space_id,
        "message_id": asked.message_id,
    }
    failed = not said and answer.outcome in ("failed", "parked", "suspended", "unheard")
    text = "\n\n".join(each for each in (said, note) if each) or f"{given.agent} read this and did not reply."
    return _result(text, told, is_error=failed)


class _Progress:
    """Tells the caller how far the answer is."""

    def __init__(self, call: ToolCall) -> None:
        self._report = call.report
        self._count = 0
        self._text = ""

    async def note(self, what: str) -> None:
        self._count += 1
        await self._report(self._count, None, what)

    async def pass_on(self, text: str) -> None:
        self._text = (self._text + text)[-PROGRESS_CHARACTERS:]
        await self.note(self._text.strip() or "The agent is thinking.")


async def _post(call: ToolCall, given: Post) -> CallToolResult:
    said = PostMessage(text=given.text, reply_to=given.reply_to)
    posted = await messages.post_message(call.request, call.caller, given.space, said, given.key)
    return _result(f"Posted as message {posted.seq}.", {"message_id": posted.id, "seq": posted.seq})


async def _read(call: ToolCall, given: Read) -> CallToolResult:
    if given.space is None:
        mine = await spaces.list_spaces(call.caller, limit=spaces.LONGEST_PAGE)
        lines = [
            f"{each.name} (space {each.id}{', private' if each.private else ''}): "
            f"{', '.join(f'@{member.handle}' for member in each.members)}; {each.unread} unread of {each.last_seq}"
            for each in mine.spaces
        ]
        return _result("\n".join(lines) or "You are in no space.")
    page = await messages.read_messages(call.request, call.caller, given.space, given.after, given.before, given.limit)
    more = "" if page.next is None else f"\nMore: {'after' if given.after is not None else 'before'} {page.next}."
    return _result(("\n".join(map(_line, page.messages)) or "No messages.") + more)


async def _recall(call: ToolCall, given: Recall) -> CallToolResult:
    if given.agent is None:
        require(call.caller, "member")
        found = await search.search_messages(
            call.caller, given.query, given.space, _handle(given.who), None, given.limit
        )
        return _result("\n".join(map(_line, found.messages)) or "Nothing was found.")
    require(call.caller, "admin")
    agent = await call.caller.read(agent_id_of, given.agent)
    remembered = await minds.recall(call.caller, agent, given.query, given.when, given.who, given.space, given.limit)
    lines = [
        f"{each.at:%Y-%m-%d %H:%M} {each.space or '-'} | {each.who or 'the agent'} ({each.kind}): {each.text}"
        for each in remembered.found
    ]
    return _result("\n".join(lines) or "Nothing was found.")


async def _list_agents(call: ToolCall, _: ListAgents) -> CallToolResult:
    require(call.caller, "member")
    page = await agents.list_agents(call.caller)
    lines = [f"@{each.handle}: {each.name}, {each.status}. {_about(each)}" for each in page.agents]
    return _result("\n".join(lines) or "There are no agents.")


def _about(agent: AgentOut) -> str:
    return agent.trouble.text if agent.trouble else agent.purpose


async def _trigger(call: ToolCall, given: Trigger) -> CallToolResult:
    event = TriggerAgent(service=given.service, text=given.text, data=given.data, urgent=given.urgent)
    managing.check_may_trigger(call.caller.requester)
    agent = await call.caller.read(agent_id_of, given.agent)
    accepted = await triggers.trigger(call.caller, agent, event, given.key)
    return _result(f"The event is in the inbox of {given.agent}.", {"event_id": accepted.id})


def _handle(who: str | None) -> str | None:
    return None if who is None else f"@{who.removeprefix('@')}"


def _line(message: MessageOut) -> str:
    text = "(deleted)" if message.deleted_at else message.text
    return f"{message.seq}. {message.created_at:%Y-%m-%d %H:%M} {message.author.name}: {text}"


def _result(text: str, data: Mapping[str, JsonValue] | None = None, *, is_error: bool = False) -> CallToolResult:
    content = [TextContent(type="text", text=text)]
    return CallToolResult(
        content=[*content], structured_content=None if data is None else dict(data), is_error=is_error
    )


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool of the MCP server."""

    name: str
    arguments: type[_Arguments]
    run: Callable[[ToolCall, Any], Awaitable[CallToolResult]]
    role: Role | None
    """Who is offered it: those with this role; None: everyone with a token."""
    for_guests: bool = True
    reads: bool = False

    def is_offered_to(self, role: Role) -> bool:
        if role == "guest" and not self.for_guests:
            return False
        return self.role is None or reaches(role, self.role)

    @property
    def described(self) -> Tool:
        schema = self.arguments.model_json_schema()
        description = " ".join((self.arguments.__doc__ or "").split())
        schema.pop("description", None)
        return Tool(
            name=self.name,
            description=description,
            input_schema=schema,
            annotations=ToolAnnotations(read_only_hint=self.reads, destructive_hint=False, open_world_hint=False),
        )


TOOLS: Final = {
    each.name: each
    for each in (
        McpTool("ask", Ask, _ask, "member"),
        McpTool("post", Post, _post, None),
        McpTool("read", Read, _read, None, reads=True),
        McpTool("recall", Recall, _recall, "member", reads=True),
        McpTool("list_agents", ListAgents, _list_agents, "member", reads=True),
        McpTool("trigger", Trigger, _trigger, None, for_guests=False),
    )
}


async def _list_tools(context: ServerRequestContext[Any, Any], _: PaginatedRequestParams | None) -> ListToolsResult:
    role = cast("Request", context.request).scope["caller"].role
    return ListToolsResult(tools=[each.described for each in TOOLS.values() if each.is_offered_to(role)])


async def _call_tool(context: ServerRequestContext[Any, Any], asked: CallToolRequestParams) -> CallToolResult:
    tool = TOOLS.get(asked.name)
    if tool is None:
        return _result(f"There is no tool {asked.name[:60]!r}. There are {', '.join(TOOLS)}.", is_error=True)
    request = cast("Request", context.request)
    try:
        given = tool.arguments.model_validate(asked.arguments or {})
        return await tool.run(ToolCall(request, request.scope["caller"], context.session.report_progress), given)
    except ValidationError as error:
        return _result(_invalid(error), is_error=True)
    except Problem as problem:
        return _result(str(problem.detail), {"code": problem.code}, is_error=True)
    except DenizenError as error:
        return _failed(error, asked)


def _invalid(error: ValidationError) -> str:
    return "\n".join(
        f"{'.'.join(map(str, each['loc'])) or 'arguments'}: {each['msg']}."
        for each in error.errors(include_url=False, include_input=False)[:10]
    )


def _failed(error: DenizenError, asked: CallToolRequestParams) -> CallToolResult:
    if isinstance(error, NotAMember):
        # Those who are not in a space are not told that it exists.
        error = NotFound("space", str((asked.arguments or {}).get("space", "")))
    kind = KINDS.get(error.code, KINDS["internal"])
    text = str(error) if kind.status < 500 else (type(error).__doc__ or kind.title).strip()
    return _result(text, {"code": error.code}, is_error=True)


@cache
def _server() -> Server[Any]:
    return Server(
        "denizen", version=__version__, instructions=_ABOUT, on_list_tools=_list_tools, on_call_tool=_call_tool
    )


async def answer(scope: Scope, receive: Receive, send: Send, *, streams: bool) -> None:
    """Answers one request of the protocol, in any of its versions; with `streams`, by server-sent events."""
    manager = StreamableHTTPSessionManager(_server(), stateless=True, json_response=not streams)
    async with manager.run():
        await manager.handle_request(scope, receive, send)
