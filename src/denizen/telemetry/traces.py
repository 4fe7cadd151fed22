"""OpenTelemetry traces, sent to a collector. Nothing is imported if it is off.

The provider belongs to this runtime; a program keeps its own. A `traceparent` of an incoming request is continued: the
request's span is its child, and so is the cycle that the request has woken, if it runs in the same process.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Generator, Iterable, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, Literal
from uuid import uuid4

from denizen.errors import InvalidInput

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Span, SpanContext

Attribute = str | bool | int | float | list[str]
Kind = Literal["internal", "client", "server"]

REMEMBERED: Final = 10_000
"""For how many messages and triggers we keep the request that brought them."""
FLUSH_SECONDS: Final = 5
"""How long the end of the process waits for the collector to take what is left."""

_current: ContextVar[Span | None] = ContextVar("denizen_span", default=None)


def passed_on() -> dict[str, str]:
    """Returns the headers that continue the trace in another service; none if nothing is traced."""
    span = _current.get()
    if span is None:
        return {}
    where = span.get_span_context()
    return {"traceparent": f"00-{where.trace_id:032x}-{where.span_id:016x}-{int(where.trace_flags):02x}"}


class Tracer:
    """Makes spans, and sends them to a collector over HTTP until it is closed."""

    def __init__(self, endpoint: str, *, version: str = "") -> None:
        self._provider, self._exporter = _provider(endpoint, version)
        self._tracer = self._provider.get_tracer("denizen", version)
        self._causes: OrderedDict[str, SpanContext] = OrderedDict()

    def begin(
        self,
        name: str,
        attributes: Mapping[str, Attribute],
        *,
        kind: Kind = "internal",
        parent: Span | SpanContext | None = None,
        links: Iterable[SpanContext] = (),
        at: int | None = None,
    ) -> Span:
        """Starts a span now, or `at` that time in nanoseconds; the caller has to end it."""
        from opentelemetry.context import Context
        from opentelemetry.trace import Link, NonRecordingSpan, Span, SpanKind, set_span_in_context

        above = NonRecordingSpan(parent) if parent is not None and not isinstance(parent, Span) else parent
        return self._tracer.start_span(
            name,
            # Never the current span by accident: parents are explicit.
            context=Context() if above is None else set_span_in_context(above, Context()),
            kind=SpanKind[kind.upper()],
            attributes=attributes,
            links=[Link(each) for each in links],
            start_time=at,
        )

    def taken_up(self, headers: Mapping[str, str]) -> SpanContext | None:
        """Returns the span of another service that a request continues."""
        from opentelemetry.context import Context
        from opentelemetry.trace import get_current_span
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        found = get_current_span(TraceContextTextMapPropagator().extract(headers, Context())).get_span_context()
        return found if found.is_valid else None

    def remember(self, event_id: str) -> None:
        """Notes that the event with this id came with the present request."""
        span = _current.get()
        if span is None:
            return
        self._causes[event_id] = span.get_span_context()
        if len(self._causes) > REMEMBERED:
            self._causes.popitem(last=False)

    def causes(self, event_ids: Iterable[str]) -> list[SpanContext]:
        """Returns the requests that brought these events, as far as they came to this process."""
        found = [self._causes[each] for each in event_ids if each in self._causes]
        return list({each.span_id: each for each in found}.values())

    async def close(self) -> None:
        """Sends what is left, if the collector accepts it in time."""
        flushing = asyncio.ensure_future(asyncio.to_thread(self._provider.force_flush))
        done, _ = await asyncio.wait({flushing}, timeout=FLUSH_SECONDS)
        if not done:
            # It would keep trying; this makes it give up, and what is left is lost.
            self._exporter.shutdown()
        await asyncio.to_thread(self._provider.shutdown)
        await flushing


def fail(span: Span, error: str) -> None:
    """Marks the span as failed. Only the kind of the error is recorded: its message may contain anything."""
    from opentelemetry.trace import Status, StatusCode

    span.set_attribute("error.type", error)
    span.set_status(Status(StatusCode.ERROR))


_NOWHERE: Final = nullcontext()


def under(span: Span | None) -> AbstractContextManager[None]:
    """Makes this the current span inside the block, also for libraries with spans of their own."""
    return _NOWHERE if span is None else _under(span)


@contextmanager
def _under(span: Span) -> Generator[None]:
    from opentelemetry.context import attach, detach
    from opentelemetry.trace import set_span_in_context

    ours, theirs = _current.set(span), attach(set_span_in_context(span))
    try:
        yield
    finally:
        detach(theirs)
        _current.reset(ours)


def _provider(endpoint: str, version: str) -> tuple[TracerProvider, SpanExporter]:
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise InvalidInput(
            "Traces need a package that is not installed: pip install 'denizen[otel]'. "
            "Or unset OTEL_EXPORTER_OTLP_ENDPOINT and telemetry.otlp_endpoint."
        ) from error
    ours = {"service.name": "denizen", "service.version": version, "service.instance.id": str(uuid4())}
    # The environment (OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES) takes precedence.
    provider = TracerProvider(resource=Resource(ours).merge(OTELResourceDetector().detect()), shutdown_on_exit=False)
    exporter = OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces")
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider, exporter
