"""Errors in OpenAI's format, for the paths that its clients use: `{"error": {…}}`.

The code that makes an answer need not know who asked: problems are converted on their way out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from starlette.datastructures import MutableHeaders
from starlette.types import Message, Send

from denizen.server.problems import MEDIA_TYPE

_TYPES: Final = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_REFUSED: Final = {422: 400}
"""Statuses for which OpenAI uses another than we do."""


def error_body(problem: Mapping[str, Any]) -> dict[str, Any]:
    """Converts one of our problems to OpenAI's format."""
    status: int = problem["status"]
    fields: list[dict[str, str]] = problem.get("errors") or [{}]
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    told = {"message": problem["detail"], "type": kind, "param": fields[0].get("field"), "code": problem["code"]}
    return {"error": told}


def with_errors_of_openai(send: Send) -> Send:
    """Wraps `send` so that problems are converted."""
    held: Message | None = None

    async def sending(message: Message) -> None:
        nonlocal held
        if message["type"] == "http.response.start" and _is_problem(message):
            held = message
            return
        if held is not None and message["type"] == "http.response.body":
            # Problems are short: they come in one piece.
            body = json.dumps(error_body(json.loads(message["body"]))).encode()
            headers = MutableHeaders(scope=held)
            headers["content-type"], headers["content-length"] = "application/json", str(len(body))
            start, held = held, None
            await send({**start, "status": _REFUSED.get(start["status"], start["status"])})
            message = {**message, "body": body}
        await send(message)

    return sending


def _is_problem(start: Message) -> bool:
    return MutableHeaders(scope=start).get("content-type", "").startswith(MEDIA_TYPE)
