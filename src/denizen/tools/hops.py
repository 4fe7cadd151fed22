"""Counts how long a chain of agents answering each other is.

A send counts from the newest message of its space that the request held, in whatever form: as an event of the cycle, as
a line of a preview of the inbox, or on a page of `read_messages`. What a cycle was shown besides its events is derived
from its entries in the log, so that a resumed cycle counts as it would have done.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from denizen.consciousness.log import Entry
from denizen.ids import AgentId, SpaceId
from denizen.inbox import delivery
from denizen.inbox.events import Event
from denizen.spaces import posting
from denizen.spaces.transcript import shown_page
from denizen.storage.database import Tx

PREVIEWED: Final = "previewed"
"""Key in the stored request: the number of the newest event in its preview."""
_EVERYTHING: Final = 2**62
_INBOX_READ: Final = "[inbox: characters "
"""The beginning of `read_entry`'s result for the inbox. `peek_inbox` had the same in earlier versions."""


@dataclass(frozen=True, slots=True)
class SeenMessages:
    """What a cycle has seen in addition to its events."""

    waiting: int = 0
    """Events that wait in the inbox, up to this number."""
    read: Mapping[str, int] = field(default_factory=dict[str, int])
    """The number of the newest message on a page that it read, by space."""


NOTHING: Final = SeenMessages()


def shown_in(entries: Iterable[Entry]) -> SeenMessages:
    """What these entries of a cycle, with the requests of its responses, have shown to the model. Pure."""
    waiting, read = 0, dict[str, int]()
    for entry in entries:
        if entry.kind == "response" and f'"{PREVIEWED}"' in (entry.request or ""):
            made_of: dict[str, Any] = json.loads(entry.request or "{}")
            waiting = max(waiting, made_of.get(PREVIEWED, 0))
        if entry.kind != "results":
            continue
        for part in entry.message.parts:
            if part.part_kind != "tool-return":
                continue
            if part.tool_name == "peek_inbox" or (
                part.tool_name == "read_entry" and str(part.content).startswith(_INBOX_READ)
            ):
                waiting = _EVERYTHING
            elif part.tool_name == "read_messages" and (page := shown_page(str(part.content))) is not None:
                space_id, last = page
                read[space_id] = max(read.get(space_id, 0), last)
    return SeenMessages(waiting, read) if waiting or read else NOTHING


def hop_of_send(
    tx: Tx, agent_id: AgentId, space_id: SpaceId, events: Sequence[Event], shown: SeenMessages = NOTHING
) -> int:
    """One more than the hop of the newest message of that space that the cycle has seen; a human message has hop 0."""
    held = list(events)
    if shown.waiting:
        held += delivery.newest_of_space(tx, agent_id, space_id, up_to=shown.waiting)
    if (last := shown.read.get(space_id)) is not None:
        read = posting.newest_of_others(tx, space_id, agent_id, up_to=last)
        newest = _newest(held, space_id)
        if read is not None and (newest is None or _comes_after(tx, read, newest)):
            return read.hop + 1
    return hop_after(held, space_id)


def hop_after(events: Sequence[Event], space_id: SpaceId) -> int:
    """One more than the hop of the newest event from that space. Pure.

    If none came from that space, one more than the highest hop in the cycle: a chain that moves from space to space is
    still one chain.
    """
    newest = _newest(events, space_id)
    return (max((event.hop for event in events), default=0) if newest is None else newest.hop) + 1


def _newest(events: Sequence[Event], space_id: SpaceId) -> Event | None:
    from_there = (event for event in events if event.space_id == space_id)
    return max(from_there, key=lambda event: event.number, default=None)


def _comes_after(tx: Tx, message: posting.MessagePosition, event: Event) -> bool:
    seq = None if event.message_id is None else posting.seq_of(tx, event.message_id)
    return seq is None or message.seq > seq


def hop_of_plan(events: Sequence[Event]) -> int:
    """The hop of the cycle that makes a plan: the highest among the events that woke it.

    Events that only lay in the inbox, past the budget of their chain, do not count: they mute no plan made for a
    person.
    """
    return max((event.hop for event in events if event.wakes), default=0)
