"""Hints from other instances: agents that may have something to do. A lost hint delays work until the next sweep."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from denizen.agents.residents import Residents
from denizen.bus.hearing import MOST_UNHEARD, hearing
from denizen.bus.port import Bus, Frame, Gap
from denizen.bus.streams import WAKE, woken
from denizen.inbox.stop_requests import STOP, StopHints, hinted


def listening(
    bus: Bus, residents: Residents, instance: str, *, most_unheard: int = MOST_UNHEARD
) -> AbstractAsyncContextManager[None]:
    """While entered, announcements of other instances wake the residents of this one."""

    def hear(item: Frame | Gap) -> None:
        # Agents that a gap in the stream concerns are found by the sweep.
        if isinstance(item, Frame) and item.payload.get("by") != instance:
            for agent_id in woken(item.payload):
                residents.hint(agent_id)

    return hearing(bus, WAKE, hear, most_unheard=most_unheard)


def hearing_stops(bus: Bus, stop_hints: StopHints, instance: str) -> AbstractAsyncContextManager[None]:
    """While entered, requests to stop that other instances received reach the agents of this one."""

    def hear(item: Frame | Gap) -> None:
        # Requests that a gap in the stream concerns are found at the next renewal of the leases.
        told = hinted(item.payload) if isinstance(item, Frame) and item.payload.get("by") != instance else None
        if told is not None:
            stop_hints.hint(*told)

    return hearing(bus, STOP, hear)
