"""Traces by OpenTelemetry: spans of what happens here, sent to a collector. Nothing of it is loaded where it is off.

The provider is this runtime's own; a program that has one of its own keeps it. What a request from outside brings
(`traceparent`) is taken up: the request's span hangs from it, and so does the cycle that the request has woken, as long
as that is thought in the same process.
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
"""How many messages and triggers are known by the request that brought them."""
FLUSH_SECONDS: Final = 5
"""How long the end of the process waits for a collector to take what is left."""

_current: ContextVar[Span | None] = ContextVar("denizen_span", default=None)


def passed_on() -> dict[str, str]:
    """The headers that tell another service of which trace its work is part; none where nothing is traced."""
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
        """A span that has begun now, or `at` that time in nanoseconds; whoever asks for it has to end it."""
        from opentelemetry.context import Context
        from opentelemetry.trace import Link, NonRecordingSpan, Span, SpanKind, set_span_in_context

        above = NonRecordingSpan(parent) if parent is not None and not isinstance(parent, Span) else parent
        return self._tracer.start_span(
            name,
            # Never the span that happens to be current: who hangs from whom is said.
            context=Context() if above is None else set_span_in_context(above, Context()),
            kind=SpanKind[kind.upper()],
            attributes=attributes,
            links=[Link(each) for each in links],
            start_time=at,
        )

    def taken_up(self, headers: Mapping[str, str]) -> SpanContext | None:
        """Of which span of another service a request says it is part."""
        from opentelemetry.context import Context
        from opentelemetry.trace import get_current_span
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        found = get_current_span(TraceContextTextMapPropagator().extract(headers, Context())).get_span_context()
        return found if found.is_valid else None

    def remember(self, event_id: str) -> None:
        """The event of this id came by the request that is under way."""
        span = _current.get()
        if span is None:
            return
        self._causes[event_id] = span.get_span_context()
        if len(self._causes) > REMEMBERED:
            self._causes.popitem(last=False)

    def causes(self, event_ids: Iterable[str]) -> list[SpanContext]:
        """By which requests these events came, as far as they came to this process."""
        found = [self._causes[each] for each in event_ids if each in self._causes]
        return list({each.span_id: each for each in found}.values())

    async def close(self) -> None:
        """What is left has been sent, if the collector took it in time."""
        flushing = asyncio.ensure_future(asyncio.to_thread(self._provider.force_flush))
        done, _ = await asyncio.wait({flushing}, timeout=FLUSH_SECONDS)
        if not done:
            # It would go on trying; so it gives up, and what is left is lost.
            self._exporter.shutdown()
        await asyncio.to_thread(self._provider.shutdown)
        await flushing


def fail(span: Span, error: str) -> None:
    """The span ended badly. Only the kind of the error is told: its words may be anyone's."""
    from opentelemetry.trace import Status, StatusCode

    span.set_attribute("error.type", error)
    span.set_status(Status(StatusCode.ERROR))


_NOWHERE: Final = nullcontext()


def under(span: Span | None) -> AbstractContextManager[None]:
    """Inside, what is done is part of this span: also for libraries that make spans of their own."""
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
    # What the environment says (OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES) is the stronger.
    provider = TracerProvider(resource=Resource(ours).merge(OTELResourceDetector().detect()), shutdown_on_exit=False)
    exporter = OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces")
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider, exporter
