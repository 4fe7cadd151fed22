"""A collector of traces on loopback: takes what OTLP over HTTP brings, and decodes it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from denizen.telemetry.metrics import Metrics
from denizen.telemetry.telemetry import Telemetry
from denizen.telemetry.traces import Tracer


@dataclass
class Collector:
    """What was received so far, and by whom it was sent."""

    address: str = ""
    bodies: list[bytes] = field(default_factory=list)

    async def take(self, request: web.Request) -> web.Response:
        assert request.content_type == "application/x-protobuf"
        self.bodies.append(await request.read())
        return web.Response(content_type="application/x-protobuf")

    @property
    def requests(self) -> list[ExportTraceServiceRequest]:
        return [ExportTraceServiceRequest.FromString(each) for each in self.bodies]

    @property
    def spans(self) -> list[Span]:
        """All spans, in the order in which they began."""
        found = [
            span
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]
        return sorted(found, key=lambda span: span.start_time_unix_nano)

    def named(self, beginning: str) -> list[Span]:
        return [span for span in self.spans if span.name.startswith(beginning)]


def attributes(span: Span) -> dict[str, Any]:
    """What the span says of itself."""
    return {each.key: _plain(each.value) for each in span.attributes}


def _plain(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_plain(each) for each in value.array_value.values]
    return getattr(value, kind)


@asynccontextmanager
async def collecting() -> AsyncGenerator[Collector]:
    """Inside, a collector listens."""
    collector = Collector()
    app = web.Application(client_max_size=50_000_000)
    app.router.add_post("/v1/traces", collector.take)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    collector.address = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield collector
    finally:
        await runner.cleanup()


def watched(collector: Collector, **options: Any) -> Telemetry:
    """Telemetry that counts, and sends its spans there when it is closed."""
    return Telemetry(Metrics(), Tracer(collector.address, version="1.2.3"), **options)
