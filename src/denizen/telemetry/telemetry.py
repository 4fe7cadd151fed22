"""The metrics and traces of a runtime. Without them, instrumentation costs nothing."""

from __future__ import annotations

from dataclasses import dataclass

from denizen.telemetry.metrics import Metrics
from denizen.telemetry.traces import Tracer


@dataclass(frozen=True, slots=True)
class Telemetry:
    """The metrics and the tracer of a runtime."""

    metrics: Metrics | None = None
    tracer: Tracer | None = None
    content: bool = False
    """Whether spans include messages and texts."""
    open_metrics: bool = False
    """Whether the metrics are served without a token."""

    async def aclose(self) -> None:
        """Sends what is left, as far as the collector accepts it."""
        if self.tracer is not None:
            await self.tracer.close()


OFF = Telemetry()
