"""A model server, and the world outside that its agents change. What it answers follows from the history alone.

People ask numbered questions, such as `#12 for ines in <space>: note`. To each the agent answers `re #12: …` in that
space, after it has done what the kind of the question asks for:

| kind | |
|---|---|
| plain | nothing |
| note | one POST outside, by a tool with `on_crash = "report"` |
| mark | the same with `on_crash = "retry"` |
| both | both, in the same response as the answer |
| timer | a timer, which says `rung #12` later |
| mcp | one call of a tool of an MCP server, with `on_crash = "report"` |
| hook | nothing; a service asked it by a webhook |
| guest | nothing; somebody elsewhere asked it through a bridge |
| panel | an answer by each advisor of a panel |

The summary of a conversation lists the questions that it covers, `(12) (13)`: those of the summary before, and those of
the messages that are new.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from aiohttp import web

from lab.elsewhere import Elsewhere
from lab.history import History

KINDS: Final = ("plain", "plain", "note", "mark", "both", "mcp", "timer")
SLOWEST_SECONDS: Final = 0.08

_TASK = re.compile(r"#(\d+) for (\w+) in ([0-9a-f-]{36}): (\w+)")
_COMING = re.compile(r"^Your next plans: .*$", re.MULTILINE)
_NUMBER = re.compile(r"#(\d+)")
_COVERED = re.compile(r"\((\d+)\)|#(\d+) for ")

_TOOLS: Final = {
    "note": ("note",),
    "mark": ("mark",),
    "both": ("note", "mark"),
    "mcp": ("tell",),
    "timer": ("set_timer",),
}

Message = dict[str, Any]
Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Task:
    """A question as an agent reads it."""

    number: int
    space: str
    kind: str

    @property
    def tools(self) -> tuple[str, ...]:
        return _TOOLS.get(self.kind, ())


def question(number: int, agent: str, space: str, kind: str) -> str:
    return f"@{agent} #{number} for {agent} in {space}: {kind}"


def decide(messages: Sequence[Message], agent: str) -> list[Call] | str:
    """The calls to make next, or the last words of the cycle."""
    first = max((at for at, each in enumerate(messages) if _text(each).startswith("[INBOX - ")), default=None)
    if first is None:  # an advisor of a panel: the last thing that a person said is the question
        asked = _NUMBER.findall("\n".join(_text(each) for each in messages if each["role"] == "user"))
        return f"re #{asked[-1]} by {agent}" if asked else "Nothing to do."
    since = messages[first + 1 :]
    told = [_text(messages[first]), *(_text(each) for each in since if _text(each).startswith("[MID-CYCLE UPDATE"))]
    tasks = [
        Task(int(number), space, kind)
        for number, whom, space, kind in _TASK.findall(_COMING.sub("", "\n".join(told)))
        if whom == agent
    ]
    if not tasks:
        return [("skip", {"reason": "not for me"})]
    called = [_call(each) for message in since for each in message.get("tool_calls") or ()]
    results = "\n".join(_text(each) for each in since if each["role"] == "tool")
    outside = [
        _outside(name, task, agent)
        for task in tasks
        for name in task.tools
        if (name, task.number) not in _numbers(called)
    ]
    answers = [_answer(task, results) for task in tasks if ("send_message", task.number) not in _numbers(called)]
    together = all(task.kind in ("plain", "both", "hook", "guest", "rung") for task in tasks)
    return (outside if outside and not together else [*outside, *answers]) or f"Answered {_named(tasks)}."


def _outside(name: str, task: Task, agent: str) -> Call:
    if name == "set_timer":
        return name, {"after": "1 second", "reason": f"#{task.number} for {agent} in {task.space}: rung"}
    return name, {"number": task.number}


def _answer(task: Task, results: str) -> Call:
    outcome = "done" if f"did {task.number}." in results else "unknown" if task.tools else "plain"
    text = f"rung #{task.number}" if task.kind == "rung" else f"re #{task.number}: {outcome}"
    return "send_message", {"space_id": task.space, "text": text}


def _named(tasks: Sequence[Task]) -> str:
    return ", ".join(str(task.number) for task in tasks)


def _call(call: dict[str, Any]) -> Call:
    return call["function"]["name"], json.loads(call["function"]["arguments"] or "{}")


def _numbers(called: Sequence[Call]) -> set[tuple[str, int]]:
    """What was called, and for which question."""
    found: set[tuple[str, int]] = set()
    for name, arguments in called:
        said = _NUMBER.search(str(arguments.get("text") or arguments.get("reason") or f"#{arguments.get('number')}"))
        if said is not None:
            found.add((name, int(said[1])))
    return found


def _text(message: Message) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content)
    return content or ""


@dataclass
class ModelServer:
    """Answers in OpenAI's format, and counts what is done to the world outside."""

    port: int = 0
    history: History | None = None
    chance: random.Random = field(default_factory=random.Random)
    requests: int = 0

    async def think(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests += 1
        await asyncio.sleep(self.chance.uniform(0, SLOWEST_SECONDS))
        decided = _asked_for_json(body) or decide(body["messages"], body["model"])
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for delta, finish in _deltas(decided):
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
            await response.write(f"data: {json.dumps(chunk)}\n\n".encode())
        await response.write(b"data: [DONE]\n\n")
        return response

    async def change_the_world(self, request: web.Request) -> web.Response:
        number = int((await request.json())["number"])
        key = request.headers.get("Idempotency-Key", "")
        if self.history is not None:
            self.history.add("effect", tool=request.match_info["tool"], number=number, key=key)
        # It is done, and whoever asked does not know yet: for long enough that many are killed meanwhile.
        await asyncio.sleep(self.chance.uniform(0, SLOWEST_SECONDS) * 2)
        return web.json_response({"result": f"did {number}."})


def _asked_for_json(body: dict[str, Any]) -> str:
    """What a summary or a metaprompt wants: an object of its shape, empty but for the summary itself. Empty if no shape
    was asked.
    """
    wanted = body.get("response_format") or {}
    schema = wanted.get("json_schema", {}).get("schema")
    if schema is None:
        return ""
    answer = _least(schema, schema.get("$defs", {}))
    if "summary_markdown" in answer:
        answer["summary_markdown"] = summary("\n".join(_text(each) for each in body["messages"]))
    return json.dumps(answer)


def summary(shown: str) -> str:
    """A summary of a conversation, from the request that shows the one before and the new messages."""
    return " ".join(f"({before or new})" for before, new in _COVERED.findall(shown)) or "Nothing was asked."


def _least(schema: dict[str, Any], named: dict[str, Any]) -> Any:
    """The least value that a JSON schema allows."""
    if "$ref" in schema:
        return _least(named[schema["$ref"].rsplit("/", 1)[-1]], named)
    if options := schema.get("anyOf"):
        return None if {"type": "null"} in options else _least(options[0], named)
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            return {name: _least(each, named) for name, each in schema.get("properties", {}).items()}
        case "array":
            return []
        case "integer" | "number":
            return schema.get("minimum", 0)
        case "boolean":
            return False
        case "null":
            return None
        case _:
            return schema.get("const", "")


def _deltas(decided: list[Call] | str) -> list[tuple[dict[str, Any], str | None]]:
    if isinstance(decided, str):
        return [({"role": "assistant", "content": decided}, None), ({}, "stop")]
    calls = [
        {
            "index": at,
            "id": f"call_{at}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for at, (name, arguments) in enumerate(decided)
    ]
    return [*(({"role": "assistant", "tool_calls": [each]}, None) for each in calls), ({}, "tool_calls")]


@asynccontextmanager
async def model_server(chance: random.Random) -> AsyncGenerator[ModelServer]:
    """The server, on a free port of loopback."""
    server = ModelServer(chance=chance)
    app = web.Application(client_max_size=64 * 2**20)
    app.router.add_post("/v1/chat/completions", server.think)
    app.router.add_post("/world/{tool}", server.change_the_world)
    elsewhere = Elsewhere(lambda: server.history)
    app.router.add_post("/elsewhere", elsewhere.take)
    app.router.add_post("/mcp", elsewhere.speak)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.port = runner.addresses[0][1]
    try:
        yield server
    finally:
        await runner.cleanup()
