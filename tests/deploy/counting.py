"""A model behind the HTTP of a provider that says which numbers it was given: lost and doubled work can be counted.

What it is told are numbers such as `n12n`. To an inbox it answers with a message that names every number in it; after
that it ends the cycle. It holds its answers back while `go_on` is not set.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from aiohttp import web

NUMBER = re.compile(r"n(\d+)n")


@dataclass
class Counting:
    url: str = ""
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    """Set with each request that comes in."""
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: int = 0
    """How many requests have no answer yet."""

    @property
    def environment(self) -> dict[str, str]:
        """What makes a Denizen think with it."""
        return {"DENIZEN_MODEL": "openai-chat:counting", "OPENAI_API_KEY": "none", "OPENAI_BASE_URL": self.url}

    async def hold(self, count: int) -> None:
        """Answers are held back, and so many are waited for."""
        self.go_on.clear()
        while self.waiting < count:
            self.asked.clear()
            await self.asked.wait()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        new = _after_last_answer((await request.json())["messages"])
        self.waiting += 1
        self.asked.set()
        try:
            await self.go_on.wait()
        finally:
            self.waiting -= 1
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for delta, finish in _finishing(new) if any(each["role"] == "tool" for each in new) else _naming(new):
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
            await response.write(f"data: {json.dumps(chunk)}\n\n".encode())
        await response.write(b"data: [DONE]\n\n")
        return response


def _after_last_answer(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return list(takewhile(lambda each: each["role"] != "assistant", reversed(messages)))


def _naming(new: list[dict[str, Any]]) -> list[tuple[dict[str, Any], str | None]]:
    told = " ".join(str(each["content"]) for each in new if each["role"] == "user")
    text = " ".join(f"n{number}n" for number in NUMBER.findall(told)) or "Nothing."
    function = {"name": "send_message", "arguments": json.dumps({"text": text})}
    call = {"index": 0, "id": "call", "type": "function", "function": function}
    return [({"role": "assistant", "tool_calls": [call]}, None), ({}, "tool_calls")]


def _finishing(_: list[dict[str, Any]]) -> list[tuple[dict[str, Any], str | None]]:
    return [({"role": "assistant", "content": "Counted."}, None), ({}, "stop")]


@asynccontextmanager
async def counting() -> AsyncGenerator[Counting]:
    """The model, on a free port of loopback."""
    model = Counting()
    app = web.Application(client_max_size=64 * 2**20)
    app.router.add_post("/v1/chat/completions", model.answer)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    model.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield model
    finally:
        model.go_on.set()
        await runner.cleanup()
