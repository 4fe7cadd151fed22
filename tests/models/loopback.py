"""A server on loopback that speaks OpenAI's two APIs, Anthropic's and Ollama's, streaming, and misbehaves as told."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import httpx2
from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from pydantic_ai.models import Model


@dataclass
class Failure:
    """How the next requests fail: with a status, or by cutting the connection after some events."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: dict[str, Any] = field(default_factory=lambda: {"error": {"message": "no", "type": "test"}})
    cut_after: int | None = None


@dataclass
class Received:
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class Loopback:
    """What it received, and how it answers: with a text and, if `tool` is set, a call of that tool."""

    url: str = ""
    received: list[Received] = field(default_factory=list)
    failure: Failure | None = None
    text: str = "Good morning."
    tool: str | None = "send_message"
    arguments: str = '{"space": "kitchen", "text": "Tea? ☕"}'
    finish: str | None = None
    """Why an answer ends, where that is not the usual reason: `content_filter`."""
    parse: bool = True
    hold_after: int | None = None
    """Send nothing more after that many events, until the server is stopped."""
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    pings: int = 0
    """So many events come first that say nothing: comments, pings, or that the response was created."""
    pinged: asyncio.Event = field(default_factory=asyncio.Event)
    hold_after_pings: asyncio.Event | None = None
    """After the pings, the server waits for this."""
    ends: bool = True
    """Whether the stream ends with a reason; else it just ends."""
    chunks: list[str] | None = None
    """The text in these pieces, instead of five characters each."""
    reasoning: str = ""
    """What it thinks before it answers, in the form of its API."""
    judge: Callable[[dict[str, Any]], Failure | None] | None = None
    """Looks at the body of each request and says how it fails, if it does."""
    models: dict[str, Any] = field(default_factory=lambda: {"object": "list", "data": []})
    """What `/v1/models` answers."""
    listed_for: list[dict[str, str]] = field(default_factory=list)
    """The headers of each request for the list of models."""
    tags: dict[str, Any] | None = None
    """What Ollama's `/api/tags` answers; None: it is not an Ollama."""
    turns: list[dict[str, Any]] = field(default_factory=list)
    """What is different for the next requests, one after the other: fields of this class."""
    shows: dict[str, Any] = field(default_factory=dict)
    """What Ollama's `/api/show` answers."""


STATE = web.AppKey("state", Loopback)
FAILURE = web.RequestKey("failure", Failure)


@asynccontextmanager
async def loopback() -> AsyncIterator[Loopback]:
    """A running server on a free port."""
    state = Loopback()
    app = web.Application(client_max_size=64 * 2**20)
    app[STATE] = state
    app.router.add_post("/v1/chat/completions", _chat)
    app.router.add_post("/v1/responses", _responses)
    app.router.add_post("/v1/messages", _messages)
    app.router.add_get("/v1/models", _models)
    app.router.add_get("/api/tags", _tags)
    app.router.add_post("/api/show", _shows)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    state.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield state
    finally:
        state.stopped.set()
        await runner.cleanup()


@asynccontextmanager
async def claude(name: str = "claude-of-loopback", settings: Any = None) -> AsyncIterator[tuple[Loopback, Model]]:
    """Anthropic's client, and a server for it."""
    # Imported here: it is the largest of all libraries, and every worker imports the tests of all others.
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    async with (
        loopback() as server,
        AsyncAnthropic(
            base_url=server.url, api_key="k", max_retries=0, http_client=httpx2.AsyncClient(verify=False)
        ) as client,
    ):
        yield server, AnthropicModel(name, provider=AnthropicProvider(anthropic_client=client), settings=settings)


async def _turn(request: web.Request) -> Loopback:
    """The server as it is for this request: what came is read and judged first."""
    state = request.app[STATE]
    if state.parse:
        body = json.loads(await request.read())
        state.received.append(Received(request.path, dict(request.headers), body))
        if state.judge is not None:
            request[FAILURE] = state.judge(body) or Failure()
    return replace(state, **state.turns.pop(0)) if state.turns else state


async def _chat(request: web.Request) -> web.StreamResponse:
    return await _answer(request, [*(("", event) for event in _chat_events(await _turn(request))), ("", "[DONE]")])


async def _responses(request: web.Request) -> web.StreamResponse:
    events = [(event["type"], event) for event in _responses_events(await _turn(request))]
    return await _answer(request, events)


async def _messages(request: web.Request) -> web.StreamResponse:
    return await _answer(request, [(event["type"], event) for event in _anthropic_events(await _turn(request))])


async def _models(request: web.Request) -> web.StreamResponse:
    request.app[STATE].listed_for.append({name.lower(): value for name, value in request.headers.items()})
    return web.json_response(request.app[STATE].models)


async def _tags(request: web.Request) -> web.StreamResponse:
    tags = request.app[STATE].tags
    return web.json_response({"error": "not found"}, status=404) if tags is None else web.json_response(tags)


async def _shows(request: web.Request) -> web.StreamResponse:
    return web.json_response(request.app[STATE].shows)


async def _ping(state: Loopback, response: web.StreamResponse) -> None:
    for _ in range(state.pings):
        await response.write(b": still here\n\n")
    if state.pings:
        state.pinged.set()
    if state.hold_after_pings is not None:
        await state.hold_after_pings.wait()


