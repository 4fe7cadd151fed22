"""Request ids, metrics and spans, around every request and the gate.

The id is the caller's own (`X-Request-Id`) or a new one; it is in the answer and in every log line. A `traceparent` is
continued. Paths are recorded as route templates, so that no identifier becomes a label.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Final

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from denizen.ids import new_id
from denizen.telemetry.metrics import OTHER, Metrics
from denizen.telemetry.telemetry import Telemetry
from denizen.telemetry.traces import Tracer, fail, under

if TYPE_CHECKING:
    from opentelemetry.trace import Span

REQUEST_ID: Final = "X-Request-Id"
UNMATCHED: Final = "unmatched"
"""The route label of a request that no route matched."""
QUIET: Final = frozenset({"/healthz", "/readyz", "/metrics"})
"""Polled by machines all day: no spans."""

_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,64}")
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Observer:
    """Observes every request and its answer."""

    def __init__(self, app: ASGIApp, telemetry: Telemetry) -> None:
        self._app = app
        self._telemetry = telemetry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        seen = _ObservedRequest(self._telemetry, scope, send)
        with structlog.contextvars.bound_contextvars(request=seen.id), under(seen.span):
            try:
                await self._app(scope, receive, seen.answer)
            finally:
                seen.end()


class _ObservedRequest:
    """One request, and the progress of its answer."""

    def __init__(self, telemetry: Telemetry, scope: Scope, send: Send) -> None:
        headers = Headers(scope=scope)
        given = headers.get(REQUEST_ID, "")
        self.id = given if _ID.fullmatch(given) else new_id()
        self.span = None if telemetry.tracer is None else _begin(telemetry.tracer, scope, headers, self.id)
        self._metrics = telemetry.metrics
        self._scope = scope
        self._send = send
        self._began = time.perf_counter()
        self._status = 0
        self._streams = False

    async def answer(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            headers = MutableHeaders(scope=message)
            headers[REQUEST_ID] = self.id
            self._streams = headers.get("content-type", "").startswith("text/event-stream")
            if self._streams and self._metrics is not None:
                self._metrics.readers.change(1)
        await self._send(message)

    def end(self) -> None:
        """Records that the answer is complete, or the caller is gone."""
        method = self._scope["method"] if self._scope["method"] in _METHODS else OTHER
        route = getattr(self._scope.get("route"), "path", UNMATCHED)
        if self._metrics is not None:
            self._count(self._metrics, method, route)
        if self.span is not None:
            self.span.update_name(f"{method} {route}")
            self.span.set_attributes({"http.route": route, "http.response.status_code": self._status})
            if self._status >= 500 or not self._status:
                fail(self.span, str(self._status))
            self.span.end()

    def _count(self, metrics: Metrics, method: str, route: str) -> None:
        metrics.http_requests.add(1, method, route, str(self._status))
        if self._streams:
            metrics.readers.change(-1)
        else:
            metrics.http_seconds.observe(time.perf_counter() - self._began, route)


def _begin(tracer: Tracer, scope: Scope, headers: Headers, request_id: str) -> Span | None:
    if scope["path"] in QUIET:
        return None
    method = scope["method"] if scope["method"] in _METHODS else OTHER
    return tracer.begin(
        method,
        {"http.request.method": method, "denizen.request.id": request_id},
        kind="server",
        parent=tracer.taken_up(headers),
    )
