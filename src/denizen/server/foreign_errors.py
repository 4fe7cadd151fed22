"""Errors in the formats of other protocols, for the paths that their clients use: OpenAI's API and MCP.

The code that makes an answer need not know who asked: problems are converted on their way out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from starlette.datastructures import MutableHeaders
from starlette.types import Message, Send

from denizen.server.problems import MEDIA_TYPE

_TYPES: Final = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_REFUSED: Final = {422: 400}
"""Statuses for which OpenAI uses another than we do."""
_INVALID_REQUEST, _INTERNAL_ERROR = -32600, -32603
"""Codes of JSON-RPC."""

Convert = Callable[[Mapping[str, Any]], dict[str, Any]]


def openai_error(problem: Mapping[str, Any]) -> dict[str, Any]:
    """Converts one of our problems to OpenAI's format."""
    status: int = problem["status"]
    fields: list[dict[str, str]] = problem.get("errors") or [{}]
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    told = {"message": problem["detail"], "type": kind, "param": fields[0].get("field"), "code": problem["code"]}
    return {"error": told}


def mcp_error(problem: Mapping[str, Any]) -> dict[str, Any]:
    """Converts one of our problems to an error of JSON-RPC: of other bodies, clients show only that there was one."""
    code = _INVALID_REQUEST if problem["status"] < 500 else _INTERNAL_ERROR
    error = {"code": code, "message": problem["detail"], "data": {"code": problem["code"]}}
    return {"jsonrpc": "2.0", "id": None, "error": error}


def with_errors(send: Send, convert: Convert) -> Send:
    """Wraps `send` so that problems are converted."""
    held: Message | None = None

    async def sending(message: Message) -> None:
        nonlocal held
        if message["type"] == "http.response.start" and _is_problem(message):
            held = message
            return
        if held is not None and message["type"] == "http.response.body":
            # Problems are short: they come in one piece.
            body = json.dumps(convert(json.loads(message["body"]))).encode()
            headers = MutableHeaders(scope=held)
            headers["content-type"], headers["content-length"] = "application/json", str(len(body))
            start, held = held, None
            await send({**start, "status": _REFUSED.get(start["status"], start["status"])})
            message = {**message, "body": body}
        await send(message)

    return sending


def _is_problem(start: Message) -> bool:
    return MutableHeaders(scope=start).get("content-type", "").startswith(MEDIA_TYPE)