async def _answer(request: web.Request, events: list[tuple[str, Any]]) -> web.StreamResponse:
    state: Loopback = request.app[STATE]
    await request.read()
    failure = state.failure or request.get(FAILURE) or Failure()
    if failure.status:
        return web.json_response(failure.body, status=failure.status, headers=failure.headers)
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    await _ping(state, response)
    for index, (name, event) in enumerate(events):
        if failure.cut_after == index:
            assert request.transport is not None
            request.transport.abort()
            break
        if state.hold_after == index:
            await state.stopped.wait()
            break
        data = event if isinstance(event, str) else json.dumps(event)
        await response.write(f"{f'event: {name}' + chr(10) if name else ''}data: {data}\n\n".encode())
    return response


def _chat_events(state: Loopback) -> list[dict[str, Any]]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}

    events = [chunk({"role": "assistant", "content": ""})]
    events += [chunk({"reasoning_content": piece}) for piece in _pieces(state.reasoning)]
    events += [chunk({"content": piece}) for piece in state.chunks or _pieces(state.text)]
    if state.tool:
        function = {"name": state.tool, "arguments": ""}
        events.append(chunk({"tool_calls": [{"index": 0, "id": "call_9", "type": "function", "function": function}]}))
        events += [
            chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
            for piece in _pieces(state.arguments)
        ]
    if not state.ends:
        return events
    events.append(chunk({}, state.finish or ("tool_calls" if state.tool else "stop")))
    usage = {
        "prompt_tokens": 20,
        "completion_tokens": 7,
        "total_tokens": 27,
        "prompt_tokens_details": {"cached_tokens": 8},
    }
    events.append(
        {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [], "usage": usage}
    )
    return events


def _responses_events(state: Loopback) -> list[dict[str, Any]]:
    part = {"type": "output_text", "text": state.text, "annotations": []}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    at = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    output: list[dict[str, Any]] = [message]
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": _response([], "in_progress")},
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {**message, "status": "in_progress", "content": []},
        },
        {"type": "response.content_part.added", **at, "part": {**part, "text": ""}},
        *(
            {"type": "response.output_text.delta", **at, "delta": piece, "logprobs": []}
            for piece in _pieces(state.text)
        ),
        {"type": "response.output_text.done", **at, "text": state.text, "logprobs": []},
        {"type": "response.output_item.done", "output_index": 0, "item": message},
    ]
    if state.tool:
        call = {"type": "function_call", "id": "fc_1", "call_id": "call_9", "name": state.tool, "status": "completed"}
        call["arguments"] = state.arguments
        output.append(call)
        at = {"item_id": "fc_1", "output_index": 1}
        events += [
            {
                "type": "response.output_item.added",
                "output_index": 1,
                "item": {**call, "arguments": "", "status": "in_progress"},
            },
            *({"type": "response.function_call_arguments.delta", **at, "delta": p} for p in _pieces(state.arguments)),
            {"type": "response.function_call_arguments.done", **at, "arguments": state.arguments, "name": state.tool},
            {"type": "response.output_item.done", "output_index": 1, "item": call},
        ]
    if state.ends:
        reason = {"length": "max_output_tokens"}.get(state.finish or "", state.finish)
        status = "incomplete" if reason else "completed"
        whole = {**_response(output, status), "incomplete_details": {"reason": reason} if reason else None}
        events.append({"type": f"response.{status}", "response": whole})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def _response(output: list[dict[str, Any]], status: str) -> dict[str, Any]:
    details = {"input_tokens_details": {"cached_tokens": 8}, "output_tokens_details": {"reasoning_tokens": 0}}
    usage = {"input_tokens": 20, "output_tokens": 7, "total_tokens": 27, **details}
    return {
        "id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": status, "output": output,
        "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "usage": usage if output else None,
        "error": None, "incomplete_details": None, "instructions": None, "metadata": {}, "temperature": 1, "top_p": 1,
    }  # fmt: skip


def _anthropic_events(state: Loopback) -> list[dict[str, Any]]:
    usage = {"input_tokens": 12, "cache_read_input_tokens": 8, "cache_creation_input_tokens": 0, "output_tokens": 1}
    message = {"id": "m1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}
            for piece in state.chunks or _pieces(state.text)
        ),
        {"type": "content_block_stop", "index": 0},
    ]
    if state.tool:
        block = {"type": "tool_use", "id": "toolu_1", "name": state.tool, "input": {}}
        events += [
            {"type": "content_block_start", "index": 1, "content_block": block},
            *(
                {
                    "type": "content_block_delta",
                    "index": 1,
                    "delta": {"type": "input_json_delta", "partial_json": piece},
                }
                for piece in _pieces(state.arguments)
            ),
            {"type": "content_block_stop", "index": 1},
        ]
    if not state.ends:
        return events
    usual = "tool_use" if state.tool else "end_turn"
    stop_reason = {"content_filter": "refusal", "length": "max_tokens"}.get(state.finish or "", usual)
    stop = {"stop_reason": stop_reason, "stop_sequence": None}
    events.append({"type": "message_delta", "delta": stop, "usage": {"output_tokens": 7}})
    events.append({"type": "message_stop"})
    return events


def _pieces(text: str, size: int = 5) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]
