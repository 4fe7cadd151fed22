"""Parses request bodies as JSON, with limits on nesting and on the number of values."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from typing import Any, Final

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from denizen.inbox.outside import MAX_NESTING, is_deep
from denizen.server.problems import Problem

MOST_VALUES: Final = 20_000
"""How many values a body may have. The server answers nobody else while it parses and checks them."""
_LARGE: Final = 1024 * 1024
"""A larger body is put together and parsed in a thread: one with files in it may have 50 MB."""
# A text that does not end matches too, so that every byte is read once.
_TEXT: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)


def parse_json(body: bytes) -> Any:
    """Parses the body. Raises `ValueError` if it is not JSON, and `Problem` if it is nested too deep or has too many
    values.
    """
    # A comma in a text separates nothing. Values without commas between them are nested, which is checked below.
    if body.count(b",") > MOST_VALUES and _TEXT.sub(b"", body).count(b",") > MOST_VALUES:
        raise Problem("too_large", f"The body may have {MOST_VALUES:,} values. Send them in several requests.")
    try:
        data = json.loads(body)
    except RecursionError as error:
        raise _too_deep() from error
    # Checking each value takes as long as parsing: most bodies have fewer brackets than the limit of levels.
    if body.count(b"[") + body.count(b"{") > MAX_NESTING and is_deep(data, MAX_NESTING):
        raise _too_deep()
    return data


async def parse_json_off_loop(body: bytes) -> Any:
    """The same for callers on the event loop."""
    return parse_json(body) if len(body) <= _LARGE else await asyncio.to_thread(parse_json, body)


def _too_deep() -> Problem:
    return Problem(
        "nested_too_deep", f"The body may be nested {MAX_NESTING} levels deep. Flatten it, or send it as text."
    )


class _Request(Request):
    async def body(self) -> bytes:
        """The same as Starlette's, which joins what has come on the event loop: that takes 0.1 s for 50 MB."""
        if not hasattr(self, "_body"):
            async with aclosing(self.stream()) as stream:
                chunks = [chunk async for chunk in stream]
            is_large = sum(map(len, chunks)) > _LARGE
            self._body = await asyncio.to_thread(b"".join, chunks) if is_large else b"".join(chunks)
        return self._body

    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            self._json = await parse_json_off_loop(await self.body())
        return self._json


class BoundedRoute(APIRoute):
    """A route that reads its body with `parse_json`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handler(request: Request) -> Response:
            return await handle(_Request(request.scope, request.receive))

        return handler
