"""Shows an agent what arrives while it works, before each step except the first.

Urgent events, or with `all` every event, are taken and shown whole: they belong to the cycle, and what the model saw is
stored. Others are only listed, a line each, at the end of that one request: they wait for the next cycle.
"""

from __future__ import annotations

from dataclasses import dataclass

from pydantic_ai.messages import ModelRequest, UserPromptPart

from denizen.consciousness import log, privacy
from denizen.consciousness.lease import Lease, fence
from denizen.consciousness.log import Entry
from denizen.cycles.records import OpenCycle
from denizen.cycles.settings import Awareness
from denizen.inbox import delivery
from denizen.inbox.events import ALONE, Event
from denizen.inbox.format import MID_CYCLE_UPDATE, PREVIEW_EVENTS, format_inbox, format_preview, take_that_fit
from denizen.inbox.sources import sources_of_events
from denizen.storage.database import Tx
from denizen.trust import origins


@dataclass(frozen=True, slots=True)
class ArrivedEvents:
    """What has arrived during the cycle."""

    taken: tuple[Event, ...]
    update: Entry | None
    """The events that are taken, as they are shown and stored."""
    outside: bool
    """Whether any of it is text from outside: if so, the cycle is marked."""
    preview: str | None = None
    """The preview of the others, shown once."""
    previewed: int = 0
    """The number of the newest of them."""


def _may_interrupt(event: Event, awareness: Awareness) -> bool:
    urgent = awareness in ("urgent", "combined") and event.lane == "urgent"
    # Events that do not wake are read at the next waking: shown here, they would be answered all the same.
    interrupts = urgent or (awareness == "all" and event.wakes)
    # An event that failed together with others is tried alone: it must not make this cycle fail.
    return interrupts and event.attempts < delivery.TRIED_ALONE_AFTER


def notice(
    tx: Tx, lease: Lease, cycle: OpenCycle, awareness: Awareness, *, seq: int, max_tokens: int, text_chars: int
) -> ArrivedEvents:
    """Look at the inbox in the middle of a cycle; take what may interrupt it, as far as it fits."""
    fence(tx, lease)
    waiting = delivery.pending(tx, lease.agent_id)
    told = [event for event in waiting if _may_interrupt(event, awareness)]
    told = told[: take_that_fit(told, max_tokens=max_tokens, text_chars=text_chars)]
    update = None
    if told:
        text = format_inbox(told, now=tx.now, label=MID_CYCLE_UPDATE, text_chars=text_chars)
        message = ModelRequest(parts=[UserPromptPart(text)])
        update = log.entry(seq, cycle.id, "update", message, outside=sources_of_events(told) or None)
        delivery.take(tx, told, cycle.id)
        log.append(tx, lease.agent_id, [update])
        sources = [each for event in told for each in privacy.sources_of_event(event)]
        privacy.add_sources(tx, lease.agent_id, cycle.id, sources)
    taken = {event.number for event in told}
    # A program takes what the agent says now for the answer to another request: later ones are not shown.
    rest = [event for event in waiting if event.wakes and event.number not in taken and ALONE not in event.payload]
    shown = rest[:PREVIEW_EVENTS] if awareness in ("preview", "combined") else []
    outside = any(event.outside for event in (*told, *shown))
    if outside:
        origins.mark_cycle(tx, cycle.id, seq)
    if not shown:
        return ArrivedEvents(tuple(told), update, outside)
    newest = max(event.number for event in shown)
    return ArrivedEvents(tuple(told), update, outside, format_preview(rest), newest)
