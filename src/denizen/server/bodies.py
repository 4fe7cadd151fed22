"""Parses request bodies as JSON, with a limit on nesting."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from denizen.inbox.outside import MAX_NESTING, is_deep
from denizen.server.problems import Problem


def parse_json(body: bytes) -> Any:
    """Parses the body. Raises `ValueError` if it is not JSON, and `Problem` if it is nested too deep."""
    try:
        data = json.loads(body)
    except RecursionError as error:
        raise _too_deep() from error
    # Checking each value takes as long as parsing: most bodies have fewer brackets than the limit of levels.
    if body.count(b"[") + body.count(b"{") > MAX_NESTING and is_deep(data, MAX_NESTING):
        raise _too_deep()
    return data


def _too_deep() -> Problem:
    return Problem(
        "nested_too_deep", f"The body may be nested {MAX_NESTING} levels deep. Flatten it, or send it as text."
    )


class _Request(Request):
    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            self._json = parse_json(await self.body())
        return self._json


class BoundedRoute(APIRoute):
    """A route that reads its body with `parse_json`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handler(request: Request) -> Response:
            return await handle(_Request(request.scope, request.receive))

        return handler
