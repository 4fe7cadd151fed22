"""What a runtime has to be watched with. Without any of it, watching costs nothing."""

from __future__ import annotations

from dataclasses import dataclass

from denizen.telemetry.metrics import Metrics
from denizen.telemetry.traces import Tracer


@dataclass(frozen=True, slots=True)
class Telemetry:
    """Where what happens is told."""

    metrics: Metrics | None = None
    tracer: Tracer | None = None
    content: bool = False
    """Whether spans hold what was said, too."""
    open_metrics: bool = False
    """Whether the metrics are shown to whoever asks, without a token."""

    async def aclose(self) -> None:
        """What is still to be told has been told, as far as anyone took it."""
        if self.tracer is not None:
            await self.tracer.close()


OFF = Telemetry()
