"""Errors as HTTP answers: RFC 9457 problem details, from one table of codes.

Every error answer is `application/problem+json` with `type`, `title`, `status`, `code` and `detail`; clients decide by
`code`. An error that is not in the table is a bug in the server: it is logged, and the caller sees no internals.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import structlog
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import JsonValue
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from denizen.errors import DenizenError, FileTooLarge, NotAMember, NotFound, QuotaExceeded
from denizen.telemetry.logs import get_logger

log: structlog.typing.FilteringBoundLogger = get_logger(__name__)

MEDIA_TYPE: Final = "application/problem+json"
MOST_FIELD_ERRORS: Final = 50
"""How many invalid fields an answer names."""


@dataclass(frozen=True, slots=True)
class Kind:
    """An error code with its status and title."""

    status: int
    title: str


KINDS: Final[Mapping[str, Kind]] = {
    # Requests that are invalid or not accepted
    "bad_request": Kind(400, "The request cannot be understood"),
    "invalid_json": Kind(400, "The body is not JSON"),
    "nested_too_deep": Kind(400, "The body is nested too deep"),
    "unauthorized": Kind(401, "An access token is needed"),
    "signature_wrong": Kind(401, "The signature is wrong"),
    "signature_expired": Kind(401, "The signature is too old"),
    "not_allowed": Kind(403, "You do not have permission"),
    "cross_site": Kind(403, "Requests of other sites are refused"),
    "not_found": Kind(404, "Not found"),
    "method_not_allowed": Kind(405, "Method not allowed"),
    "request_timeout": Kind(408, "The request did not arrive in time"),
    "too_large": Kind(413, "The body is too large"),
    "range_not_satisfiable": Kind(416, "The file has no such bytes"),
    "unsupported_media_type": Kind(415, "The body has to be JSON"),
    "host_refused": Kind(421, "This server does not use that host name"),
    "invalid_input": Kind(422, "The request is invalid"),
    "definitions_invalid": Kind(422, "The definitions have errors"),
    "import_invalid": Kind(422, "The file cannot be imported"),
    "handle_taken": Kind(409, "The handle is taken"),
    "changed_meanwhile": Kind(409, "It was changed meanwhile"),
    "already_settled": Kind(409, "The call already has an answer"),
    "file_too_large": Kind(413, "The file is too large"),
    "quota_exceeded": Kind(413, "There is no room for more files"),
    "upload_conflict": Kind(409, "The upload continues at another offset"),
    "idempotency_key_reused": Kind(422, "The idempotency key was used for something else"),
    "message_refused": Kind(422, "The agent cannot process this message"),
    "model_unknown": Kind(422, "No such model"),
    "model_key_missing": Kind(422, "The model needs an API key"),
    "tool_missing": Kind(422, "A tool is not on this server"),
    "price_unknown": Kind(422, "The price of a model is unknown"),
    "rate_limited": Kind(429, "Too many requests"),
    "too_many_connections": Kind(429, "Too many connections from one address"),
    "too_many_streams": Kind(429, "Too many streams of one person"),
    "model_rejected": Kind(422, "The model's provider refuses this"),
    "model_key_rejected": Kind(422, "The model's provider rejects the API key"),
    "model_unsuitable": Kind(422, "The model's provider cannot use this model"),
    "responses_api_missing": Kind(422, "The model's server has no Responses API"),
    "request_too_large": Kind(422, "The request is too large for the model"),
    "content_refused": Kind(422, "The model's provider refuses the content"),
    # Temporary failures of the server
    "answer_not_in_format": Kind(502, "The answer does not have the requested format"),
    "model_unreachable": Kind(502, "The model's provider did not answer"),
    "model_answer_unusable": Kind(502, "The model's provider gave no usable answer"),
    "budget_spent": Kind(402, "The budget is used up"),
    "model_overloaded": Kind(503, "The model's provider is overloaded"),
    "agent_unavailable": Kind(503, "The agent cannot answer"),
    "database_locked": Kind(503, "The database is busy"),
    "database_unavailable": Kind(503, "The database cannot be reached"),
    "outcome_unknown": Kind(503, "The connection to the database broke while writing"),
    "database_read_only": Kind(503, "The database cannot be written to"),
    "issuer_unreachable": Kind(503, "The identity provider cannot be reached"),
    "overloaded": Kind(503, "The server has too many connections"),
    "not_ready": Kind(503, "This instance takes no work now"),
    "disk_full": Kind(507, "The disk is full"),
    "secret_unreadable": Kind(500, "A secret cannot be decrypted"),
    "secret_key_missing": Kind(500, "There is no key to encrypt secrets with"),
    "internal": Kind(500, "Something went wrong inside Denizen"),
}

_CODE_OF_STATUS: Final = {400: "bad_request", 401: "unauthorized", 404: "not_found", 405: "method_not_allowed"}
_INTERNAL: Final = "An error was logged. If it happens again, tell the administrator of this server."


class Problem(HTTPException):
    """An error that only the HTTP layer raises."""

    def __init__(self, code: str, detail: str, *, headers: Mapping[str, str] | None = None, **more: JsonValue) -> None:
        self.code = code
        self.more = more
        super().__init__(KINDS[code].status, detail, headers)


def problem_response(
    code: str, detail: str, *, headers: Mapping[str, str] | None = None, **more: JsonValue
) -> Response:
    """The answer for a code of the table."""
    kind = KINDS[code]
    body = {"type": "about:blank", "title": kind.title, "status": kind.status, "code": code, "detail": detail, **more}
    # Escaped, because text repeated from the request may hold half a surrogate pair, which is not valid UTF-8.
    return Response(json.dumps(body), kind.status, headers, MEDIA_TYPE)


def internal_response(error: BaseException) -> Response:
    """The answer to a bug in the server, which is logged."""
    log.error("request failed", exc_info=error)
    return problem_response("internal", _INTERNAL)


def install(app: FastAPI) -> None:
    """Makes the app answer every error of its routes as a problem."""
    app.add_exception_handler(DenizenError, _on_denizen_error)
    app.add_exception_handler(RequestValidationError, _on_invalid_request)
    app.add_exception_handler(HTTPException, _on_http_exception)


async def _on_denizen_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, DenizenError)
    if isinstance(error, NotAMember):
        # Those who are not in a space are not told that it exists.
        error = NotFound("space", request.path_params.get("space_id", ""))
    return problem_of(error)


def problem_of(error: DenizenError) -> Response:
    """The answer to one of our own errors; those that no caller can cause are bugs."""
    kind = KINDS.get(error.code)
    if kind is None:
        return internal_response(error)
    if kind.status < 500:
        return problem_response(error.code, str(error), **_sizes(error))
    log.warning("request failed", code=error.code, error=str(error))
    headers = {"Retry-After": "1"} if kind.status == 503 else None
    # Not the error's own message: it names files and hosts.
    return problem_response(error.code, (type(error).__doc__ or kind.title).strip(), headers=headers)


def _sizes(error: DenizenError) -> dict[str, Any]:
    """Returns the exact numbers of bytes that the sentence rounds."""
    if not isinstance(error, FileTooLarge | QuotaExceeded):
        return {}
    used = error.used if isinstance(error, QuotaExceeded) else None
    found = {"size": error.size, "used": used, "limit": error.limit}
    return {name: number for name, number in found.items() if number is not None}


async def _on_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if isinstance(error, Problem):
        return problem_response(error.code, error.detail, headers=error.headers, **error.more)
    code = _CODE_OF_STATUS.get(error.status_code)
    if code is None:
        return internal_response(error)
    return problem_response(code, _sentence(code, request), headers=error.headers)


def _sentence(code: str, request: Request) -> str:
    match code:
        case "not_found" if request.url.path == "/v1/completions":
            return "An agent answers messages and does not continue texts: use /v1/chat/completions."
        case "not_found" if request.url.path.startswith("/v1/"):
            there = "/v1/models, /v1/chat/completions, /v1/responses and /v1/embeddings"
            return f"There is nothing at {request.url.path}. This server has {there}."
        case "not_found":
            return f"There is nothing at {request.url.path}."
        case "method_not_allowed":
            return f"{request.method} does not apply to {request.url.path}."
        case _:
            return "The request cannot be understood."


async def _on_invalid_request(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found: Sequence[Mapping[str, Any]] = error.errors()
    if any(each["type"] == "json_invalid" for each in found):
        return problem_response("invalid_json", "The body is not JSON: check quotes, commas and brackets.")
    errors = [_field_error(each) for each in found[:MOST_FIELD_ERRORS]]
    detail = "; ".join(f"{each['field']}: {each['message']}" for each in errors)
    if len(found) > len(errors):
        detail += f"; and {len(found) - len(errors):,} more"
    return problem_response("invalid_input", f"{detail}.", errors=[dict(each) for each in errors])


def _field_error(found: Mapping[str, Any]) -> dict[str, str]:
    """Returns the path of the invalid field, like `metadata.color`, and what is wrong. Never its value: it may be
    secret.
    """
    where, *path = found["loc"]
    message = str(found["msg"]).removeprefix("Value error, ").removesuffix(".")
    return {"in": str(where), "field": ".".join(map(str, path)) or str(where), "message": message}
