"""Alerts for the owner of an agent: an expensive cycle, a window that stays full, a failed compaction, no summaries,
a context that is set larger than the model's server accepts.

An alert is a log line and a frame on the agent's topic. It changes nothing, and nothing waits for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Final, Literal

from denizen.bus.port import Bus
from denizen.bus.streams import AgentAlert, agent_topic
from denizen.ids import AgentId
from denizen.telemetry.logs import get_logger

log_line = get_logger(__name__)

WINDOW_SHARE: Final = 0.9
"""A window that is this full right after compaction leaves hardly any room for a cycle."""


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert."""

    kind: Literal["dear_cycle", "window_full", "compaction_failed", "no_summaries", "context_too_large"]
    text: str


def dear_cycle(number: int, micros: int, limit: Decimal | None) -> Alert | None:
    """An alert if the cycle cost more than the owner's limit."""
    if limit is None or micros <= limit * 1_000_000:
        return None
    return Alert("dear_cycle", f"Cycle {number} cost ${micros / 1_000_000:.4f}, more than ${limit}.")


def window_full(tokens: int, room: int) -> Alert | None:
    """An alert if hardly any room is left for a cycle after compaction."""
    if tokens <= WINDOW_SHARE * room:
        return None
    return Alert(
        "window_full",
        f"The window holds {tokens:,} of {room:,} tokens after compaction. Shorten the instructions, the goals and "
        "memories, or enlarge window.max_tokens.",
    )


def context_too_large(
    wanted: int | None, accepted: int | None, model: str, setting: str = "window.context_tokens"
) -> Alert | None:
    """An alert if the setting is larger than what the model's server said it accepts."""
    if wanted is None or accepted is None or wanted <= accepted:
        return None
    return Alert(
        "context_too_large",
        f"{setting} is {wanted:,}, but the server of {model} accepts {accepted:,} tokens. Requests are "
        "made smaller until Denizen restarts: change or remove the setting.",
    )


COMPACTION_FAILED: Final = Alert("compaction_failed", "The window could not be compacted: what does not fit leaves it.")
NO_SUMMARIES: Final = Alert(
    "no_summaries",
    'window.strategy is "rolling", but memory is switched off, so no summaries are written. Set memory.enabled, or '
    'use "layered".',
)


def give(bus: Bus, agent_id: AgentId, alert: Alert | None) -> None:
    """Send the alert to the log and to everyone who watches the agent."""
    if alert is None:
        return
    log_line.warning("alert", agent=agent_id, kind=alert.kind, text=alert.text)
    bus.publish(agent_topic(agent_id), AgentAlert(agent_id, alert.kind, alert.text).to_payload())
